//! What time of the day it is, as an argument: certificates and tokens expire, and tests decide when.
//!
//! Deadlines of connections are no business of this module; they are measured by the runtime that keeps them.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

/// Tells the time.
pub trait Clock: Debug + Send + Sync {
    /// Time since 1970-01-01 00:00 UTC.
    fn now(&self) -> Duration;
}

/// The machine's clock. Set to before 1970, it says 1970.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}
