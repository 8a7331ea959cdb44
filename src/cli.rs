//! The command line's grammar.
//!
//! Here are the commands for one machine; those that speak with a manager are in [`client`], those that are
//! processes of a cluster in [`node`], those on stored data regions in [`region`].

mod client;
mod doctor;
mod external;
pub(crate) mod manual;
mod node;
mod plan;
mod region;
mod simulate;
mod spill;
mod storage;
mod tile;
mod variables;

pub(crate) use client::{
    CancelArgs, DrainArgs, ForgetArgs, ManagerArgs, ResultsArgs, StatusArgs, SubmitArgs, WatchArgs,
};
pub(crate) use doctor::DoctorArgs;
pub(crate) use external::{AnalyzeArgs, SampleArgs};
pub(crate) use node::{LogFormat, ManagerProcessArgs, Placement, TimeArg, WorkerProcessArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use region::RegionCommand;
pub(crate) use simulate::SimulateArgs;
pub(crate) use spill::SpillArgs;
pub(crate) use storage::{BenchArgs, GcArgs, StorageCommand, TierArgs};
pub(crate) use tile::{SegmentArgs, TissueArgs};

use crate::exit::CommandError;
use crate::size::MemorySize;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pleach_actors::transport::identity::{NodeName, Role};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroUsize};
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
    /// Show what a study would execute and reuse; nothing is executed
    Plan(PlanArgs),
    /// Show which tasks of an evaluation were run for it, and where the others are reused from
    Explain(ExplainArgs),
    /// Draw parameter sets for a model of your own
    Sample(SampleArgs),
    /// Compute sensitivity indices of responses of a model of your own
    Analyze(AnalyzeArgs),
    /// Check or show workflow and stage descriptors; import studies of Dakota and SALib
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Segment the nuclei of one tile
    Segment(SegmentArgs),
    /// Show a stored data region, or write it as a file that other programs read
    #[command(subcommand)]
    Region(RegionCommand),
    /// Make certificates for the nodes of a cluster, and tokens to get one for
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Run the manager of a cluster, which takes studies and assigns their tasks to workers
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
    /// End a study on a manager
    Cancel(CancelArgs),
    /// Remove studies that have ended from a manager, with their results
    Forget(ForgetArgs),
    /// Let a worker finish its running tasks and leave
    Drain(DrainArgs),
    /// Check a manager's state directory; nothing is changed (exit code 3 where a file is corrupt or missing)
    Doctor(DoctorArgs),
    /// Simulate a study on a cluster that takes workers of a cloud: what policies take, cost and lose
    Simulate(SimulateArgs),
    /// Step through the log of a simulated cluster
    Replay(ReplayArgs),
    /// Measure, list, check and clean the tiers that keep data regions
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Generate H&E-like tiles with exact nuclear label maps
    Tissue(TissueArgs),
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
    /// Folder for the results [default: the study's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Tasks that run at once, 1 to 1024 [default: the number of processors]
    // Each is a thread here; beyond the processors of the largest machines there is nothing to gain.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) workers: Option<NonZeroU32>,
    /// Memory for data regions, as in 600MB or 1.5GiB [default: 60 % of the machine's, or of its cgroup's limit]
    // Whatever follows is its value, so that -1 is told what is allowed.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<MemorySize>,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) below: SpillArgs,
    /// Evaluate the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Tasks of one bucket that run at once, each on a path of its own [default: as many as workers]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) active_paths: Option<NonZeroU32>,
    /// Continue the interrupted study in --out, if there is one
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace results of this study in --out
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Write the images that a task makes, of the evaluations shown in the report, to DIR/previews; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) preview: Vec<String>,
    /// Print run.json on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Folder of task results: reuse those of earlier studies, and add those of this one
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Maximum size of the folder of --cache [default: 10GB]
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub(crate) cache_size: Option<MemorySize>,
    /// Days without use after which results are removed from --cache [default: never]
    #[arg(long, value_name = "DAYS", requires = "cache", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) cache_age: Option<NonZeroU32>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    /// The evaluation, as numbered in samples.csv; 0 is the reference
    #[arg(long, value_name = "N")]
    pub(crate) evaluation: usize,
    /// Only on this tile, named as in responses.csv
    #[arg(long, value_name = "NAME")]
    pub(crate) tile: Option<String>,
    /// The cache of earlier studies, which is only read
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Tasks that would run at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) workers: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    /// Explain the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// What a simulation has written
    pub(crate) log: PathBuf,
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    pub(crate) max_events: Option<usize>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a study is to be planned.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WayArgs {
    /// How stage instances are merged into buckets
    #[arg(long, value_enum, default_value_t = StrategyName::Trtma)]
    pub(crate) strategy: StrategyName,
    /// What tasks share, where a strategy makes buckets
    #[arg(long, value_enum, default_value_t = ReuseName::Value)]
    pub(crate) reuse: ReuseName,
    #[command(flatten)]
    pub(crate) buckets: BucketArgs,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BucketArgs {
    /// Maximum stage instances in a bucket (naive, sca and rtma) [default: 16, or fewer where memory is short]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) max_bucket_size: Option<NonZeroUsize>,
    /// Maximum buckets of a stage (trtma) [default: 3 for each worker, or more where memory is short]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) max_buckets: Option<NonZeroUsize>,
    /// Order of a stage's tasks; those in front are shared most
    #[arg(long, value_enum, default_value_t = TaskOrderName::Declared)]
    pub(crate) task_order: TaskOrderName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskOrderName {
    /// As the workflow's descriptors list them
    Declared,
    /// The order in which this study's instances share most
    Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StrategyName {
    /// Run everything, equal or not
    None,
    /// Merge equal stage instances
    Stage,
    /// As stage, with consecutive instances in buckets that share tasks
    Naive,
    /// As stage, with buckets cut out of the graph of all that instances share; for some hundreds of instances
    Sca,
    /// As stage, with alike instances in buckets that share tasks
    Rtma,
    /// As rtma, with a number of buckets that suits the workers, and buckets of even cost
    Trtma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanStrategyName {
    /// Run everything, equal or not
    None,
    /// Merge equal stage instances
    Stage,
    /// As stage, with consecutive instances in buckets that share tasks
    Naive,
    /// As stage, with buckets cut out of the graph of all that instances share; for some hundreds of instances
    Sca,
    /// As stage, with alike instances in buckets that share tasks
    Rtma,
    /// As rtma, with a number of buckets that suits the workers, and buckets of even cost
    Trtma,
    /// Each of the above, to compare; sca where it can
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReuseName {
    /// Tasks that are equal after equal tasks
    Tree,
    /// Tasks that are equal and read the same, within a bucket and across buckets
    Dataflow,
    /// As dataflow, and tasks whose inputs turn out to be equal
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanReuseName {
    /// Tasks that are equal after equal tasks
    Tree,
    /// Tasks that are equal and read the same, within a bucket and across buckets
    Dataflow,
    /// As dataflow, and tasks whose inputs turn out to be equal; a plan does not know which, and counts none
    Value,
    /// Each of the above, to compare
    All,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Check a workflow or stage descriptor and everything it names
    Check {
        /// A workflow file, a stage file, or the name of a built-in workflow
        file: PathBuf,
    },
    /// Show a workflow: stages, tasks, regions and parameters
    Show {
        /// A workflow file or the name of a built-in workflow
        file: PathBuf,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Print a study file made of a Dakota input (.in), a SALib problem (.json) or parameter file (.txt)
    Import {
        /// The file
        file: PathBuf,
        /// Write the study file here instead of printing it
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    /// Make the authority of a new cluster
    Init {
        /// Folder for the authority, which nobody but you should be able to read
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Make a key and a certificate for a node
    Issue(IssueArgs),
    /// Make a token that workers join with, who then get a certificate
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
    /// What the node is for: manager, worker or client
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Role,
    /// Days for which the certificate is valid, 1 to 3650
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
    /// How long it can be used, as in 90s, 30m, 1h or 7d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) ttl: Span,
    /// It can be used once only
    #[arg(long)]
    pub(crate) single_use: bool,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// A whole number of seconds, minutes, hours or days.
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

/// Rust's own words for a 0 ("zero for non-zero type") do not say what is allowed.
fn at_least_one<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "a whole number of at least 1 is allowed")
}

fn threads(text: &str) -> Result<NonZeroU32, &'static str> {
    let threads = at_least_one(text).ok().filter(|threads: &NonZeroU32| threads.get() <= 1024);
    threads.ok_or("1 to 1024 is allowed")
}

/// Pictures are drawings; as pixels they would need a typeface, which not every machine has.
fn picture_file(text: &str) -> Result<PathBuf, &'static str> {
    let file = PathBuf::from(text);
    let known = file
        .extension()
        .is_some_and(|ending| ["svg", "png"].iter().any(|known| ending.eq_ignore_ascii_case(known)));
    known.then_some(file).ok_or("a file that ends in .svg or .png is allowed")
}

/// The grammar itself, for what is generated from it.
pub(crate) fn grammar() -> clap::Command {
    Cli::command()
}

/// Reads the arguments; help is printed here.
///
/// # Errors
/// [`CommandError::Input`] with what clap has to say of a mistake, in one line.
pub(crate) fn parse() -> Result<Command, Parsed> {
    Cli::try_parse().map(|cli| cli.command).map_err(|error| {
        let asked_for_nothing = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if !error.use_stderr() || asked_for_nothing {
            // Nothing can be done about a stdout or stderr that is gone.
            let _ = error.print();
            return Parsed::Help { asked_for_nothing };
        }
        let text = error.render().to_string();
        let told =
            |line: &&str| !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more");
        let told: Vec<&str> = text.lines().map(str::trim).filter(told).collect();
        let mut told = told.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned();
        if error.kind() == ErrorKind::MissingRequiredArgument {
            told.push_str(&variables::instead_of(&told));
        }
        Parsed::Mistake(CommandError::Input(told))
    })
}

/// Why there is no command.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Help or the version was asked for and printed, or help because there were no arguments at all.
    Help {
        /// The second of the two.
        asked_for_nothing: bool,
    },
    /// The arguments are wrong.
    Mistake(CommandError),
}

#[cfg(test)]
mod tests;
