//! Indices of a sample with responses: their document, tables, figures and lines.

use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_interop::analysis::{self, DesignForm};
use pleach_interop::doubts;
use pleach_interop::method::MethodRequest;
use pleach_interop::responses::ResponseColumn;
use pleach_interop::samples::SampleTable;
use pleach_report::ScatterColumn;
use pleach_report::drawings::plots::{self, ResponsePlots};
use pleach_report::raster;
use pleach_report::summary;
use pleach_results::analysis::{Analysis, IndexTable};
use pleach_results::folder::publish;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::indices::Indices;
use pleach_workflow::Parameter;
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

/// Responses of a sample with their indices.
pub(in crate::command) struct Analyzed<'a> {
    wanted: &'a MethodRequest<'a>,
    samples: &'a SampleTable,
    measured: &'a [ResponseColumn],
    form: DesignForm,
    bootstrap: Bootstrap,
    /// One analysis per response, in their order.
    pub(in crate::command) analyses: Vec<Analysis>,
    doubts: Vec<String>,
}

impl<'a> Analyzed<'a> {
    /// Computes the indices. `form` is the design of the samples, `file` the source of the responses.
    pub(in crate::command) fn new(
        wanted: &'a MethodRequest<'a>,
        (samples, form): (&'a SampleTable, DesignForm),
        measured: &'a [ResponseColumn],
        seed: u64,
        file: &Path,
    ) -> CommandResult<Self> {
        let resamples = wanted.resamples.unwrap_or_else(|| analysis::usual_resamples(samples.rows));
        let bootstrap = Bootstrap { resamples, seed };
        let analyses = analysis::analyze(&form, wanted.method, measured, bootstrap)
            .map_err(|error| CommandError::Input(format!("{}: {error}", file.display())))?;
        let doubts = doubts::doubts(samples, &form);
        Ok(Self { wanted, samples, measured, form, bootstrap, analyses, doubts })
    }

    /// Returns the document of `indices.json`.
    pub(in crate::command) fn document(&self) -> CommandResult<serde_json::Value> {
        let response = |analysis: &Analysis| {
            let warnings = analysis.warnings();
            let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            Ok(json!({ "indices": analysis.json()?, "warnings": said }))
        };
        let responses = self.analyses.iter().map(response).collect::<CommandResult<Vec<_>>>()?;
        Ok(json!({
            "method": self.wanted.kind(),
            "evaluations": self.samples.rows,
            "seed": self.bootstrap.seed,
            "sample_warnings": self.doubts,
            "responses": responses,
        }))
    }

    /// Returns the files of the indices: name and content.
    pub(in crate::command) fn files(
        &self,
        document: &serde_json::Value,
    ) -> CommandResult<Vec<(&'static str, Vec<u8>)>> {
        let mut files =
            vec![("indices.csv", table(&self.analyses)?), ("indices.json", json_bytes(document)?)];
        files.extend(pairs(&self.analyses)?.map(|pairs| ("second-order.csv", pairs)));
        Ok(files)
    }

    /// Returns the input of the figures of each response.
    pub(in crate::command) fn plots(&self) -> Vec<ResponsePlots<'_>> {
        let drawn = |(measured, analysis): (&'a ResponseColumn, _)| ResponsePlots {
            analysis,
            steps: analysis::convergence(&self.form, self.wanted.method, measured, self.bootstrap),
            along: self.samples.varying().map(along).collect(),
            responses: &measured.values,
            independent: self.form.independent(),
        };
        self.measured.iter().zip(&self.analyses).map(drawn).collect()
    }

    /// Returns the method with its sample, in words.
    pub(in crate::command) fn method(&self) -> String {
        let varying = self.samples.varying().count();
        format!(
            "{}, {} evaluations of {varying} varying {}",
            self.wanted.kind(),
            self.samples.rows,
            if varying == 1 { "parameter" } else { "parameters" }
        )
    }

    /// Prints the indices of each response, with notes.
    pub(in crate::command) fn show(&self) {
        // Responses of one sample share warnings. Print each warning once.
        let mut shown: HashSet<String> = HashSet::new();
        for (analysis, measured) in self.analyses.iter().zip(self.measured) {
            for line in summary::ranking(analysis) {
                print_line(&line);
            }
            let failed = measured.values.iter().filter(|value| value.is_none()).count();
            let of_response = analysis.warnings().into_iter().map(|warning| warning.to_string());
            let warnings: Vec<String> = self
                .doubts
                .iter()
                .cloned()
                .chain(of_response)
                .filter(|text| shown.insert(text.clone()))
                .collect();
            for warning in &warnings {
                print_line(&format!("note: {warning}"));
            }
            if failed > 0 {
                print_line(&format!(
                    "note: {failed} of {} evaluations have no response",
                    measured.values.len()
                ));
            }
            if failed > 0 || !warnings.is_empty() {
                print_line("");
            }
        }
    }
}

/// Returns a parameter and its values for a plot.
fn along<'a>((parameter, values): (&'a Parameter, &'a [f64])) -> ScatterColumn<'a> {
    ScatterColumn { name: &parameter.name, values, domain: &parameter.domain }
}

/// Returns the text of a result file in JSON.
pub(in crate::command) fn json_bytes(document: &serde_json::Value) -> CommandResult<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(document).map_err(CommandError::defect)?;
    text.push(b'\n');
    Ok(text)
}

/// Creates the folder of an option. Refuses one with results of a study of images.
pub(in crate::command) fn create_folder(option: &str, out: &Path) -> CommandResult {
    if out.join("plan.json").exists() {
        return Err(CommandError::Input(format!(
            "{option} {}: contains results of a study; another folder is allowed",
            out.display()
        )));
    }
    let fail = |error: io::Error| {
        CommandError::writing(format_args!("{option} {}: cannot be created", out.display()), &error)
    };
    fs::create_dir_all(out).map_err(fail)
}

/// Writes the result files, each atomically, to the folder of an option.
pub(in crate::command) fn write_files(option: &str, out: &Path, files: &[(&str, Vec<u8>)]) -> CommandResult {
    let fail = |what: &str, error: io::Error| {
        CommandError::writing(format_args!("{option} {}: {what}", out.display()), &error)
    };
    create_folder(option, out)?;
    for (name, content) in files {
        publish(&out.join(name), content).map_err(|error| fail(&format!("failed to write {name}"), error))?;
    }
    Ok(())
}

/// Writes the figures of each response as SVG and PNG. With several responses, file names contain the response.
pub(in crate::command) fn plot(folder: &Path, drawn: &[ResponsePlots<'_>]) -> CommandResult {
    let fail = |what: &str, error: io::Error| {
        CommandError::writing(format_args!("--plot {}: {what}", folder.display()), &error)
    };
    fs::create_dir_all(folder).map_err(|error| fail("cannot be created", error))?;
    let several = drawn.len() > 1;
    for (place, drawn) in drawn.iter().enumerate() {
        // Keep only letters that every file system accepts. The number distinguishes responses that become equal.
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let response: String = drawn.analysis.response().chars().take(60).map(plain).collect();
        let before = if several { format!("{}-{response}-", place + 1) } else { String::new() };
        for picture in plots::pictures(drawn) {
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
pub(in crate::command) fn table(analyses: &[Analysis]) -> CommandResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (place, analysis) in analyses.iter().enumerate() {
        let Some(listed) = IndexTable::of(analysis) else { continue };
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
