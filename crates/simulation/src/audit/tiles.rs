//! Tiles in the audit's model: which workers have had buckets of each, in all studies.

use super::{Audit, Violation, require};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::{InstanceId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Users of tiles, and what the event under check has changed.
#[derive(Clone, Debug, Default)]
pub(super) struct TileModel {
    users: BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    /// Workers that must learn, and those that have learned, that a tile is not their own any more.
    expected: BTreeSet<(WorkerId, RegionKey)>,
    pub(super) told: BTreeSet<(WorkerId, RegionKey)>,
}

impl TileModel {
    /// Forgets a worker that has left. Tiles that it shared stay shared.
    pub(super) fn leave(&mut self, worker: WorkerId) {
        self.users.retain(|_, users| !(users.len() == 1 && users.contains(&worker)));
    }

    /// Adds a user of a tile. Returns whether it is the only one.
    fn add(&mut self, tile: RegionKey, worker: WorkerId) -> bool {
        let users = self.users.entry(tile).or_default();
        let only = (users.len() == 1).then(|| users.first().copied()).flatten();
        users.insert(worker);
        self.expected.extend(only.filter(|before| *before != worker).map(|before| (before, tile)));
        users.len() == 1
    }

    /// Checks at the end of an event that the right workers have learned of shared tiles.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        let (expected, told) = (std::mem::take(&mut self.expected), std::mem::take(&mut self.told));
        require(expected == told, "worker not informed that a tile is shared, or without a reason", &told)
    }
}

impl Audit {
    /// Returns the first input of the tile of an instance: of its first ancestor. `None` if buckets share nothing.
    fn tile(&self, study: PlanId, instance: InstanceId) -> Option<RegionKey> {
        let plan = &self.studies.get(&study)?.plan;
        if plan.sharing == ReuseScope::Tree {
            return None;
        }
        let mut of = plan.instances.at(instance);
        while let Some(parent) = of.parents.first() {
            of = plan.instances.at(*parent);
        }
        of.inputs.first().copied()
    }

    /// Adds a worker to the users of an instance's tile. Returns the tile if it is the only one.
    pub(super) fn use_tile(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        instance: InstanceId,
    ) -> Option<RegionKey> {
        let tile = self.tile(study, instance)?;
        self.tiles.add(tile, worker).then_some(tile)
    }
}
