//! Task results of one worker, shared by its buckets: the result cache, encoded (`encoding`) and spilled results (`spilled`),
//! and running tasks.

mod encoding;
mod spilled;
mod stored;

use crate::spill::SpillStore;
use crate::task_cache::is_worth_caching;
use actix::prelude::*;
pub(crate) use encoding::spawn_encoding;
use parking_lot::Mutex;
use pleach_dispatch::message::TaskSource;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::{InstanceId, PlanId};
use pleach_regions::{
    self as regions, AcquiredOutputs, CachedForm, CachedRegion, RegionIdentity, RegionKey, ResultCache,
    TaskKey,
};
use spilled::SpilledResults;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
pub(crate) use stored::{OutputLocation, StoredTask};

/// Entries that a list of tasks or regions may have before those of evicted results leave it.
const MIN_LISTED: usize = 1024;

/// Returns the key under which workers fetch a task result, and under which tiers store it. Keys of stage outputs are
/// computed differently.
#[must_use]
pub(crate) fn result_key(identity: &RegionIdentity) -> RegionKey {
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach fallen 1").update(&identity.0);
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    RegionKey(key)
}

/// The same task as one of this bucket has finished in another bucket.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ResumeTask(pub(crate) NodeId);

/// Task results of one worker.
#[derive(Default)]
pub struct TaskResults {
    /// Outputs by task.
    pub(crate) shelf: ResultCache,
    /// Running tasks, with the tasks that wait for them.
    running: HashMap<TaskKey, Vec<(Recipient<ResumeTask>, NodeId)>>,
    /// Root input of each region in storage, such as a tile.
    source_of: HashMap<RegionKey, RegionKey>,
    /// Number of regions in storage by root input.
    stored: HashMap<RegionKey, usize>,
    /// Results evicted from the result cache to a spill tier.
    fallen: SpilledResults,
    /// Studies of each root input.
    studies_of: HashMap<RegionKey, BTreeSet<u32>>,
    /// Studies with a possible next round. Their results are retained after the last region of a root input has left
    /// storage.
    retained: HashSet<u32>,
    /// Tasks whose results have been dropped, for the result directory.
    dropped: Vec<TaskKey>,
    /// Results that other workers may fetch, by the key that they ask for. Some may have been evicted.
    offered: HashMap<RegionKey, RegionIdentity>,
    /// Plan and instance that each task ran for, of those with results here. Some may have been evicted.
    ran_for: HashMap<TaskKey, (PlanId, InstanceId)>,
    /// Tasks by study whose outputs were cached at the start of its present round and that have not run since.
    before: HashMap<u32, HashSet<TaskKey>>,
}

