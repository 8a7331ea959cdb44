//! Region templates: the data regions of one region of a specimen, under one name.
//!
//! A region template is a container for a region that is defined by a spatial and a temporal bounding box, with any number of
//! data regions, each of which materializes one kind of data in it (thesis, 2.3; journal, 2.2). It holds bounds and keys. The
//! data stay in storage, and this module neither reads nor moves them.

mod name;
mod stored;

pub use name::{MAX_NAME_BYTES, NameError};
pub use stored::TEMPLATE_FORMAT;

use crate::bounds::{BoundsError, SpatialBounds, TemporalBounds};
use crate::{ElementType, RegionKey, Resolution};
use name::RegionName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stored::StoredTemplate;
use thiserror::Error;

/// One region of a specimen and the data regions in it, by name.
///
/// Data regions are immutable. A name can be given to another one, which then has a higher version.
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
    /// Its storage key.
    pub key: RegionKey,
    /// Its element type.
    pub element: ElementType,
    /// Its bounds, at its own resolution, within the template's bounds. A table has the bounds of the region it describes.
    pub bounds: SpatialBounds,
    /// Version of the data region under this name.
    pub version: u64,
}

/// Why something cannot be (in) a region template.
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
        /// Why not.
        source: BoundsError,
    },
    /// Bounds exceed the template's.
    #[error("region template: bounds of {of:?}: {found}; allowed are those within {allowed}")]
    Outside {
        /// The data region, or the region of interest.
        of: String,
        /// Its bounds.
        found: Box<SpatialBounds>,
        /// The template's bounds, at that resolution.
        allowed: Box<SpatialBounds>,
    },
    /// A name has been given to a data region of that version, or of a later one.
    #[error("region template: version {found} of {name:?}, allowed are those above {held}, which is there")]
    Version {
        /// The data region.
        name: String,
        /// The version given.
        found: u64,
        /// The version there.
        held: u64,
    },
    /// Two data regions of a stored template have the same name.
    #[error("region template: two data regions are called {name:?}, allowed is one of each name")]
    Twice {
        /// Their name.
        name: String,
    },
}

impl RegionTemplate {
    /// A template of version 0 without data regions, of no time.
    ///
    /// `name` says what it is (a slide's name), `id` tells it from others of that name.
    ///
    /// # Errors
    /// [`TemplateError::Name`] where one of them is not allowed.
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

    /// The same template as another version, made at `timestamp_ns` nanoseconds since 1970.
    #[must_use]
    pub fn with_version(self, version: u64, timestamp_ns: i64) -> Self {
        Self { version, timestamp_ns, ..self }
    }

    /// The same template of a stretch of time.
    #[must_use]
    pub fn with_time(self, time: TemporalBounds) -> Self {
        Self { time: Some(time), ..self }
    }

    /// The same template, of which only a part is to be looked at.
    ///
    /// # Errors
    /// [`TemplateError::Outside`] where that is no part of it, [`TemplateError::Bounds`] where it cannot be compared.
    pub fn with_region_of_interest(self, part: SpatialBounds) -> Result<Self, TemplateError> {
        self.check_within("region of interest", &part)?;
        Ok(Self { region_of_interest: Some(part), ..self })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// What tells it from others of its name.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Returns the version of the template.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When this version was made, nanoseconds since 1970.
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

    /// Assigns a name to a data region. Returns the previous one.
    ///
    /// # Errors
    /// Returns [`TemplateError::Name`] if the name is invalid, [`TemplateError::Outside`] or [`TemplateError::Bounds`] if the
    /// region is not within the template, and [`TemplateError::Version`] if the previous one has the same or a later version.
    /// The template is then unchanged.
    pub fn insert(&mut self, name: &str, region: RegionEntry) -> Result<Option<RegionEntry>, TemplateError> {
        let name = RegionName::new("data region", name)?;
        self.check_within(name.as_str(), &region.bounds)?;
        match self.regions.get(&name) {
            Some(held) if held.version >= region.version => Err(TemplateError::Version {
                name: name.into_string(),
                found: region.version,
                held: held.version,
            }),
            _ => Ok(self.regions.insert(name, region)),
        }
    }

    /// Removes a data region from the template. Storage keeps it.
    pub fn remove(&mut self, name: &str) -> Option<RegionEntry> {
        self.regions.remove(name)
    }

    /// Whether `bounds` lie within the template's. A pixel of a coarser resolution may reach beyond the last of the
    /// template's, so the template's bounds are rounded outward.
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
