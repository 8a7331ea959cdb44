//! `pleach cluster --study`: a parameter study of simulated executions, with samplers, methods and report of other studies.
//!
//! The parameters are options of the command. Nothing is executed but the simulation, in parallel on the processors of the
//! machine, and evaluations share what they have in common.

mod evaluations;
mod responses;
mod results;

use super::load;
use super::parameters::{Parameter, Point, declared};
use crate::cli::{ClusterArgs, MethodArg, VerticalArg};
use crate::command::analyze::analyzed::{Analyzed, create_folder};
use crate::exit::{CommandError, CommandResult};
use evaluations::{Counts, Sampled};
use pleach_clustering::Workflow;
use pleach_interop::analysis::DesignForm;
use pleach_interop::error::ProblemError;
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::responses::ResponseColumn;
use pleach_interop::samples::SampleTable;
use pleach_interop::sampling;
use pleach_workflow::text::quoted;
use pleach_workflow::{MethodSpec, Value};
use responses::{Response, responses};
use results::Results;
use std::path::{Path, PathBuf};

/// Maximum number of characters of a workflow's name in the names of its responses.
const MAX_NAME: usize = 40;

/// Runs the command.
pub(super) fn execute(
    file: &Path,
    args: &ClusterArgs,
    method: MethodArg,
    vertical: Option<VerticalArg>,
) -> CommandResult {
    let problem = Problem::of_program(file, &declared(args)).map_err(ProblemError::from)?;
    let named = |name: &str| Parameter::ALL.into_iter().find(|parameter| parameter.name() == name);
    let varied: Vec<Parameter> = problem.parameters.iter().filter_map(|of| named(&of.name)).collect();
    check(file, args, method, &varied)?;
    let wanted = MethodRequest::of(&problem, MethodSpec::default())?;
    let rows = sampling::rows(&problem, &wanted, problem.seed)?;
    check_drawn(file, &varied, &rows)?;
    let samples = SampleTable::of_rows(&problem, &rows)?;
    let form = DesignForm::of(&samples, &wanted)?;
    let points: Vec<Point> = rows.iter().map(|row| Point::new(&varied, row)).collect();
    let workflows = args.files.iter().map(|file| load(file, args)).collect::<CommandResult<Vec<_>>>()?;
    let out = args.results.clone().unwrap_or_else(|| PathBuf::from(file.file_stem().unwrap_or_default()));
    create_folder("--results", &out)?;
    let (mut all, mut counts) = (Vec::new(), Counts::default());
    let draws_delays = args.platform.weibull.is_some() || varied.contains(&Parameter::Weibull);
    for (workflow, label) in workflows.iter().zip(labels(&workflows)) {
        let sampled = Sampled { args, workflow, points: &points, draws_delays };
        let (found, counted) = responses(&sampled, &label, method, vertical)?;
        all.extend(found);
        counts += counted;
    }
    let (analyzed, constant): (Vec<Response>, Vec<Response>) =
        all.iter().cloned().partition(|response| response.is_main || response.varies());
    let measured: Vec<ResponseColumn> = analyzed.into_iter().map(|response| response.column).collect();
    let results = Results {
        file,
        args,
        method,
        vertical,
        problem: &problem,
        workflows: &workflows,
        rows: &rows,
        responses: &all,
        constant: &constant,
        counts,
    };
    let analyzed = Analyzed::new(&wanted, (&samples, form), &measured, problem.seed, file)?;
    results.finish(&out, &analyzed)
}

/// Returns a label of each workflow: empty for one alone, otherwise its name, with a number if an earlier one has it.
fn labels(workflows: &[Workflow]) -> Vec<String> {
    let name = |workflow: &Workflow| quoted(workflow.name(), MAX_NAME);
    let label = |(place, workflow): (usize, &Workflow)| {
        let name_of = name(workflow);
        match workflows[..place].iter().filter(|earlier| name(earlier) == name_of).count() {
            _ if workflows.len() == 1 => String::new(),
            0 => name_of,
            earlier => format!("{name_of} {}", earlier + 1),
        }
    };
    workflows.iter().enumerate().map(label).collect()
}

/// Rejects parameters without effect beside the options of the call.
fn check(file: &Path, args: &ClusterArgs, method: MethodArg, varied: &[Parameter]) -> CommandResult {
    let refuse = |parameter: Parameter, text: &str| {
        Err(CommandError::Input(format!("{}: parameters.{}: {text}", file.display(), parameter.name())))
    };
    let is_varied = |parameter| varied.contains(&parameter);
    if is_varied(Parameter::Jobs) && args.size.is_some() {
        return refuse(Parameter::Jobs, "--size takes its place; jobs, or --size, is allowed");
    }
    let has_seconds = is_varied(Parameter::MaxSeconds) || args.max_seconds.is_some();
    let has_bytes = is_varied(Parameter::MaxBytes) || args.max_bytes.is_some();
    for limit in [Parameter::MaxSeconds, Parameter::MaxBytes].into_iter().filter(|limit| is_varied(*limit)) {
        let allowed = match limit {
            Parameter::MaxSeconds => "dfjs, afjs, all and best are allowed",
            _ => "afjs, all and best are allowed",
        };
        let has_limit = match method {
            MethodArg::Afjs | MethodArg::All | MethodArg::Best => true,
            MethodArg::Dfjs => limit == Parameter::MaxSeconds,
            _ => false,
        };
        if !has_limit {
            return refuse(limit, &format!("--method has no such limit; {allowed}"));
        }
        if limit == Parameter::MaxBytes && !has_seconds {
            return refuse(limit, "max-seconds is missing; both limits are needed");
        }
        if method == MethodArg::Afjs && !has_bytes {
            return refuse(limit, "--method afjs has two limits; max-bytes is needed too");
        }
    }
    Ok(())
}

/// Rejects a sample with a value that an execution cannot have: some distributions have no bounds.
fn check_drawn(file: &Path, varied: &[Parameter], rows: &[Vec<Value>]) -> CommandResult {
    for (number, row) in rows.iter().enumerate() {
        for (parameter, value) in varied.iter().zip(row) {
            if !parameter.accepts().contains(*value) {
                return Err(CommandError::Input(format!(
                    "{}: parameters.{}: evaluation {} draws {value}; {} is allowed, as of a distribution with a range",
                    file.display(),
                    parameter.name(),
                    number + 1,
                    parameter.accepts()
                )));
            }
        }
    }
    Ok(())
}
