//! Serialization of region templates, and validation on reading.
//!
//! The format number comes first. A newer format is rejected at once, before any part that may have changed.
//! Unknown fields are skipped, so that later programs can add fields without a new number. Names, bounds and
//! versions are checked as on creation.

use super::{RegionEntry, RegionName, RegionTemplate, TemplateError};
use crate::space::bounds::{SpatialBounds, TemporalBounds};
use crate::{ElementType, RegionKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Format that is written, and the newest that is read. Increased when an older program would misread a newer
/// file.
pub const TEMPLATE_FORMAT: u32 = 1;

/// A supported format.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Format(u32);

/// An unsupported format.
#[derive(Debug, Error)]
#[error(
    "region template: format {0}; 1 to {TEMPLATE_FORMAT} are allowed, and a newer version of pleach reads newer formats"
)]
struct UnknownFormat(u32);

impl TryFrom<u32> for Format {
    type Error = UnknownFormat;

    fn try_from(format: u32) -> Result<Self, UnknownFormat> {
        if (1..=TEMPLATE_FORMAT).contains(&format) { Ok(Self(format)) } else { Err(UnknownFormat(format)) }
    }
}

impl From<Format> for u32 {
    fn from(format: Format) -> Self {
        format.0
    }
}

/// Serialized template. Every field is always written, so that formats without field names can read it too.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTemplate {
    format: Format,
    name: String,
    id: String,
    version: u64,
    timestamp_ns: i64,
    bounds: SpatialBounds,
    #[serde(default)]
    time_ns: Option<TemporalBounds>,
    #[serde(default)]
    region_of_interest: Option<SpatialBounds>,
    regions: Vec<StoredRegion>,
}

/// A data region of a template. Its name is a field, not a map key: a map would silently keep the last of two
/// entries with the same name.
#[derive(Serialize, Deserialize)]
struct StoredRegion {
    name: String,
    key: RegionKey,
    element: ElementType,
    bounds: SpatialBounds,
    version: u64,
}

impl TryFrom<StoredTemplate> for RegionTemplate {
    type Error = TemplateError;

    fn try_from(stored: StoredTemplate) -> Result<Self, TemplateError> {
        let mut template = Self::new(&stored.name, &stored.id, stored.bounds)?
            .with_version(stored.version, stored.timestamp_ns);
        template.time = stored.time_ns;
        if let Some(part) = stored.region_of_interest {
            template = template.with_region_of_interest(part)?;
        }
        for StoredRegion { name, key, element, bounds, version } in stored.regions {
            // `insert` would accept a second entry of a higher version.
            if template.region(&name).is_some() {
                return Err(TemplateError::Twice { name });
            }
            template.insert(&name, RegionEntry { key, element, bounds, version })?;
        }
        Ok(template)
    }
}

impl From<RegionTemplate> for StoredTemplate {
    fn from(template: RegionTemplate) -> Self {
        let stored = |(name, region): (RegionName, RegionEntry)| {
            let RegionEntry { key, element, bounds, version } = region;
            StoredRegion { name: name.into_string(), key, element, bounds, version }
        };
        Self {
            format: Format(TEMPLATE_FORMAT),
            name: template.name.into_string(),
            id: template.id.into_string(),
            version: template.version,
            timestamp_ns: template.timestamp_ns,
            bounds: template.bounds,
            time_ns: template.time,
            region_of_interest: template.region_of_interest,
            regions: template.regions.into_iter().map(stored).collect(),
        }
    }
}
