//! Columns of a job's tables, which are stored in files if they exceed its memory.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use allocator_api2::boxed::Box;
use allocator_api2::vec::{IntoIter, Vec as AllocatedVec};
use bytemuck::Zeroable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spill::table_memory::TableAllocator;

type TableVec<T> = AllocatedVec<T, TableAllocator>;

/// A growable array with the methods of [`Vec`], for the data that a job keeps of each document or text; see
/// [`table_memory`](crate::spill::table_memory).
#[derive(Debug)]
pub(crate) struct TableColumn<T>(TableVec<T>);

impl<T> TableColumn<T> {
    pub(crate) const fn new() -> Self {
        Self(TableVec::new_in(TableAllocator::new()))
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(TableVec::with_capacity_in(capacity, TableAllocator::new()))
    }

    /// Creates a column of `length` values whose bytes are all zero, on pages that the system clears when they are first written.
    #[expect(unsafe_code, reason = "cleared memory as values")]
    pub(crate) fn zeroed(length: usize) -> Self
    where
        T: Zeroable,
    {
        let cleared =
            Box::<[T], TableAllocator>::new_zeroed_slice_in(length, TableAllocator::new());
        // SAFETY: zeros are valid values of the type.
        Self(unsafe { cleared.assume_init() }.into_vec())
    }
}

impl<T: Copy> TableColumn<T> {
    /// Appends all values with one copy. The method behind [`Deref`] copies them one by one.
    #[expect(unsafe_code, reason = "a copy to memory that is not filled yet")]
    pub(crate) fn extend_from_slice(&mut self, values: &[T]) {
        self.0.reserve(values.len());
        let length = self.0.len();
        // SAFETY: `reserve` made room for the values after the last one, and a column that is borrowed mutably does not overlap other values.
        // The copy initialises all values up to the new length.
        unsafe {
            let end = self.0.as_mut_ptr().add(length);
            std::ptr::copy_nonoverlapping(values.as_ptr(), end, values.len());
            self.0.set_len(length + values.len());
        }
    }
}

impl<T: Copy> Clone for TableColumn<T> {
    fn clone(&self) -> Self {
        let mut cloned = Self::new();
        // An exact capacity: clones do not grow, and growth by doubling would take up to twice the share.
        cloned.0.reserve_exact(self.len());
        cloned.extend_from_slice(self);
        cloned
    }
}

/// An atomic number with the bits and the alignment of a plain one.
///
/// # Safety
/// The implementor has the size, bits and alignment of [`AtomicNumber::Number`].
#[expect(unsafe_code, reason = "a promise about types")]
pub(crate) unsafe trait AtomicNumber {
    type Number;
}

// SAFETY: by its documentation it has the size and bits of the plain number, and the assertions below check the alignment.
#[expect(unsafe_code, reason = "a promise about types")]
unsafe impl AtomicNumber for AtomicU32 {
    type Number = u32;
}

// SAFETY: as above.
#[expect(unsafe_code, reason = "a promise about types")]
unsafe impl AtomicNumber for AtomicU64 {
    type Number = u64;
}

const _: () = {
    assert!(align_of::<AtomicU32>() == align_of::<u32>());
    assert!(align_of::<AtomicU64>() == align_of::<u64>());
};

impl<A: AtomicNumber> TableColumn<A> {
    /// Converts a column of atomic numbers into one of plain numbers, without a copy.
    #[expect(unsafe_code, reason = "an array as one of another type")]
    pub(crate) fn into_numbers(self) -> TableColumn<A::Number> {
        let (start, length, capacity, allocator) = self.0.into_raw_parts_with_alloc();
        // SAFETY: both types have the same layout and bits, and nothing else owns the array.
        TableColumn(unsafe {
            TableVec::from_raw_parts_in(start.cast(), length, capacity, allocator)
        })
    }
}

impl<T> Default for TableColumn<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for TableColumn<T> {
    type Target = TableVec<T>;

    #[inline]
    fn deref(&self) -> &TableVec<T> {
        &self.0
    }
}

impl<T> DerefMut for TableColumn<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut TableVec<T> {
        &mut self.0
    }
}

impl<T> AsRef<[T]> for TableColumn<T> {
    fn as_ref(&self) -> &[T] {
        &self.0
    }
}

impl<T> AsMut<[T]> for TableColumn<T> {
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Extend<T> for TableColumn<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl<T> FromIterator<T> for TableColumn<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut column = Self::new();
        column.extend(values);
        column
    }
}

impl<T> IntoIterator for TableColumn<T> {
    type Item = T;
    type IntoIter = IntoIter<T, TableAllocator>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a TableColumn<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: PartialEq, V: AsRef<[T]> + ?Sized> PartialEq<V> for TableColumn<T> {
    fn eq(&self, values: &V) -> bool {
        self.0[..] == *values.as_ref()
    }
}

impl<T: Serialize> Serialize for TableColumn<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0[..].serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TableColumn<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}
