//! Outputs of tasks in a task cache, for the tiles of one study and one parameter set.

use parking_lot::Mutex;
use pleach_cache::{Cache, PriorResults};
use pleach_regions::DataRegion;
use pleach_results::cache_walk::{self, CachedRegions};
use pleach_study::PreparedStudy;
use pleach_study::single_run::TaskOutput;
use pleach_workflow::Value;
use std::sync::Arc;
use std::time::SystemTime;

/// Task cache, study and parameter set.
pub(super) struct CachedTasks<'a> {
    cache: Arc<Cache>,
    // One thread at a time: a prepared study computes its digests at the first use. Reading a mask takes far less time than its
    // segmentation.
    walked: Mutex<(PreparedStudy, PriorResults)>,
    values: &'a [Value],
}

impl<'a> CachedTasks<'a> {
    pub(super) fn new(prepared: PreparedStudy, cache: Cache, values: &'a [Value]) -> Self {
        let (cache, identities) = (Arc::new(cache), Arc::new(cache_walk::identities(&prepared)));
        let prior = PriorResults { cache: Some(Arc::clone(&cache)), identities, ..PriorResults::default() };
        Self { cache, walked: Mutex::new((prepared, prior)), values }
    }

    /// Returns the output of a task on a tile. `None` if the cache does not have it.
    pub(super) fn output(&self, tile: usize, place: TaskOutput) -> Option<DataRegion> {
        let walked = self.walked.lock();
        CachedRegions::on(&walked.0, &walked.1, tile).task_output(self.values, place)
    }

    /// Returns whether the task has run on a tile.
    pub(super) fn has_trace(&self, tile: usize, place: TaskOutput) -> bool {
        let walked = self.walked.lock();
        CachedRegions::on(&walked.0, &walked.1, tile).has_trace(self.values, place)
    }

    /// Reads the entries that other processes have added. Returns whether later ones may follow after the end of their tasks: object
    /// storage receives them some time later.
    pub(super) fn refresh(&self) -> bool {
        self.cache.refresh(SystemTime::now());
        self.cache.is_remote()
    }
}
