//! Locality: idle workers, and the one that misses the fewest bytes of the inputs of a job.

use std::collections::BTreeSet;

use crate::workflow::DataFile;

/// Idle workers and the files of all workers.
///
/// An index lists the workers of each file. A choice visits, for each input, the shorter list of its workers and of the idle
/// workers: with most workers busy that is a few steps, and at the start, with most workers idle, few of them have files.
pub(crate) struct Locality<'a> {
    files: &'a [DataFile],
    /// Workers that have a file, in ascending order, by file.
    workers_of: Vec<Vec<u32>>,
    idle: BTreeSet<u32>,
    is_idle: Vec<bool>,
    /// Bytes of inputs at a worker during a choice, otherwise 0.
    present: Vec<u64>,
}

impl<'a> Locality<'a> {
    /// All workers are idle and have no files: initial files of the workflow are on none of them.
    pub(crate) fn new(files: &'a [DataFile], workers: usize) -> Self {
        Self {
            files,
            workers_of: vec![Vec::new(); files.len()],
            idle: (0..workers as u32).collect(),
            is_idle: vec![true; workers],
            present: vec![0; workers],
        }
    }

    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    pub(crate) fn release(&mut self, worker: u32) {
        self.is_idle[worker as usize] = true;
        self.idle.insert(worker);
    }

    /// Occupies the idle worker that misses the fewest bytes of the inputs, the lowest number first. Returns `None` if all
    /// workers are busy.
    pub(crate) fn occupy(&mut self, reads: &[u32]) -> Option<u32> {
        let mut touched = Vec::new();
        for file in reads {
            let bytes = self.files[*file as usize].bytes;
            if bytes == 0 {
                continue;
            }
            let workers = &self.workers_of[*file as usize];
            let mut add = |worker: u32| {
                let present = &mut self.present[worker as usize];
                if *present == 0 {
                    touched.push(worker);
                }
                *present = present.saturating_add(bytes);
            };
            if workers.len() <= self.idle.len() {
                workers
                    .iter()
                    .filter(|worker| self.is_idle[**worker as usize])
                    .for_each(|worker| add(*worker));
            } else {
                self.idle
                    .iter()
                    .filter(|worker| workers.binary_search(worker).is_ok())
                    .for_each(|worker| add(*worker));
            }
        }
        // All workers read the same inputs, so the fewest missing bytes are the most present bytes.
        let most = touched
            .iter()
            .copied()
            .max_by_key(|worker| (self.present[*worker as usize], std::cmp::Reverse(*worker)));
        for worker in touched {
            self.present[worker as usize] = 0;
        }
        let worker = most.or_else(|| self.idle.first().copied())?;
        self.idle.remove(&worker);
        self.is_idle[worker as usize] = false;
        Some(worker)
    }

    /// Moves missing inputs to a worker. Returns their bytes.
    pub(crate) fn fetch(&mut self, worker: u32, reads: &[u32]) -> u64 {
        let mut moved: u64 = 0;
        for file in reads {
            if self.insert(worker, *file) {
                moved = moved.saturating_add(self.files[*file as usize].bytes);
            }
        }
        moved
    }

    /// Adds files that a worker writes.
    pub(crate) fn write(&mut self, worker: u32, writes: &[u32]) {
        for file in writes {
            self.insert(worker, *file);
        }
    }

    /// Returns whether the worker missed the file.
    fn insert(&mut self, worker: u32, file: u32) -> bool {
        let workers = &mut self.workers_of[file as usize];
        match workers.binary_search(&worker) {
            Ok(_) => false,
            Err(position) => {
                workers.insert(position, worker);
                true
            }
        }
    }
}
