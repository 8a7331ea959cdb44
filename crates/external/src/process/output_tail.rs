//! Last output of a process, read by a thread until the process and its children have closed it.

use parking_lot::{Condvar, Mutex};
use std::io::{self, PipeReader, Read};
use std::sync::Arc;
use std::time::Duration;

/// 64 KiB: the kept output. A process may print any amount.
const KEPT_BYTES: usize = 64 * 1024;

/// Maximum wait for the output of an ended process. A child of it may keep the pipe open.
const END_WAIT: Duration = Duration::from_millis(200);

/// The last output of a process.
#[derive(Debug)]
pub(crate) struct OutputTail {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// At most twice [`KEPT_BYTES`], cut when it is longer.
    bytes: Vec<u8>,
    has_ended: bool,
}

impl OutputTail {
    /// Starts to read.
    pub(crate) fn read(mut reader: PipeReader) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let read = move || {
            let mut piece = [0; 8192];
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                let mut state = of_thread.state.lock();
                state.bytes.extend_from_slice(&piece[..length]);
                if state.bytes.len() > 2 * KEPT_BYTES {
                    let surplus = state.bytes.len() - KEPT_BYTES;
                    state.bytes.drain(..surplus);
                }
            }
            of_thread.state.lock().has_ended = true;
            of_thread.ended.notify_all();
        };
        std::thread::Builder::new().name("external output".to_owned()).spawn(read)?;
        Ok(Self { shared })
    }

    /// Returns the last output of an ended process.
    pub(crate) fn last(&self) -> String {
        let mut state = self.shared.state.lock();
        if !state.has_ended {
            self.shared.ended.wait_for(&mut state, END_WAIT);
        }
        text(&state.bytes)
    }

    /// Returns the output so far, and forgets it.
    pub(crate) fn take(&self) -> String {
        text(&std::mem::take(&mut self.shared.state.lock().bytes))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_the_last_output_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let output = OutputTail::read(reader).unwrap();
        for _ in 0..100 {
            writer.write_all(&[b'a'; 8192]).unwrap();
        }
        writer.write_all(b"end").unwrap();
        drop(writer);
        let last = output.last();
        assert_eq!(last.len(), KEPT_BYTES);
        assert!(last.ends_with("aend"));
        assert!(!output.take().is_empty() && output.take().is_empty());
    }
}
