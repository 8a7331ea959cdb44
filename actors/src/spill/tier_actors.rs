//! Storage actors of the tiers: each level of the stack has a mailbox, threads, and a limit of reads for other workers.
//!
//! A slow or hanging tier delays only the requests in its own mailbox. Writes have a mailbox of their own, since a full tier
//! moves regions to slower ones before it stores another. Reads from memory pass no mailbox (ADR 57).
//!
//! Requests that change a region pass different mailboxes: its writes, its copy in a shared tier, its removal. They run in the
//! order in which they were sent, each in its mailbox once the one before has ended. A removal that overtook a write would
//! leave the region behind for good.

use super::SpillStore;
use parking_lot::{Condvar, Mutex};
use pleach_regions::{DataRegion, RegionKey};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use tokio::sync::{Semaphore, oneshot};

/// Concurrent requests of a tier. A disk does not become faster with more than 2, and each holds a buffer of its region's size.
const THREADS: usize = 2;

/// Concurrent reads of a tier for other workers: tasks of this worker find the other thread.
const REMOTE_READS: usize = 1;

/// Mailbox of one tier, with its threads.
#[derive(Debug)]
struct TierActor {
    threads: ThreadPool,
    /// Reads for other workers that may be in the mailbox.
    remote_reads: Arc<Semaphore>,
}

impl TierActor {
    fn new(name: &str) -> io::Result<Self> {
        let name = name.to_owned();
        let threads = ThreadPoolBuilder::new()
            .num_threads(THREADS)
            .thread_name(move |number| format!("tier-{name}-{number}"))
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { threads, remote_reads: Arc::new(Semaphore::new(REMOTE_READS)) })
    }
}

/// Request that changes a region.
struct RegionChange {
    /// Level whose actor runs it. `None` is the one that writes.
    level: Option<usize>,
    run: Box<dyn FnOnce() + Send>,
}

/// Actors of all tiers of a node.
pub(super) struct TierActors {
    /// By level, the fastest first.
    levels: Vec<TierActor>,
    writer: TierActor,
    /// Regions with a change under way, and their next changes. Locked for single operations of the map.
    changes: Mutex<HashMap<RegionKey, VecDeque<RegionChange>>>,
    /// Number of unfinished requests.
    unfinished: Mutex<usize>,
    /// Signaled for each finished request.
    finished: Condvar,
}

impl fmt::Debug for TierActors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierActors").field("levels", &self.levels).finish_non_exhaustive()
    }
}

impl TierActors {
    /// Starts the threads of levels with these names.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> io::Result<Arc<Self>> {
        let levels = names.map(TierActor::new).collect::<io::Result<_>>()?;
        let (changes, unfinished, finished) = (Mutex::default(), Mutex::new(0), Condvar::new());
        Ok(Arc::new(Self { levels, writer: TierActor::new("writes")?, changes, unfinished, finished }))
    }

    /// Sends a request to the actor of a level. `None` is the one that writes.
    pub(super) fn send(self: &Arc<Self>, level: Option<usize>, request: impl FnOnce() + Send + 'static) {
        // Counted by the caller, so that `settle` after this call waits for the request.
        *self.unfinished.lock() += 1;
        let all = Arc::clone(self);
        self.actor(level).threads.spawn(move || {
            // A panic aborts the process, as rayon's pools have no panic handler, so the count cannot stay too high.
            request();
            all.finish();
        });
    }

    /// Sends a request that changes a region, after all such requests that were sent before.
    fn send_change(self: &Arc<Self>, key: RegionKey, change: RegionChange) {
        *self.unfinished.lock() += 1;
        match self.changes.lock().entry(key) {
            Entry::Occupied(mut later) => return later.get_mut().push_back(change),
            Entry::Vacant(none) => _ = none.insert(VecDeque::new()),
        }
        self.start_change(key, change);
    }

    fn start_change(self: &Arc<Self>, key: RegionKey, RegionChange { level, run }: RegionChange) {
        let all = Arc::clone(self);
        self.actor(level).threads.spawn(move || {
            run();
            if let Some(next) = all.next_change(key) {
                all.start_change(key, next);
            }
            all.finish();
        });
    }

    /// Takes the next change of a region. Removes the region from the list if there is none.
    fn next_change(&self, key: RegionKey) -> Option<RegionChange> {
        let mut changes = self.changes.lock();
        let next = changes.get_mut(&key).and_then(VecDeque::pop_front);
        if next.is_none() {
            changes.remove(&key);
        }
        next
    }

    /// Returns whether a change of the region was sent and has not ended.
    fn is_changing(&self, key: RegionKey) -> bool {
        self.changes.lock().contains_key(&key)
    }

    fn actor(&self, level: Option<usize>) -> &TierActor {
        level.and_then(|level| self.levels.get(level)).unwrap_or(&self.writer)
    }

    fn finish(&self) {
        *self.unfinished.lock() -= 1;
        self.finished.notify_all();
    }

    /// Waits until all requests have finished.
    pub(super) fn settle(&self) {
        let mut unfinished = self.unfinished.lock();
        while *unfinished > 0 {
            self.finished.wait(&mut unfinished);
        }
    }
}

