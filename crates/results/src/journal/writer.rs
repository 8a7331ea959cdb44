//! Journal writer: a thread that appends responses, syncs them and then acknowledges them.

use super::record::JournaledResponse;
use pleach_telemetry::catalog::{JOURNAL_COMMIT, JOURNAL_RECORDS};
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Minimum time between two syncs, 10 ms: responses that arrive meanwhile share one sync. The delay blocks no
/// worker, because workers continue while their reports are unacknowledged.
const BETWEEN_SYNCS: Duration = Duration::from_millis(10);

/// Destination of a journal: a file, or in tests a disk that loses unsynced bytes.
pub trait Medium: Send + 'static {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all appended bytes survive a power loss.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Error of the journal writer: a response is not on disk.
#[derive(Debug, Error)]
#[error("failed to write the journal: {0}")]
pub struct WriterError(#[from] pub(crate) io::Error);

/// Sender of responses to the writer thread. Responses sent after the thread ended are dropped.
#[derive(Clone, Debug)]
pub struct Recorder(Sender<Option<JournaledResponse>>);

impl Recorder {
    /// Sends a response to the writer thread.
    pub fn record(&self, known: JournaledResponse) {
        // Ignores a stopped thread: the thread itself calls `broken`.
        let _ = self.0.send(Some(known));
    }
}

/// Writer that appends responses to a journal in the order of their arrival.
#[derive(Debug)]
pub struct Writer {
    recorder: Recorder,
    thread: JoinHandle<Result<(), WriterError>>,
}

impl Writer {
    /// Starts the thread. `acknowledge` receives responses once they are on disk. `broken` is called once
    /// after an error, and the thread then writes no more responses.
    pub fn start(
        medium: impl Medium,
        acknowledge: impl FnMut(&[JournaledResponse]) + Send + 'static,
        broken: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (recorder, incoming) = channel();
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            let written = write(&incoming, medium, acknowledge);
            if written.is_err() {
                broken();
            }
            written
        })?;
        Ok(Self { recorder: Recorder(recorder), thread })
    }

    /// Returns a sender of responses.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Waits until all responses recorded so far are written, and stops the thread.
    ///
    /// # Errors
    /// [`WriterError`] if a response is not on disk.
    pub fn finish(self) -> Result<(), WriterError> {
        // Ends the thread although other recorders exist. A thread that has ended returns its error through `join`.
        let _ = self.recorder.0.send(None);
        let gone = |_| WriterError(io::Error::other("its thread is gone"));
        self.thread.join().map_err(gone)?
    }
}

