//! What a simulation was, and everything its manager was told, one JSON document a line: to step through what went wrong.

use crate::cluster::workloads;
use crate::recorder::{RecordedEvent, RecordedManager};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use thiserror::Error;

/// Of the format: logs of another one are refused.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    pleach_simulation: u32,
    schedule: Scenario,
}

/// A log that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// What was simulated.
    pub schedule: Scenario,
    /// What the manager was told, in order.
    pub said: Vec<RecordedEvent>,
}

/// Why a text is no log.
#[derive(Debug, Error)]
pub enum LogError {
    /// There is no first line.
    #[error("it is empty")]
    Empty,
    /// It is of another version.
    #[error("it is of version {found}, and {VERSION} can be read")]
    Version {
        /// Its version.
        found: u32,
    },
    /// A line is not what it should be.
    #[error("line {line}: {cause}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        cause: serde_json::Error,
    },
}

impl Log {
    /// Writes a log.
    ///
    /// # Errors
    /// When the writer does not take it.
    pub fn write(schedule: &Scenario, said: &[RecordedEvent], mut to: impl Write) -> io::Result<()> {
        let head = Head { pleach_simulation: VERSION, schedule: schedule.clone() };
        serde_json::to_writer(&mut to, &head)?;
        for said in said {
            writeln!(to)?;
            serde_json::to_writer(&mut to, said)?;
        }
        writeln!(to)
    }

    /// Reads a log.
    ///
    /// # Errors
    /// [`LogError`], with the line.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let mut lines = (1..).zip(text.lines());
        let (line, first) = lines.next().ok_or(LogError::Empty)?;
        let head: Head = serde_json::from_str(first).map_err(|cause| LogError::Line { line, cause })?;
        if head.pleach_simulation != VERSION {
            return Err(LogError::Version { found: head.pleach_simulation });
        }
        let said = lines
            .map(|(line, text)| serde_json::from_str(text).map_err(|cause| LogError::Line { line, cause }));
        Ok(Self { schedule: head.schedule, said: said.collect::<Result<_, _>>()? })
    }

    /// A manager that knows the plans of the log, to be told all of it again.
    #[must_use]
    pub fn manager(&self) -> RecordedManager {
        let plans = workloads(&self.schedule).into_iter().map(|workload| workload.plan).collect();
        RecordedManager::new(plans, true, false)
    }
}