impl SpillStore {
    /// Sends a read of a region to the tier that has it. The request may block.
    pub(crate) fn send_read(&self, key: RegionKey, read: impl FnOnce() + Send + 'static) {
        self.actors.send(Some(self.level_of(key)), read);
    }

    /// Sends a write of a region to the tiers of this node. The request may block.
    pub(crate) fn send_write(&self, key: RegionKey, write: impl FnOnce() + Send + 'static) {
        self.actors.send_change(key, RegionChange { level: None, run: Box::new(write) });
    }

    /// Sends a write or a first read of a region to the tier that all nodes share. The request may block.
    pub(crate) fn send_shared(&self, key: RegionKey, request: impl FnOnce() + Send + 'static) {
        let shared = self.stack.levels().iter().position(|level| level.shared);
        let level = shared.or(Some(self.slowest()));
        self.actors.send_change(key, RegionChange { level, run: Box::new(request) });
    }

    /// Removes a region without readers from all tiers, after the writes of it that were sent before. Does not wait.
    pub(crate) fn release(self: &Arc<Self>, key: RegionKey) {
        // In this order: a write that ends between the two questions has left its entry.
        if self.actors.is_changing(key) || self.may_have(key) {
            let from = Arc::clone(self);
            // The slowest tier, because a removal asks all of them.
            let run = Box::new(move || from.remove(key));
            self.actors.send_change(key, RegionChange { level: Some(self.slowest()), run });
        }
    }

    /// Reads a region for a task of this worker. Blocks on the tier. `None` as for [`get`](Self::get).
    pub(crate) fn read(self: &Arc<Self>, key: RegionKey) -> Option<Arc<DataRegion>> {
        let (answer, answered) = sync_channel(1);
        let from = Arc::clone(self);
        self.send_read(key, move || _ = answer.send(from.get(key)));
        answered.recv().ok().flatten()
    }

    /// Reads a region for another worker, after earlier such reads of the tier. `None` as for [`get`](Self::get).
    pub(crate) async fn read_remote(self: &Arc<Self>, key: RegionKey) -> Option<Arc<DataRegion>> {
        let level = self.level_of(key);
        let limit = Arc::clone(&self.actors.levels.get(level)?.remote_reads);
        let permit = limit.acquire_owned().await.ok()?;
        let (answer, answered) = oneshot::channel();
        let from = Arc::clone(self);
        self.actors.send(Some(level), move || {
            // The requester may have ended.
            let _ = answer.send(from.get(key));
            drop(permit);
        });
        answered.await.ok().flatten()
    }

    fn slowest(&self) -> usize {
        self.stack.levels().len().saturating_sub(1)
    }

