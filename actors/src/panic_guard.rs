//! Turns a panic of an operation into a failure of its task.

use pleach_dispatch::message::TaskFailure;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Name prefix of threads that run tasks. A panic on them is the operation's, and fails its evaluation.
pub const THREAD_NAME: &str = "task-";

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is running a task, so that a panic is the operation's.
#[must_use]
pub fn is_running_task() -> bool {
    GUARDED.get()
}

/// Runs `work` and turns a panic into a failure at `at`.
pub(crate) fn catch_panic<T>(
    at: &str,
    work: impl FnOnce() -> Result<T, TaskFailure>,
) -> Result<T, TaskFailure> {
    let before = GUARDED.replace(true);
    // The closure's state is dropped with it, so no later code sees a partial change.
    let done = catch_unwind(AssertUnwindSafe(work));
    // Restores the earlier value instead of `false`, so that a nested call leaves the outer guard.
    GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let cause = format!("panicked: {}", text.as_deref().unwrap_or("no message"));
        Err(TaskFailure { at: at.to_owned(), cause })
    })
}
