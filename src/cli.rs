//! Grammar of the command line.
//!
//! This file has the commands for one machine. [`client`] has the commands that connect to a manager, [`node`] the
//! processes of a cluster, and [`storage`] the commands for stored data.

mod client;
mod cluster;
mod external;
pub(crate) mod manual;
mod node;
mod operations;
mod plan;
mod simulate;
mod spill;
mod storage;
mod tile;
mod variables;
mod workflow;

pub(crate) use client::{
    CancelArgs, DrainArgs, ForgetArgs, ManagerArgs, OptionalManagerArgs, QueryArgs, ResultsArgs, StatusArgs,
    SubmitArgs, WatchArgs,
};
pub(crate) use cluster::{
    ClusterArgs, ClusterCommand, ClusteredFormatArg, Estimates, ExecutionArgs, FormatArg, GenerateArgs,
    MAX_EXPONENT, MAX_NUMBER, MethodArg, ReadingArg, SHAPES, Variation, VerticalArg,
};
pub(crate) use external::{AnalyzeArgs, ClassifyArgs, SampleArgs};
pub(crate) use node::accelerators::{AcceleratorArgs, ScheduleArg};
pub(crate) use node::doctor::DoctorArgs;
pub(crate) use node::pools::PoolsArgs;
pub(crate) use node::{ManagerProcessArgs, Placement, PublishArgs, TimeArg, WorkerProcessArgs};
pub(crate) use operations::OperationSource;
pub(crate) use plan::PlanArgs;
pub(crate) use plan::options::{BucketArgs, OverheadArg, PlanOptionArgs, TaskOrderArg};
pub(crate) use simulate::SimulateArgs;
pub(crate) use spill::SpillArgs;
pub(crate) use storage::cache::{CacheCommand, CacheSearchArgs, CacheStatsArgs};
pub(crate) use storage::region::RegionCommand;
pub(crate) use storage::{BenchArgs, GcArgs, StorageCommand, TierArgs};
pub(crate) use tile::{ApplyArgs, DemoArgs, ExportArgs, FileArgs, ParameterArgs, SegmentArgs, TissueArgs};
pub(crate) use workflow::{InstrumentArgs, WorkflowCommand};