    /// Returns the level that is known to have a region. Regions of other nodes are in the slowest.
    fn level_of(&self, key: RegionKey) -> usize {
        let stored = self.retained.lock().get(&key).map(|kept| kept.stored);
        let level = stored.and_then(|stored| self.stack.fastest(stored));
        level.map_or(self.slowest(), |level| level.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Raster;
    use pleach_storage::{
        BoundedRam, Durability, EvictionPolicy, Inserted, Tier, TierError, TierLevel, TierStack, WriteMode,
    };
    use pleach_workflow::TierKind;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// Longer than any read that does not hang.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A tier whose large regions are read only while it is open.
    #[derive(Debug)]
    struct Gate {
        tier: BoundedRam,
        is_open: Mutex<bool>,
        opened: Condvar,
        /// Reads that have reached the tier and wait.
        waiting: AtomicUsize,
        /// Also the question for free bytes waits.
        hides_space: AtomicBool,
    }

    impl Gate {
        fn new() -> Arc<Self> {
            let tier = BoundedRam::new(Arc::default(), 1 << 20);
            let (is_open, opened) = (Mutex::new(false), Condvar::new());
            let (waiting, hides_space) = (AtomicUsize::new(0), AtomicBool::new(false));
            Arc::new(Self { tier, is_open, opened, waiting, hides_space })
        }

        fn open(&self) {
            *self.is_open.lock() = true;
            self.opened.notify_all();
        }

        /// Waits until the gate is open.
        fn pass(&self) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut is_open = self.is_open.lock();
            while !*is_open {
                self.opened.wait(&mut is_open);
            }
        }

        fn wait_for(&self, reads: usize) {
            let begun = Instant::now();
            while self.waiting.load(Ordering::SeqCst) < reads {
                assert!(begun.elapsed() < PATIENCE, "fewer than {reads} reads reach the tier");
                std::thread::yield_now();
            }
        }
    }

    impl Tier for Gate {
        fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
            self.tier.insert(key, region)
        }

        fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
            let region = self.tier.get(key)?;
            if region.as_ref().is_some_and(|region| region.bytes() > u64::from(SMALL)) {
                self.pass();
            }
            Ok(region)
        }

        fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
            self.tier.remove(key)
        }

        fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
            self.tier.contains(key)
        }

        fn list(&self) -> Result<Vec<RegionKey>, TierError> {
            self.tier.list()
        }

        fn held_bytes(&self) -> u64 {
            self.tier.held_bytes()
        }

        fn capacity_bytes(&self) -> u64 {
            self.tier.capacity_bytes()
        }

        fn free_bytes(&self) -> u64 {
            if self.hides_space.load(Ordering::SeqCst) {
                self.pass();
            }
            self.tier.free_bytes()
        }

        fn durability(&self) -> Durability {
            self.tier.durability()
        }
    }

    const SMALL: u32 = 10;

    fn region(bytes: u32) -> Arc<DataRegion> {
        Arc::new(DataRegion::Mask(Raster::filled(bytes, 1, 1, 255).expect("a raster")))
    }

    fn store(levels: [(&str, Arc<dyn Tier>); 2]) -> Arc<SpillStore> {
        let levels = levels.map(|(name, tier)| TierLevel {
            name: name.to_owned(),
            tier,
            policy: EvictionPolicy::Lru,
            write: WriteMode::Back,
            shared: name == "lustre",
        });
        Arc::new(SpillStore::new(TierStack::new(levels.into())).expect("threads"))
    }

    fn key(name: u8) -> RegionKey {
        RegionKey([name; 16])
    }

    /// Reads on another thread. Panics if the read hangs.
    fn read(store: &Arc<SpillStore>, name: u8) -> Option<Arc<DataRegion>> {
        let (answer, answered) = channel();
        let from = Arc::clone(store);
        std::thread::spawn(move || answer.send(from.read(key(name))));
        answered.recv_timeout(PATIENCE).expect("a read of another tier does not wait")
    }

    #[test]
    fn hanging_tier_delays_no_request_of_another() {
        let gate = Gate::new();
        let store =
            store([("ssd", Arc::new(BoundedRam::new(Arc::default(), 1 << 20))), ("lustre", gate.clone())]);
        assert!(store.write(key(0), &region(100), None));
        let (answer, answered) = channel();
        for name in 1..9 {
            assert!(store.write(key(name), &region(100), Some(TierKind::Lustre)));
            let (from, answer) = (Arc::clone(&store), answer.clone());
            store.send_read(key(name), move || _ = answer.send(from.get(key(name)).is_some()));
        }
        gate.wait_for(THREADS);
        assert_eq!(read(&store, 0), Some(region(100)));
        // A write has threads as well.
        let (done, is_done) = channel();
        let to = Arc::clone(&store);
        store.send_write(key(9), move || _ = done.send(to.write(key(9), &region(100), None)));
        assert_eq!(is_done.recv_timeout(PATIENCE), Ok(true));
        assert!(answered.try_recv().is_err(), "the other tier hangs");
        gate.open();
        store.settle();
        drop(answer);
        assert_eq!(answered.iter().filter(|found| *found).count(), 8);
    }

    #[test]
    fn free_bytes_do_not_wait_for_a_shared_tier() {
        let gate = Gate::new();
        let disk = Arc::new(BoundedRam::new(Arc::default(), 1000));
        let store = store([("ssd", disk.clone()), ("lustre", gate.clone())]);
        let of_gate = gate.tier.free_bytes();
        gate.hides_space.store(true, Ordering::SeqCst);
        assert!(store.write(key(0), &region(100), None));
        let (answer, answered) = channel();
        let asked = Arc::clone(&store);
        std::thread::spawn(move || answer.send([asked.free_bytes(), asked.free_bytes()]));
        // The disk is asked, and the shared tier was asked at the start.
        let expected = disk.free_bytes() + of_gate;
        assert!(disk.free_bytes() < 1000, "it has a region");
        assert_eq!(answered.recv_timeout(PATIENCE), Ok([expected; 2]));
        gate.wait_for(1);
        assert!(store.write(key(1), &region(100), Some(TierKind::Lustre)));
        gate.open();
        store.settle();
        let _ = store.free_bytes();
        store.settle();
        assert!(gate.tier.free_bytes() < of_gate, "it has a region");
        let expected = disk.free_bytes() + gate.tier.free_bytes();
        assert_eq!(store.free_bytes(), expected, "the shared tier was asked again");
        store.settle();
    }

    #[test]
    fn reads_of_other_workers_leave_a_thread_to_tasks() {
        let gate = Gate::new();
        let store =
            store([("ssd", gate.clone()), ("lustre", Arc::new(BoundedRam::new(Arc::default(), 1 << 20)))]);
        assert!(store.write(key(0), &region(SMALL), None));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("threads");
        let remote: Vec<_> = (1..9)
            .map(|name| {
                assert!(store.write(key(name), &region(100), None));
                let from = Arc::clone(&store);
                runtime.spawn(async move { from.read_remote(key(name)).await.is_some() })
            })
            .collect();
        gate.wait_for(REMOTE_READS);
        assert_eq!(read(&store, 0), Some(region(SMALL)));
        assert_eq!(gate.waiting.load(Ordering::SeqCst), REMOTE_READS);
        gate.open();
        runtime.block_on(async {
            for read in remote {
                assert!(read.await.expect("it ends"));
            }
        });
        assert_eq!(runtime.block_on(store.read_remote(key(77))), None);
    }

    /// Two reads hang in the shared tier, so a copy of another region waits there while its removal is sent.
    #[test]
    fn removal_follows_the_writes_that_were_sent_before_it() {
        let gate = Gate::new();
        let disk = Arc::new(BoundedRam::new(Arc::default(), 1 << 20));
        let store = store([("ssd", disk.clone()), ("lustre", gate.clone())]);
        for name in 1..=2 {
            assert!(store.write(key(name), &region(100), Some(TierKind::Lustre)));
            let from = Arc::clone(&store);
            store.send_read(key(name), move || _ = from.get(key(name)));
        }
        gate.wait_for(2);
        let (steps, to) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&store));
        let (first, second) = (Arc::clone(&steps), Arc::clone(&steps));
        store.send_shared(key(3), move || {
            first.lock().push("shared");
            to.write(key(3), &region(SMALL), Some(TierKind::Lustre));
        });
        let to = Arc::clone(&store);
        store.send_write(key(3), move || {
            second.lock().push("written");
            to.write(key(3), &region(SMALL), None);
        });
        assert_eq!(store.bytes(key(3)), None, "nothing is stored yet");
        store.release(key(3));
        assert!(store.write(key(4), &region(SMALL), None));
        store.release(key(4));
        let to = Arc::clone(&store);
        let (done, is_done) = channel();
        store.send_write(key(5), move || _ = done.send(to.write(key(5), &region(SMALL), None)));
        assert_eq!(is_done.recv_timeout(PATIENCE), Ok(true), "the order of a region delays no other");
        assert!(steps.lock().is_empty());
        gate.open();
        store.settle();
        assert_eq!(*steps.lock(), ["shared", "written"]);
        assert!(store.bytes(key(3)).is_none() && store.bytes(key(4)).is_none());
        let names = |tier: &dyn Tier| tier.list().expect("a list").len();
        assert_eq!((names(&*disk), names(&*gate)), (1, 2), "regions 5, 1 and 2");
        // The next life of a region begins after its removal.
        let write = || {
            let to = Arc::clone(&store);
            store.send_write(key(3), move || _ = to.write(key(3), &region(SMALL), None));
        };
        write();
        store.release(key(3));
        write();
        store.settle();
        assert_eq!((store.bytes(key(3)), names(&*disk)), (Some(u64::from(SMALL)), 2));
        assert!(!store.actors.is_changing(key(3)), "finished changes are forgotten");
    }
}
