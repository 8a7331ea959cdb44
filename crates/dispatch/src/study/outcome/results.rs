//! Reported results of a study: numbers in one table, because a study may have a million instances with results.

use crate::InstanceId;
use pleach_regions::Table;

/// Results of finished instances. All instances of a stage report the same columns, so each list of names is stored once.
#[derive(Clone, Debug, Default)]
pub struct ReportedResults {
    layouts: Vec<Layout>,
    /// By instance.
    rows: Vec<Row>,
    values: Vec<f64>,
    count: usize,
}

/// Names of the columns, by table.
type Layout = Vec<Vec<String>>;

/// Results of an instance.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Index into the layouts, or [`NONE`].
    layout: u32,
    /// Index of its first value.
    start: u32,
}

/// Layout of an instance without results.
const NONE: u32 = u32::MAX;

impl ReportedResults {
    /// Adds the results of an instance. Earlier ones of it are replaced.
    ///
    /// # Panics
    /// After 4 billion numbers.
    pub fn insert(&mut self, instance: InstanceId, results: &[Table]) {
        let start = u32::try_from(self.values.len()).expect("a study has fewer than 2^32 results");
        let layout = self.layout_of(results);
        self.values.extend(results.iter().flat_map(Table::columns).map(|(_, value)| value));
        if self.rows.len() <= instance.index() {
            self.rows.resize(instance.index() + 1, Row { layout: NONE, start: 0 });
        }
        let before = std::mem::replace(&mut self.rows[instance.index()], Row { layout, start });
        self.count += usize::from(before.layout == NONE);
    }

    fn layout_of(&mut self, results: &[Table]) -> u32 {
        let is_equal = |layout: &Layout| {
            let names = |table: &Table, names: &[String]| table.columns().map(|(name, _)| name).eq(names);
            layout.len() == results.len()
                && results.iter().zip(layout).all(|(table, columns)| names(table, columns))
        };
        // As many as stages with results, unless users' own programs report different columns.
        let known = self.layouts.iter().rposition(is_equal);
        let number = known.unwrap_or_else(|| {
            let names = |table: &Table| table.columns().map(|(name, _)| name.to_owned()).collect();
            self.layouts.push(results.iter().map(names).collect());
            self.layouts.len() - 1
        });
        number as u32
    }

    /// Returns the results of an instance. `None` if it has reported none.
    #[must_use]
    pub fn get(&self, instance: InstanceId) -> Option<Vec<Table>> {
        let row = self.rows.get(instance.index()).filter(|row| row.layout != NONE)?;
        let mut values = self.values[row.start as usize..].iter().copied();
        let table = |names: &Vec<String>| Table::new(names.iter().cloned().zip(values.by_ref()));
        Some(self.layouts[row.layout as usize].iter().map(table).collect())
    }

    /// Returns whether an instance has reported results.
    #[must_use]
    pub fn contains(&self, instance: InstanceId) -> bool {
        self.rows.get(instance.index()).is_some_and(|row| row.layout != NONE)
    }

    /// Counts the instances with results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether no instance has reported results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the instances with results, in order.
    pub fn instances(&self) -> impl Iterator<Item = InstanceId> {
        (0u32..).map(InstanceId).zip(&self.rows).filter(|(_, row)| row.layout != NONE).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn tables() -> impl Strategy<Value = Vec<Table>> {
        let column = ("[ab]", any::<f64>().prop_filter("NaN differs from itself", |value| !value.is_nan()));
        let table = prop::collection::vec(column, 0..3).prop_map(Table::new);
        prop::collection::vec(table, 0..3)
    }

    proptest! {
        #[test]
        fn results_equal_those_of_a_map(inserted in prop::collection::vec((0u32..20, tables()), 0..40)) {
            let (mut results, mut expected) = (ReportedResults::default(), BTreeMap::new());
            for (instance, tables) in inserted {
                results.insert(InstanceId(instance), &tables);
                expected.insert(InstanceId(instance), tables);
            }
            prop_assert_eq!(results.len(), expected.len());
            prop_assert_eq!(results.is_empty(), expected.is_empty());
            prop_assert!(results.instances().eq(expected.keys().copied()));
            for instance in (0..25).map(InstanceId) {
                prop_assert_eq!(results.get(instance), expected.get(&instance).cloned());
                prop_assert_eq!(results.contains(instance), expected.contains_key(&instance));
            }
        }
    }
}
