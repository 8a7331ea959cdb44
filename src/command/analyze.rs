//! `pleach analyze`: computes sensitivity indices of the responses of an external model.

pub(super) mod classify;

use crate::cli::AnalyzeArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_interop::analysis::{self, DesignForm};
use pleach_interop::doubts;
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::responses::{self, ResponseColumn};
use pleach_interop::samples::SampleTable;
use pleach_report::ScatterColumn;
use pleach_report::drawings::plots::{self, ResponsePlots};
use pleach_report::raster;
use pleach_report::summary;
use pleach_results::analysis::Analysis;
use pleach_results::folder::publish;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::indices::Indices;
use pleach_workflow::{Parameter, Registry};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

/// Returns a parameter and its values for a plot.
fn along<'a>((parameter, values): (&'a Parameter, &'a [f64])) -> ScatterColumn<'a> {
    ScatterColumn { name: &parameter.name, values, domain: &parameter.domain }
}

/// Runs the command.
pub(super) fn execute(args: &AnalyzeArgs, registry: &Registry) -> CommandResult {
    let problem = Problem::load(&args.problem, registry)?;
    let wanted = MethodRequest::of(&problem, args.recipe())?;
    let seed = args.seed.unwrap_or(problem.seed);
    let samples = SampleTable::read(&problem, &args.samples)?;
    let form = DesignForm::of(&samples, &wanted)?;
    let file = args.responses.as_deref().unwrap_or(&args.samples);
    let measured = responses::read(&problem, &samples, file, &args.response)?;
    let resamples = wanted.resamples.unwrap_or_else(|| analysis::usual_resamples(samples.rows));
    let bootstrap = Bootstrap { resamples, seed };
    let analyses = analysis::analyze(&form, wanted.method, &measured, bootstrap)
        .map_err(|error| CommandError::Input(format!("{}: {error}", file.display())))?;
    let doubts = doubts::doubts(&samples, &form);
    let document = document(&wanted, &samples, bootstrap, &analyses, &doubts)?;
    if let Some(out) = &args.out {
        write(out, &analyses, &document)?;
    }
    if let Some(folder) = &args.plot {
        let drawn = measured.iter().zip(&analyses).map(|(measured, analysis)| ResponsePlots {
            analysis,
            steps: analysis::convergence(&form, wanted.method, measured, bootstrap),
            along: samples.varying().map(along).collect(),
            responses: &measured.values,
            independent: form.independent(),
        });
        plot(folder, drawn)?;
    }
    if args.json {
        return print_json(&document);
    }
    show(&analyses, &measured, &doubts);
    for (folder, what) in [(&args.out, "results"), (&args.plot, "plots")] {
        if let Some(folder) = folder {
            print_line(&format!("{what} in {}", folder.display()));
        }
    }
    Ok(())
}

/// Returns the document of `indices.json`.
fn document(
    request: &MethodRequest<'_>,
    samples: &SampleTable,
    bootstrap: Bootstrap,
    analyses: &[Analysis],
    doubts: &[String],
) -> CommandResult<serde_json::Value> {
    let response = |analysis: &Analysis| {
        let warnings = analysis.warnings();
        let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        Ok(json!({ "indices": analysis.json()?, "warnings": said }))
    };
    let responses = analyses.iter().map(response).collect::<CommandResult<Vec<_>>>()?;
    Ok(json!({
        "method": request.kind(),
        "evaluations": samples.rows,
        "seed": bootstrap.seed,
        "sample_warnings": doubts,
        "responses": responses,
    }))
}

/// Writes the results.
fn write(out: &Path, analyses: &[Analysis], document: &serde_json::Value) -> CommandResult {
    let mut files = vec![("indices.csv", table(analyses)?), ("indices.json", json_bytes(document)?)];
    files.extend(pairs(analyses)?.map(|pairs| ("second-order.csv", pairs)));
    write_files(out, &files)
}

