//! Journal of owned workers: one line for each record, with its checksum and its time. The times of requests and ends are
//! those that the manager pays.
//!
//! A record is on disk before the action that it announces. The last line may be torn by a crash, and a line with a wrong
//! checksum is skipped: the driver's list shows the worker, which then counts as an orphan.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// First line of a journal. It changes when the records change.
pub const FORMAT_LINE: &str = "pleach-provision-2\n";

/// First line of journals whose records have no times.
const FORMAT_WITHOUT_TIMES: &str = "pleach-provision-1\n";

/// First lines of the journals that this version reads.
pub const READ_FORMATS: [&str; 2] = [FORMAT_LINE, FORMAT_WITHOUT_TIMES];

/// Hexadecimal digits of a line's checksum: the first 64 bits of its BLAKE3 hash, as in the journals of studies.
const CHECKSUM_DIGITS: usize = 16;

/// Change of an owned worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ProvisionRecord {
    /// A worker is about to be started.
    Intended {
        /// Its name.
        name: String,
        /// Name of its pool.
        pool: String,
    },
    /// The driver returned a handle.
    Started {
        /// Its name.
        name: String,
        /// Its handle.
        handle: String,
    },
    /// The worker does not exist any more.
    Ended {
        /// Its name.
        name: String,
    },
}

/// Worker of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledWorker {
    /// Name of its pool.
    pub pool: String,
    /// Handle, if the driver's answer is known.
    pub handle: Option<String>,
    /// Time of its request in milliseconds since 1970. `None` in journals without times.
    pub requested_ms: Option<u64>,
}

/// Content of a journal: the workers that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvisionJournal {
    workers: BTreeMap<String, JournaledWorker>,
    /// Complete lines with a wrong checksum or content.
    pub corrupt_lines: usize,
}

impl ProvisionRecord {
    /// Returns the line of the record, with its end. `at_ms` is its time in milliseconds since 1970.
    #[must_use]
    pub fn line(&self, at_ms: u64) -> String {
        self.timed_line(Some(at_ms))
    }

    fn timed_line(&self, at_ms: Option<u64>) -> String {
        // Names of variants and strings: they have no form that fails.
        let record = serde_json::to_string(self).unwrap_or_default();
        let content = at_ms.map_or_else(|| record.clone(), |at_ms| format!("{at_ms} {record}"));
        format!("{} {content}\n", checksum(&content))
    }

    fn parse(line: &str) -> Option<(Self, Option<u64>)> {
        let (sum, content) = line.split_once(' ')?;
        if sum != checksum(content) {
            return None;
        }
        // Only a record without time begins with a brace.
        let (at_ms, record) = match content.split_once(' ') {
            Some((at_ms, record)) if !content.starts_with('{') => (Some(at_ms.parse().ok()?), record),
            _ => (None, content),
        };
        Some((serde_json::from_str(record).ok()?, at_ms))
    }
}

impl ProvisionJournal {
    /// Parses the bytes of a journal. A last line without an end is torn and is ignored.
    ///
    /// # Errors
    /// Returns the first line if it is not [`FORMAT_LINE`].
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut journal = Self::default();
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split_inclusive('\n');
        match lines.next() {
            None | Some(FORMAT_LINE | FORMAT_WITHOUT_TIMES) => {}
            // The file was created and not yet written.
            Some(line) if FORMAT_LINE.starts_with(line) => {}
            Some(line) => return Err(line.trim_end().chars().take(80).collect()),
        }
        for line in lines {
            let Some(line) = line.strip_suffix('\n') else { break };
            match ProvisionRecord::parse(line) {
                Some((record, at_ms)) => journal.apply(record, at_ms),
                None => journal.corrupt_lines += 1,
            }
        }
        Ok(journal)
    }

    /// Applies a record. `at_ms` is its time in milliseconds since 1970.
    pub fn apply(&mut self, record: ProvisionRecord, at_ms: Option<u64>) {
        match record {
            ProvisionRecord::Intended { name, pool } => {
                self.workers.insert(name, JournaledWorker { pool, handle: None, requested_ms: at_ms });
            }
            ProvisionRecord::Started { name, handle } => {
                if let Some(worker) = self.workers.get_mut(&name) {
                    worker.handle = Some(handle);
                }
            }
            ProvisionRecord::Ended { name } => _ = self.workers.remove(&name),
        }
    }

    /// Returns the workers that have not ended, by name.
    #[must_use]
    pub fn workers(&self) -> &BTreeMap<String, JournaledWorker> {
        &self.workers
    }

    /// Returns the compact text of the journal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = FORMAT_LINE.to_owned();
        for (name, worker) in &self.workers {
            let intended = ProvisionRecord::Intended { name: name.clone(), pool: worker.pool.clone() };
            text.push_str(&intended.timed_line(worker.requested_ms));
            if let Some(handle) = &worker.handle {
                let started = ProvisionRecord::Started { name: name.clone(), handle: handle.clone() };
                // The time of the request is kept. That of the start is in the log.
                text.push_str(&started.timed_line(worker.requested_ms));
            }
        }
        text
    }
}

fn checksum(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex()[..CHECKSUM_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<ProvisionRecord> {
        let (name, pool) = ("spot-1-1".to_owned(), "spot".to_owned());
        let other = "spot-1-2".to_owned();
        vec![
            ProvisionRecord::Intended { name: name.clone(), pool: pool.clone() },
            ProvisionRecord::Started { name: name.clone(), handle: "17 \"x\"\n".to_owned() },
            ProvisionRecord::Intended { name: other, pool },
            ProvisionRecord::Ended { name },
        ]
    }

    fn text(records: &[ProvisionRecord]) -> String {
        FORMAT_LINE.to_owned()
            + &records.iter().map(|record| record.line(1_700_000_000_123)).collect::<String>()
    }

    #[test]
    fn every_prefix_of_a_journal_is_a_state_that_it_had() {
        let records = records();
        let whole = text(&records);
        let mut states = vec![ProvisionJournal::default()];
        for record in &records {
            let mut next = states.last().unwrap().clone();
            next.apply(record.clone(), Some(1_700_000_000_123));
            states.push(next);
        }
        for end in 0..=whole.len() {
            let found = ProvisionJournal::parse(&whole.as_bytes()[..end]).unwrap();
            let lines = whole[..end].matches('\n').count().saturating_sub(1);
            assert_eq!(found, states[lines], "{end}");
            assert_eq!(ProvisionJournal::parse(found.text().as_bytes()).unwrap(), found);
        }
    }

    #[test]
    fn changed_line_is_skipped_and_another_file_is_refused() {
        let changed = text(&records()).replacen("17", "18", 1);
        let found = ProvisionJournal::parse(changed.as_bytes()).unwrap();
        assert_eq!((found.corrupt_lines, found.workers().len()), (1, 1));
        assert_eq!(ProvisionJournal::parse(b"{}\n"), Err("{}".to_owned()));
    }

    #[test]
    fn journal_without_times_is_read_and_keeps_its_form() {
        let lines = records().iter().map(|record| record.timed_line(None)).collect::<String>();
        let found = ProvisionJournal::parse((FORMAT_WITHOUT_TIMES.to_owned() + &lines).as_bytes()).unwrap();
        assert_eq!(found.workers()["spot-1-2"].requested_ms, None);
        assert_eq!(ProvisionJournal::parse(found.text().as_bytes()).unwrap(), found);
    }
}
