//! `pleach cluster`: joins tasks of workflows to jobs by several methods, simulates their execution, and prints tables or a
//! document. [`plots`] draws figures and [`output`] writes the jobs. [`study`] varies parameters of the execution. Workflows are
//! only read: no task is executed, but [`execution`] executes emulated tasks, which take the time of tasks.

mod candidates;
mod document;
mod evaluation;
mod executed;
mod execution;
mod output;
mod parameters;
mod plots;
mod portfolio;
mod sensitivity;
mod study;
mod table;

use crate::cli::{ClusterArgs, ClusterCommand, MethodArg, VerticalArg};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line, print_notice};
use candidates::MethodName;
use document::Clusterings;
use evaluation::{Evaluation, evaluate};
use parameters::Point;
use pleach_clustering::read::stem;
use pleach_clustering::{ReadOptions, Workflow, read};
use pleach_workflow::Registry;
use sensitivity::Comparison;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(args: &ClusterArgs, registry: &Registry) -> CommandResult {
    if let Some(ClusterCommand::Generate(args)) = &args.command {
        return output::generate(args);
    }
    let method = method(args)?;
    if let Some(file) = &args.study {
        return study::execute(file, args, method, args.vertical);
    }
    let settings = parameters::settings(args, &Point::default())?;
    output::check(args, method)?;
    execution::check(args)?;
    let comparison = Comparison { method, vertical: args.vertical, reading: args.reading.into() };
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for file in &args.files {
        let workflow = parameters::scaled(load(file, args)?, args, &Point::default())
            .map_err(|error| CommandError::Input(format!("{}: {error}", file.display())))?;
        let portfolio = portfolio::choose(&workflow, args, &settings)?;
        let sensitivity = sensitivity::vary(&workflow, args, comparison, &settings)?;
        let evaluated = evaluate(file.clone(), workflow, comparison, &settings);
        let evaluated = evaluated.map_err(CommandError::defect)?;
        evaluations.push(Evaluation { sensitivity, portfolio, ..evaluated });
    }
    if args.execution.execute {
        execution::execute(&args.execution, &mut evaluations, &settings, registry)?;
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

/// Reads a workflow. Its name is that of the file: Pegasus calls most workflows `test`.
fn load(file: &Path, args: &ClusterArgs) -> CommandResult<Workflow> {
    let options = ReadOptions { assume_zero: args.assume_zero, ..ReadOptions::default() };
    let workflow = read(file, options).map_err(CommandError::input)?;
    Ok(workflow.with_name(stem(&file.to_string_lossy())))
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