/// Returns the text of a result file in JSON.
fn json_bytes(document: &serde_json::Value) -> CommandResult<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(document).map_err(CommandError::defect)?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the result files, each atomically. Refuses a folder with results of a study.
fn write_files(out: &Path, files: &[(&str, Vec<u8>)]) -> CommandResult {
    let fail = |what: &str, error: io::Error| {
        CommandError::writing(format_args!("--out {}: {what}", out.display()), &error)
    };
    if out.join("plan.json").exists() {
        return Err(CommandError::Input(format!(
            "--out {}: contains results of a study; another folder is allowed",
            out.display()
        )));
    }
    fs::create_dir_all(out).map_err(|error| fail("cannot be created", error))?;
    for (name, content) in files {
        publish(&out.join(name), content).map_err(|error| fail(&format!("failed to write {name}"), error))?;
    }
    Ok(())
}

/// Writes the figures of each response as SVG and PNG. With several responses, file names contain the response.
fn plot<'a>(folder: &Path, drawn: impl ExactSizeIterator<Item = ResponsePlots<'a>>) -> CommandResult {
    let fail = |what: &str, error: io::Error| {
        CommandError::writing(format_args!("--plot {}: {what}", folder.display()), &error)
    };
    fs::create_dir_all(folder).map_err(|error| fail("cannot be created", error))?;
    let several = drawn.len() > 1;
    for (place, drawn) in drawn.enumerate() {
        // Keep only letters that every file system accepts. The number distinguishes responses that become equal.
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let response: String = drawn.analysis.response().chars().take(60).map(plain).collect();
        let before = if several { format!("{}-{response}-", place + 1) } else { String::new() };
        for picture in plots::pictures(&drawn) {
            let png = raster::png(&picture.svg).map_err(CommandError::defect)?;
            for (ending, content) in [("svg", picture.svg.as_bytes()), ("png", &png)] {
                let name = format!("{before}{}.{ending}", picture.name);
                let written = publish(&folder.join(&name), content);
                written.map_err(|error| fail(&format!("failed to write {name}"), error))?;
            }
        }
    }
    Ok(())
}

/// Returns the table of all responses' indices. The first column names the response.
fn table(analyses: &[Analysis]) -> CommandResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (place, analysis) in analyses.iter().enumerate() {
        let Some(listed) = pleach_results::analysis::IndexTable::of(analysis) else { continue };
        if place == 0 {
            let header =
                ["response", "parameter"].into_iter().chain(listed.columns.iter().map(String::as_str));
            writer.write_record(header).map_err(CommandError::defect)?;
        }
        for record in listed.records() {
            let record = std::iter::once(analysis.response().to_owned()).chain(record);
            writer.write_record(record).map_err(CommandError::defect)?;
        }
    }
    writer.into_inner().map_err(CommandError::defect)
}

/// Returns the table of second-order indices. `None` if no response has any.
fn pairs(analyses: &[Analysis]) -> CommandResult<Option<Vec<u8>>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(["response", "one", "other", "second", "second_conf"])
        .map_err(CommandError::defect)?;
    let mut any = false;
    for analysis in analyses {
        let Analysis::Indices(Indices::Vbd(found)) = analysis else { continue };
        for pair in found.pairs.iter().flatten() {
            any = true;
            let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
            let [second, conf] = [pair.second.value, pair.second.conf].map(shown);
            writer
                .write_record([&found.response, &pair.one, &pair.other, &second, &conf])
                .map_err(CommandError::defect)?;
        }
    }
    let content = writer.into_inner().map_err(CommandError::defect)?;
    Ok(any.then_some(content))
}

fn show(analyses: &[Analysis], measured: &[ResponseColumn], doubts: &[String]) {
    // Responses of one sample share warnings. Print each warning once.
    let mut shown: HashSet<String> = HashSet::new();
    for (analysis, measured) in analyses.iter().zip(measured) {
        for line in summary::ranking(analysis) {
            print_line(&line);
        }
        let failed = measured.values.iter().filter(|value| value.is_none()).count();
        let of_response = analysis.warnings().into_iter().map(|warning| warning.to_string());
        let warnings: Vec<String> =
            doubts.iter().cloned().chain(of_response).filter(|text| shown.insert(text.clone())).collect();
        for warning in &warnings {
            print_line(&format!("note: {warning}"));
        }
        if failed > 0 {
            print_line(&format!("note: {failed} of {} evaluations have no response", measured.values.len()));
        }
        if failed > 0 || !warnings.is_empty() {
            print_line("");
        }
    }
}
