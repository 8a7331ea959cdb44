//! `pleach cluster`: joins tasks of workflows to jobs by several methods, simulates their execution, and prints tables or a
//! document. [`plots`] draws figures and [`output`] writes the jobs. Workflows are only read: no task is executed.

mod candidates;
mod document;
mod evaluation;
mod output;
mod plots;
mod table;

use crate::cli::{ClusterArgs, ClusterCommand, MethodArg, VerticalArg};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line, print_notice};
use candidates::{MethodName, Settings};
use document::Clusterings;
use evaluation::{Evaluation, evaluate};
use pleach_clustering::read::stem;
use pleach_clustering::simulate::{Delay, Overheads, Platform};
use pleach_clustering::{Options, ReadOptions, Size, Vertical, Workflow, read};
use pleach_planner::memory_size::MemorySize;
use std::num::NonZeroUsize;
use std::path::Path;

/// Maximum number of jobs of a level: the number of workers in the experiments of the paper.
const MAX_JOBS: usize = 20;

/// Runs the command.
pub(super) fn execute(args: &ClusterArgs) -> CommandResult {
    if let Some(ClusterCommand::Generate(args)) = &args.command {
        return output::generate(args);
    }
    let vertical = args.vertical.map(Vertical::from);
    let method = method(args)?;
    let settings = settings(args)?;
    output::check(args, method)?;
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for file in &args.files {
        let workflow = load(file, args)?;
        let evaluated = evaluate(file.clone(), workflow, method, vertical, args.reading.into(), &settings);
        evaluations.push(evaluated.map_err(CommandError::defect)?);
    }
    if let Some(folder) = &args.plot {
        plots::draw(folder, &evaluations, &settings)?.iter().for_each(|notice| print_notice(notice));
    }
    if let (Some(file), [evaluation]) = (&args.out, &evaluations[..]) {
        output::write(file, args.format, evaluation)?;
    }
    if args.json {
        return print_json(&Clusterings::new(&evaluations, args.reading, &settings));
    }
    table::show(&evaluations, &settings, method).iter().for_each(|line| print_line(line));
    Ok(())
}

/// Reads a workflow and scales it. Its name is that of the file: Pegasus calls most workflows `test`.
fn load(file: &Path, args: &ClusterArgs) -> CommandResult<Workflow> {
    let options = ReadOptions { assume_zero: args.assume_zero, ..ReadOptions::default() };
    let workflow = read(file, options).map_err(CommandError::input)?;
    let workflow = workflow.with_name(stem(&file.to_string_lossy()));
    let scaled = workflow.with_scaled_files(args.scale_data).with_scaled_seconds(args.scale_time);
    scaled.map_err(|error| CommandError::Input(format!("{}: --scale-time: {error}", file.display())))
}

/// Returns the method, after checks of the options that depend on it.
fn method(args: &ClusterArgs) -> CommandResult<MethodArg> {
    let is_only = args.vertical == Some(VerticalArg::Only);
    let method = args.method.unwrap_or(if is_only { MethodArg::None } else { MethodArg::Hrb });
    let refuse = |text: String| Err(CommandError::Input(text));
    let Some(name) = MethodName::single(method).map(MethodName::name) else { return Ok(method) };
    if is_only && method != MethodArg::None {
        return refuse(format!(
            "--vertical only: --method {name} is given; prior and posterior combine with a method"
        ));
    }
    if args.max_seconds.is_some() && !matches!(method, MethodArg::Dfjs | MethodArg::Afjs) {
        return refuse(format!(
            "--max-seconds: --method {name} has no limits; dfjs, afjs, all and best are allowed"
        ));
    }
    match (method, args.max_seconds, args.max_bytes) {
        (MethodArg::Dfjs, _, Some(_)) => {
            refuse("--max-bytes: --method dfjs has no limit of bytes; afjs, all and best are allowed".to_owned())
        }
        (MethodArg::Afjs, Some(_), None) => refuse(
            "--max-seconds: --method afjs has two limits; both --max-seconds and --max-bytes, or neither, are allowed"
                .to_owned(),
        ),
        _ => Ok(method),
    }
}

fn settings(args: &ClusterArgs) -> CommandResult<Settings> {
    let size = match args.size {
        Some(tasks) => Size::Tasks(tasks.get()),
        None => Size::Jobs(args.jobs.map_or(MAX_JOBS, NonZeroUsize::get)),
    };
    let options = Options { size, candidates: args.candidates.into(), seed: args.seed, ..Options::default() };
    let (platform, max_bytes) = (platform(args)?, args.max_bytes.map(MemorySize::bytes));
    Ok(Settings { platform, options, max_seconds: args.max_seconds, max_bytes })
}

fn platform(args: &ClusterArgs) -> CommandResult<Platform> {
    let given = &args.platform;
    let fixed = Overheads {
        engine: Delay::Fixed(given.engine),
        queue: Delay::Fixed(given.queue),
        clustering: Delay::Fixed(given.clustering),
        post: Delay::Fixed(given.post),
    };
    let overheads = given.weibull.map_or(fixed, |shape| fixed.weibull(shape));
    Platform::new(given.workers, given.bandwidth.bytes() as f64, overheads).map_err(CommandError::input)
}
