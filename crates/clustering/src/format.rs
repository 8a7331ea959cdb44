//! File formats of workflows.

pub(crate) mod ids;
pub(crate) mod text;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::format::text::quoted;

/// A file format of workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Pegasus DAX 2.1: XML.
    Dax,
    /// Lines `FILE`, `TASK`, `INPUTS`, `OUTPUTS` and `EDGE` of the Cloud Workflow Simulator.
    Dag,
    /// WfCommons WfFormat 1.5: JSON.
    WfFormat,
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("format {}: unknown; dax, dag and wfformat are allowed", quoted(name))]
pub struct UnknownFormat {
    name: String,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Dax, Self::Dag, Self::WfFormat];

    /// Returns the name in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dax => "dax",
            Self::Dag => "dag",
            Self::WfFormat => "wfformat",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}
