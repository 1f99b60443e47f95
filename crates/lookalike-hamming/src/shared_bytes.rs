//! Fixed-size items of a table: owned, or part of a file that the caller keeps in memory. Both are read in the same way, so a mapped index and a
//! newly built one share all code.

use bytemuck::Pod;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of a whole file, mapped or read; they must not change while they are shared.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Creates an empty buffer with room for `items` items, such as the bytes of a file that is to be shared. For a large one, the system is asked for
/// huge pages before the first item is written. Random probes of an index that was read into such a buffer take about half the time.
pub fn huge_page_buffer<T>(items: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(items);
    super::kernel::advise_huge_pages(&mut room);
    room
}

/// Shares the bytes of a whole file that was read into memory, for random probes: small pages are moved to huge ones as far as the system has them.
pub fn share(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> SharedBytes {
    super::kernel::gather_huge_pages(bytes.as_ref());
    Arc::new(bytes)
}

/// Items of a table.
#[derive(Clone)]
pub(super) enum TableSection<T> {
    Owned(Vec<T>),
    Shared {
        bytes: SharedBytes,
        range: Range<usize>,
    },
}

impl<T: Pod> TableSection<T> {
    /// Returns the items in a range of bytes, copied if they are not aligned for `T`. `None` if the range is not inside the bytes or not a whole
    /// number of items.
    pub(super) fn shared(bytes: &SharedBytes, range: Range<usize>) -> Option<Self> {
        let part = (**bytes).as_ref().get(range.clone())?;
        if !part.len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        // Tested once here, so that the cast in `items` cannot fail. A mapping begins at a page and sections begin at multiples of 64 bytes, so only
        // buffers are ever copied.
        Some(match bytemuck::try_cast_slice::<u8, T>(part) {
            Ok(_) => Self::Shared {
                bytes: Arc::clone(bytes),
                range,
            },
            // Bytes that were read rather than mapped may begin anywhere: they are copied once instead of refused.
            Err(_) => {
                let mut items = vec![T::zeroed(); part.len() / size_of::<T>()];
                bytemuck::cast_slice_mut(&mut items).copy_from_slice(part);
                Self::Owned(items)
            }
        })
    }

    #[inline]
    pub(super) fn items(&self) -> &[T] {
        match self {
            Self::Owned(items) => items,
            Self::Shared { bytes, range } => {
                // Does not panic: `shared` tried the same cast.
                bytemuck::cast_slice(&(**bytes).as_ref()[range.clone()])
            }
        }
    }

    /// Returns the items as the bytes of a file.
    pub(super) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.items())
    }

    /// Returns the items of a table that is being built.
    ///
    /// # Panics
    ///
    /// Panics if they are part of a file: such a table is complete.
    pub(super) fn growing(&mut self) -> &mut Vec<T> {
        match self {
            Self::Owned(items) => items,
            Self::Shared { .. } => panic!("a table of a file never grows"),
        }
    }
}

impl<T> Default for TableSection<T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T: Pod> fmt::Debug for TableSection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self {
            Self::Owned(_) => "owned",
            Self::Shared { .. } => "shared",
        };
        write!(f, "{origin}[{}]", self.items().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_file_are_read_in_place_or_copied() {
        let bytes = share((0..=255_u8).collect::<Vec<u8>>());
        for start in 0..8 {
            let section =
                TableSection::<[u8; 4]>::shared(&bytes, start..start + 12).expect("inside");
            assert_eq!(section.items()[1][0] as usize, start + 4);
            let wide = TableSection::<u64>::shared(&bytes, start..start + 16).expect("inside");
            assert_eq!(wide.bytes(), &(*bytes).as_ref()[start..start + 16]);
        }
        assert!(TableSection::<u32>::shared(&bytes, 0..7).is_none());
        assert!(TableSection::<u8>::shared(&bytes, 250..257).is_none());
    }
}
