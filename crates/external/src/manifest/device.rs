//! The device of an operation and its memory there.

use super::written::WrittenOperation;
use super::{Declaration, Determinism, Reader};
use pleach_workflow::toml_fields::FieldError;

/// Device of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A processor core.
    #[default]
    Cpu,
    /// The GPU, one operation at a time on a machine, in the slot of a core.
    Gpu,
    /// The slot of an accelerator, and no core.
    Accelerator,
}

impl Declaration {
    /// Returns whether results may depend on the model and driver of the GPU.
    pub(crate) fn depends_on_gpu(&self) -> bool {
        self.device != Device::Cpu && self.determinism != Determinism::Bits
    }
}

/// Returns the bytes of a task on its accelerator. 0 if they are not declared.
pub(super) fn bytes(reader: &Reader<'_>, at: &str, written: &WrittenOperation) -> Result<u64, FieldError> {
    let field = format!("{at}.device_memory");
    let bytes = reader.memory(&field, written.device_memory.as_ref())?;
    if let (Some(memory), true) = (&written.device_memory, written.device != Device::Accelerator) {
        return reader.fail(
            &field,
            memory,
            "only operations with device = \"accelerator\" have device memory",
        );
    }
    Ok(bytes.unwrap_or(0))
}
