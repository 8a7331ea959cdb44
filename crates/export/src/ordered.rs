//! Work on several threads whose results are taken in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Name prefix of the threads: that of threads that run tasks, whose panics the program leaves to their callers.
const THREAD_NAME: &str = "task-export";

/// Results that may wait to be taken, for each thread. With 2, a slow piece rarely makes the other threads wait.
const AHEAD: usize = 2;

struct State<R> {
    next: usize,
    taken: usize,
    results: BTreeMap<usize, Result<R, String>>,
    is_stopped: bool,
}

/// Results of work in progress.
pub(crate) struct Ordered<'a, R> {
    shared: &'a Shared<R>,
}

struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        // No thread panics while it has the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<R>>) -> MutexGuard<'a, State<R>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, count: usize, ahead: usize, work: &(impl Fn(usize) -> R + Sync)) {
        loop {
            let mut state = self.lock();
            while !state.is_stopped && state.next < count && state.next >= state.taken + ahead {
                state = self.wait(state);
            }
            if state.is_stopped || state.next >= count {
                return;
            }
            let number = state.next;
            state.next += 1;
            drop(state);
            let result = catch_unwind(AssertUnwindSafe(|| work(number))).map_err(|panic| {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                format!("panicked: {}", text.as_deref().unwrap_or("no message"))
            });
            self.lock().results.insert(number, result);
            self.changed.notify_all();
        }
    }
}

impl<R> Ordered<'_, R> {
    /// Waits for the next result. The error is the text of a panic. Call it once for each piece at most.
    pub(crate) fn take(&self) -> Result<R, String> {
        let mut state = self.shared.lock();
        let number = state.taken;
        loop {
            if let Some(result) = state.results.remove(&number) {
                state.taken += 1;
                self.shared.changed.notify_all();
                return result;
            }
            state = self.shared.wait(state);
        }
    }
}

impl<R> Drop for Ordered<'_, R> {
    /// Ends the threads after their present piece, also if the taker fails or panics.
    fn drop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.changed.notify_all();
    }
}

/// Works on `count` pieces with `threads` threads while `take` runs, which takes the results in order.
pub(crate) fn in_order<R: Send, T>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    take: impl FnOnce(&Ordered<'_, R>) -> T,
) -> std::io::Result<T> {
    let state = State { next: 0, taken: 0, results: BTreeMap::new(), is_stopped: false };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let ordered = Ordered { shared: &shared };
        for number in 0..threads.min(count) {
            let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-{number}"));
            thread.spawn_scoped(scope, || shared.work(count, AHEAD * threads, &work))?;
        }
        Ok(take(&ordered))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_are_in_order_and_threads_wait_for_the_taker() {
        let begun = AtomicUsize::new(0);
        let work = |number: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            assert_ne!(number, 7, "seven");
            number * number
        };
        let taken = in_order(40, 3, work, |ordered| {
            let mut all = Vec::new();
            for number in 0..20 {
                all.push(ordered.take());
                assert!(begun.load(Ordering::SeqCst) <= number + 1 + 6);
            }
            all
        });
        let taken = taken.unwrap();
        for (number, result) in taken.iter().enumerate() {
            match result {
                Err(text) => assert!(number == 7 && text.contains("seven"), "{number}: {text}"),
                Ok(square) => assert_eq!(*square, number * number),
            }
        }
        // The threads ended early.
        assert!(begun.load(Ordering::SeqCst) <= 26);
    }

    #[test]
    fn no_pieces_need_no_threads() {
        assert_eq!(in_order(0, 4, |number| number, |_| 5).unwrap(), 5);
    }
}
