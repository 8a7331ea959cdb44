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
#[error("{goes_on}")]
pub struct Interrupted {
    /// State of the study without this process.
    pub goes_on: String,
}

/// Interruptible waits.
pub struct Waiting {
    /// Receives the first signal. Without it, a signal ends the process.
    asked: RefCell<Option<Receiver<()>>>,
    was_asked: Cell<bool>,
    /// Message of an interruption: the state of the study without this process.
    goes_on: RefCell<String>,
    runtime: Runtime,
}

impl Waiting {
    /// Creates waits that only the end of the process interrupts.
    ///
    /// # Errors
    /// [`Defect`] if the operating system cannot create the runtime.
    pub fn until_killed() -> Result<Self, Defect> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(Defect::new)?;
        let goes_on = RefCell::new("nothing was submitted".to_owned());
        Ok(Self { asked: RefCell::new(None), was_asked: Cell::new(false), goes_on, runtime })
    }

    /// Makes the first signal, which `asked` receives, interrupt all later waits.
    pub fn listen_to(&self, asked: Receiver<()>) {
        self.asked.replace(Some(asked));
    }

    /// Sets the message of later interruptions.
    pub fn goes_on(&self, words: String) {
        self.goes_on.replace(words);
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// [`Interrupted`] after a signal.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Interrupted> {
        if let Some(asked) = &mut *self.asked.borrow_mut()
            && !self.was_asked.get()
        {
            let heard = self.runtime.block_on(async { timeout(time, asked).await });
            // An error means that the sender was dropped, so no signal can arrive any more.
            self.was_asked.set(matches!(heard, Ok(Ok(()))));
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
        if let Some(asked) = &mut *self.asked.borrow_mut()
            && !self.was_asked.get()
        {
            self.was_asked.set(asked.try_recv().is_ok());
        }
        if self.was_asked.get() {
            Err(Interrupted { goes_on: self.goes_on.borrow().clone() })
        } else {
            Ok(())
        }
    }
}
