//! Files that this process has: those that its emulated tasks have fetched or written, by execution.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};

/// Executions whose files a process remembers. Executions follow each other, and a manager may run a few at a time.
const MAX_EXECUTIONS: usize = 16;

/// Files of some executions. A process is a worker with a disk of its own, as in the simulation.
#[derive(Debug)]
pub(crate) struct PresentFiles {
    executions: Mutex<Executions>,
}

/// Files by execution, and the executions from the oldest.
type Executions = (BTreeMap<i64, HashSet<i64>>, Vec<i64>);

/// Files of this process.
pub(crate) static PRESENT: PresentFiles = PresentFiles::new();

impl PresentFiles {
    pub(crate) const fn new() -> Self {
        Self { executions: Mutex::new((BTreeMap::new(), Vec::new())) }
    }

    /// Adds a file. Returns whether it was missing.
    pub(crate) fn insert(&self, execution: i64, file: i64) -> bool {
        let mut executions = self.executions.lock();
        let (files, order) = &mut *executions;
        if !files.contains_key(&execution) {
            order.push(execution);
            if order.len() > MAX_EXECUTIONS {
                files.remove(&order.remove(0));
            }
        }
        files.entry(execution).or_default().insert(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_missing_once_in_each_execution() {
        let present = PresentFiles::new();
        assert!(present.insert(1, 7) && !present.insert(1, 7));
        assert!(present.insert(1, 8) && present.insert(2, 7));
        (3..3 + MAX_EXECUTIONS as i64).for_each(|execution| assert!(present.insert(execution, 7)));
        // The oldest executions are forgotten.
        assert!(present.insert(1, 7));
        assert!(!present.insert(18, 7));
    }
}
