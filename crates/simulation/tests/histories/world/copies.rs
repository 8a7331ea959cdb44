//! Fetches that workers were asked to make, and draining workers, which wait for them.

use super::{Granted, World};
use pleach_dispatch::{PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_simulation::event::Event;

/// A region that a worker was asked to fetch from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copying {
    pub(super) worker: WorkerId,
    pub(super) study: PlanId,
    pub(super) key: RegionKey,
}

impl World {
    /// Completes a fetch, or fails it.
    pub(super) fn copy(&mut self, copy: Copying, succeeds: bool) {
        self.copies.retain(|other| *other != copy);
        let Copying { worker, study, key } = copy;
        self.apply(match succeeds {
            true => Event::Copied { worker, study, key },
            false => Event::NotCopied { worker, study, key },
        });
    }

    /// Draining workers return their instances and all pending fetches complete. Asserts that the draining workers are
    /// dismissed.
    pub(crate) fn end_drains(&mut self) {
        let draining: Vec<WorkerId> = self
            .workers()
            .into_iter()
            .filter(|worker| self.manager.worker(*worker).is_some_and(|(_, draining)| draining))
            .collect();
        for granted in self.granted().into_iter().filter(|granted| draining.contains(&granted.worker)) {
            let Granted { study, lease, worker, instance } = granted;
            self.apply(Event::Back { worker, study, lease, instances: vec![instance] });
        }
        while let Some(copy) = self.copies.last().copied() {
            self.copy(copy, true);
        }
        for worker in draining {
            assert!(self.dismissed.contains(&worker), "{worker} is kept for ever");
        }
    }
}
