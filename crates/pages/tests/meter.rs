//! `metered`: peak of this thread above its start, with recycled and fresh blocks, nesting, panics and threads.

use pleach_pages::{RecyclingAllocator, metered, trim};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

const SIZE: usize = if cfg!(miri) { 1 << 18 } else { 8 << 20 };

fn block() -> Vec<u8> {
    vec![0; SIZE]
}

#[test]
fn the_peak_counts_what_is_alive_at_one_time() {
    let blocks = |n: u64| n * SIZE as u64;
    // The second round uses recycled blocks.
    for _ in 0..2 {
        assert_eq!(metered(|| (block(), block())).1, blocks(2));
        let one_after_the_other = || {
            drop(block());
            drop(block());
        };
        assert_eq!(metered(one_after_the_other).1, blocks(1));
    }
    // The peak counts from the start of the span: freeing an input offsets later blocks.
    let input = block();
    assert_eq!(metered(|| drop((input, block()))).1, blocks(1));
    let input = block();
    let reuse = || {
        drop(input);
        block()
    };
    assert_eq!(metered(reuse).1, 0);
    assert_eq!(metered(|| ()).1, 0);
    // Blocks allocated and freed before the span do not count.
    drop([block(), block(), block()]);
    assert_eq!(metered(block).1, blocks(1));
}

#[test]
fn small_blocks_count_as_asked_for() {
    assert_eq!(metered(|| (Box::new([0_u8; 100]), vec![0_u64; 3])).1, 124);
}

/// A growing block counts with its old and its new size, whether its pages are moved or its bytes copied.
#[test]
fn growth_counts_the_same_recycled_or_fresh() {
    let grow = || {
        let mut bytes = block();
        bytes.reserve_exact(SIZE);
        bytes
    };
    for _ in 0..3 {
        assert_eq!(metered(grow).1, 3 * SIZE as u64);
    }
    trim();
    assert_eq!(metered(grow).1, 3 * SIZE as u64);
    let shrink = || {
        let mut bytes = grow();
        bytes.truncate(SIZE);
        bytes.shrink_to_fit();
        bytes
    };
    assert_eq!(metered(shrink).1, 3 * SIZE as u64);
}

#[test]
fn nested_meters_report_their_own_peaks() {
    let work = || {
        let first = block();
        let (second, inner) = metered(block);
        drop(second);
        let (_, none) = metered(|| ());
        (first, inner, none)
    };
    let ((_, inner, none), outer) = metered(work);
    assert_eq!((inner, none, outer), (SIZE as u64, 0, 2 * SIZE as u64));
}

#[test]
fn a_panic_leaves_the_counters_right() {
    let work = || {
        let blocks = [block(), block()];
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            metered(|| {
                let _third = block();
                std::panic::resume_unwind(Box::new("stop"));
            })
        }));
        assert!(stopped.is_err());
        drop(blocks);
        block()
    };
    // The peak is three blocks, and only the returned block stays.
    let (_, peak) = metered(|| drop(work()));
    assert!(peak >= 3 * SIZE as u64 && peak < 3 * SIZE as u64 + 1000, "{peak}");
    assert_eq!(metered(block).1, SIZE as u64);
}

/// Each thread counts its own allocations, and subtracts the blocks that it frees.
#[test]
fn threads_are_metered_apart() {
    let (sum, peak) = metered(|| {
        let thread = std::thread::spawn(|| {
            let (_, peak) = metered(|| drop((block(), block())));
            peak
        });
        thread.join().unwrap()
    });
    assert_eq!(sum, 2 * SIZE as u64);
    assert!(peak < SIZE as u64, "{peak}");
    let given = block();
    let freed_and_taken = std::thread::spawn(move || metered(|| drop((drop(given), block()))).1);
    assert_eq!(freed_and_taken.join().unwrap(), 0);
}

/// Destructors of thread locals can allocate and free while a thread ends.
#[test]
fn threads_end_in_peace() {
    struct Late(Vec<u8>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0 = block();
        }
    }
    thread_local!(static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) });
    for _ in 0..3 {
        std::thread::spawn(|| LATE.with(|late| *late.borrow_mut() = Some(Late(block())))).join().unwrap();
    }
}
