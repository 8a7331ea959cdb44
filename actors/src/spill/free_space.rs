//! Free bytes of the tiers, for decisions that must not wait for a tier.
//!
//! Private tiers are asked at once. A shared one may hang, so its last known answer counts, and its actor asks it again.

use super::tier_actors::TierActors;
use pleach_storage::TierLevel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Last known free bytes of a tier.
#[derive(Debug)]
struct KnownSpace {
    bytes: AtomicU64,
    /// A request is under way.
    is_asked: AtomicBool,
}

/// Free bytes of the levels of a stack.
#[derive(Debug)]
pub(super) struct FreeSpace {
    levels: Vec<TierLevel>,
    /// By level.
    known: Vec<Arc<KnownSpace>>,
}

impl FreeSpace {
    /// Asks all levels once. Blocks on them.
    pub(super) fn new(levels: &[TierLevel]) -> Self {
        let known = levels.iter().map(|level| {
            let bytes = AtomicU64::new(level.tier.free_bytes());
            Arc::new(KnownSpace { bytes, is_asked: AtomicBool::new(false) })
        });
        Self { known: known.collect(), levels: levels.to_vec() }
    }

    /// Returns the free bytes of all levels. Does not wait for a shared one.
    pub(super) fn bytes(&self, actors: &Arc<TierActors>) -> u64 {
        let levels = self.levels.iter().zip(&self.known).enumerate();
        let bytes = levels.map(|(number, (level, known))| {
            if !level.shared {
                return level.tier.free_bytes();
            }
            if !level.tier.is_available() {
                return 0;
            }
            if !known.is_asked.swap(true, Ordering::AcqRel) {
                let (tier, known) = (Arc::clone(&level.tier), Arc::clone(known));
                actors.send(Some(number), move || {
                    known.bytes.store(tier.free_bytes(), Ordering::Release);
                    known.is_asked.store(false, Ordering::Release);
                });
            }
            known.bytes.load(Ordering::Acquire)
        });
        bytes.fold(0, u64::saturating_add)
    }
}
