//! `pleach analyze`: computes sensitivity indices of the responses of an external model.

pub(super) mod analyzed;
pub(super) mod classify;

use crate::cli::AnalyzeArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use analyzed::{Analyzed, plot, write_files};
use pleach_interop::analysis::DesignForm;
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::responses;
use pleach_interop::samples::SampleTable;
use pleach_report::drawings::plots::ResponsePlots;
use pleach_report::model::{self, ModelReport};
use pleach_results::folder::publish;
use pleach_workflow::Registry;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(args: &AnalyzeArgs, registry: &Registry) -> CommandResult {
    let problem = Problem::load(&args.problem, registry)?;
    let wanted = MethodRequest::of(&problem, args.recipe())?;
    let seed = args.seed.unwrap_or(problem.seed);
    let samples = SampleTable::read(&problem, &args.samples)?;
    // Before the responses: the samples are their reference.
    let form = DesignForm::of(&samples, &wanted)?;
    let file = args.responses.as_deref().unwrap_or(&args.samples);
    let measured = responses::read(&problem, &samples, file, &args.response)?;
    let analyzed = Analyzed::new(&wanted, (&samples, form), &measured, seed, file)?;
    let document = analyzed.document()?;
    if let Some(out) = &args.out {
        write_files("--out", out, &analyzed.files(&document)?)?;
    }
    if args.plot.is_some() || args.report.is_some() {
        let drawn = analyzed.plots();
        if let Some(folder) = &args.plot {
            plot(folder, &drawn)?;
        }
        if let Some(page) = &args.report {
            report(page, &problem, args, &analyzed, &drawn)?;
        }
    }
    if args.json {
        return print_json(&document);
    }
    analyzed.show();
    for (place, what) in [(&args.out, "results"), (&args.plot, "plots"), (&args.report, "report")] {
        if let Some(place) = place {
            print_line(&format!("{what} in {}", place.display()));
        }
    }
    Ok(())
}

/// Writes the page of the indices.
fn report(
    page: &Path,
    problem: &Problem,
    args: &AnalyzeArgs,
    analyzed: &Analyzed<'_>,
    drawn: &[ResponsePlots<'_>],
) -> CommandResult {
    let shown = |file: &Path| file.display().to_string();
    let responses = args.responses.as_deref().unwrap_or(&args.samples);
    let facts = [
        ("Method", analyzed.method()),
        ("Samples", shown(&args.samples)),
        ("Responses", shown(responses)),
        ("Seed", args.seed.unwrap_or(problem.seed).to_string()),
    ];
    let name = args.problem.file_stem().unwrap_or_default().to_string_lossy();
    let content = model::html(&ModelReport {
        name: &name,
        kind: "sensitivity of the responses of a model to its parameters",
        facts: &facts,
        parameters: &problem.parameters,
        responses: drawn,
        files: &[],
        provenance: concat!("Created by pleach ", env!("CARGO_PKG_VERSION"), "."),
    });
    publish(page, content.as_bytes()).map_err(|error| {
        CommandError::writing(format_args!("--report {}: failed to write", page.display()), &error)
    })
}