impl fmt::Debug for TaskResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskResults").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl TaskResults {
    pub(crate) fn is_running(&self, key: &TaskKey) -> bool {
        self.running.contains_key(key)
    }

    pub(crate) fn begin(&mut self, key: TaskKey) {
        self.running.entry(key).or_default();
    }

    /// Registers a task to resume after the running one.
    pub(crate) fn wait(&mut self, key: TaskKey, stage: Recipient<ResumeTask>, node: NodeId) {
        self.running.entry(key).or_default().push((stage, node));
    }

    /// Returns the root input of a stored region of a study: the region itself, if no other is known. Inputs of equal content
    /// are one root input, so that results outlive the first of two studies that read it.
    pub(crate) fn root_input(
        &mut self,
        key: RegionKey,
        content: Option<RegionIdentity>,
        study: u32,
    ) -> RegionKey {
        let source = match self.source_of.get(&key) {
            Some(source) => *source,
            None => {
                let source = content.map_or(key, |content| result_key(&content));
                self.made(key, source);
                source
            }
        };
        self.studies_of.entry(source).or_default().insert(study);
        source
    }

    /// Records that a stored region was derived from this root input.
    pub(crate) fn made(&mut self, key: RegionKey, source: RegionKey) {
        if self.source_of.insert(key, source).is_none() {
            *self.stored.entry(source).or_insert(0) += 1;
        }
    }

    /// Records that a region has left storage. With the last region of a root input, its task results are dropped, because
    /// no further task will use them. A possible next round of the study prevents that. Returns the spilled results to
    /// remove.
    pub(crate) fn released(&mut self, key: &RegionKey) -> Vec<RegionKey> {
        let Some(source) = self.source_of.remove(key) else { return Vec::new() };
        let Some(stored) = self.stored.get_mut(&source) else { return Vec::new() };
        *stored -= 1;
        if *stored > 0 {
            return Vec::new();
        }
        self.stored.remove(&source);
        if self.is_used(&source) { Vec::new() } else { self.discard(&source) }
    }

    /// Returns whether tasks may still read a root input: a region derived from it is stored, or a study may have another
    /// round.
    fn is_used(&self, source: &RegionKey) -> bool {
        let is_retained = |studies: &BTreeSet<u32>| studies.iter().any(|study| self.retained.contains(study));
        self.stored.contains_key(source) || self.studies_of.get(source).is_some_and(is_retained)
    }

    fn discard(&mut self, source: &RegionKey) -> Vec<RegionKey> {
        self.studies_of.remove(source);
        let tasks: Vec<TaskKey> =
            self.shelf.tasks_of(source).chain(self.fallen.tasks_of(source)).copied().collect();
        self.dropped.extend(tasks);
        self.shelf.invalidate(source);
        self.fallen.discard(source)
    }

    fn sources(&self, study: u32) -> impl Iterator<Item = &RegionKey> {
        self.studies_of.iter().filter(move |(_, of)| of.contains(&study)).map(|(source, _)| source)
    }

    /// Starts a round of a study. With `retains_results`, another round may follow.
    pub(crate) fn start_round(&mut self, study: u32, retains_results: bool) {
        let tasks = |source| self.shelf.tasks_of(source).chain(self.fallen.tasks_of(source));
        // Collected before the round starts, because its own results must not count as earlier ones.
        let before: HashSet<TaskKey> = self.sources(study).flat_map(tasks).copied().collect();
        if retains_results {
            self.retained.insert(study);
        } else {
            self.retained.remove(&study);
        }
        if before.is_empty() {
            self.before.remove(&study);
        } else {
            self.before.insert(study, before);
        }
    }

    /// Returns whether a task ran in an earlier round of the study, and not again since.
    pub(crate) fn is_from_before(&self, study: u32, key: &TaskKey) -> bool {
        self.before.get(&study).is_some_and(|before| before.contains(key))
    }

    /// Records a run of a task.
    pub(crate) fn record_run(&mut self, study: u32, key: &TaskKey) {
        self.before.get_mut(&study).map(|before| before.remove(key));
    }

    /// Caches the outputs of a task, and records the instance that it has run for.
    pub(crate) fn shelve(
        &mut self,
        (key, origin): (TaskKey, TaskKey),
        source: Option<RegionKey>,
        outputs: Vec<Option<CachedRegion>>,
        seconds: f64,
        ran_for: (PlanId, InstanceId),
    ) -> AcquiredOutputs {
        let outputs = self.shelf.insert(key, origin, source, outputs, seconds);
        // After the insertion: the list keeps only tasks with a result.
        self.note_run(key, ran_for);
        outputs
    }

    fn note_run(&mut self, key: TaskKey, ran_for: (PlanId, InstanceId)) {
        self.ran_for.insert(key, ran_for);
        // Evicted results leave the list here, as in `offer`, at most once for each of those that stay.
        if self.ran_for.len() > 2 * (self.shelf.task_count() + self.fallen.task_count()) + MIN_LISTED {
            let (shelf, fallen) = (&self.shelf, &self.fallen);
            self.ran_for.retain(|key, _| shelf.outputs_of(key).is_some() || fallen.outputs_of(key).is_some());
        }
    }

    /// Returns the instance of this plan that a task with a result here has run for.
    pub(crate) fn ran_for(&self, key: &TaskKey, plan: PlanId) -> Option<TaskSource> {
        let (of, instance) = self.ran_for.get(key)?;
        (*of == plan).then_some(TaskSource::Instance(*instance))
    }

    /// Returns the studies that may have retained results.
    pub(crate) fn retained_studies(&self) -> Vec<u32> {
        let of_inputs = self.studies_of.values().flatten();
        let mut studies: Vec<u32> = self.retained.iter().chain(of_inputs).copied().collect();
        // Sorted for a deterministic message, and for the removal of duplicates.
        studies.sort_unstable();
        studies.dedup();
        studies
    }

    /// Drops the retained results of a study without a further round. Returns the spilled results to remove.
    pub(crate) fn forget(&mut self, study: u32) -> Vec<RegionKey> {
        self.retained.remove(&study);
        self.before.remove(&study);
        // The other results are dropped at their release.
        let sources: Vec<RegionKey> = self.sources(study).copied().collect();
        let mut spilled = Vec::new();
        for source in sources {
            let studies = self.studies_of.entry(source).or_default();
            // A root input that is stored keeps its studies: the last release looks at them.
            if self.stored.contains_key(&source) {
                continue;
            }
            studies.remove(&study);
            if !studies.iter().any(|study| self.retained.contains(study)) {
                spilled.extend(self.discard(&source));
            }
        }
        spilled
    }

    /// Records tasks whose results are no longer in memory.
    pub(crate) fn drop_tasks(&mut self, tasks: impl Iterator<Item = TaskKey>) {
        self.dropped.extend(tasks);
    }

    /// Takes the tasks whose results have been dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Vec<TaskKey> {
        std::mem::take(&mut self.dropped)
    }

    /// Lets other workers fetch a result.
    pub(crate) fn offer(&mut self, identity: RegionIdentity) {
        self.offered.insert(result_key(&identity), identity);
        // Evicted results leave the list here, so that it stays in proportion to the cache at a constant cost.
        if self.offered.len() > 2 * self.shelf.len() + MIN_LISTED {
            let shelf = &self.shelf;
            self.offered.retain(|_, identity| shelf.contains(identity));
        }
    }

    /// Returns a result in memory that other workers may fetch, in the form that it has.
    pub(crate) fn offered(&self, key: RegionKey) -> Option<CachedForm> {
        self.shelf.form(self.offered.get(&key)?)
    }

    /// Records the end of a task, whether it succeeded or failed.
    pub(crate) fn end(&mut self, key: &TaskKey) {
        // The entry is removed first: a resumed stage either finds the result or starts the task itself.
        for (stage, node) in self.running.remove(key).unwrap_or_default() {
            stage.do_send(ResumeTask(node));
        }
    }
}

