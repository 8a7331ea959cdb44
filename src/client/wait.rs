//! Waiting for a manager, as long as the user wants to.

use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot::Receiver;
use tokio::time::timeout;

/// Waits, and knows whether the user has asked to stop.
pub(crate) struct Waiting {
    /// Without, a signal ends the process.
    asked: RefCell<Option<Receiver<()>>>,
    was_asked: Cell<bool>,
    /// What there is to say of what goes on without this process.
    goes_on: RefCell<String>,
    runtime: Runtime,
}

impl Waiting {
    /// Ends with the process only.
    ///
    /// # Errors
    /// [`CommandError::Internal`] when the operating system refuses.
    pub(crate) fn until_killed() -> CommandResult<Self> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(CommandError::defect)?;
        let goes_on = RefCell::new("nothing was submitted".to_owned());
        Ok(Self { asked: RefCell::new(None), was_asked: Cell::new(false), goes_on, runtime })
    }

    /// From here on it ends when the first signal has come; the second ends the process.
    pub(crate) fn listen_to(&self, interrupt: &mut Interrupt) {
        self.asked.replace(Some(interrupt.take_asked()));
    }

    /// From here on an interruption ends with these words.
    pub(crate) fn goes_on(&self, words: String) {
        self.goes_on.replace(words);
    }

    /// Waits so long.
    ///
    /// # Errors
    /// [`CommandError::Interrupted`].
    pub(crate) fn pause(&self, time: Duration) -> CommandResult {
        if let Some(asked) = &mut *self.asked.borrow_mut()
            && !self.was_asked.get()
        {
            let heard = self.runtime.block_on(async { timeout(time, asked).await });
            // An error: whoever could have asked is gone, and will not.
            self.was_asked.set(matches!(heard, Ok(Ok(()))));
        } else {
            std::thread::sleep(time);
        }
        self.check()
    }

    /// Whether the user has asked to stop.
    ///
    /// # Errors
    /// [`CommandError::Interrupted`].
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
