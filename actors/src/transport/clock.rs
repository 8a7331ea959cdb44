//! Time of day as an argument: certificates and tokens expire, and tests set the time.
//!
//! Deadlines of connections use the runtime's clock instead.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

/// Source of the time of day.
pub trait Clock: Debug + Send + Sync {
    /// Returns the time since 1970-01-01 00:00 UTC.
    fn now(&self) -> Duration;
}

/// Clock of the machine. Returns 1970 if it is set to an earlier time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}
