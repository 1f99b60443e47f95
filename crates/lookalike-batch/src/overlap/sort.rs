//! The sort engine (S4): every pair of units in every list, sorted, counted.
//!
//! Disk is its price: eight bytes for each chunk of each pair, the very common ones included.

use std::io;
use std::path::Path;

use super::Row;
use super::external_sort::ExternalSort;
use super::postings::Postings;
use crate::error::BatchError;

/// Hands over the rows of all pairs, in order. `done` hears how many lists are behind.
pub(crate) fn rows(
    postings: &Postings,
    min_shared: u32,
    budget: u64,
    folder: &Path,
    emit: &mut dyn FnMut(Row) -> Result<(), BatchError>,
    done: &dyn Fn(u64),
) -> Result<(), BatchError> {
    let temporary = BatchError::temporary(folder);
    let mut sort = ExternalSort::<u64>::new(budget, folder);
    let mut lists = 0;
    let push = |_, list: &[u32]| {
        for (i, &a) in list.iter().enumerate() {
            list[i + 1..]
                .iter()
                .try_for_each(|&b| sort.push(u64::from(a) << 32 | u64::from(b)))?;
        }
        lists += 1;
        if lists % 4096 == 0 {
            done(lists);
        }
        Ok(())
    };
    postings.lists.scan(push).map_err(&temporary)?;
    count(sort, min_shared, emit).map_err(|failure| match failure {
        Failure::Here(error) => temporary(error),
        Failure::There(error) => error,
    })
}

/// Temporary files and results fail in different places.
enum Failure {
    Here(io::Error),
    There(BatchError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Here(error)
    }
}

fn count(
    sort: ExternalSort<u64>,
    min_shared: u32,
    emit: &mut dyn FnMut(Row) -> Result<(), BatchError>,
) -> Result<(), Failure> {
    let mut run: Option<Row> = None;
    let mut close = |run: Option<Row>| match run {
        Some(row) if row.shared >= min_shared => emit(row).map_err(Failure::There),
        _ => Ok(()),
    };
    sort.drain(|pair| {
        let (a, b) = ((pair >> 32) as u32, pair as u32);
        if let Some(row) = run.as_mut().filter(|row| (row.a, row.b) == (a, b)) {
            row.shared += 1;
            return Ok(());
        }
        close(run.replace(Row { a, b, shared: 1 }))
    })?;
    close(run)
}
