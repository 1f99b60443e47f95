//! Sending of records in batches: records that the service refuses are set aside, and the others are sent again.

use lookalike_batch::{SkippedRow, SkippedRows};

use super::http::{Refusal, RequestError};
use crate::console;
use crate::failure::Failure;

/// Number of refused records, without any accepted one, after which the collection is the cause, not the records.
///
/// It is high because the worst records may come first, and a request for each is quickly answered.
const MAX_REFUSED_WITHOUT_ACCEPTED: u64 = 1000;

/// Number of lost records that are printed.
const MAX_PRINTED: usize = 10;

/// Maximum number of bytes of records in a batch, unless a single one has more.
// A quarter of the default limit of a service, because escapes make a text longer in JSON.
const BYTES: usize = 2 << 20;

/// A request that sends records of one kind.
pub(super) trait RecordRequest<T> {
    /// Sends records, which are accepted or refused together.
    fn send(&mut self, records: &[T]) -> Result<(), RequestError>;

    /// Returns the origin of a record.
    fn place(&self, record: &T) -> String;

    /// Adds to a failure which records were sent, after `taken` accepted ones.
    fn failed(&self, failure: Failure, _records: &[T], _taken: u64) -> Failure {
        failure
    }
}

/// Sends records in batches, and tracks refusals.
pub(super) struct RecordSender<R, T> {
    pub(super) request: R,
    /// Maximum number of records in a batch.
    most: usize,
    /// Records of the next batch.
    waiting: Vec<T>,
    bytes: usize,
    /// True if the first lost record ends the reading.
    strict: bool,
    /// Number of records that the service accepted.
    pub(super) taken: u64,
    /// Number of records that it refused before it accepted any.
    refused: u64,
    /// The first of these, and the reason.
    first: Option<String>,
    /// Everything that was not sent or not accepted.
    pub(super) skipped: SkippedRows,
}

impl<R: RecordRequest<T>, T> RecordSender<R, T> {
    pub(super) fn new(request: R, most: u32, strict: bool) -> Self {
        Self {
            request,
            most: most as usize,
            waiting: Vec::new(),
            bytes: 0,
            strict,
            taken: 0,
            refused: 0,
            first: None,
            skipped: SkippedRows::with_losses(MAX_PRINTED),
        }
    }

    /// Returns true if a loss has ended the reading.
    pub(super) fn is_finished(&self) -> bool {
        self.strict && self.skipped.has_losses()
    }

    /// Adds a record with this number of bytes to the batch, and sends the batch first if it is full.
    pub(super) fn push(&mut self, record: T, bytes: usize) -> Result<(), Failure> {
        if self.waiting.len() == self.most || self.bytes + bytes > BYTES {
            self.send()?;
        }
        // A loss may have ended the reading, so that this record is not sent either.
        if !self.is_finished() {
            self.bytes += bytes;
            self.waiting.push(record);
        }
        Ok(())
    }

    /// Sends the records that wait.
    pub(super) fn send(&mut self) -> Result<(), Failure> {
        let records = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let sent = self.send_in_order(&records);
        sent.map(drop)
            .map_err(|failure| self.request.failed(failure, &records, self.taken))
    }

    /// Sends records. Returns false if a loss ended the reading.
    fn send_in_order(&mut self, records: &[T]) -> Result<bool, Failure> {
        // The last one is sent next.
        let mut waiting = vec![records];
        while let Some(batch) = waiting.pop() {
            if batch.is_empty() {
                continue;
            }
            let refusal = match self.request.send(batch) {
                Ok(()) => {
                    self.taken += batch.len() as u64;
                    continue;
                }
                Err(RequestError::Refused(refusal)) => refusal,
                Err(error) => return Err(error.into()),
            };
            match refusal_cause(&refusal, batch.len()) {
                Some(RefusalCause::Record(at)) => {
                    // A batch is accepted or refused as a whole.
                    if !self.send_in_order(&batch[..at])? {
                        return Ok(false);
                    }
                    self.record_refused(&self.request.place(&batch[at]), &refusal)?;
                    if self.strict {
                        return Ok(false);
                    }
                    waiting.push(&batch[at + 1..]);
                }
                // Halves until the service takes them or a single record is too large.
                Some(RefusalCause::Length) => {
                    let (first, rest) = batch.split_at(batch.len() / 2);
                    waiting.extend([rest, first]);
                }
                None => return Err(RequestError::Refused(refusal).into()),
            }
        }
        Ok(true)
    }

    fn record_refused(&mut self, place: &str, refusal: &Refusal) -> Result<(), Failure> {
        let reason = &refusal.reason;
        self.skipped.add("refused", format!("{place}: {reason}"));
        // Any collection refuses records that are too large.
        // Once a record was accepted, the collection is not the cause.
        if self.taken > 0 || refusal.status == 413 {
            return Ok(());
        }
        self.refused += 1;
        self.first
            .get_or_insert_with(|| format!("{place}: {refusal}"));
        if self.refused < MAX_REFUSED_WITHOUT_ACCEPTED {
            return Ok(());
        }
        self.ensure_any_accepted()
    }

