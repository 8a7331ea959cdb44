//! Errors of external studies. Each message is one line with the file, the row or field, the value and the allowed
//! values.

mod tables;

pub use tables::{
    EvaluationNumberError, ResponsesError, ResponsesProblem, SampleTableError, SampleTableProblem,
    ValueProblem,
};

use pleach_planner::memory_limit::InsufficientMemory;
use pleach_sensitivity::columns::ColumnsError;
use pleach_sensitivity::dakota::DakotaError;
use pleach_sensitivity::design_detection::StructureError;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::import::ImportError;
use pleach_sensitivity::moat::MoatError;
use pleach_sensitivity::problem;
use pleach_sensitivity::sampling::fast::FastError;
use pleach_sensitivity::sampling::morris::MorrisError;
use pleach_sensitivity::sampling::saltelli::SaltelliError;
use pleach_sensitivity::sampling::sampler::{ChoiceError, Incompatible};
use pleach_sensitivity::trajectory::TrajectoryError;
use pleach_study::Defect;
use pleach_tables::{FileError, TableProblem};
use pleach_workflow::StudyError;
use pleach_workflow::text::quoted;
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a problem cannot be loaded.
#[derive(Debug, Error)]
pub enum ProblemError {
    /// The study file is invalid.
    #[error("{0}")]
    Study(#[from] StudyError),
    /// The file of another program is invalid.
    #[error("{0}")]
    Import(#[from] ImportFileError),
}

/// A file of another program cannot be imported.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct ImportFileError {
    /// The file.
    pub(crate) file: PathBuf,
    /// The problem, boxed to keep results small.
    #[source]
    pub(crate) problem: Box<ImportProblem>,
}

/// Reason why a file of another program cannot be imported.
#[derive(Debug, Error)]
pub(crate) enum ImportProblem {
    /// The file cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    /// The extension belongs to no supported format.
    #[error(
        "unknown file name extension; a study (.toml), a SALib problem (.json) or parameter file (.txt) or \
         a Dakota input (.in) is allowed"
    )]
    UnknownFormat,
    /// The SALib problem is invalid.
    #[error("{0}")]
    Problem(#[from] problem::ProblemError),
    /// The SALib parameter file is invalid.
    #[error("{0}")]
    ParameterFile(#[from] problem::FileError),
    /// The Dakota input is invalid.
    #[error("{0}")]
    Dakota(#[from] DakotaError),
    /// A parameter is invalid.
    #[error("{0}")]
    Parameters(#[from] ImportError),
}

/// Reason why a method cannot be requested.
#[derive(Debug, Error)]
pub enum MethodError {
    /// Neither the file nor the command line names a method.
    #[error("{}: method: missing; --method is needed: {}", file.display(), allowed.join(", "))]
    Missing {
        /// File of the problem.
        file: PathBuf,
        /// Names of the methods.
        allowed: Vec<&'static str>,
    },
    /// The name of the method is unknown.
    #[error(
        "{}: method.kind: \"{}\" is not allowed; allowed: {}",
        file.display(), quoted(kind, 80), allowed.join(", ")
    )]
    Unknown {
        /// File of the problem.
        file: PathBuf,
        /// The unknown name.
        kind: String,
        /// Names of the methods.
        allowed: Vec<&'static str>,
    },
    /// The number of samples is missing.
    #[error("{}: samples: missing; method \"{kind}\" needs --samples", file.display())]
    NoSamples {
        /// File of the problem.
        file: PathBuf,
        /// Name of the method.
        kind: &'static str,
    },
    /// A setting is invalid.
    #[error("{location}: {problem}")]
    Setting {
        /// Option or field of the setting.
        location: SettingLocation,
        /// The problem.
        #[source]
        problem: SettingProblem,
    },
}

/// Location of a setting of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingLocation {
    /// Option of the command line, by the key of the setting.
    Option(&'static str),
    /// Field of a file.
    Field {
        /// File of the problem.
        file: PathBuf,
        /// Key of the setting.
        key: &'static str,
    },
}

impl fmt::Display for SettingLocation {
    /// As in `--second-order` or `study.toml: method.second_order`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option("kind") => write!(f, "--method"),
            Self::Option("base") => write!(f, "--sampler"),
            Self::Option(key) => write!(f, "--{}", key.replace('_', "-")),
            Self::Field { file, key } => write!(f, "{}: method.{key}", file.display()),
        }
    }
}

