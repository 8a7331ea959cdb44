//! Ctrl-C and SIGTERM: the first asks a study to stop, the second ends the process.

use crate::exit::{CommandError, CommandResult, INTERRUPTED};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The way to ask the study to stop; empty once it was asked.
type Ask = Arc<Mutex<Option<oneshot::Sender<()>>>>;

/// Listens to signals for the rest of the process.
#[derive(Debug)]
pub(crate) struct Interrupt {
    ask: Ask,
    asked: Option<oneshot::Receiver<()>>,
}

impl Interrupt {
    /// Starts to listen (SIGINT, SIGTERM, SIGHUP).
    ///
    /// # Errors
    /// [`CommandError::Internal`] when the system refuses.
    pub(crate) fn listen() -> CommandResult<Self> {
        let (ask, asked) = oneshot::channel();
        let ask: Ask = Arc::new(Mutex::new(Some(ask)));
        let heard = Arc::clone(&ask);
        let handler = move || {
            if !request(&heard) {
                end();
            }
        };
        ctrlc::set_handler(handler).map_err(CommandError::defect)?;
        Ok(Self { ask, asked: Some(asked) })
    }

    /// Receives when a signal has come; to be taken once.
    pub(crate) fn take_asked(&mut self) -> oneshot::Receiver<()> {
        self.asked.take().unwrap_or_else(|| oneshot::channel().1)
    }

    /// Asks the study to stop as a signal would.
    pub(crate) fn asker(&self) -> impl FnOnce() + Send + 'static {
        let ask = Arc::clone(&self.ask);
        move || {
            request(&ask);
        }
    }
}

/// Whether this was the first time.
fn request(ask: &Ask) -> bool {
    let ask = ask.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A study that is over has nothing to stop.
    ask.map(|ask| ask.send(())).is_some()
}

/// Whoever asks twice does not want to wait; what was acknowledged is on disk.
#[expect(clippy::exit, reason = "the user wants the process to end at once")]
fn end() {
    std::process::exit(INTERRUPTED.into());
}
