//! A hanging shared folder blocks only the threads that use it.

use crate::gate::Gate;
use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise};
use pleach_regions::MemoryCounter;
use pleach_storage::files::FileSystem;
use pleach_storage::{
    BoundedRam, EvictionPolicy, FolderKind, FolderSettings, FolderTier, RetentionValue, TierLevel, TierStack,
    WriteMode,
};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

/// Door that blocks threads while it is shut: whether it is shut, and the number of threads at it.
#[derive(Debug, Default)]
pub(crate) struct Door {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Door {
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        while state.0 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 -= 1;
    }

    pub(crate) fn set(&self, is_shut: bool) {
        self.state.lock().unwrap().0 = is_shut;
        self.changed.notify_all();
    }

    pub(crate) fn until_waiting(&self, count: usize) {
        let mut state = self.state.lock().unwrap();
        while state.1 < count {
            state = self.changed.wait(state).unwrap();
        }
    }
}

#[test]
fn hanging_shared_folder_does_not_block_other_threads() {
    let door = Arc::new(Door::default());
    let files = Memory::default();
    let of_shared = Arc::clone(&door);
    let gate = Gate::new(files.clone(), move |_, path| {
        if path.starts_with("/tier/lustre") {
            of_shared.pass();
        }
    });
    let gated: Arc<dyn FileSystem> = Arc::new(gate);
    let level = |name: &str, kind: FolderKind| {
        let path = Path::new(Memory::TIER).join(name);
        files.create_folder(&path).unwrap();
        let settings = FolderSettings::new(kind, AMPLE_BYTES).packed();
        let tier = Arc::new(FolderTier::open(Arc::clone(&gated), &path, settings).unwrap());
        let (policy, write, shared) = (EvictionPolicy::Lru, WriteMode::Back, kind.is_shared());
        TierLevel { name: name.into(), tier, policy, write, shared }
    };
    let ram = TierLevel {
        tier: Arc::new(BoundedRam::new(Arc::new(MemoryCounter::default()), 10_000)),
        ..level("ram", FolderKind::Ssd)
    };
    let stack =
        &TierStack::new(vec![ram, level("ssd", FolderKind::Ssd), level("lustre", FolderKind::Lustre)]);
    let worth = RetentionValue { seconds: 1.0, durable: false };
    for number in 0..4 {
        stack.store(key(number), &noise(number, 4000), worth).unwrap();
    }
    stack.share(key(50), &noise(50, 4000)).unwrap();
    stack.share(key(52), &noise(52, 4000)).unwrap();
    door.set(true);
    std::thread::scope(|scope| {
        let shared = scope.spawn(|| stack.share(key(51), &noise(51, 4000)).unwrap().level.0);
        let read = scope.spawn(|| stack.get(key(50)).unwrap().unwrap().0);
        let missed = scope.spawn(|| stack.get(key(99)).unwrap());
        let brought = scope.spawn(|| stack.promote(key(52), 1.0, AMPLE_BYTES).unwrap());
        door.until_waiting(4);
        // These operations complete while the 4 threads wait.
        for number in 4..40 {
            assert!(stack.store(key(number), &noise(number, 4000), worth).unwrap().level.0 < 2);
            assert!(stack.get(key(number - 4)).unwrap().is_some() && stack.contains(key(number)));
        }
        assert!(stack.contains(key(50)));
        let counts = stack.counts();
        assert!(counts[0].spilled > 30 && counts[1].regions > 30, "{counts:?}");
        // A region that is being promoted can be stored meanwhile: the promotion reads it without a claim.
        stack.store(key(52), &noise(52, 4000), worth).unwrap();
        // The threads that use the shared folder are still blocked.
        assert!(!shared.is_finished() && !read.is_finished() && !missed.is_finished());
        door.set(false);
        brought.join().unwrap();
        assert_eq!(shared.join().unwrap(), 2);
        assert_eq!((read.join().unwrap(), missed.join().unwrap()), (noise(50, 4000), None));
    });
    // The blocked threads have released their claims.
    assert!(stack.remove(key(51)).unwrap());
}
