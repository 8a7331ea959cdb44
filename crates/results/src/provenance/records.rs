//! The records of one result folder in memory: its executions, each with its plan and the places of its events.

use super::blocks::{self, BlockKind, HEAD_BYTES, MAGIC, MAGIC_NAME};
use super::bytes::Cursor;
use super::events::{self, Event, WorkerNames};
use super::plan_table::PlanTable;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Records cannot be read.
#[derive(Debug, Error)]
pub enum UnreadableRecords {
    /// The file cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The file has another format.
    #[error("{}: format {found} is not allowed; 1, the format of this version of pleach, is allowed", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Format of the file.
        found: String,
    },
    /// The file has no intact record.
    #[error("{}: corrupt: none of its {bytes} bytes is an intact record; restore the file, or run the study again", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Length of the file.
        bytes: usize,
    },
}

/// One execution of a plan.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) plan: PlanTable,
    events: Vec<Range<usize>>,
    is_ended: bool,
    /// First evaluation that needs each instance.
    pub(super) first_evaluations: Vec<u32>,
}

/// Records of one result folder.
#[derive(Debug)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// In the order of time.
    pub(super) executions: Vec<Execution>,
    /// Reasons why records are missing.
    pub(super) notes: Vec<String>,
}

impl Records {
    pub(super) fn read(file: &Path) -> Result<Self, UnreadableRecords> {
        let path = || file.to_owned();
        let bytes = fs::read(file).map_err(|cause| UnreadableRecords::File { file: path(), cause })?;
        if !bytes.starts_with(MAGIC) {
            let rest = bytes.strip_prefix(MAGIC_NAME);
            let version =
                rest.and_then(|rest| rest.iter().position(|byte| *byte == b'\n').map(|end| &rest[..end]));
            let digits =
                version.filter(|text| (1..=9).contains(&text.len()) && text.iter().all(u8::is_ascii_digit));
            return Err(match digits {
                Some(found) => {
                    let found = String::from_utf8_lossy(found).into_owned();
                    UnreadableRecords::Version { file: path(), found }
                }
                None => UnreadableRecords::Corrupt { file: path(), bytes: bytes.len() },
            });
        }
        let blocks = blocks::read(&bytes);
        let (mut executions, mut orphans) = (Vec::<(usize, Execution)>::new(), 0);
        for (kind, content) in blocks.intact {
            let start = content.start - HEAD_BYTES;
            if kind == BlockKind::Plan {
                let Some(plan) = PlanTable::decode(&bytes[content.clone()]) else {
                    orphans += content.len();
                    continue;
                };
                let first_evaluations = plan.first_evaluations();
                let events = Vec::new();
                executions.push((start, Execution { plan, events, is_ended: false, first_evaluations }));
                continue;
            }
            let mut cursor = Cursor(&bytes[content.clone()]);
            let of = cursor.number().and_then(|of| usize::try_from(of).ok());
            match executions.last_mut().filter(|(plan, _)| Some(*plan) == of) {
                Some((_, execution)) if kind == BlockKind::End => execution.is_ended = true,
                Some((_, execution)) => execution.events.push(content.end - cursor.0.len()..content.end),
                None => orphans += content.len(),
            }
        }
        if executions.is_empty() {
            return Err(UnreadableRecords::Corrupt { file: path(), bytes: bytes.len() });
        }
        let lost_bytes = blocks.corrupt_bytes + blocks.torn_bytes + orphans;
        let executions: Vec<Execution> = executions.into_iter().map(|(_, execution)| execution).collect();
        let mut records = Self { notes: Vec::new(), bytes, executions };
        if lost_bytes > 0 {
            records.notes.push(format!(
                "{}: {lost_bytes} bytes are corrupt or incomplete; their tasks are shown as unrecorded",
                file.display()
            ));
        }
        if records.executions.iter().any(|execution| !execution.is_ended) {
            records.notes.push(format!(
                "{}: an execution has no end: it is running, or its process was killed, which loses up to 1 s of records",
                file.display()
            ));
        }
        Ok(records)
    }

    /// Calls `handle` for each event of an execution. Returns the names of its workers.
    pub(super) fn for_each(&self, execution: &Execution, mut handle: impl FnMut(Event)) -> WorkerNames {
        let mut names = WorkerNames::default();
        for block in &execution.events {
            // The checksum holds, so only a defect of the writer makes a block invalid.
            let is_valid = events::read(&self.bytes[block.clone()], &mut names, &mut handle);
            debug_assert!(is_valid, "invalid events");
        }
        names
    }

    /// Returns the last plan, which has all evaluations of a grown sample.
    pub(super) fn last_plan(&self) -> Option<&PlanTable> {
        self.executions.iter().map(|execution| &execution.plan).max_by_key(|plan| plan.evaluations)
    }
}