/// Reason why a setting of a method is invalid.
#[derive(Debug, Error)]
pub enum SettingProblem {
    /// The method has no such setting.
    #[error("not a setting of method \"{kind}\"; allowed are {}", keys.join(", "))]
    OtherMethod {
        /// Name of the method.
        kind: &'static str,
        /// Keys of its settings.
        keys: &'static [&'static str],
    },
    /// A number is out of range.
    #[error("{given} is not allowed; allowed: {low} to {high}")]
    OutOfRange {
        /// The number.
        given: u64,
        /// Smallest allowed number.
        low: u64,
        /// Largest allowed number.
        high: u64,
    },
    /// A name is unknown.
    #[error("\"{}\" is not allowed; allowed: {}", quoted(name, 80), allowed.join(", "))]
    UnknownName {
        /// The unknown name.
        name: String,
        /// Known names.
        allowed: Vec<&'static str>,
    },
    /// A sampler does not draw the base points of Saltelli's design.
    #[error(
        "\"{}\" is not allowed; allowed: {} (A and B form one point of twice the dimensions, in which other \
         samplers are too regular)",
        quoted(name, 80),
        allowed.join(", ")
    )]
    NoPairs {
        /// Name of the sampler.
        name: String,
        /// Names of the samplers that do.
        allowed: Vec<&'static str>,
    },
    /// Both `base` and `sampler` are given.
    #[error("base has the same meaning; one of them is allowed")]
    BaseTwice,
    /// The sampler does not suit the method.
    #[error("{0}")]
    Incompatible(#[from] Incompatible),
}

/// Reason why samples cannot be drawn.
#[derive(Debug, Error)]
pub enum DrawError {
    /// A setting of the method is missing or invalid.
    #[error("{0}")]
    Method(#[from] MethodError),
    /// The samples do not fit into memory.
    #[error("{}: method: {cause}", file.display())]
    Memory {
        /// File of the problem.
        file: PathBuf,
        /// Needed and remaining memory, boxed to keep results small.
        #[source]
        cause: Box<InsufficientMemory>,
    },
    /// The method cannot draw samples of these parameters.
    #[error("{}: method: {cause}", file.display())]
    Design {
        /// File of the problem.
        file: PathBuf,
        /// Error of the sampling method.
        #[source]
        cause: DesignError,
    },
    /// The table of samples cannot be written.
    #[error("--out {}: failed to write: {cause}", file.display())]
    Unwritable {
        /// The table.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The table of samples is invalid.
    #[error("--out {0}")]
    Table(#[source] FileError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

impl From<FileError> for DrawError {
    fn from(error: FileError) -> Self {
        match error {
            FileError { file, problem: TableProblem::Unwritable(cause) } => Self::Unwritable { file, cause },
            other => Self::Table(other),
        }
    }
}

/// Error of a sampling method.
#[derive(Debug, Error)]
pub enum DesignError {
    /// Error of Morris' method.
    #[error("{0}")]
    Morris(#[from] MorrisError),
    /// Error of Saltelli's design.
    #[error("{0}")]
    Saltelli(#[from] SaltelliError),
    /// Error of the sampler of a given-data method.
    #[error("{0}")]
    Sampler(#[from] ChoiceError),
    /// Error of the Fourier amplitude sensitivity test.
    #[error("{0}")]
    Fast(#[from] FastError),
}

/// Reason why samples do not have the design of a method.
#[derive(Debug, Error)]
pub enum DesignFormError {
    /// The samples lack an evaluation.
    #[error("{0}")]
    Samples(#[from] SampleTableError),
    /// The rows do not have the design.
    #[error("{}: {problem}", file.display())]
    Mismatch {
        /// Table of samples.
        file: PathBuf,
        /// The problem.
        #[source]
        problem: DesignFormProblem,
    },
}

/// Mismatch of the rows of samples with a design.
#[derive(Debug, Error)]
pub enum DesignFormProblem {
    /// The rows are no trajectories.
    #[error("{0}")]
    Trajectories(#[from] TrajectoryError),
    /// The rows are no row blocks or search curves.
    #[error("{0}")]
    Structure(#[from] StructureError),
    /// The columns are invalid.
    #[error("{0}")]
    Columns(#[from] ColumnsError),
}

/// Reason why a method computed no indices.
#[derive(Debug, Error)]
pub enum ExternalAnalysisError {
    /// Error of MOAT.
    #[error("{0}")]
    Moat(#[from] MoatError),
    /// Error of any other method.
    #[error("{0}")]
    Other(#[from] AnalysisError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn failed_write_of_samples_keeps_the_error_of_the_system() {
        let problem = TableProblem::Unwritable(io::ErrorKind::StorageFull.into());
        let error = DrawError::from(FileError { file: PathBuf::from("x.csv"), problem });
        assert_eq!(error.to_string(), "--out x.csv: failed to write: no storage space");
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn location_of_setting_is_its_option_or_field() {
        let file = PathBuf::from("study.toml");
        let texts = [
            (SettingLocation::Option("kind"), "--method"),
            (SettingLocation::Option("base"), "--sampler"),
            (SettingLocation::Option("second_order"), "--second-order"),
            (SettingLocation::Field { file, key: "second_order" }, "study.toml: method.second_order"),
        ];
        for (location, text) in texts {
            assert_eq!(location.to_string(), text);
        }
    }
}