use crate::exit::CommandError;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use operations::PythonArgs;
use pleach_actors::transport::identity::{NodeName, Role};
use pleach_objects::{InvalidLocation, S3Location};
use pleach_planner::memory_size::MemorySize;
use pleach_results::cache_walk::{self, CacheOptions};
use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Parameter sensitivity studies of image-analysis workflows on tissue images.
#[derive(Debug, Parser)]
#[command(name = "pleach", version, about, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study and write its results
    Run(RunArgs),
    /// Show the planned execution and reuse of a study without executing it
    Plan(PlanArgs),
    /// Show which tasks of an evaluation are executed for it, and the source of each reused task
    Explain(ExplainArgs),
    /// Draw parameter sets for an external model
    Sample(SampleArgs),
    /// Compute sensitivity indices from the responses of an external model
    Analyze(AnalyzeArgs),
    /// Write a study file for the tiles or slides of a folder
    Init {
        /// The folder with images, or with folders of images
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Print the JSON Schema of study files, for editors that complete and check them
    Schema,
    /// Classify slides or patients by a study's responses, and find the parameters that change their labels
    Classify(ClassifyArgs),
    /// Check, show or begin workflows; import those of Taverna, and studies of Dakota and SALib
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Propose the cuts of a function in Python into tasks, where its parameters enter
    Instrument(InstrumentArgs),
    /// Write the segmentation of an evaluation for other programs: GeoJSON, tables, label images
    Export(ExportArgs),
    /// Segment other images and slides with chosen parameters of a study
    Apply(ApplyArgs),
    /// Segment the nuclei of one tile
    Segment(SegmentArgs),
    /// Show a stored data region, or export it to the format of another program
    #[command(subcommand)]
    Region(RegionCommand),
    /// Create certificates for the nodes of a cluster, and tokens that workers exchange for certificates
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Run the manager of a cluster, which accepts studies and assigns their tasks to workers
    Manager(ManagerProcessArgs),
    /// Run a worker, which executes the tasks that a manager assigns
    Worker(WorkerProcessArgs),
    /// Submit a study to a manager
    Submit(SubmitArgs),
    /// Show a manager's studies and workers
    Status(StatusArgs),
    /// Show a manager's studies and workers until the studies have ended
    Watch(WatchArgs),
    /// Fetch a study's results from a manager
    Results(ResultsArgs),
    /// Cancel a study on a manager
    Cancel(CancelArgs),
    /// Remove ended studies and their results from a manager
    Forget(ForgetArgs),
    /// Find objects by position: in a box, or the nearest to a point, in a manager's study or a task cache
    Query(QueryArgs),
    /// Drain a worker: it finishes its running tasks and leaves
    Drain(DrainArgs),
    /// Check this machine, certificates and a manager's state directory; changes nothing (exit code 3 for an error)
    Doctor(DoctorArgs),
    /// Compare the formats of stored folders with those of this version; changes nothing (exit code 3 if one is not read)
    UpgradeCheck {
        /// State directories, task caches, spill tiers and folders of results
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// List the workers that a manager has started, and stop orphans (exit code 3 if some are left)
    Pools(PoolsArgs),
    /// Simulate a study on a cluster with cloud workers: makespan, cost and lost work of each policy
    Simulate(SimulateArgs),
    /// Step through the log of a simulated cluster
    Replay(ReplayArgs),
    /// Cluster tasks of scientific workflows to jobs, and simulate the gain of each method
    Cluster(ClusterArgs),
    /// Measure, list, check and clean storage tiers
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Search a task cache, or show who uses it
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Generate H&E-like tiles with exact nuclear label maps
    Tissue(TissueArgs),
    /// Run a study of nuclear segmentation on generated tissue, from nothing to its report
    Demo(DemoArgs),
    /// Print a script that completes pleach's arguments in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages, one for each command
    Man {
        /// Folder for the pages
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Folder for the results [default: the study's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Maximum number of concurrent tasks, 1 to 1024 [default: the number of processors]
    // Each task takes a thread. More threads than the processors of the largest machines gain nothing.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) workers: Option<NonZeroU32>,
    /// Memory for data regions, as in 600MB or 1.5GiB [default: 60 % of the machine's memory or of its cgroup limit]
    // Accept any following word as the value, so that -1 gets the message about allowed sizes.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<MemorySize>,
    #[command(flatten)]
    pub(crate) accelerators: AcceleratorArgs,
    #[command(flatten)]
    pub(crate) plan: PlanOptionArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) spill: SpillArgs,
    /// Evaluate the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Maximum number of concurrent tasks of one bucket, each on its own path [default: --workers]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) active_paths: Option<NonZeroU32>,
    /// Continue the interrupted study in --out; without one, start the study
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace results of this study in --out
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Write a task's images of the evaluations in the report to DIR/previews; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) preview: Vec<String>,
    /// Print only run.json on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Task cache, a folder or s3://BUCKET/PREFIX: reuse results of earlier studies, and store new ones
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
    /// Maximum size of --cache [default: 10GB]
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub(crate) cache_size: Option<MemorySize>,
    /// Maximum size of a user's results in --cache; beyond it, new ones replace the user's least recently used [default: no
    /// limit]
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub(crate) cache_quota: Option<MemorySize>,
    /// Remove results from --cache after this many days without use [default: never]
    #[arg(long, value_name = "DAYS", requires = "cache", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) cache_age: Option<NonZeroU32>,
}

impl CacheArgs {
    /// Returns the cache to open. `None` without `--cache`.
    pub(crate) fn options(&self) -> Option<CacheOptions<'_>> {
        let folder = self.cache.as_deref()?;
        let (size, user_quota) = (self.cache_size, self.cache_quota);
        Some(CacheOptions { folder, size, user_quota, age_days: self.cache_age })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A folder of results or the id of a manager's study, to explain from records; or a study file, to predict
    #[arg(value_name = "RESULTS|ID|STUDY")]
    pub(crate) target: PathBuf,
    /// The evaluation, as numbered in samples.csv; 0 is the reference [default: totals of all; required for a study file]
    #[arg(long, value_name = "N")]
    pub(crate) evaluation: Option<usize>,
    /// Explain only this tile, named as in responses.csv [default: all tiles]
    #[arg(long, value_name = "NAME")]
    pub(crate) tile: Option<String>,
    /// Explain only this phase, numbered from 1, from records [default: all phases]
    #[arg(long, value_name = "N")]
    pub(crate) phase: Option<usize>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    #[command(flatten)]
    pub(crate) manager: OptionalManagerArgs,
    /// For a study file: task cache of earlier studies, a folder or s3://BUCKET/PREFIX (read-only)
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
    /// For a study file: number of concurrent tasks to plan for [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) workers: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) plan: PlanOptionArgs,
    /// Explain the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Log of a simulation
    pub(crate) log: PathBuf,
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    pub(crate) max_events: Option<usize>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    /// Create the certificate authority of a new cluster
    Init {
        /// Folder for the authority; no other user should have access
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Create a key and a certificate for a node
    Issue(IssueArgs),
    /// Create a token that workers exchange for a certificate
    Token(TokenArgs),
}

#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    /// The authority's folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The node's name: lower-case letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    pub(crate) name: NodeName,
    /// Role of the node: manager, worker or client
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Role,
    /// Validity of the certificate in days, 1 to 3650
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    pub(crate) days: u32,
    /// Folder for certificate and key [default: NAME in the authority's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The authority's folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Validity of the token, as in 90s, 30m, 1h or 7d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) ttl: Span,
    /// Limit the token to one use
    #[arg(long)]
    pub(crate) single_use: bool,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Duration argument: a whole number of seconds, minutes, hours or days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let allowed = "a whole number and a unit are allowed, as in 90s, 30m, 1h or 7d";
        let (unit, seconds) = match text.chars().last() {
            Some('s') => ('s', 1),
            Some('m') => ('m', 60),
            Some('h') => ('h', 3600),
            Some('d') => ('d', 86_400),
            _ => return Err(allowed),
        };
        let digits = text.strip_suffix(unit).unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number: Option<u64> = digits.parse().ok().filter(|_| is_number);
        let seconds = number.and_then(|number| number.checked_mul(seconds)).ok_or(allowed)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

/// Parses a number of at least 1. Rust's message for 0 ("zero for non-zero type") does not name the allowed values.
fn at_least_one<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "a whole number of at least 1 is allowed")
}

fn threads(text: &str) -> Result<NonZeroU32, &'static str> {
    let threads = at_least_one(text).ok().filter(|threads: &NonZeroU32| threads.get() <= 1024);
    threads.ok_or("1 to 1024 is allowed")
}

