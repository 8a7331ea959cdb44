//! Tests of the processes of a pool.

use super::*;
use std::process::Command;
use std::sync::atomic::AtomicUsize;

/// Starts `sleep`, which has no operations, and counts the starts.
#[derive(Debug, Default)]
struct Sleep(AtomicUsize);

impl Launch for Sleep {
    fn start(&self) -> io::Result<Process> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new("sleep");
        command.arg("1000");
        Process::start(command)
    }

    /// Waits until the program has mapped its libraries, so that its memory no longer grows.
    fn prepare(&self, process: &mut Process) -> Result<(), Failure> {
        let mut last = None;
        while process.resident_bytes() != last || last.is_none() {
            last = process.resident_bytes();
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Ok(())
    }

    fn resident_bytes(&self) -> u64 {
        1
    }
}

/// A task gets a process as soon as another gives it back. If the process did not count for it, further ones would start beyond the
/// limit.
#[test]
fn given_back_process_counts_for_the_next_task() {
    const THREADS: usize = 4;
    const TASKS: usize = 1000;
    let pool = Pool::new();
    let sleep = Arc::new(Sleep::default());
    let launch: Arc<dyn Launch> = Arc::clone(&sleep) as _;
    let task = |_: &mut Process, _| TaskEnd { result: Ok(()), is_reusable: true };
    pool.run(&launch, false, task).unwrap();
    // For one process, which is replaced after many tasks.
    pool.set_limit_bytes(pool.resident_bytes() * 3 / 2);
    let run = || (1..TASKS / THREADS).for_each(|_| pool.run(&launch, false, task).unwrap());
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(run)));
    });
    assert_eq!(sleep.0.load(Ordering::Relaxed), 1);
}
