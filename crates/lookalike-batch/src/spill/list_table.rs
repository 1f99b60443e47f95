//! Many lists in two columns.

use bytemuck::Zeroable;

use super::table_column::TableColumn;

/// Numbered lists whose items are stored one after another.
///
/// Memory: the items, and 4 bytes a list; 4 more while the table is built.
#[derive(Default)]
pub(crate) struct ListTable<T> {
    items: TableColumn<T>,
    /// Start of each list in `items`, and the end of the last.
    starts: TableColumn<u32>,
}

impl<T: Copy + Zeroable> ListTable<T> {
    /// Sorts items into so many lists. `items` yields each with the number of its list; it is called twice, and lists keep its order.
    pub(crate) fn new<I: Iterator<Item = (usize, T)>>(lists: usize, items: impl Fn() -> I) -> Self {
        let mut starts = TableColumn::<u32>::zeroed(lists + 1);
        items().for_each(|(list, _)| starts[list + 1] += 1);
        // A counting sort: counts become starts.
        for list in 0..lists {
            starts[list + 1] += starts[list];
        }
        let mut ends = starts.clone();
        let mut divided = TableColumn::zeroed(starts[lists] as usize);
        for (list, item) in items() {
            let end = &mut ends[list];
            divided[*end as usize] = item;
            *end += 1;
        }
        Self {
            items: divided,
            starts,
        }
    }

    /// Returns the number of lists.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the items of a list.
    pub(crate) fn of(&self, list: u32) -> &[T] {
        let list = list as usize;
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}
