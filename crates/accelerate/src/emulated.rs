//! The emulated device: schedule policies without an accelerator.

use crate::Device;
use std::any::Any;

/// 8 GiB: the memory of common graphics cards, so that limits of device memory show as on those.
const DEFAULT_MEMORY_BYTES: u64 = 8 << 30;

/// A device without kernels. Its slot runs the CPU variant of a task and waits until the task has taken core seconds /
/// (gain × factor). A task never takes less than its CPU variant.
#[derive(Clone, Debug)]
pub struct EmulatedDevice {
    name: String,
    factor: f64,
    memory_bytes: u64,
}

impl EmulatedDevice {
    /// Creates a device whose gains are those declared times `factor`, which is positive and finite.
    #[must_use]
    pub fn new(factor: f64, memory_bytes: Option<u64>) -> Self {
        let memory_bytes = memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        Self { name: format!("emulated {factor}x"), factor, memory_bytes }
    }
}

impl Device for EmulatedDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn used_bytes(&self) -> u64 {
        0
    }

    fn emulation(&self) -> Option<f64> {
        Some(self.factor)
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
