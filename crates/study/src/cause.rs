//! Causes of errors, found in the chain of sources.

use crate::Defect;
use std::error::Error;
use std::io::{self, ErrorKind};

/// Linux' numbers of a full disk and a full quota (ENOSPC, EDQUOT), as Rust formats them.
const FULL: [&str; 2] = ["(os error 28)", "(os error 122)"];

/// Cause of an error: decides between the user, the machine and pleach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The input of the user.
    Input,
    /// A full disk or quota: the input is right, and the same operation succeeds with more space.
    NoSpace,
    /// A [`Defect`] of pleach.
    Defect,
}

impl Cause {
    /// Returns the cause of an error, from the first defect or full disk in its chain of sources.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<Defect>() {
                return Self::Defect;
            }
            if error.downcast_ref::<io::Error>().is_some_and(is_full) {
                return Self::NoSpace;
            }
            next = error.source();
        }
        Self::Input
    }
}

/// Returns whether a write failed because a disk or quota is full. Encoders wrap the error of the file that they write
/// to, or keep no more than its text.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    let text = error.to_string();
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) {
            return true;
        }
        cause = error.source();
    }
    FULL.iter().any(|code| text.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Inner<E: Error + 'static>(#[source] E);

    #[derive(Debug, thiserror::Error)]
    #[error("--out results: {0}")]
    struct Outer<E: Error + 'static>(#[from] Box<Inner<E>>);

    /// Returns the cause of an error behind two wrappers.
    fn of_wrapped<E: Error + 'static>(error: E) -> Cause {
        Cause::of(&Outer::from(Box::new(Inner(error))))
    }

    #[test]
    fn defect_behind_wrappers_is_a_defect() {
        let full = || io::Error::from(ErrorKind::StorageFull);
        assert_eq!(Cause::of(&Defect::new("a response without indices")), Cause::Defect);
        assert_eq!(of_wrapped(Defect::new("a response without indices")), Cause::Defect);
        assert_eq!(of_wrapped(Defect::new(full())), Cause::Defect, "the first cause counts");
        assert_eq!(of_wrapped(ErrorText("a response without indices")), Cause::Input);
    }

    #[test]
    fn full_disk_or_quota_behind_wrappers_is_no_space() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            assert_eq!(of_wrapped(io::Error::from(kind)), Cause::NoSpace, "{kind}");
            // An encoder wraps the error of its file in an error of the system.
            assert_eq!(of_wrapped(io::Error::other(Inner(io::Error::from(kind)))), Cause::NoSpace, "{kind}");
        }
        for number in [28, 122] {
            let text = io::Error::from_raw_os_error(number).to_string();
            assert_eq!(of_wrapped(io::Error::other(format!("encoder: {text}"))), Cause::NoSpace, "{text}");
        }
        assert_eq!(of_wrapped(io::Error::from(ErrorKind::PermissionDenied)), Cause::Input);
        assert_eq!(of_wrapped(ErrorText("a file with this text: (os error 28)")), Cause::Input);
    }

    /// Error without a cause, such as one that quotes a file.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct ErrorText(&'static str);
}
