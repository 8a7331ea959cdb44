//! Platform of a simulated execution: equal workers of one core, a bandwidth and overheads.

use std::num::NonZeroUsize;

use thiserror::Error;

use super::delay::{Delay, Overheads};

/// Workers and overheads of a simulated execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Platform {
    workers: NonZeroUsize,
    bytes_per_second: f64,
    overheads: Overheads,
}

/// Defect of a platform.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PlatformError {
    /// The bandwidth is not a number above 0.
    #[error("bandwidth: {bytes_per_second} bytes/s; a bandwidth is above 0")]
    Bandwidth {
        /// The bandwidth.
        bytes_per_second: f64,
    },
    /// A delay is negative, infinite or not a number, or the shape of its distribution is not above 0.
    #[error("{name}: {delay:?}; a delay is a finite number of seconds, 0 or more, and a shape is above 0")]
    Delay {
        /// Name of the delay.
        name: &'static str,
        /// The delay.
        delay: Delay,
    },
}

impl Default for Platform {
    /// Returns the platform of paper 002, section 5.3: 20 workers and 15 MB/s. The paper prints no overheads. A queue delay of
    /// 60 s and a clustering delay of 1 s are chosen so that Montage gains as much as the paper's maximum of 48 %.
    fn default() -> Self {
        const WORKERS: NonZeroUsize = NonZeroUsize::new(20).expect("20 is not 0");
        Self {
            workers: WORKERS,
            bytes_per_second: 15e6,
            overheads: Overheads {
                queue: Delay::Fixed(60.0),
                clustering: Delay::Fixed(1.0),
                ..Overheads::NONE
            },
        }
    }
}

impl Platform {
    /// Creates a platform. The bandwidth is that of each worker, in bytes per second. An infinite one makes transfers free.
    ///
    /// # Errors
    /// If the bandwidth is not above 0, a delay is not a finite number of 0 or more, or a shape is not above 0.
    pub fn new(
        workers: NonZeroUsize,
        bytes_per_second: f64,
        overheads: Overheads,
    ) -> Result<Self, PlatformError> {
        if bytes_per_second.is_nan() || bytes_per_second <= 0.0 {
            return Err(PlatformError::Bandwidth { bytes_per_second });
        }
        if let Some((name, delay)) = overheads.named().into_iter().find(|(_, delay)| !delay.is_valid()) {
            return Err(PlatformError::Delay { name, delay });
        }
        Ok(Self { workers, bytes_per_second, overheads })
    }

    /// Returns the number of workers. Each one executes one job at a time.
    #[must_use]
    pub fn workers(&self) -> NonZeroUsize {
        self.workers
    }

    /// Returns the bandwidth of each worker in bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes_per_second
    }

    /// Returns the overheads.
    #[must_use]
    pub fn overheads(&self) -> Overheads {
        self.overheads
    }

    /// Returns the platform with another number of workers.
    #[must_use]
    pub fn with_workers(self, workers: NonZeroUsize) -> Self {
        Self { workers, ..self }
    }

    /// Returns the platform with another bandwidth in bytes per second.
    ///
    /// # Errors
    /// If the bandwidth is not above 0.
    pub fn with_bandwidth(self, bytes_per_second: f64) -> Result<Self, PlatformError> {
        Self::new(self.workers, bytes_per_second, self.overheads)
    }

    /// Returns the platform with other overheads.
    ///
    /// # Errors
    /// If a delay is not a finite number of 0 or more, or a shape is not above 0.
    pub fn with_overheads(self, overheads: Overheads) -> Result<Self, PlatformError> {
        Self::new(self.workers, self.bytes_per_second, overheads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_refused() {
        let platform = Platform::default();
        for bandwidth in [0.0, -1.0, f64::NAN] {
            assert!(matches!(platform.with_bandwidth(bandwidth), Err(PlatformError::Bandwidth { .. })));
        }
        assert_eq!(
            platform.with_bandwidth(0.0).unwrap_err().to_string(),
            "bandwidth: 0 bytes/s; a bandwidth is above 0"
        );
        let overheads = Overheads { post: Delay::Fixed(-2.0), ..Overheads::NONE };
        assert_eq!(
            platform.with_overheads(overheads).unwrap_err().to_string(),
            "post delay: Fixed(-2.0); a delay is a finite number of seconds, 0 or more, and a shape is above 0"
        );
        assert!(platform.with_bandwidth(f64::INFINITY).is_ok());
    }
}
