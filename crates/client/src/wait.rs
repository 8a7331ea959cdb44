//! Waits that a signal from the user ends.

use pleach_study::Defect;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot::Receiver;
use tokio::time::timeout;

/// Interruption by a signal from the user.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{study_state}")]
pub struct Interrupted {
    /// State of the study without this process.
    pub study_state: String,
}

/// Interruptible waits.
pub struct InterruptibleWait {
    /// Receives the first signal. Without it, a signal ends the process.
    signal: RefCell<Option<Receiver<()>>>,
    interrupted: Cell<bool>,
    /// Message of an interruption: the state of the study without this process.
    message: RefCell<String>,
    runtime: Runtime,
}

impl InterruptibleWait {
    /// Creates waits that only the end of the process interrupts.
    ///
    /// # Errors
    /// [`Defect`] if the operating system cannot create the runtime.
    pub fn until_killed() -> Result<Self, Defect> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(Defect::new)?;
        let message = RefCell::new("nothing was submitted".to_owned());
        Ok(Self { signal: RefCell::new(None), interrupted: Cell::new(false), message, runtime })
    }

    /// Makes the first signal, which `signal` receives, interrupt all later waits.
    pub fn listen_to(&self, signal: Receiver<()>) {
        self.signal.replace(Some(signal));
    }

    /// Sets the message of later interruptions.
    pub fn set_message(&self, words: String) {
        self.message.replace(words);
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// [`Interrupted`] after a signal.
    pub fn pause(&self, time: Duration) -> Result<(), Interrupted> {
        if let Some(asked) = &mut *self.signal.borrow_mut()
            && !self.interrupted.get()
        {
            let heard = self.runtime.block_on(async { timeout(time, asked).await });
            // An error means that the sender was dropped, so no signal can arrive any more.
            self.interrupted.set(matches!(heard, Ok(Ok(()))));
        } else {
            std::thread::sleep(time);
        }
        self.check()
    }

    /// Checks whether the user has interrupted the command.
    ///
    /// # Errors
    /// [`Interrupted`] after a signal.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if let Some(asked) = &mut *self.signal.borrow_mut()
            && !self.interrupted.get()
        {
            // The receiver gives the signal once. `interrupted` holds it for all later checks.
            self.interrupted.set(asked.try_recv().is_ok());
        }
        if self.interrupted.get() {
            Err(Interrupted { study_state: self.message.borrow().clone() })
        } else {
            Ok(())
        }
    }
}