/// Spills evicted results on other threads, if reading them is faster than recomputing them. A result that cannot be written
/// soon enough is dropped, because its memory is needed.
pub(crate) fn spill_evicted(
    results: &Arc<Mutex<TaskResults>>,
    spill: &Arc<SpillStore>,
    all: Vec<regions::EvictedResult>,
) {
    for mut fallen in all {
        let (key, bytes) = (spilled::key(&fallen.identity), fallen.form.region_bytes());
        // A result that was promoted keeps its spilled copy, so it need not be written again.
        let is_there = spill.bytes(key).is_some();
        let is_worth = is_there || is_worth_caching(fallen.form.element(), bytes, fallen.seconds);
        if !is_worth || !(is_there || spill.begin_writing(bytes)) {
            continue;
        }
        let (results, to) = (Arc::clone(results), Arc::clone(spill));
        spill.send_write(key, move || {
            let write = |region| to.write_evictable(key, &region, fallen.seconds);
            let is_kept = is_there || fallen.form.region().is_some_and(write);
            if !is_there {
                // Returned as soon as the write ends, before the lock, so that other writes can start.
                to.end_writing(bytes);
            }
            // Locked after the write, because tasks take this lock when they start and end.
            let mut results = results.lock();
            // Root inputs may have no further use.
            fallen.tasks.retain(|task| task.source.is_none_or(|source| results.is_used(&source)));
            if is_kept && !fallen.tasks.is_empty() {
                results.fallen.add(fallen);
            } else if is_kept && !results.fallen.contains(&fallen.identity) {
                // Released first: the removal blocks on the disk.
                drop(results);
                to.remove(key);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DataRegion, Raster};
    use pleach_storage::{BoundedRam, EvictionPolicy, Tier, TierLevel, TierStack, WriteMode};

    fn task_key(number: u8) -> TaskKey {
        TaskKey([number; 32])
    }

    /// The plan of a study without phases.
    fn plan(study: u32) -> PlanId {
        PlanId { study, phase: 0, round: 0 }
    }

    /// Reads a region in a bucket of a study, and runs a task, for the instance of the same number.
    fn run(results: &mut TaskResults, study: u32, region: RegionKey, number: u8) {
        let made = Arc::new(DataRegion::Mask(Raster::filled(1, 1, 1, number).unwrap()));
        let outputs = vec![Some(CachedRegion { identity: RegionIdentity([number; 32]), region: made })];
        let source = results.root_input(region, None, study);
        let ran_for = (plan(study), InstanceId(number.into()));
        results.shelve((task_key(number), task_key(number)), Some(source), outputs, 1.0, ran_for);
        results.shelf.release(&RegionIdentity([number; 32]));
    }

    fn is_there(results: &mut TaskResults, number: u8) -> bool {
        let found = results.shelf.acquire(&task_key(number), &[true]).is_some();
        if found {
            results.shelf.release(&RegionIdentity([number; 32]));
        }
        found
    }

    #[test]
    fn results_are_retained_until_the_last_round() {
        let (one, other) = (RegionKey([1; 16]), RegionKey([2; 16]));
        let mut results = TaskResults::default();
        results.start_round(7, true);
        results.start_round(8, false);
        run(&mut results, 7, one, 1);
        run(&mut results, 8, other, 2);
        assert!(results.released(&one).is_empty() && results.released(&other).is_empty());
        assert!(is_there(&mut results, 1), "another part follows");
        assert!(!is_there(&mut results, 2), "of the other study none does");
        assert_eq!(results.retained_studies(), [7]);

        // The last round: present results count as earlier ones until their tasks run again.
        results.start_round(7, false);
        assert!(results.is_from_before(7, &task_key(1)) && !results.is_from_before(8, &task_key(1)));
        results.record_run(7, &task_key(1));
        assert!(!results.is_from_before(7, &task_key(1)));
        assert!(is_there(&mut results, 1), "it may have run on other workers only");
        assert_eq!(results.retained_studies(), [7]);
        results.forget(7);
        assert!(!is_there(&mut results, 1) && results.retained_studies().is_empty());
        assert!(results.shelf.is_empty());
    }

    #[test]
    fn pinned_result_of_dropped_study_is_dropped_on_release() {
        let key = RegionKey([1; 16]);
        let mut results = TaskResults::default();
        results.start_round(7, true);
        run(&mut results, 7, key, 1);
        results.forget(7);
        assert!(is_there(&mut results, 1));
        results.released(&key);
        assert!(!is_there(&mut results, 1) && results.retained_studies().is_empty());
    }

    /// The list of runs forgets evicted results, and never one that is there.
    #[test]
    fn each_result_that_is_there_has_its_instance() {
        let (plan, region) = (plan(7), RegionKey([1; 16]));
        let mut results = TaskResults::default();
        for number in 0..3 * MIN_LISTED as u32 {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_le_bytes());
            results.ran_for.insert(TaskKey(key), (plan, InstanceId(number)));
        }
        for number in 1..20 {
            run(&mut results, 7, region, number);
            let instances: Vec<_> =
                (1..=number).map(|number| results.ran_for(&task_key(number), plan)).collect();
            let expected = (1..=number).map(|number| Some(TaskSource::Instance(InstanceId(number.into()))));
            assert!(instances.iter().copied().eq(expected), "{instances:?}");
            assert!(
                results.ran_for.len() <= 2 * usize::from(number) + MIN_LISTED,
                "{}",
                results.ran_for.len()
            );
        }
    }

    /// Results that are evicted between two rounds are spilled for the second. Those of a study without one are dropped.
    #[test]
    fn results_evicted_between_rounds_are_spilled() {
        let key = RegionKey([1; 16]);
        for retains in [true, false] {
            let tier: Arc<dyn Tier> = Arc::new(BoundedRam::new(Arc::default(), 1 << 20));
            let (name, policy, write) = ("below".to_owned(), EvictionPolicy::Lru, WriteMode::Back);
            let level = TierLevel { name, tier, policy, write, shared: false };
            let spill = Arc::new(SpillStore::new(TierStack::new(vec![level])).expect("threads"));
            let results = Arc::new(Mutex::new(TaskResults::default()));
            let evicted = {
                let mut results = results.lock();
                results.start_round(7, retains);
                run(&mut results, 7, key, 1);
                let evicted = results.shelf.shrink_to(0);
                assert!(results.released(&key).is_empty());
                evicted
            };
            assert_eq!(evicted.len(), 1);
            spill_evicted(&results, &spill, evicted);
            spill.settle();
            let mut results = results.lock();
            assert_eq!(results.fallen.contains(&RegionIdentity([1; 32])), retains);
            assert_eq!(spill.is_empty(), !retains);
            let removed = results.forget(7);
            assert_eq!(removed, if retains { vec![result_key(&RegionIdentity([1; 32]))] } else { vec![] });
        }
    }
}
