//! Log of a simulation: its scenario and all events of its manager, one JSON document per line, for debugging.

use crate::cluster::workloads;
use crate::recorder::{RecordedEvent, RecordedManager};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use thiserror::Error;

/// Version of the format. Logs of other versions are refused.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    pleach_simulation: u32,
    schedule: Scenario,
}

/// A parsed log.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The scenario.
    pub schedule: Scenario,
    /// The manager's events, in order.
    pub events: Vec<RecordedEvent>,
}

/// Cause of an invalid log.
#[derive(Debug, Error)]
pub enum LogError {
    /// The log has no first line.
    #[error("the log is empty")]
    Empty,
    /// The log has another version.
    #[error("version {found}; version {VERSION} is allowed")]
    Version {
        /// Version.
        found: u32,
    },
    /// A line is invalid.
    #[error("line {line}: {cause}")]
    Line {
        /// Number, counted from 1.
        line: usize,
        /// The cause.
        cause: serde_json::Error,
    },
}

impl Log {
    /// Writes a log.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write(schedule: &Scenario, events: &[RecordedEvent], mut to: impl Write) -> io::Result<()> {
        let head = Head { pleach_simulation: VERSION, schedule: schedule.clone() };
        serde_json::to_writer(&mut to, &head)?;
        for said in events {
            writeln!(to)?;
            serde_json::to_writer(&mut to, said)?;
        }
        writeln!(to)
    }

    /// Reads a log.
    ///
    /// # Errors
    /// Returns a [`LogError`] with the number of the line.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let mut lines = (1..).zip(text.lines());
        let (line, first) = lines.next().ok_or(LogError::Empty)?;
        let head: Head = serde_json::from_str(first).map_err(|cause| LogError::Line { line, cause })?;
        if head.pleach_simulation != VERSION {
            return Err(LogError::Version { found: head.pleach_simulation });
        }
        let events = lines
            .map(|(line, text)| serde_json::from_str(text).map_err(|cause| LogError::Line { line, cause }));
        Ok(Self { schedule: head.schedule, events: events.collect::<Result<_, _>>()? })
    }

    /// Creates a manager with the plans of the log, for a replay.
    #[must_use]
    pub fn manager(&self) -> RecordedManager {
        let plans = workloads(&self.schedule).into_iter().map(|workload| workload.plan).collect();
        RecordedManager::new(plans, true, false)
    }
}
