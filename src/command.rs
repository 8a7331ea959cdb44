//! Implements the commands. Each one connects the crates for one purpose.

mod analyze;
mod client;
mod cluster;
mod clustering;
mod completions;
mod explain;
mod man;
pub(crate) mod plan;
mod region;
mod run;
mod sample;
mod segment;
mod simulate;
mod tissue;
mod workflow;

use crate::cli::{BucketArgs, Command, TaskOrderArg};
use crate::exit::CommandResult;
use crate::operations;
use pleach_actors::worker::ProcessMemory;
use pleach_execution::cost_history;
use pleach_study::PreparedStudy;
use pleach_workflow::Registry;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Executes a command with these operations.
pub(crate) fn execute(command: Command, registry: &Registry) -> CommandResult {
    let registry = &operations::of_command(&command, registry)?;
    match command {
        Command::Run(args) => run::execute(&args, registry),
        Command::Plan(args) => plan::execute(&args, registry),
        Command::Explain(args) => explain::execute(&args, registry),
        Command::Sample(args) => sample::execute(&args, registry),
        Command::Analyze(args) => analyze::execute(&args, registry),
        Command::Init { folder } => workflow::init::execute(&folder),
        Command::Schema => workflow::init::print_schema(),
        Command::Classify(args) => analyze::classify::execute(&args, registry),
        Command::Workflow(command) => workflow::execute(&command, registry),
        Command::Instrument(args) => workflow::instrument::execute(&args),
        Command::Export(args) => segment::export::execute(&args, registry),
        Command::Apply(args) => segment::apply::execute(&args, registry),
        Command::Segment(args) => segment::execute(&args, registry),
        Command::Region(command) => region::execute(&command),
        Command::Certs(command) => cluster::certs::execute(&command),
        Command::Manager(args) => cluster::manager::execute(&args, registry),
        Command::Worker(args) => cluster::worker::execute(&args, registry),
        Command::Submit(args) => client::submit::execute(&args, registry),
        Command::Status(args) => client::status::execute(&args),
        Command::Watch(args) => client::watch::execute(&args),
        Command::Results(args) => client::results::execute(&args),
        Command::Cancel(args) => client::cancel::execute(&args),
        Command::Forget(args) => client::forget::execute(&args),
        Command::Query(args) => client::query::execute(&args, registry),
        Command::Drain(args) => client::drain::execute(&args),
        Command::Doctor(args) => cluster::doctor::execute(&args),
        Command::UpgradeCheck { folders, json } => cluster::upgrade_check::execute(&folders, json),
        Command::Pools(args) => cluster::pools::execute(&args),
        Command::Simulate(args) => simulate::execute(&args, registry),
        Command::Replay(args) => simulate::replay::execute(&args),
        Command::Cluster(args) => clustering::execute(&args, registry),
        Command::Storage(command) => cluster::storage::execute(&command),
        Command::Cache(command) => cluster::cache::execute(&command),
        Command::Tissue(args) => tissue::execute(&args),
        Command::Demo(args) => tissue::demo::execute(&args, registry),
        Command::Completions { shell } => completions::execute(shell),
        Command::Man { out } => man::execute(&out),
    }
}

/// Returns the account that runs this process: its name, or `uid N` if the system's file of accounts lacks it. Not the
/// variable `USER`, which anyone can set.
pub(crate) fn user_name() -> String {
    let uid = std::fs::metadata("/proc/self").map_or_else(|_| "0".to_owned(), |meta| meta.uid().to_string());
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid {uid}"))
}

/// Completes the inputs of planning: measured task costs from the task cache, and the order of tasks.
pub(crate) fn load_costs(
    prepared: &mut PreparedStudy,
    buckets: BucketArgs,
    cache: Option<&Path>,
) -> CommandResult {
    prepared.costs = cache.map(cost_history::read).unwrap_or_default();
    order_tasks(prepared, buckets)
}

/// Orders the tasks of the stages as the arguments ask for, by the costs.
fn order_tasks(prepared: &mut PreparedStudy, buckets: BucketArgs) -> CommandResult {
    match buckets.task_order {
        TaskOrderArg::Declared => Ok(()),
        TaskOrderArg::Best => Ok(prepared.order_tasks()?),
    }
}

/// Returns the number of workers: `requested`, or one per processor.
fn workers(requested: Option<NonZeroU32>) -> NonZeroU32 {
    let processors = || std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok());
    requested.or_else(|| processors().and_then(NonZeroU32::new)).unwrap_or(NonZeroU32::MIN)
}

/// Returns the manager's token from the environment. It is not an argument, because other users can read arguments.
fn manager_token() -> Option<String> {
    std::env::var("PLEACH_TOKEN").ok().filter(|token| !token.is_empty())
}

/// Measures a task: returns the peak bytes that its thread allocates.
fn meter(work: &mut dyn FnMut()) -> Option<u64> {
    Some(pleach_pages::metered(work).1)
}

/// Measures the memory: the live blocks of this process with those that the allocator keeps for reuse, and the processes that run
/// external operations.
fn process_bytes() -> Option<ProcessMemory> {
    let own_bytes = pleach_pages::allocated_bytes() + pleach_pages::idle_bytes();
    Some(ProcessMemory { own_bytes, external_bytes: operations::process_bytes() })
}
