//! Failure of a test task.

use pleach_dispatch::message::TaskFailure;

pub(crate) fn failure(at: &str) -> TaskFailure {
    TaskFailure { at: at.to_owned(), cause: "the library said no".to_owned() }
}
