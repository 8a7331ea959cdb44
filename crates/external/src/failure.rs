//! Failures of one task of an external operation.

use crate::packet::Raised;
use std::time::Duration;
use thiserror::Error;

/// Failure of one task. No failure affects another task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Failure {
    /// The function raised an exception. Equal inputs raise it again.
    #[error("{}", worded(.0))]
    Raised(Raised),
    /// The process cannot load the operations.
    #[error("failed to load the operations: {}", worded(.0))]
    Refused(Raised),
    /// The process ended.
    #[error("the process ended with {how}{}", tail(output))]
    Died { how: String, output: String },
    /// The command reported a failure. Equal inputs fail again.
    #[error("the command ended with {how}{}", tail(output))]
    Unsuccessful { how: String, output: String },
    /// The task exceeded its time limit, and the process was killed.
    #[error("longer than {} s (timeout_seconds); the process was killed", limit.as_secs_f64())]
    TooLong { limit: Duration },
    /// The task exceeded its memory limit, and the process was killed.
    #[error("{bytes} bytes in use; {limit} are allowed (memory.limit); the process was killed")]
    TooLarge { bytes: u64, limit: u64 },
    /// The process sent an invalid answer, and was killed.
    #[error("invalid answer of the process: {0}")]
    Protocol(String),
    /// An input does not fit the format of its file.
    #[error("{0}")]
    Input(String),
    /// The process could not be started, or the system failed.
    #[error("{0}")]
    System(String),
    /// A file of the package differs from the one that the study was planned with.
    #[error("{0} while the study runs; run the study again")]
    Changed(String),
}

impl Failure {
    /// Returns whether another process may succeed.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self, Self::Died { .. } | Self::TooLong { .. } | Self::TooLarge { .. })
    }
}

fn worded(raised: &Raised) -> String {
    let Raised { class, text, traceback } = raised;
    // A violation of the contract has no class.
    let colon = if text.is_empty() || class.is_empty() { "" } else { ": " };
    let newline = if traceback.is_empty() { "" } else { "\n" };
    format!("{class}{colon}{text}{newline}{traceback}")
}

/// Lines of output in a message. The log has more.
const LINES: usize = 20;

/// Returns the last lines of a process's output.
fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if last.is_empty() { String::new() } else { format!("; its last output:\n{}", last.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_with_the_last_lines() {
        let output: String = (0..30).map(|line| format!("line {line}\n")).collect();
        let text = Failure::Died { how: "signal 6 (SIGABRT)".to_owned(), output }.to_string();
        assert!(
            text.starts_with("the process ended with signal 6 (SIGABRT); its last output:\nline 10\n"),
            "{text}"
        );
        assert!(text.ends_with("line 29"), "{text}");
    }
}
