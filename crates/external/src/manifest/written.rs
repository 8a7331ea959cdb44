//! The TOML of a manifest before validation.

use super::memory_text::MemoryText;
use super::{Determinism, Device, FileFormat};
use pleach_regions::ElementType;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenManifest {
    #[serde(default)]
    pub(super) package: WrittenPackage,
    #[serde(default)]
    pub(super) operation: Vec<WrittenOperation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPackage {
    #[serde(default)]
    pub(super) requires: Vec<String>,
    #[serde(default)]
    pub(super) python: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenOperation {
    pub(super) name: String,
    pub(super) version: u32,
    #[serde(default)]
    pub(super) function: Option<String>,
    #[serde(default)]
    pub(super) setup: Option<String>,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) inputs: Vec<WrittenPort>,
    pub(super) outputs: Vec<WrittenPort>,
    #[serde(default)]
    pub(super) arguments: Vec<WrittenArgument>,
    #[serde(default)]
    pub(super) constants: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub(super) files: Vec<PathBuf>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) cost: WrittenCost,
    #[serde(default)]
    pub(super) memory: WrittenMemory,
    #[serde(default)]
    pub(super) timeout_seconds: Option<f64>,
    #[serde(default)]
    pub(super) determinism: Determinism,
    #[serde(default)]
    pub(super) device: Device,
    #[serde(default)]
    pub(super) device_memory: Option<MemoryText>,
    #[serde(default)]
    pub(super) batch: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPort {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) element: ElementType,
    #[serde(default)]
    pub(super) channels: Option<String>,
    #[serde(default)]
    pub(super) axes: Option<String>,
    #[serde(default)]
    pub(super) format: Option<FileFormat>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenArgument {
    pub(super) name: String,
    #[serde(default, rename = "type")]
    pub(super) value_type: Option<String>,
    #[serde(default)]
    pub(super) low: Option<f64>,
    #[serde(default)]
    pub(super) high: Option<f64>,
    #[serde(default)]
    pub(super) values: Vec<i64>,
    #[serde(default)]
    pub(super) choices: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenCost {
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    #[serde(default)]
    pub(super) ns_a_pixel: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenMemory {
    #[serde(default)]
    pub(super) resident: Option<MemoryText>,
    #[serde(default)]
    pub(super) bytes_a_pixel: Option<u64>,
    #[serde(default)]
    pub(super) limit: Option<MemoryText>,
}