    /// Fails if all records were refused.
    fn ensure_any_accepted(&self) -> Result<(), Failure> {
        match &self.first {
            Some(first) if self.taken == 0 => Err(Failure::Failed(format!(
                "the service refused all {} records so far, the first of them: {first}",
                self.refused
            ))),
            _ => Ok(()),
        }
    }

    /// Prints the first lost records, and returns a row for each kind of skipped record.
    pub(super) fn finish(self) -> Result<Vec<SkippedRow>, Failure> {
        self.ensure_any_accepted()?;
        let losses = self.skipped.losses().to_vec();
        let rows = self.skipped.finish();
        // The last line of the command names a single one.
        if losses.len() > 1 {
            losses.iter().for_each(|loss| console::losses(loss));
            let lost = rows.iter().filter(|row| row.is_loss());
            let lost: u64 = lost.map(|row| row.count).sum();
            if lost > losses.len() as u64 {
                let more = console::grouped(lost - losses.len() as u64);
                console::losses(&format!("and {more} more"));
            }
        }
        Ok(rows)
    }
}

/// The cause of a refused batch.
enum RefusalCause {
    /// One of its records.
    Record(usize),
    /// The length of the batch.
    Length,
}

/// Returns the cause of a refusal, if it is in the records.
fn refusal_cause(refusal: &Refusal, records: usize) -> Option<RefusalCause> {
    const TOO_LARGE: u16 = 413;
    match (refusal.status, refusal.item) {
        (400 | TOO_LARGE | 422, Some(at)) if at < records => Some(RefusalCause::Record(at)),
        // A batch of one record names no item.
        (TOO_LARGE, _) if records == 1 => Some(RefusalCause::Record(0)),
        (TOO_LARGE, _) => Some(RefusalCause::Length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, item: Option<usize>) -> RequestError {
        RequestError::Refused(Refusal {
            status,
            item,
            code: "too-large".to_owned(),
            reason: "no: send another".to_owned(),
            url: "http://a.example/v1".to_owned(),
        })
    }

    /// Simulates a service that accepts at most three even numbers at once, and for which numbers above 100 are too large.
    #[derive(Default)]
    struct EvenNumbers {
        taken: Vec<u32>,
    }

    impl RecordRequest<u32> for EvenNumbers {
        fn send(&mut self, batch: &[u32]) -> Result<(), RequestError> {
            if batch.len() > 3 || batch.iter().any(|&number| number > 100) {
                return Err(refusal(413, None));
            }
            if let Some(at) = batch.iter().position(|number| number % 2 == 1) {
                return Err(refusal(422, Some(at)));
            }
            self.taken.extend_from_slice(batch);
            Ok(())
        }

        fn place(&self, number: &u32) -> String {
            format!("line {number}")
        }
    }

    type NumberSender = RecordSender<EvenNumbers, u32>;

    fn sent(strict: bool, numbers: &[u32]) -> (NumberSender, Result<(), Failure>) {
        let mut sender = RecordSender::new(EvenNumbers::default(), u32::MAX, strict);
        for &number in numbers {
            sender.push(number, 4).expect("there is room for all");
        }
        let done = sender.send();
        (sender, done)
    }

    #[test]
    fn each_record_is_taken_once_in_order_or_set_aside() {
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (state >> 16) % 120
        };
        for length in 0..60 {
            // An accepted one comes first.
            let numbers: Vec<u32> = [2]
                .into_iter()
                .chain((0..length).map(|_| number()))
                .collect();
            let (good, bad): (Vec<u32>, Vec<u32>) = numbers
                .iter()
                .partition(|&&number| number % 2 == 0 && number <= 100);
            let (sender, done) = sent(false, &numbers);
            assert!(done.is_ok());
            assert_eq!(sender.request.taken, good);
            assert_eq!(sender.taken, good.len() as u64);
            let rows = sender.finish().expect("some were taken");
            let count: u64 = rows.iter().map(|row| row.count).sum();
            assert_eq!(count, bad.len() as u64);
            if let (Some(row), Some(first)) = (rows.first(), bad.first()) {
                assert_eq!(row.first, format!("line {first}: no: send another"));
            }
        }
    }

    #[test]
    fn the_first_loss_is_the_last_record_of_a_strict_command() {
        let (sender, done) = sent(true, &[2, 4, 5, 6]);
        assert!(done.is_ok() && sender.is_finished());
        assert_eq!(sender.request.taken, [2, 4]);
    }

    #[test]
    fn a_collection_that_takes_nothing_ends_the_command() {
        let odd: Vec<u32> = (0..1500).map(|number| 2 * (number % 50) + 1).collect();
        let (sender, done) = sent(false, &odd);
        let said = done.expect_err("nothing was taken").to_string();
        assert!(sender.taken == 0 && said.contains("line 1: http"), "{said}");
        // Too few to end at once.
        let (sender, done) = sent(false, &[1, 3]);
        assert!(done.is_ok() && sender.finish().is_err());
        // Records that are too large do not blame the collection.
        let (sender, done) = sent(false, &[200; 30]);
        assert!(done.is_ok());
        assert_eq!(sender.finish().expect("too large")[0].count, 30);
    }
}
