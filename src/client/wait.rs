//! Waits that a signal from the user ends.

use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot::Receiver;
use tokio::time::timeout;

/// Interruptible waits.
pub(crate) struct Waiting {
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
    /// Returns [`CommandError::Internal`] if the operating system cannot create the runtime.
    pub(crate) fn until_killed() -> CommandResult<Self> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(CommandError::defect)?;
        let goes_on = RefCell::new("nothing was submitted".to_owned());
        Ok(Self { asked: RefCell::new(None), was_asked: Cell::new(false), goes_on, runtime })
    }

    /// Makes the first signal interrupt all later waits. A second signal ends the process.
    pub(crate) fn listen_to(&self, interrupt: &mut Interrupt) {
        self.asked.replace(Some(interrupt.take_asked()));
    }

    /// Sets the message of later interruptions.
    pub(crate) fn goes_on(&self, words: String) {
        self.goes_on.replace(words);
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// Returns [`CommandError::Interrupted`].
    pub(crate) fn pause(&self, time: Duration) -> CommandResult {
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
    /// Returns [`CommandError::Interrupted`].
    pub(crate) fn check(&self) -> CommandResult {
        if let Some(asked) = &mut *self.asked.borrow_mut()
            && !self.was_asked.get()
        {
            self.was_asked.set(asked.try_recv().is_ok());
        }
        if self.was_asked.get() {
            Err(CommandError::Interrupted(self.goes_on.borrow().clone()))
        } else {
            Ok(())
        }
    }
}
