//! Generates workflows of the five families of paper 002 (figures 14–18, table 5).
//!
//! Graphs have the shape of the traces of the Pegasus workflow generator, and the level widths of table 5 at its sizes. Run times
//! follow the quantiles of their kind over all traces of the family, sizes of files their range. Drawing needs no function
//! whose rounding depends on the machine: equal seeds give equal workflows everywhere.

mod builder;
mod cybershake;
mod draw;
mod epigenomics;
mod fit;
mod ligo;
mod montage;
mod sipht;

use std::fmt;
use std::str::FromStr;

use builder::Builder;
use draw::Draw;
use thiserror::Error;

use crate::format::text::quoted;
use crate::workflow::{Workflow, WorkflowError};

/// Maximum number of tasks: a workflow of SIPHT then holds 60 million inputs in 240 MB.
pub const MAX_TASKS: usize = 1_000_000;

/// A family of workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Mosaics of the sky (figure 15).
    Montage,
    /// Seismic hazard (figure 16).
    CyberShake,
    /// Mapping of DNA sequences (figure 17).
    Epigenomics,
    /// Search for gravitational waves (figure 14).
    Ligo,
    /// Search for small untranslated RNA (figure 18).
    Sipht,
}

/// A workflow cannot be generated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum GenerateError {
    /// No family has this name.
    #[error("family {}: unknown; montage, cybershake, epigenomics, ligo and sipht are allowed", quoted(name))]
    Family {
        /// The name.
        name: String,
    },
    /// The number of tasks is too small or too large for the family.
    #[error("family {family}: {tasks} tasks; {}–{MAX_TASKS} tasks are allowed", family.min_tasks())]
    Tasks {
        /// The family.
        family: Family,
        /// The number of tasks.
        tasks: usize,
    },
    /// The generated graph is no workflow, which is a defect of the generator.
    #[error("generate the workflow: {0}")]
    Workflow(#[from] WorkflowError),
}

impl Family {
    /// All families.
    pub const ALL: [Self; 5] = [Self::Montage, Self::CyberShake, Self::Epigenomics, Self::Ligo, Self::Sipht];

    /// Returns the name in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Montage => "montage",
            Self::CyberShake => "cybershake",
            Self::Epigenomics => "epigenomics",
            Self::Ligo => "ligo",
            Self::Sipht => "sipht",
        }
    }

    /// Returns the minimum number of tasks.
    #[must_use]
    pub fn min_tasks(self) -> usize {
        match self {
            Self::Montage => montage::MIN_TASKS,
            Self::CyberShake => cybershake::MIN_TASKS,
            Self::Epigenomics => epigenomics::MIN_TASKS,
            Self::Ligo => ligo::MIN_TASKS,
            Self::Sipht => sipht::MIN_TASKS,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = GenerateError;

    fn from_str(name: &str) -> Result<Self, GenerateError> {
        let found = Self::ALL.into_iter().find(|family| family.name() == name);
        found.ok_or_else(|| GenerateError::Family { name: name.to_owned() })
    }
}

/// Generates a workflow of about this many tasks: the nearest number that a graph of the family can have. Its name is the family and
/// the number of its tasks, such as `montage-300`.
///
/// SIPHT has a graph of each number. Montage lacks 12, 13 and 16 tasks, CyberShake lacks 6 tasks, and LIGO odd numbers.
/// Epigenomics is off by up to 4 tasks, because its lanes are equal.
///
/// # Errors
/// If there are fewer tasks than [`Family::min_tasks`] or more than [`MAX_TASKS`].
pub fn generate(family: Family, tasks: usize, seed: u64) -> Result<Workflow, GenerateError> {
    if tasks < family.min_tasks() || tasks > MAX_TASKS {
        return Err(GenerateError::Tasks { family, tasks });
    }
    let mut builder = Builder::new(Draw::new(seed));
    match family {
        Family::Montage => montage::build(&mut builder, tasks),
        Family::CyberShake => cybershake::build(&mut builder, tasks),
        Family::Epigenomics => epigenomics::build(&mut builder, tasks),
        Family::Ligo => ligo::build(&mut builder, tasks),
        Family::Sipht => sipht::build(&mut builder, tasks),
    }
    Ok(builder.finish(family.name())?)
}
