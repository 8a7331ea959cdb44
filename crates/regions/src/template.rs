//! Region templates: the data regions of one region of a specimen, by name.
//!
//! A region template is a container for a region with a spatial and a temporal bounding box. It has any
//! number of data regions, and each materializes one kind of data (thesis, 2.3; journal, 2.2). A template
//! holds bounds and keys. The data stay in storage, and this module neither reads nor moves them.

mod name;
mod stored;

pub use name::{MAX_NAME_BYTES, NameError};
pub use stored::TEMPLATE_FORMAT;

use crate::space::bounds::{BoundsError, SpatialBounds, TemporalBounds};
use crate::{ElementType, RegionKey, Resolution};
use name::RegionName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stored::StoredTemplate;
use thiserror::Error;

/// One region of a specimen and the data regions in it, by name.
///
/// Data regions are immutable. A name can be reassigned to a data region of a higher version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredTemplate", into = "StoredTemplate")]
pub struct RegionTemplate {
    name: RegionName,
    id: RegionName,
    version: u64,
    timestamp_ns: i64,
    bounds: SpatialBounds,
    time: Option<TemporalBounds>,
    region_of_interest: Option<SpatialBounds>,
    regions: BTreeMap<RegionName, RegionEntry>,
}

/// Entry of a data region in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// Storage key.
    pub key: RegionKey,
    /// Element type.
    pub element: ElementType,
    /// Bounds within the template's bounds, at the data region's own resolution. A table has the bounds of
    /// the region it describes.
    pub bounds: SpatialBounds,
    /// Version of the data region under this name.
    pub version: u64,
}

/// Errors of region templates.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TemplateError {
    /// A name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Bounds cannot be compared with the template's.
    #[error("region template: bounds of {of:?}: {source}")]
    Bounds {
        /// The data region, or the region of interest.
        of: String,
        /// Cause.
        source: BoundsError,
    },
    /// Bounds exceed the template's.
    #[error("region template: bounds of {of:?}: {found}; bounds within {allowed} are allowed")]
    Outside {
        /// The data region, or the region of interest.
        of: String,
        /// Its bounds.
        found: Box<SpatialBounds>,
        /// The template's bounds, at that resolution.
        allowed: Box<SpatialBounds>,
    },
    /// The name already refers to a data region of the same or a later version.
    #[error("region template: version {found} of {name:?}; versions above the present {stored} are allowed")]
    Version {
        /// The data region.
        name: String,
        /// Given version.
        found: u64,
        /// Current version.
        stored: u64,
    },
    /// Two data regions of a stored template have the same name.
    #[error("region template: two data regions are named {name:?}; names must be unique")]
    Twice {
        /// Their name.
        name: String,
    },
}

impl RegionTemplate {
    /// Creates a template of version 0 without data regions and without time.
    ///
    /// `name` is the name of the specimen, such as a slide's. `id` distinguishes templates of the same name.
    ///
    /// # Errors
    /// Returns [`TemplateError::Name`] if the name or the id is invalid.
    pub fn new(name: &str, id: &str, bounds: SpatialBounds) -> Result<Self, TemplateError> {
        Ok(Self {
            name: RegionName::new("name", name)?,
            id: RegionName::new("id", id)?,
            version: 0,
            timestamp_ns: 0,
            bounds,
            time: None,
            region_of_interest: None,
            regions: BTreeMap::new(),
        })
    }

    /// Returns this template as another version, created at `timestamp_ns` nanoseconds since 1970.
    #[must_use]
    pub fn with_version(self, version: u64, timestamp_ns: i64) -> Self {
        Self { version, timestamp_ns, ..self }
    }

    /// Returns this template with temporal bounds.
    #[must_use]
    pub fn with_time(self, time: TemporalBounds) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Returns this template with a region of interest.
    ///
    /// # Errors
    /// Returns [`TemplateError::Outside`] if `part` is not within the template, and [`TemplateError::Bounds`]
    /// if it cannot be compared with it.
    pub fn with_region_of_interest(self, part: SpatialBounds) -> Result<Self, TemplateError> {
        self.check_within("region of interest", &part)?;
        Ok(Self { region_of_interest: Some(part), ..self })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the id, which distinguishes templates of the same name.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Returns the version of the template.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the creation time of this version, in nanoseconds since 1970.
    #[must_use]
    pub fn timestamp_ns(&self) -> i64 {
        self.timestamp_ns
    }

    /// Returns the spatial bounds.
    #[must_use]
    pub fn bounds(&self) -> &SpatialBounds {
        &self.bounds
    }

    /// Returns the resolution of the bounds. `None` if unknown.
    #[must_use]
    pub fn resolution(&self) -> Option<Resolution> {
        self.bounds.resolution()
    }

    /// Returns the temporal bounds. `None` without time.
    #[must_use]
    pub fn time(&self) -> Option<TemporalBounds> {
        self.time
    }

    /// Returns the region of interest, the whole template by default.
    #[must_use]
    pub fn region_of_interest(&self) -> &SpatialBounds {
        self.region_of_interest.as_ref().unwrap_or(&self.bounds)
    }

    /// Returns the data region with this name.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&RegionEntry> {
        self.regions.get(name)
    }

    /// Returns all data regions, ordered by name.
    pub fn regions(&self) -> impl ExactSizeIterator<Item = (&str, &RegionEntry)> {
        self.regions.iter().map(|(name, region)| (name.as_str(), region))
    }

    /// Assigns a name to a data region. Returns the previous data region of this name.
    ///
    /// # Errors
    /// Returns [`TemplateError::Name`] if the name is invalid, [`TemplateError::Outside`] or
    /// [`TemplateError::Bounds`] if the region is not within the template, and [`TemplateError::Version`] if
    /// the previous one has the same or a later version. The template is then unchanged.
    pub fn insert(&mut self, name: &str, region: RegionEntry) -> Result<Option<RegionEntry>, TemplateError> {
        let name = RegionName::new("data region", name)?;
        self.check_within(name.as_str(), &region.bounds)?;
        match self.regions.get(&name) {
            Some(held) if held.version >= region.version => Err(TemplateError::Version {
                name: name.into_string(),
                found: region.version,
                stored: held.version,
            }),
            _ => Ok(self.regions.insert(name, region)),
        }
    }

    /// Removes a data region from the template. Storage keeps it.
    pub fn remove(&mut self, name: &str) -> Option<RegionEntry> {
        self.regions.remove(name)
    }

    /// Checks that `bounds` are within the template's. The last pixel of a coarser resolution may exceed the
    /// template's bounds, so these are rounded outward.
    fn check_within(&self, of: &str, bounds: &SpatialBounds) -> Result<(), TemplateError> {
        let inside = || {
            let allowed = match bounds.resolution() {
                Some(resolution) if self.resolution() != Some(resolution) => {
                    self.bounds.covering_at(resolution)?
                }
                _ => self.bounds,
            };
            Ok((allowed.contains(bounds)?, allowed))
        };
        match inside() {
            Ok((true, _)) => Ok(()),
            Ok((false, allowed)) => Err(TemplateError::Outside {
                of: of.to_owned(),
                found: Box::new(*bounds),
                allowed: Box::new(allowed),
            }),
            Err(source) => Err(TemplateError::Bounds { of: of.to_owned(), source }),
        }
    }
}
