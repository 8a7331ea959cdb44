//! Kept and unmapped blocks: counters, limit and resident set. There is only one test, because the counters are those of the
//! process.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_pages::{RecyclingAllocator, allocated_bytes, idle_bytes, live_bytes, set_limit_bytes, trim};

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

const MIB: usize = 1 << 20;

/// Returns a touched block of `mib` MiB.
fn block(mib: usize) -> Vec<u8> {
    vec![1; mib * MIB]
}

fn books_mib() -> (u64, u64) {
    (live_bytes() >> 20, idle_bytes() >> 20)
}

/// Returns the resident set size of this process in MiB, as reported by the system.
#[cfg(not(miri))]
fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}

#[test]
fn idle_bytes_stay_within_the_limit() {
    let grow = if cfg!(miri) { 1 } else { 16 };
    assert_eq!(books_mib(), (0, 0));
    let (a, b) = (block(grow), block(2 * grow));
    assert_eq!(books_mib(), (3 * grow as u64, 0));
    drop((a, b));
    assert_eq!(books_mib(), (0, 3 * grow as u64));

    // An idle block serves the same size. Another size needs a new block.
    let (a, c) = (block(grow), block(3 * grow));
    assert_eq!(books_mib(), (4 * grow as u64, 2 * grow as u64));
    drop((a, c));
    assert_eq!(books_mib(), (0, 6 * grow as u64));
    #[cfg(not(miri))]
    {
        let before = resident_mib();
        trim();
        let after = resident_mib();
        assert!(before >= 6 * grow && before - after > 5 * grow, "{before} MiB, trimmed {after} MiB");
    }
    trim();
    assert_eq!(books_mib(), (0, 0));

    // A lower limit trims at once, the longest idle first.
    let all = [block(grow), block(2 * grow), block(3 * grow)];
    let [first, second, third] = all;
    drop(first);
    drop(third);
    drop(second);
    set_limit_bytes((5 * grow * MIB) as u64);
    assert_eq!(books_mib(), (0, 5 * grow as u64));
    set_limit_bytes((5 * grow * MIB) as u64 - 1);
    assert_eq!(books_mib(), (0, 2 * grow as u64));

    // A new block first evicts idle blocks. A freed block is unmapped if live blocks alone exceed the limit.
    set_limit_bytes((5 * grow * MIB) as u64);
    let (four, two) = (block(4 * grow), block(2 * grow));
    assert_eq!(books_mib(), (6 * grow as u64, 0));
    drop(two);
    assert_eq!(books_mib(), (4 * grow as u64, 0));
    drop(four);
    assert_eq!(books_mib(), (0, 4 * grow as u64));
    trim();

    // Growing moves or copies the block and updates the counters.
    set_limit_bytes(u64::MAX);
    let mut growing: Vec<u8> = block(grow);
    growing.reserve_exact(grow * MIB);
    assert_eq!(books_mib(), (2 * grow as u64, 0));
    assert!(growing.iter().step_by(997).all(|byte| *byte == 1) && growing.len() == grow * MIB);
    drop(growing);
    assert_eq!(books_mib(), (0, 2 * grow as u64));
    let mut growing: Vec<u8> = block(grow);
    growing.reserve_exact(grow * MIB);
    assert_eq!(books_mib(), (2 * grow as u64, grow as u64));
    growing.truncate(10);
    growing.shrink_to_fit();
    assert_eq!((books_mib(), growing), ((0, 3 * grow as u64), vec![1; 10]));

    // With more idle blocks than slots, the longest idle blocks are unmapped.
    trim();
    if cfg!(not(miri)) {
        let blocks: Vec<Box<[u8]>> = (0..1500).map(|_| vec![0; 128 << 10].into_boxed_slice()).collect();
        drop(blocks);
        let idle = idle_bytes() / (128 << 10);
        assert!((1000..=1024).contains(&idle) && live_bytes() == 0, "{idle} idle, {} live", live_bytes());
    }
    trim();
    assert_eq!(books_mib(), (0, 0));

    // Allocated bytes count small blocks, of other threads as well, and no idle ones.
    let before = allocated_bytes() as usize;
    let count = if cfg!(miri) { 200 } else { 20_000 };
    let small =
        std::thread::spawn(move || (0..count).map(|_| vec![1_u8; 1000]).collect::<Vec<_>>()).join().unwrap();
    let large = block(grow);
    let grown = allocated_bytes() as usize - before;
    // Two threads have each up to 64 KiB that they have not added yet.
    let wanted = count * 1000 + grow * MIB;
    assert!(
        grown + (128 << 10) >= wanted && grown <= wanted + count * 32 + (128 << 10),
        "{grown} of {wanted}"
    );
    drop((small, large));
    assert!(allocated_bytes() as usize <= before + (128 << 10));
    trim();

    // A request that cannot be met fails and is not counted. Miri would end the program here.
    assert!(cfg!(miri) || Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
    assert_eq!(books_mib(), (0, 0));
}
