//! Tiles: which workers have got buckets of each, in all studies.
//!
//! Tasks of different tiles share results only where contents are equal. While one worker alone gets the buckets of a tile, its
//! look-ups in the result directory would find nothing. Each bucket names such a tile (`own_tile`), and the worker gets a message
//! when another one gets a bucket of it. This saves messages, and no result depends on it.
//!
//! Homes are the workers that began the tiles of ended plans: they get the buckets of the next round.

use super::{Effect, Manager};
use crate::message::BucketWork;
use crate::study::Study;
use crate::{InstanceId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of tiles with a recorded home, and with recorded users: about 10 MB each, more than the largest study of the
/// papers has. Beyond it, homes are forgotten and tiles have no users, which costs repeated tasks and look-ups.
const MAX_TILES: usize = 100_000;

/// The workers that have got buckets of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TileUsers {
    One(WorkerId),
    Several,
}

/// Homes and users of tiles.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// Workers that began the tiles of ended plans, by the first input of each tile. The next round of a study has the same tiles,
    /// and its tasks find the results of this round there.
    homes: BTreeMap<RegionKey, WorkerId>,
    /// By the contents of the tiles, as far as they are known: studies may read one tile from several paths.
    users: BTreeMap<RegionKey, TileUsers>,
}

impl Tiles {
    /// Records that a worker uses a tile. Returns whether no other worker has, and the worker that was the only one before.
    fn add_user(&mut self, tile: RegionKey, worker: WorkerId) -> (bool, Option<WorkerId>) {
        match self.users.get(&tile) {
            Some(TileUsers::One(user)) if *user == worker => (true, None),
            Some(TileUsers::One(user)) => {
                let before = *user;
                self.users.insert(tile, TileUsers::Several);
                (false, Some(before))
            }
            Some(TileUsers::Several) => (false, None),
            None if self.users.len() < MAX_TILES => {
                self.users.insert(tile, TileUsers::One(worker));
                (true, None)
            }
            None => (false, None),
        }
    }

    /// Forgets a worker that has left, with its results.
    pub(super) fn remove_worker(&mut self, worker: WorkerId) {
        self.homes.retain(|_, home| *home != worker);
        self.users.retain(|_, users| *users != TileUsers::One(worker));
    }

    pub(super) fn home(&self, tile: RegionKey) -> Option<WorkerId> {
        self.homes.get(&tile).copied()
    }
}

impl Manager {
    /// Names the tile of a bucket in its message, if no other worker has got a bucket of it.
    pub(super) fn use_tile(&mut self, worker: WorkerId, id: PlanId, work: &mut BucketWork) {
        // All instances of a bucket have the same inputs.
        let tile = self.studies.get(&id).zip(work.instances.first());
        let tile = tile.and_then(|(study, instance)| study.tile_of(instance.id));
        work.own_tile = tile.filter(|tile| self.add_user(*tile, worker));
    }

    /// Records the tiles of instances that a reconnected worker executes or has executed.
    pub(super) fn use_tiles(&mut self, worker: WorkerId, id: PlanId, instances: &BTreeSet<InstanceId>) {
        let Some(study) = self.studies.get(&id) else { return };
        let tiles: BTreeSet<RegionKey> = instances.iter().filter_map(|id| study.tile_of(*id)).collect();
        tiles.into_iter().for_each(|tile| _ = self.add_user(tile, worker));
    }

    /// Returns whether no other worker has used the tile. The one that was the only user before learns of the second.
    fn add_user(&mut self, tile: RegionKey, worker: WorkerId) -> bool {
        let (is_own, before) = self.tiles.add_user(tile, worker);
        self.effects.extend(before.map(|worker| Effect::TileShared { worker, tile }));
        is_own
    }

    /// Keeps the homes of an ended plan's tiles for the next round.
    pub(super) fn keep_homes(&mut self, study: &Study) {
        if self.tiles.homes.len() > MAX_TILES {
            self.tiles.homes.clear();
        }
        let homes = study.tile_homes().filter(|(_, worker)| self.members.get(*worker).is_some());
        self.tiles.homes.extend(homes);
    }
}
