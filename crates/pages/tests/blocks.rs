//! Contract of the allocator, on random requests from several threads: blocks never overlap, keep their content, are
//! aligned, and are zero if requested. Miri checks every access, so its runs are smaller.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_pages::RecyclingAllocator;
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

const SLOW: bool = cfg!(miri);
const THREADS: usize = if SLOW { 2 } else { 3 };
/// Distance in bytes between the written and checked bytes of a block.
const STRIDE: usize = if SLOW { 8192 } else { 256 };

#[derive(Clone, Debug)]
enum Step {
    Take {
        size: usize,
        align: usize,
        zeroed: bool,
    },
    Resize {
        which: prop::sample::Index,
        size: usize,
    },
    Free {
        which: prop::sample::Index,
    },
    /// Sends a block to another thread. The main thread frees it in the end.
    Give {
        which: prop::sample::Index,
    },
    Trim,
    Limit {
        bytes: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let most = if SLOW { 200 << 10 } else { 1 << 20 };
    // Sizes around the minimum of large blocks, and few different large sizes, so that blocks are reused.
    let size = || {
        prop_oneof![
            1..200_usize,
            (124 << 10)..(140_usize << 10),
            (128 << 10)..most,
            prop::sample::select(vec![128 << 10, 160 << 10, most])
        ]
    };
    let which = any::<prop::sample::Index>;
    prop_oneof![
        6 => (size(), 0..14_u32, any::<bool>())
            .prop_map(|(size, log, zeroed)| Step::Take { size, align: 1 << log, zeroed }),
        3 => (which(), size()).prop_map(|(which, size)| Step::Resize { which, size }),
        3 => which().prop_map(|which| Step::Free { which }),
        1 => which().prop_map(|which| Step::Give { which }),
        1 => Just(Step::Trim),
        1 => (0..8_u64 << 20).prop_map(|bytes| Step::Limit { bytes }),
    ]
}

/// A live block and the byte written throughout it.
struct Owned {
    start: *mut u8,
    layout: Layout,
    mark: u8,
}

// SAFETY: an allocator's block may be used and freed by any thread.
unsafe impl Send for Owned {}

impl Owned {
    /// Returns the offsets of the first byte, of the last one, and of one per [`STRIDE`] between them.
    fn offsets(size: usize) -> impl Iterator<Item = usize> {
        (0..size).step_by(STRIDE).chain([size - 1])
    }

    fn write(&self) {
        for offset in Self::offsets(self.layout.size()) {
            // SAFETY: inside the block, which this thread owns.
            unsafe { self.start.add(offset).write(self.mark) };
        }
    }

    fn holds(&self, value: u8, size: usize) -> bool {
        // SAFETY: inside the block. Every offset has been written or was requested as zero.
        Self::offsets(size).all(|offset| unsafe { self.start.add(offset).read() } == value)
    }
}

/// Start and length of every live block of all threads.
#[derive(Default)]
struct Map(Mutex<BTreeMap<usize, usize>>);

impl Map {
    fn enter(&self, block: &Owned) {
        let (start, size) = (block.start.addr(), block.layout.size());
        let mut map = self.0.lock().unwrap();
        let before = map.range(..start + size).next_back();
        assert!(before.is_none_or(|(other, length)| other + length <= start), "two live blocks overlap");
        map.insert(start, size);
    }

    /// Removes a block before it is freed, since another thread may reuse it afterwards.
    fn leave(&self, block: &Owned) {
        assert!(self.0.lock().unwrap().remove(&block.start.addr()).is_some());
    }
}

struct Thread<'a> {
    map: &'a Map,
    blocks: Vec<Owned>,
    mark: u8,
    next: Sender<Owned>,
    given: Receiver<Owned>,
}

impl Thread<'_> {
    fn follow(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Take { size, align, zeroed } => self.take(*size, *align, *zeroed),
                Step::Trim => pleach_pages::trim(),
                Step::Limit { bytes } => pleach_pages::set_limit_bytes(*bytes),
                _ if self.blocks.is_empty() => {}
                Step::Resize { which, size } => self.resize(which.index(self.blocks.len()), *size),
                Step::Free { which } => {
                    let block = self.blocks.swap_remove(which.index(self.blocks.len()));
                    self.free(block);
                }
                Step::Give { which } => {
                    let block = self.blocks.swap_remove(which.index(self.blocks.len()));
                    assert!(self.next.send(block).is_ok(), "receivers live until all threads are done");
                }
            }
        }
    }

    fn take(&mut self, size: usize, align: usize, zeroed: bool) {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the size is not 0.
        let start = unsafe {
            if zeroed { RecyclingAllocator.alloc_zeroed(layout) } else { RecyclingAllocator.alloc(layout) }
        };
        assert!(!start.is_null() && start.addr().is_multiple_of(align), "{layout:?} at {start:?}");
        self.mark = self.mark.wrapping_add(7) | 1;
        let block = Owned { start, layout, mark: self.mark };
        self.map.enter(&block);
        assert!(!zeroed || block.holds(0, size), "zeroed is zero");
        block.write();
        self.blocks.push(block);
    }

    fn resize(&mut self, index: usize, size: usize) {
        let old = &self.blocks[index];
        assert!(old.holds(old.mark, old.layout.size()));
        self.map.leave(old);
        let layout = Layout::from_size_align(size, old.layout.align()).unwrap();
        // SAFETY: allocated with this layout. The new size is not 0 and does not overflow.
        let start = unsafe { RecyclingAllocator.realloc(old.start, old.layout, size) };
        assert!(!start.is_null() && start.addr().is_multiple_of(layout.align()));
        let kept = old.layout.size().min(size);
        let block = Owned { start, layout, mark: old.mark };
        self.map.enter(&block);
        // All strided offsets below both sizes were written. The new last byte may not have been.
        let kept = (kept - 1) / STRIDE * STRIDE + 1;
        assert!(block.holds(block.mark, kept), "a block keeps its contents when it is resized");
        block.write();
        self.blocks[index] = block;
    }

    fn free(&self, block: Owned) {
        assert!(block.holds(block.mark, block.layout.size()), "nobody else wrote here");
        self.map.leave(&block);
        // SAFETY: allocated with this layout, and not used again.
        unsafe { RecyclingAllocator.dealloc(block.start, block.layout) };
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if SLOW { 4 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn blocks_are_what_was_asked_for(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..if SLOW { 12 } else { 80 }), THREADS),
    ) {
        let map = Map::default();
        let (senders, receivers): (Vec<_>, Vec<_>) = scripts.iter().map(|_| channel()).unzip();
        let left_over: Vec<Thread<'_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = receivers
                .into_iter()
                .zip(&scripts)
                .enumerate()
                .map(|(index, (given, steps))| {
                    let next = senders[(index + 1) % THREADS].clone();
                    let mark = index as u8;
                    let mut thread = Thread { map: &map, blocks: Vec::new(), mark, next, given };
                    scope.spawn(move || {
                        thread.follow(steps);
                        thread
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        drop(senders);
        // This thread frees the remaining blocks of the other threads.
        for mut thread in left_over {
            let given: Vec<Owned> = thread.given.try_iter().collect();
            for block in std::mem::take(&mut thread.blocks).into_iter().chain(given) {
                thread.free(block);
            }
        }
        prop_assert!(map.0.into_inner().unwrap().is_empty());
    }
}
