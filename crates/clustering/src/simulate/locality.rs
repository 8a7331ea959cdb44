//! Locality: idle workers, and the one that misses the fewest bytes of the inputs of a job.

use std::collections::BTreeSet;

use crate::workflow::DataFile;

/// Workers of a mask.
const MASK_WORKERS: usize = u64::BITS as usize;

/// Idle workers and the files of all workers. An index has the workers of each file.
pub(crate) struct Locality<'a> {
    files: &'a [DataFile],
    holders: Holders,
    idle: BTreeSet<u32>,
    is_idle: Vec<bool>,
    /// Bytes of inputs at a worker during a choice, otherwise 0.
    present: Vec<u64>,
    /// Workers with bytes during a choice.
    touched: Vec<u32>,
}

/// Workers that have a file, by file.
enum Holders {
    /// A bit for each of up to 64 workers, and the bits of the idle ones.
    Masks { of: Vec<u64>, idle: u64 },
    /// Workers in ascending order.
    ///
    /// A choice visits, for each input, the shorter list of its workers and of the idle workers: with most workers busy that is
    /// a few steps, and at the start, with most workers idle, few of them have files.
    Lists(Vec<Vec<u32>>),
}

impl<'a> Locality<'a> {
    /// All workers are idle and have no files, nor the initial files of the workflow.
    pub(crate) fn new(files: &'a [DataFile], workers: usize) -> Self {
        let holders = if workers <= MASK_WORKERS {
            let idle = (0..workers).fold(0, |idle, worker| idle | 1 << worker);
            Holders::Masks { of: vec![0; files.len()], idle }
        } else {
            Holders::Lists(vec![Vec::new(); files.len()])
        };
        Self {
            files,
            holders,
            idle: (0..workers as u32).collect(),
            is_idle: vec![true; workers],
            present: vec![0; workers],
            touched: Vec::new(),
        }
    }

    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    pub(crate) fn release(&mut self, worker: u32) {
        self.is_idle[worker as usize] = true;
        self.idle.insert(worker);
        if let Holders::Masks { idle, .. } = &mut self.holders {
            *idle |= 1 << worker;
        }
    }

    /// Occupies the idle worker that misses the fewest bytes of the inputs, the lowest number first. Returns `None` if all
    /// workers are busy. Inputs have 1 byte or more.
    pub(crate) fn occupy(&mut self, reads: &[u32]) -> Option<u32> {
        if self.idle.is_empty() {
            return None;
        }
        let Self { files, holders, idle, is_idle, present, touched } = self;
        for file in reads {
            let bytes = files[*file as usize].bytes;
            let mut add = |worker: u32| {
                let present = &mut present[worker as usize];
                if *present == 0 {
                    touched.push(worker);
                }
                *present = present.saturating_add(bytes);
            };
            match holders {
                Holders::Masks { of, idle } => {
                    let mut workers = of[*file as usize] & *idle;
                    while workers != 0 {
                        add(workers.trailing_zeros());
                        workers &= workers - 1;
                    }
                }
                Holders::Lists(of) => {
                    let workers = &of[*file as usize];
                    if workers.len() <= idle.len() {
                        workers.iter().filter(|worker| is_idle[**worker as usize]).for_each(|of| add(*of));
                    } else {
                        idle.iter().filter(|of| workers.binary_search(of).is_ok()).for_each(|of| add(*of));
                    }
                }
            }
        }
        // All workers read the same inputs, so the fewest missing bytes are the most present bytes.
        let most = touched
            .iter()
            .copied()
            .max_by_key(|worker| (present[*worker as usize], std::cmp::Reverse(*worker)));
        touched.drain(..).for_each(|worker| present[worker as usize] = 0);
        let worker = most.or_else(|| idle.first().copied())?;
        idle.remove(&worker);
        is_idle[worker as usize] = false;
        if let Holders::Masks { idle, .. } = holders {
            *idle &= !(1 << worker);
        }
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
        match &mut self.holders {
            Holders::Masks { of, .. } => {
                let workers = &mut of[file as usize];
                let missed = *workers & 1 << worker == 0;
                *workers |= 1 << worker;
                missed
            }
            Holders::Lists(of) => {
                let workers = &mut of[file as usize];
                match workers.binary_search(&worker) {
                    Ok(_) => false,
                    Err(position) => {
                        workers.insert(position, worker);
                        true
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_lists_choose_the_same_workers() {
        let files: Vec<DataFile> =
            (0..30).map(|file| DataFile { name: file.to_string(), bytes: 1 + file % 4 }).collect();
        let reads = |step: u32| [step * 7 % 30, step * 11 % 30, step * step % 30];
        let choices = |mut locality: Locality<'_>| {
            let step = |step: u32| {
                let worker = locality.occupy(&reads(step))?;
                let moved = locality.fetch(worker, &reads(step));
                locality.write(worker, &[step * 13 % 30]);
                // One worker in three stays busy until a later step.
                if !step.is_multiple_of(3) {
                    locality.release(worker);
                }
                if step.is_multiple_of(50) {
                    (0..64).for_each(|worker| locality.release(worker));
                }
                Some((worker, moved))
            };
            (1..500).map(step).collect::<Vec<_>>()
        };
        let lists = Locality {
            holders: Holders::Lists(vec![Vec::new(); files.len()]),
            ..Locality::new(&files, MASK_WORKERS)
        };
        let masks = choices(Locality::new(&files, MASK_WORKERS));
        assert_eq!(masks, choices(lists));
        assert!(masks.iter().flatten().any(|(worker, moved)| *worker > 5 && *moved == 0), "{masks:?}");
    }
}
