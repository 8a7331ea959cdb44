//! Removal order of surplus workers: the least loaded first.

use std::cmp::Reverse;

/// Load of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLoad<N> {
    /// Its name.
    pub name: N,
    /// Buckets that it has.
    pub leases: usize,
    /// Bytes of data regions that it holds, which other workers would have to fetch or recompute.
    pub bytes: u64,
    /// Its arrival, as any increasing number: among equals, the last to arrive leaves first.
    pub came: u64,
}

/// Sorts workers in removal order: by fewest leases, then by fewest bytes held, then by latest arrival.
#[must_use]
pub fn removal_order<N: Ord>(mut workers: Vec<WorkerLoad<N>>) -> Vec<WorkerLoad<N>> {
    workers.sort_by(|a, b| {
        let key = |load: &WorkerLoad<N>| (load.leases, load.bytes, Reverse(load.came));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    workers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_loaded_then_emptiest_worker_leaves_first() {
        let load = |name: &'static str, leases, bytes, came| WorkerLoad { name, leases, bytes, came };
        let workers = vec![
            load("busy", 2, 0, 1),
            load("full", 0, 900, 2),
            load("old", 0, 10, 3),
            load("new", 0, 10, 4),
            load("b", 1, 5, 5),
            load("a", 1, 5, 5),
        ];
        let order: Vec<&str> = removal_order(workers).into_iter().map(|load| load.name).collect();
        assert_eq!(order, ["new", "old", "full", "a", "b", "busy"]);
    }
}
