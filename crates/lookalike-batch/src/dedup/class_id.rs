//! Numbers of classes of equal texts, and columns indexed by them.

use crate::spill::table_column::TableColumn;

/// Number of a class: its position plus one, so that `Option<ClassId>` takes 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(std::num::NonZeroU32);

impl ClassId {
    pub(crate) fn new(position: usize) -> Option<Self> {
        u32::try_from(position.checked_add(1)?)
            .ok()
            .and_then(std::num::NonZeroU32::new)
            .map(Self)
    }

    pub(crate) fn position(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Sets the value of a class and extends the column if needed, because threads finish classes in any order.
pub(crate) fn put<T: Copy + Default>(column: &mut TableColumn<T>, class: ClassId, value: T) {
    let position = class.position();
    if position >= column.len() {
        column.resize(position + 1, T::default());
    }
    column[position] = value;
}
