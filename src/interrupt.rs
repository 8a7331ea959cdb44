//! Handles Ctrl-C and SIGTERM: the first signal asks a study to stop, the second ends the process.

use parking_lot::Mutex;
use pleach_study::Defect;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Exit code of an interrupted process.
pub(crate) const EXIT_CODE: u8 = 5;

/// Sender of the stop request. Empty after the first request.
type Ask = Arc<Mutex<Option<oneshot::Sender<()>>>>;

/// Signal listener for the rest of the process.
#[derive(Debug)]
pub(crate) struct Interrupt {
    ask: Ask,
    stop_requested: Option<oneshot::Receiver<()>>,
}

impl Interrupt {
    /// Starts listening to SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// [`Defect`] if the operating system rejects the handler.
    pub(crate) fn listen() -> Result<Self, Defect> {
        let (ask, asked) = oneshot::channel();
        let ask: Ask = Arc::new(Mutex::new(Some(ask)));
        let heard = Arc::clone(&ask);
        let handler = move || {
            if !request(&heard) {
                end();
            }
        };
        ctrlc::set_handler(handler).map_err(Defect::new)?;
        Ok(Self { ask, stop_requested: Some(asked) })
    }

    /// Returns the receiver of the first signal. Call it once: later calls return a receiver without a sender.
    pub(crate) fn take_stop_requested(&mut self) -> oneshot::Receiver<()> {
        self.stop_requested.take().unwrap_or_else(|| oneshot::channel().1)
    }

    /// Returns a function that asks the study to stop, as a signal does.
    pub(crate) fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let ask = Arc::clone(&self.ask);
        move || {
            request(&ask);
        }
    }
}

/// Sends the stop request. Returns whether it is the first.
fn request(ask: &Ask) -> bool {
    // A statement of its own: the lock is released before the send, which wakes the receiver.
    let ask = ask.lock().take();
    // The send fails if the study has ended, which needs no stop.
    ask.map(|ask| ask.send(())).is_some()
}

/// Ends the process on the second signal: the user does not want to wait. Acknowledged responses are on disk.
#[expect(clippy::exit, reason = "the user wants the process to end at once")]
fn end() {
    std::process::exit(EXIT_CODE.into());
}
