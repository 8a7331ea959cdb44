//! Tasks that wait for the call of an operation, so that the next call takes several of them.
//!
//! No task waits for later ones: an idle operation runs one task at once. While it runs, further tasks gather. The thread
//! of one of them makes the next call for several tasks, which wait for their results.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;

/// Tasks `T` of an operation, with results `R`.
#[derive(Debug)]
pub(super) struct Batches<T, R> {
    /// Maximum tasks of a call.
    most: usize,
    state: Mutex<State<T, R>>,
    /// A call has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct State<T, R> {
    is_running: bool,
    /// In the order of arrival.
    waiting: VecDeque<Arc<Entry<T, R>>>,
}

#[derive(Debug)]
struct Entry<T, R> {
    task: T,
    result: Mutex<Option<R>>,
}

impl<T, R> Batches<T, R> {
    /// Creates an empty queue for calls of at most `most` tasks.
    pub(super) fn new(most: usize) -> Self {
        let state = State { is_running: false, waiting: VecDeque::new() };
        Self { most, state: Mutex::new(state), ended: Condvar::new() }
    }

    /// Runs a task, alone or with other waiting ones that are `alike`, and returns its result. `call` returns a result for each
    /// task. It runs on the thread of one of the tasks, at most one at a time.
    pub(super) fn run(&self, task: T, alike: impl Fn(&T, &T) -> bool, call: impl Fn(&[&T]) -> Vec<R>) -> R {
        let own = Arc::new(Entry { task, result: Mutex::new(None) });
        let mut state = self.state.lock();
        state.waiting.push_back(Arc::clone(&own));
        loop {
            if let Some(result) = own.result.lock().take() {
                return result;
            }
            if state.is_running {
                self.ended.wait(&mut state);
                continue;
            }
            state.is_running = true;
            let running = Running { batches: self, entries: state.next(self.most, &alike), own: &own };
            drop(state);
            let tasks: Vec<&T> = running.entries.iter().map(|entry| &entry.task).collect();
            for (entry, result) in running.entries.iter().zip(call(&tasks)) {
                *entry.result.lock() = Some(result);
            }
            drop(running);
            state = self.state.lock();
        }
    }
}

impl<T, R> State<T, R> {
    /// Removes the first waiting task and those that are like it.
    fn next(&mut self, most: usize, alike: &impl Fn(&T, &T) -> bool) -> Vec<Arc<Entry<T, R>>> {
        let mut taken: Vec<Arc<Entry<T, R>>> = Vec::new();
        let mut rest = VecDeque::new();
        for entry in self.waiting.drain(..) {
            let fits = taken.first().is_none_or(|first| alike(&first.task, &entry.task));
            if fits && taken.len() < most { taken.push(entry) } else { rest.push_back(entry) }
        }
        self.waiting = rest;
        taken
    }
}

/// A call. Its end, also by a panic, lets the next one start.
struct Running<'a, T, R> {
    batches: &'a Batches<T, R>,
    entries: Vec<Arc<Entry<T, R>>>,
    own: &'a Arc<Entry<T, R>>,
}

impl<T, R> Drop for Running<'_, T, R> {
    fn drop(&mut self) {
        let mut state = self.batches.state.lock();
        state.is_running = false;
        // After a panic, the remaining tasks run again on their own threads.
        for entry in self.entries.drain(..).rev() {
            if std::thread::panicking() && !Arc::ptr_eq(&entry, self.own) && entry.result.lock().is_none() {
                state.waiting.push_front(entry);
            }
        }
        self.batches.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{scope, yield_now};
    use std::time::{Duration, Instant};

    type Queue = Batches<(u32, u32), u32>;

    fn alike(first: &(u32, u32), second: &(u32, u32)) -> bool {
        first.0 == second.0
    }

    /// Polls until `count` tasks wait.
    fn until_waiting(queue: &Queue, count: usize) {
        let start = Instant::now();
        while queue.state.lock().waiting.len() < count {
            assert!(start.elapsed() < Duration::from_secs(20), "{count} tasks do not wait");
            yield_now();
        }
    }

    /// Runs a first task, and lets it end when `tasks` wait. Returns the tasks of each call.
    fn calls(most: usize, tasks: &[(u32, u32)], panics: bool) -> Vec<Vec<(u32, u32)>> {
        let queue = Queue::new(most);
        let calls = Mutex::new(Vec::new());
        let (go, gone) = channel();
        let gone = Mutex::new(gone);
        let call = |tasks: &[&(u32, u32)]| {
            if tasks[0].0 == 0 {
                gone.lock().recv().unwrap();
            }
            let is_first_panic = panics && calls.lock().len() == 1;
            calls.lock().push(tasks.iter().map(|task| **task).collect::<Vec<_>>());
            assert!(!is_first_panic, "a panic of the call");
            tasks.iter().map(|task| task.1 * 2).collect::<Vec<_>>()
        };
        scope(|scope| {
            scope.spawn(|| queue.run((0, 0), alike, call));
            let mut threads = Vec::new();
            for (place, task) in tasks.iter().enumerate() {
                if place == 0 {
                    let start = Instant::now();
                    while !queue.state.lock().is_running || !queue.state.lock().waiting.is_empty() {
                        assert!(start.elapsed() < Duration::from_secs(20));
                    }
                }
                threads.push((task.1, scope.spawn(|| queue.run(*task, alike, call))));
                until_waiting(&queue, place + 1);
            }
            go.send(()).unwrap();
            let results: Vec<_> = threads.into_iter().map(|(task, thread)| (task, thread.join())).collect();
            let lost = results.iter().filter(|(_, result)| result.is_err()).count();
            assert_eq!(lost, usize::from(panics));
            assert!(
                results.iter().all(|(task, result)| result.as_ref().map_or(true, |found| *found == task * 2))
            );
        });
        calls.into_inner()
    }

    #[test]
    fn waiting_tasks_with_equal_arguments_share_calls() {
        let found = calls(3, &[(1, 1), (2, 2), (1, 3), (1, 4), (1, 5), (2, 6)], false);
        let expected: [&[_]; 4] = [&[(0, 0)], &[(1, 1), (1, 3), (1, 4)], &[(2, 2), (2, 6)], &[(1, 5)]];
        assert_eq!(found, expected);
    }

    #[test]
    fn panic_of_a_call_costs_the_task_of_its_thread() {
        let found = calls(2, &[(1, 1), (1, 2), (1, 3)], true);
        let runs: usize = found.iter().skip(2).map(Vec::len).sum();
        assert_eq!(runs, 2, "{found:?}");
    }
}