/// Writes responses with group commit: one sync costs the same for 1 response as for 100, and waking this
/// thread 100 times would cost more than both.
fn write(
    incoming: &Receiver<Option<JournaledResponse>>,
    mut medium: impl Medium,
    mut acknowledge: impl FnMut(&[JournaledResponse]),
) -> Result<(), WriterError> {
    let (commit, records) = (JOURNAL_COMMIT.with([]), JOURNAL_RECORDS.with([]));
    let mut synced: Option<Instant> = None;
    let (mut open, mut lines) = (true, Vec::new());
    // Responses appended, on disk and acknowledged.
    let (mut appended, mut durable, mut acknowledged) = (0u64, 0u64, 0u64);
    while open && let Ok(Some(first)) = incoming.recv() {
        let wait = synced.map_or(Duration::ZERO, |synced| BETWEEN_SYNCS.saturating_sub(synced.elapsed()));
        // Before the rest of the group is collected, so that responses of the pause join it.
        std::thread::sleep(wait);
        let mut group = vec![first];
        loop {
            match incoming.try_recv() {
                Ok(Some(known)) => group.push(known),
                Err(TryRecvError::Empty) => break,
                Ok(None) | Err(TryRecvError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        lines.clear();
        group.iter().for_each(|known| known.append_line(&mut lines));
        let begun = Instant::now();
        debug_assert_eq!(
            lines.iter().filter(|byte| **byte == b'\n').count(),
            group.len(),
            "each response is one line"
        );
        assert!(durable == appended, "{appended} responses were appended before, {durable} are on disk");
        // An error ends the thread: readers ignore all lines behind a torn one, so no further line may follow.
        medium.append(&lines)?;
        appended += group.len() as u64;
        medium.sync()?;
        durable = appended;
        let now = Instant::now();
        synced = Some(now);
        commit.record(now.duration_since(begun).as_secs_f64());
        records.increment(group.len() as u64);
        // Acknowledge only after the sync: an acknowledged response must survive a power loss.
        acknowledged += group.len() as u64;
        assert!(acknowledged == durable, "{acknowledged} responses are acknowledged, {durable} are on disk");
        acknowledge(&group);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::{Header, read};
    use super::*;
    use pleach_regions::Table;
    use proptest::prelude::*;
    use std::sync::{Arc, Mutex};

    /// Disk with synced bytes, and cached bytes that a power loss may destroy.
    #[derive(Default)]
    struct Disk {
        synced: Vec<u8>,
        cached: Vec<u8>,
        /// Number of syncs until the disk is full.
        left: usize,
    }

    struct Shim(Arc<Mutex<Disk>>);

    impl Medium for Shim {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            if disk.left == 0 {
                // A full disk accepts a part of the bytes.
                disk.cached.extend(&bytes[..bytes.len() / 2]);
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.cached.extend(bytes);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            let cached = std::mem::take(&mut disk.cached);
            disk.synced.extend(cached);
            disk.left -= 1;
            Ok(())
        }
    }

    fn known(evaluation: usize) -> JournaledResponse {
        JournaledResponse {
            evaluation,
            tile: 0,
            results: vec![Table::new([("dice", evaluation as f64 / 7.0)])],
        }
    }

    proptest! {
        /// The power fails after any number of syncs. Any part of the unsynced bytes is lost, and the rest
        /// may be torn. Reading returns every acknowledged response and no response that was not written.
        #[test]
        fn acknowledged_records_survive_power_loss(
            count in 0usize..40,
            left in 0usize..40,
            kept in any::<prop::sample::Index>(),
            torn in any::<bool>(),
        ) {
            let header = Header::new(&[]);
            let synced = header.line().into_bytes();
            let disk = Arc::new(Mutex::new(Disk { synced, cached: Vec::new(), left }));
            let acknowledged = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&acknowledged);
            let broken = Arc::new(Mutex::new(0));
            let broke = Arc::clone(&broken);
            let writer = Writer::start(
                Shim(Arc::clone(&disk)),
                move |group: &[JournaledResponse]| told.lock().unwrap().extend(group.to_vec()),
                move || *broke.lock().unwrap() += 1,
            ).unwrap();
            let recorder = writer.recorder();
            for evaluation in 0..count {
                recorder.record(known(evaluation));
            }
            let finished = writer.finish();
            prop_assert_eq!(*broken.lock().unwrap(), usize::from(finished.is_err()));

            let disk = disk.lock().unwrap();
            let mut left_on_disk = disk.synced.clone();
            let kept = kept.index(disk.cached.len() + 1);
            left_on_disk.extend(&disk.cached[..kept]);
            if torn && kept > 0 {
                *left_on_disk.last_mut().unwrap() ^= 0x20;
            }
            let read = read(&left_on_disk, &header).unwrap();
            let acknowledged = acknowledged.lock().unwrap();
            prop_assert!(read.known.len() >= acknowledged.len());
            prop_assert_eq!(&read.known[..acknowledged.len()], &acknowledged[..]);
            prop_assert!(read.known.iter().enumerate().all(|(number, found)| *found == known(number)));
            if finished.is_ok() {
                prop_assert_eq!(acknowledged.len(), count);
            }
        }
    }
}
