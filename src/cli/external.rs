//! Arguments of the commands for models that pleach does not execute: `sample`, `analyze`, `workflow import`; and of
//! `classify`.

mod classify;

pub(crate) use classify::ClassifyArgs;

use super::operations::PythonArgs;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_workflow::MethodSpec;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// File with the parameters and optionally the method: a study file (.toml), a SALib problem (.json) or parameter
    /// file (.txt), or a Dakota input (.in)
    #[arg(value_name = "PROBLEM")]
    pub(crate) problem: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Output file for the samples: CSV (.csv, .tsv) or Parquet (.parquet)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    /// Number of evaluations; for vbd, of base samples; for fast, of evaluations per parameter
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<u32>,
    /// Sampler; the method determines the allowed ones [default: lhs; morris for moat, saltelli for vbd]
    #[arg(long, value_name = "NAME", value_parser = samplers())]
    pub(crate) sampler: Option<String>,
    /// Number of trajectories (moat) [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) trajectories: Option<u32>,
    /// Number of trajectories to draw; the most distant ones are selected (moat) [default: no selection]
    #[arg(long, value_name = "N")]
    pub(crate) candidates: Option<u32>,
    /// Seed of the random numbers [default: the file's seed, or 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// File with the parameters and optionally the method, as for `pleach sample`
    #[arg(value_name = "PROBLEM")]
    pub(crate) problem: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Parameter sets, one per row: CSV, Parquet, or text without a header
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: PathBuf,
    /// Responses, in the order of the samples or with a column `evaluation`; also responses.csv of a study [default:
    /// the --samples file]
    #[arg(long, value_name = "FILE")]
    pub(crate) responses: Option<PathBuf>,
    /// Analyze only this column; may be repeated [default: all columns that are not parameters]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) response: Vec<String>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    /// Estimator of the indices (vbd) [default: saltelli]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) estimator: Option<EstimatorName>,
    /// Number of slices of a parameter's values (pawn) [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) slices: Option<u32>,
    /// Number of bootstrap resamples for confidence intervals, 0 for none [default: 1000; except for moat, fewer for
    /// more than a million rows]
    #[arg(long, value_name = "N")]
    pub(crate) resamples: Option<u32>,
    /// Seed of the resamples [default: the file's seed, or 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write indices.csv and indices.json to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Draw the indices as SVG and PNG into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Write a page (HTML) with the result in words, the indices and their figures
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// The method, and the options that sampling and analysis share.
#[derive(Debug, Args)]
pub(crate) struct MethodArgs {
    /// Method [default: the file's method]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) method: Option<MethodName>,
    /// Include the rows for second-order indices (vbd)
    #[arg(long)]
    pub(crate) second_order: bool,
    /// Levels of continuous parameters (moat) or of a grid [default: 20 for moat, 2 for a grid]
    #[arg(long, value_name = "N")]
    pub(crate) levels: Option<u32>,
    /// Number of harmonics (fast, rbd-fast) [default: 4 and 10]
    #[arg(long, value_name = "N")]
    pub(crate) harmonics: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Morris' one-at-a-time screening
    #[value(alias = "morris")]
    Moat,
    /// Variance-based decomposition: Sobol' indices
    #[value(alias = "sobol")]
    Vbd,
    /// Pearson, Spearman and partial correlation (PCC, PRCC)
    Correlation,
    /// Standardized regression coefficients of values and ranks (SRC, SRRC)
    Regression,
    /// Distances between cumulative distributions
    Pawn,
    /// Borgonovo's delta
    Delta,
    /// Extended Fourier amplitude sensitivity test (eFAST)
    #[value(alias = "efast")]
    Fast,
    /// First-order indices from any sample
    RbdFast,
}

impl MethodName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Moat => "moat",
            Self::Vbd => "vbd",
            Self::Correlation => "correlation",
            Self::Regression => "regression",
            Self::Pawn => "pawn",
            Self::Delta => "delta",
            Self::Fast => "fast",
            Self::RbdFast => "rbd-fast",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EstimatorName {
    /// Saltelli et al. (2010), as in SALib
    Saltelli,
    /// Jansen (1999)
    Jansen,
    /// Janon et al. (2014)
    Janon,
}

impl EstimatorName {
    fn name(self) -> &'static str {
        match self {
            Self::Saltelli => "saltelli",
            Self::Jansen => "jansen",
            Self::Janon => "janon",
        }
    }
}

/// Returns the parser of sampler names, including the designs of moat and vbd.
fn samplers() -> PossibleValuesParser {
    PossibleValuesParser::new(Sampler::NAMES.into_iter().chain(["morris", "saltelli"]))
}

impl MethodArgs {
    fn recipe(&self) -> MethodSpec {
        MethodSpec {
            kind: self.method.map(|method| method.name().to_owned()),
            second_order: self.second_order.then_some(true),
            levels: self.levels.map(u64::from),
            harmonics: self.harmonics.map(u64::from),
            ..MethodSpec::default()
        }
    }
}

impl SampleArgs {
    /// Returns the method of the arguments.
    pub(crate) fn recipe(&self) -> MethodSpec {
        MethodSpec {
            samples: self.samples.map(u64::from),
            sampler: self.sampler.clone(),
            trajectories: self.trajectories.map(u64::from),
            candidates: self.candidates.map(u64::from),
            ..self.method.recipe()
        }
    }
}

impl AnalyzeArgs {
    /// Returns the method of the arguments.
    pub(crate) fn recipe(&self) -> MethodSpec {
        MethodSpec {
            estimator: self.estimator.map(|estimator| estimator.name().to_owned()),
            slices: self.slices.map(u64::from),
            resamples: self.resamples.map(u64::from),
            ..self.method.recipe()
        }
    }
}
