//! How a region template is serialized, and what is believed of one that is read.
//!
//! The format's number comes first. A newer one is refused as soon as it is read, before anything that it may have
//! changed; fields that are not known are skipped, so that later programs may add some without a new number. What is
//! read passes through the same doors as what is made: names, bounds and versions are checked.

use super::{RegionEntry, RegionName, RegionTemplate, TemplateError};
use crate::bounds::{SpatialBounds, TemporalBounds};
use crate::{ElementType, RegionKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The format that is written, and the newest that is read. Raised when an older program would misread a newer file.
pub const TEMPLATE_FORMAT: u32 = 1;

/// A format that is known.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Format(u32);

/// A format that is not.
#[derive(Debug, Error)]
#[error(
    "region template: format {0}, allowed are 1 to {TEMPLATE_FORMAT}; a newer version of pleach reads newer formats"
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

/// A template as it is written. Every field is written always, so that formats which do not name fields read it too.
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

/// A data region of it. It has a name of its own rather than being a map's value: of two entries with one name, a map
/// would silently keep the last.
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
