//! Faults of a device, and their consequences.

use pleach_accelerate::DeviceError;
use std::time::Duration;

/// Fault of a device.
#[derive(Debug)]
pub(super) enum Fault {
    Device(DeviceError),
    /// The task has not ended within its time limit, and the thread does not return.
    Hung(Duration),
    /// The bits of the outputs differ from those of a core.
    WrongResult,
    Panicked(String),
    /// The thread has ended.
    Ended,
}

impl Fault {
    /// Returns the label of [`catalog::DEVICE_ERRORS`].
    pub(super) fn cause(&self) -> &'static str {
        match self {
            Self::Device(error) => error.cause(),
            Self::Hung(_) => "timeout",
            Self::WrongResult => "result",
            Self::Panicked(_) | Self::Ended => "other",
        }
    }

    pub(super) fn text(&self, device: &str) -> String {
        match self {
            Self::Device(error) => error.to_string(),
            Self::Hung(limit) => {
                format!("{device}: a task hangs for more than {:.1} s", limit.as_secs_f64())
            }
            Self::WrongResult => format!("{device}: the result differs from that of a core"),
            Self::Panicked(cause) => format!("{device}: {cause}"),
            Self::Ended => format!("{device}: its thread has ended"),
        }
    }

    /// Returns whether no further task may run on the device, whatever its earlier errors.
    pub(super) fn is_fatal(&self) -> bool {
        match self {
            Self::Device(error) => !error.is_usable_after(),
            Self::Hung(_) | Self::WrongResult | Self::Ended => true,
            Self::Panicked(_) => false,
        }
    }

    /// Returns whether later runs of the operation meet the same fault, on images of at least this size or on all.
    pub(super) fn excludes(&self, pixels: u64) -> Option<u64> {
        match self {
            Self::Device(DeviceError::OutOfMemory { .. }) => Some(pixels),
            Self::Device(DeviceError::Unsupported { .. } | DeviceError::Compile { .. }) => Some(0),
            _ => None,
        }
    }

    /// Returns whether the fault is one of the device, and not a limit of the device or of an operation.
    pub(super) fn is_error(&self) -> bool {
        !matches!(self, Self::Device(DeviceError::OutOfMemory { .. } | DeviceError::Unsupported { .. }))
    }
}
