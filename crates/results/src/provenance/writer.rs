//! Writer of the records: a thread that appends the events of up to one second as a block.
//!
//! The observer of an execution adds events to a buffer in memory and never waits for the disk. Blocks are synced once, at
//! the end: a crash of the machine may lose blocks that a crash of the process does not.

use super::blocks::{self, BlockKind, MAGIC, block};
use super::bytes::put;
use super::events::EventWriter;
use super::plan_table::PlanTable;
use parking_lot::{Condvar, Mutex};
use pleach_dispatch::study::WorkerReports;
use pleach_dispatch::{InstanceId, LeaseId};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// Time between two blocks, 1 s: the events that a killed process loses.
const BETWEEN_BLOCKS: Duration = Duration::from_secs(1);

/// Bytes of a block that is written before its second is over: 64 KiB, about 10,000 tasks.
const BLOCK_BYTES: usize = 64 << 10;

/// Maximum bytes that wait for the disk, 16 MiB: about 2 million tasks. Beyond that, the records end.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Error of the records. The study continues without them.
#[derive(Debug, Error)]
#[error("{}: failed to write: {cause}; pleach explain knows only the tasks before", file.display())]
pub struct RecordError {
    /// The file.
    file: PathBuf,
    /// The system's error.
    #[source]
    cause: io::Error,
}

#[derive(Debug, Default)]
struct Buffer {
    events: EventWriter,
    /// The recorder has been finished.
    is_over: bool,
    /// The disk is too slow, or its thread has ended after an error.
    is_broken: bool,
}

#[derive(Debug, Default)]
struct Shared {
    buffer: Mutex<Buffer>,
    wake: Condvar,
}

/// Recorder of one execution.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    file: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

/// Adds events to the records. Events after the end of the recorder or an error of the disk are dropped.
#[derive(Clone, Debug)]
pub struct RecordingObserver(Arc<Shared>);

impl RecordingObserver {
    fn add(&self, add: impl FnOnce(&mut EventWriter)) {
        let mut buffer = self.0.buffer.lock();
        if buffer.is_broken || buffer.is_over {
            return;
        }
        let before = buffer.events.bytes.len();
        add(&mut buffer.events);
        let after = buffer.events.bytes.len();
        // Records without an end show a reader that events are missing.
        buffer.is_broken = after > MAX_WAITING_BYTES;
        drop(buffer);
        if before < BLOCK_BYTES && after >= BLOCK_BYTES {
            self.0.wake.notify_one();
        }
    }

    /// Records a worker's reports.
    pub fn report(&self, reports: &WorkerReports<'_>) {
        self.add(|events| events.report(reports));
    }

    /// Records a finished instance that is executed again.
    pub fn reopened(&self, instance: InstanceId) {
        self.add(|events| events.reopened(instance));
    }

    /// Records instances of a lease that a worker has left or lost before it reported them.
    pub fn lost(&self, worker: &str, lease: LeaseId, instances: &BTreeSet<InstanceId>) {
        self.add(|events| events.lost(worker, lease, instances));
    }
}

impl Recorder {
    /// Starts the records of an execution in this file, after those of earlier executions of the study. A torn end of
    /// theirs is cut off.
    ///
    /// # Errors
    /// [`RecordError`] if the file cannot be written.
    pub fn start(file: &Path, table: &PlanTable) -> Result<Self, RecordError> {
        let fail = |cause| RecordError { file: file.to_owned(), cause };
        let mut out = open(file).map_err(fail)?;
        let plan = out.stream_position().map_err(fail)?;
        out.write_all(&block(BlockKind::Plan, &table.encode())).map_err(fail)?;
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("provenance".to_owned()).spawn(move || {
            let written = write(&of_thread, plan, out);
            if written.is_err() {
                of_thread.buffer.lock().is_broken = true;
            }
            written
        });
        Ok(Self { shared, file: file.to_owned(), thread: thread.map_err(fail)? })
    }

    /// Returns an observer that adds events.
    #[must_use]
    pub fn observer(&self) -> RecordingObserver {
        RecordingObserver(Arc::clone(&self.shared))
    }

    /// Writes all events so far, marks the end of the execution, and syncs the file.
    ///
    /// # Errors
    /// [`RecordError`] if events are missing on disk.
    pub fn finish(self) -> Result<(), RecordError> {
        self.shared.buffer.lock().is_over = true;
        self.shared.wake.notify_one();
        let written = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread is gone")));
        written.map_err(|cause| RecordError { file: self.file, cause })
    }
}

/// Opens the file for appending, after its last intact block.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A file of another version cannot be continued, and its study writes its results with this version.
    let end = if bytes.starts_with(MAGIC) { blocks::read(&bytes).intact_end } else { 0 };
    file.set_len(end as u64)?;
    file.seek(SeekFrom::End(0))?;
    if end == 0 {
        file.write_all(MAGIC)?;
    }
    Ok(file)
}

fn write(shared: &Shared, plan: u64, mut out: File) -> io::Result<()> {
    let mut of_plan = Vec::new();
    put(&mut of_plan, plan);
    loop {
        let mut buffer = shared.buffer.lock();
        if !buffer.is_over && buffer.events.bytes.len() < BLOCK_BYTES {
            shared.wake.wait_for(&mut buffer, BETWEEN_BLOCKS);
        }
        let (events, is_over) = (std::mem::take(&mut buffer.events).bytes, buffer.is_over);
        let is_broken = buffer.is_broken;
        // Released before the write: the observer must not wait for the disk.
        drop(buffer);
        if !events.is_empty() {
            out.write_all(&block(BlockKind::Events, &[of_plan.as_slice(), &events].concat()))?;
        }
        if is_broken {
            return Err(io::Error::other("the disk is slower than the tasks"));
        }
        if is_over {
            out.write_all(&block(BlockKind::End, &of_plan))?;
            return out.sync_data();
        }
    }
}
