//! Lists of numbers in one allocation.

/// Lists that are filled one after the other.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    items: Vec<u32>,
    /// End of each list in `items`.
    ends: Vec<usize>,
}

impl Lists {
    /// Adds a number to the open list.
    pub(crate) fn push(&mut self, item: u32) {
        self.items.push(item);
    }

    /// Closes the open list.
    pub(crate) fn close(&mut self) {
        self.ends.push(self.items.len());
    }

    /// Adds a closed list.
    pub(crate) fn extend(&mut self, list: &[u32]) {
        self.items.extend_from_slice(list);
        self.close();
    }

    /// Returns the number of closed lists.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of numbers in all lists.
    pub(crate) fn items(&self) -> usize {
        self.items.len()
    }

    /// Returns a closed list.
    pub(crate) fn get(&self, list: u32) -> &[u32] {
        let list = list as usize;
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start..self.ends[list]]
    }

    /// Returns the closed lists in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> + Clone {
        (0..self.ends.len() as u32).map(|list| self.get(list))
    }
}