/// Parses the location of a task cache: a folder, or an address in object storage, which stays text.
fn cache_location(text: &str) -> Result<PathBuf, InvalidLocation> {
    let location = PathBuf::from(text);
    if cache_walk::is_bucket(&location) {
        S3Location::parse(text)?;
    }
    Ok(location)
}

/// Parses the name of an SVG or PNG file.
fn picture_file(text: &str) -> Result<PathBuf, &'static str> {
    let file = PathBuf::from(text);
    let known = file
        .extension()
        .is_some_and(|ending| ["svg", "png"].iter().any(|known| ending.eq_ignore_ascii_case(known)));
    known.then_some(file).ok_or("a file that ends in .svg or .png is allowed")
}

/// Returns the grammar, for generated completions, manual pages and tests.
pub(crate) fn grammar() -> clap::Command {
    Cli::command()
}

/// Parses the arguments. Prints help and the version.
///
/// # Errors
/// Returns [`Parsed::Mistake`] with clap's message in one line, and [`Parsed::Help`] after printing help.
pub(crate) fn parse() -> Result<Command, Parsed> {
    Cli::try_parse().map(|cli| cli.command).map_err(|error| {
        let asked_for_nothing = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if !error.use_stderr() || asked_for_nothing {
            // A closed stdout or stderr cannot be reported.
            let _ = error.print();
            return Parsed::Help { asked_for_nothing };
        }
        let text = error.render().to_string();
        let told = |line: &&str| {
            !line.is_empty() && !["Usage:", "pleach ", "For more"].iter().any(|start| line.starts_with(start))
        };
        let told: Vec<&str> = text.lines().map(str::trim).filter(told).collect();
        let mut message = told.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned();
        if error.kind() == ErrorKind::MissingRequiredArgument {
            message.push_str(&variables::instead_of(&message));
        }
        Parsed::Mistake(CommandError::Input(message))
    })
}

/// Returns the command of these arguments, the name of the program first. `None` if they are invalid.
pub(crate) fn parsed<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Option<Command> {
    Cli::try_parse_from(arguments).ok().map(|cli| cli.command)
}

/// Reason for parsing no command.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Help or the version was requested and printed, or help was printed because there were no arguments.
    Help {
        /// Whether there were no arguments.
        asked_for_nothing: bool,
    },
    /// Invalid arguments.
    Mistake(CommandError),
}

#[cfg(test)]
mod tests;
