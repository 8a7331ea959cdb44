//! Grammar of `pleach cluster`: task clustering of scientific workflows.

mod execution;
mod variation;

use super::at_least_one;
use clap::{Args, Subcommand, ValueEnum};
use pleach_clustering::{Candidates, Family, Format, Reading};
use pleach_planner::memory_size::MemorySize;
use std::num::NonZeroUsize;
use std::path::PathBuf;
pub(crate) use variation::{Estimates, Variation};

pub(crate) use execution::ExecutionArgs;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ClusterCommand>,
    /// Workflows: Pegasus DAX, DAG lines or WfFormat (JSON), plain or in gzip
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Clustering method [default: hrb]
    #[arg(long, value_enum)]
    pub(crate) method: Option<MethodArg>,
    /// Jobs among which hifb and hdb choose
    #[arg(long, value_enum, default_value_t = CandidatesArg::Spread)]
    pub(crate) candidates: CandidatesArg,
    /// Maximum number of jobs of a level, for hc, hrb, hifb and hdb [default: 20]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Maximum number of tasks of a job, in place of --jobs
    #[arg(long, value_name = "N", conflicts_with = "jobs", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) size: Option<NonZeroUsize>,
    /// Vertical clustering, which joins chains [default: none; all that apply with --method all and best]
    #[arg(long, value_enum)]
    pub(crate) vertical: Option<VerticalArg>,
    /// Maximum run time of a job in seconds, for dfjs and afjs [default: tuned by simulation]
    #[arg(long, value_name = "SECONDS", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) max_seconds: Option<f64>,
    /// Maximum size of all inputs and outputs of a job's tasks, for afjs [default: tuned by simulation]
    #[arg(long, value_name = "SIZE", requires = "max_seconds")]
    pub(crate) max_bytes: Option<MemorySize>,
    /// Number of seeds of hc, from --seed on, whose mean gain is printed
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) seeds: NonZeroUsize,
    /// Repeat the comparison for other values of a parameter: workers=, bandwidth=, queue= or data=
    #[arg(long, value_name = "NAME=VALUES")]
    pub(crate) sensitivity: Vec<Variation>,
    /// Choose the method of each level from measured run times, beside one method for all levels
    #[arg(long)]
    pub(crate) portfolio: bool,
    /// Spread of estimated run times for --portfolio: of each kind and of each task
    #[arg(long, value_name = "KIND,TASK", default_value = "0.5,0.3", requires = "portfolio")]
    pub(crate) estimates: Estimates,
    /// Reading of the imbalance metrics
    #[arg(long, value_enum, default_value_t = ReadingArg::Definition)]
    pub(crate) reading: ReadingArg,
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
    /// Multiply the sizes of all files
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_negative_numbers = true)]
    pub(crate) scale_data: f64,
    /// Multiply all run times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_negative_numbers = true)]
    pub(crate) scale_time: f64,
    /// Exponent of run times, which keep the mean of their level: 0 for equal ones, above 1 for a larger variance
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = exponent, allow_negative_numbers = true)]
    pub(crate) run_time_variance: f64,
    /// Seed of the task order of hc, and of Weibull delays
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Take missing run times and sizes for 0
    #[arg(long)]
    pub(crate) assume_zero: bool,
    /// Folder for figures (SVG): gains, imbalance, timeline, graph; with --study, indices (SVG and PNG)
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Write the jobs: FILE.json for a list of jobs, FILE.dax, .xml or .dag for a workflow; with .gz in gzip
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Format of --out [default: by its ending]
    #[arg(long, value_enum, requires = "out")]
    pub(crate) format: Option<ClusteredFormatArg>,
    /// Study of the execution: a study file (TOML) whose parameters are options of this command
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["out", "format", "execute", "seeds", "sensitivity", "portfolio"])]
    pub(crate) study: Option<PathBuf>,
    /// Folder for the results of --study [default: the name of the study file]
    #[arg(long, value_name = "DIR", requires = "study")]
    pub(crate) results: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Platform of the simulated execution.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct PlatformArgs {
    /// Number of workers, each with one core
    #[arg(long, value_name = "N", default_value = "20", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) workers: NonZeroUsize,
    /// Bytes per second to each worker
    #[arg(long, value_name = "SIZE", default_value = "15MB")]
    pub(crate) bandwidth: MemorySize,
    /// Queue delay of a job in seconds, which occupies its worker
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) queue: f64,
    /// Engine delay of a job in seconds, before its submission
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) engine: f64,
    /// Clustering delay in seconds, of a job of two or more tasks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) clustering: f64,
    /// Post delay in seconds, from the end of a job to the release of its children
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) post: f64,
    /// Draw each delay from a Weibull distribution of this shape with the delay as its mean [default: fixed delays]
    #[arg(long, value_name = "SHAPE", value_parser = shape, allow_negative_numbers = true)]
    pub(crate) weibull: Option<f64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Generate a workflow of a family: level widths, run times and sizes as in its traces
    Generate(GenerateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Family: montage, cybershake, epigenomics, ligo or sipht
    pub(crate) family: Family,
    /// Number of tasks; the family's graph of the nearest number is taken
    #[arg(long, value_name = "N")]
    pub(crate) tasks: usize,
    /// Seed of run times and sizes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// File of the workflow; with .gz in gzip
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Format of --out [default: by its ending: .dax, .xml, .dag, .json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// One job for each task
    None,
    /// Horizontal clustering: jobs of equal numbers of tasks, in random order
    Hc,
    /// Horizontal runtime balancing: the longest task to the shortest job
    Hrb,
    /// Horizontal impact factor balancing: tasks of equal impact on later levels to one job
    Hifb,
    /// Horizontal distance balancing: tasks with near common successors to one job
    Hdb,
    /// Tasks in order, up to --max-seconds or a tuned run time
    Dfjs,
    /// Tasks in order, up to --max-seconds and --max-bytes or tuned limits
    Afjs,
    /// Compare all of the above, with each vertical mode that applies
    All,
    /// The method and vertical mode of least makespan, beside a choice by rule
    Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CandidatesArg {
    /// Near jobs and empty ones
    Spread,
    /// Near jobs, or else an empty one, as in the paper's figures
    Examples,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerticalArg {
    /// No vertical clustering
    None,
    /// Join chains, then cluster the levels of these jobs
    Prior,
    /// As prior, but cut chains where they exceed the mean job of their level
    PriorBounded,
    /// Cluster levels, then join chains of these jobs
    Posterior,
    /// Join chains only, without a method
    Only,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadingArg {
    /// Text and worked examples of the paper
    Definition,
    /// Published table of the paper
    Table,
    /// WorkflowSim, the simulator of the paper
    Wfs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Pegasus DAX 2.1
    Dax,
    /// Lines FILE, TASK, INPUTS, OUTPUTS, EDGE
    Dag,
    /// WfCommons WfFormat 1.5
    Wfformat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusteredFormatArg {
    /// List of the jobs with their tasks
    Jobs,
    /// Workflow of the jobs: Pegasus DAX 2.1
    Dax,
    /// Workflow of the jobs: lines FILE, TASK, INPUTS, OUTPUTS, EDGE
    Dag,
    /// Workflow of the jobs: WfCommons WfFormat 1.5
    Wfformat,
}

impl From<CandidatesArg> for Candidates {
    fn from(candidates: CandidatesArg) -> Self {
        match candidates {
            CandidatesArg::Spread => Self::Spread,
            CandidatesArg::Examples => Self::Examples,
        }
    }
}

impl From<ReadingArg> for Reading {
    fn from(reading: ReadingArg) -> Self {
        match reading {
            ReadingArg::Definition => Self::Definition,
            ReadingArg::Table => Self::Table,
            ReadingArg::Wfs => Self::Wfs,
        }
    }
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Dax => Self::Dax,
            FormatArg::Dag => Self::Dag,
            FormatArg::Wfformat => Self::WfFormat,
        }
    }
}

/// Maximum of times and factors: beyond it, sums of an execution lose seconds.
pub(crate) const MAX_NUMBER: f64 = 1e9;
/// Shapes of Weibull distributions whose mean is a finite multiple of their scale and whose draws are numbers.
pub(crate) const SHAPES: std::ops::RangeInclusive<f64> = 0.1..=100.0;
/// Maximum exponent of run times: beyond it, one task of a level has nearly all of its run time.
pub(crate) const MAX_EXPONENT: f64 = 10.0;

fn seconds(text: &str) -> Result<f64, &'static str> {
    number(text).ok_or("a number of seconds from 0 to 1000000000 is allowed")
}

fn limit(text: &str) -> Result<f64, &'static str> {
    let seconds = number(text).filter(|seconds| *seconds > 0.0);
    seconds.ok_or("a number of seconds above 0, up to 1000000000, is allowed")
}

fn factor(text: &str) -> Result<f64, &'static str> {
    number(text).ok_or("a factor from 0 to 1000000000 is allowed")
}

fn exponent(text: &str) -> Result<f64, &'static str> {
    number(text).filter(|exponent| *exponent <= MAX_EXPONENT).ok_or("a number from 0 to 10 is allowed")
}

fn shape(text: &str) -> Result<f64, &'static str> {
    number(text).filter(|shape| SHAPES.contains(shape)).ok_or("a shape from 0.1 to 100 is allowed")
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=MAX_NUMBER).contains(number))
}
