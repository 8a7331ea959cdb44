//! Writing a journal: a thread that appends what has come in, syncs it, and only then says so.

use super::record::JournaledResponse;
use pleach_telemetry::catalog::{JOURNAL_COMMIT, JOURNAL_RECORDS};
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Between two syncs: what comes meanwhile is synced together. Nobody waits for one of them: a worker goes on while its
/// reports are on their way to the disk.
const BETWEEN_SYNCS: Duration = Duration::from_millis(10);

/// Where a journal is written to: a file, or in tests a disk that loses what was not synced.
pub(crate) trait Medium: Send + 'static {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all that was appended survive a loss of power.
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

/// Why a response is not on disk.
#[derive(Debug, Error)]
#[error("failed to write the journal: {0}")]
pub(crate) struct WriterError(#[from] pub(crate) io::Error);

/// Takes responses to the thread that writes them; nothing happens once that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Sender<Option<JournaledResponse>>);

impl Recorder {
    pub(crate) fn record(&self, known: JournaledResponse) {
        // The thread tells of its end by itself.
        let _ = self.0.send(Some(known));
    }
}

/// Appends responses to a journal in the order in which they come.
#[derive(Debug)]
pub(crate) struct Writer {
    recorder: Recorder,
    thread: JoinHandle<Result<(), WriterError>>,
}

impl Writer {
    /// Starts the thread; `acknowledge` is told of responses once they are on disk, `broken` once of an error, after
    /// which nothing more is written.
    pub(crate) fn start(
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

    /// For the responses.
    pub(crate) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Waits until everything that was recorded before is written.
    ///
    /// # Errors
    /// [`WriterError`] when some response is not on disk.
    pub(crate) fn finish(self) -> Result<(), WriterError> {
        let _ = self.recorder.0.send(None);
        let gone = |_| WriterError(io::Error::other("its thread is gone"));
        self.thread.join().map_err(gone)?
    }
}

/// Group commit: a sync costs as much for one response as for a hundred, and waking this thread for each of a hundred
/// more than both.
fn write(
    incoming: &Receiver<Option<JournaledResponse>>,
    mut medium: impl Medium,
    mut acknowledge: impl FnMut(&[JournaledResponse]),
) -> Result<(), WriterError> {
    let (commit, records) = (JOURNAL_COMMIT.with([]), JOURNAL_RECORDS.with([]));
    let mut synced: Option<Instant> = None;
    let mut open = true;
    while open && let Ok(Some(first)) = incoming.recv() {
        let wait = synced.map_or(Duration::ZERO, |synced| BETWEEN_SYNCS.saturating_sub(synced.elapsed()));
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
        let lines: String = group.iter().map(JournaledResponse::line).collect();
        let begun = Instant::now();
        medium.append(lines.as_bytes())?;
        medium.sync()?;
        let now = Instant::now();
        synced = Some(now);
        commit.record(now.duration_since(begun).as_secs_f64());
        records.increment(group.len() as u64);
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

    /// A disk: what was synced, and what was not.
    #[derive(Default)]
    struct Disk {
        synced: Vec<u8>,
        cached: Vec<u8>,
        /// Syncs until the disk is full.
        left: usize,
    }

    struct Shim(Arc<Mutex<Disk>>);

    impl Medium for Shim {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            if disk.left == 0 {
                // A full disk takes a part.
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
        /// The power fails after any number of syncs, and of what was not synced any part is lost, the rest perhaps
        /// torn: everything acknowledged is read back, and nothing that was not written.
        #[test]
        fn what_is_acknowledged_survives_a_loss_of_power(
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
