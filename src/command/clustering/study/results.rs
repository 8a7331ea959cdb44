//! Results of a study of the execution: sample, responses, indices and report in a folder, and their lines on the terminal.

use super::super::candidates::{Candidate, MethodName};
use super::super::parameters::{Point, settings};
use super::super::table::{self, counted};
use super::evaluations::Counts;
use super::responses::Response;
use crate::cli::{ClusterArgs, MethodArg, VerticalArg};
use crate::command::analyze::analyzed::{Analyzed, plot, write_files};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_clustering::Workflow;
use pleach_interop::problem::Problem;
use pleach_report::model::{self, ModelReport};
use pleach_report::summary;
use pleach_results::tables;
use pleach_workflow::Value;
use serde_json::json;
use std::path::Path;

/// Files of the folder beside the page.
const FILES: [&str; 4] = ["samples.csv", "responses.csv", "indices.csv", "indices.json"];

/// A finished study.
pub(super) struct Results<'a> {
    pub(super) file: &'a Path,
    pub(super) args: &'a ClusterArgs,
    pub(super) method: MethodArg,
    pub(super) vertical: Option<VerticalArg>,
    pub(super) problem: &'a Problem,
    pub(super) workflows: &'a [Workflow],
    pub(super) rows: &'a [Vec<Value>],
    /// All responses.
    pub(super) responses: &'a [Response],
    /// Responses without an analysis, because they have the same value in all evaluations.
    pub(super) constant: &'a [Response],
    pub(super) counts: Counts,
}

impl Results<'_> {
    /// Writes the folder and figures, and prints the result.
    pub(super) fn finish(&self, out: &Path, analyzed: &Analyzed<'_>) -> CommandResult {
        let document = self.document(analyzed)?;
        let names: Vec<String> = self.problem.parameters.iter().map(|of| of.name.clone()).collect();
        let mut files = vec![
            ("samples.csv", tables::samples(&names, self.rows)?),
            ("responses.csv", self.table().map_err(CommandError::defect)?),
        ];
        files.extend(analyzed.files(&document)?);
        let drawn = analyzed.plots();
        let facts = self.facts(analyzed)?;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let page = model::html(&ModelReport {
            name: &name,
            kind: "sensitivity of simulated executions to their parameters",
            facts: &facts,
            parameters: &self.problem.parameters,
            responses: &drawn,
            files: &FILES,
            provenance: concat!(
                "Created by pleach ",
                env!("CARGO_PKG_VERSION"),
                "; the same study file, workflows, options and version give the same results."
            ),
        });
        files.push(("report.html", page.into_bytes()));
        write_files("--results", out, &files)?;
        if let Some(folder) = &self.args.plot {
            plot(folder, &drawn)?;
        }
        if self.args.json {
            return print_json(&document);
        }
        self.show(out, analyzed)
    }

    /// Returns the document of `indices.json`.
    fn document(&self, analyzed: &Analyzed<'_>) -> CommandResult<serde_json::Value> {
        let mut document = analyzed.document()?;
        let workflow = |(file, workflow): (&std::path::PathBuf, &Workflow)| {
            json!({
                "file": file.to_string_lossy(),
                "workflow": workflow.name(),
                "tasks": workflow.tasks().len(),
            })
        };
        let workflows: Vec<_> = self.args.files.iter().zip(self.workflows).map(workflow).collect();
        let counts = self.counts;
        let constant = self.constant.iter().map(|response| &response.column);
        let constant: Vec<_> =
            constant.map(|column| json!({ "response": column.name, "value": column.values[0] })).collect();
        if let Some(fields) = document.as_object_mut() {
            fields.insert("clustering".to_owned(), json!(self.clustering()));
            fields.insert("workflows".to_owned(), json!(workflows));
            fields.insert("constant_responses".to_owned(), json!(constant));
            fields.insert(
                "reuse".to_owned(),
                json!({
                    "clusterings": counts.clusterings,
                    "clusterings_without_reuse": counts.clusterings_needed,
                    "simulations": counts.simulations,
                    "simulations_without_reuse": counts.simulations_needed,
                    "tuning_simulations": counts.tuning,
                }),
            );
        }
        Ok(document)
    }

    /// Returns the table of responses, which `pleach analyze` reads.
    fn table(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let names = self.responses.iter().map(|response| response.column.name.as_str());
        writer.write_record(std::iter::once("evaluation").chain(names))?;
        for evaluation in 0..self.rows.len() {
            let values = self.responses.iter().map(|response| response.column.values[evaluation]);
            let texts = values.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
            writer.write_record(std::iter::once((evaluation + 1).to_string()).chain(texts))?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    /// Returns the clustering in words.
    fn clustering(&self) -> String {
        match (MethodName::single(self.method), self.method) {
            (Some(method), _) => {
                Candidate { method, vertical: self.vertical.unwrap_or(VerticalArg::None) }.in_words()
            }
            (None, MethodArg::Best) => "the clustering of least makespan in each evaluation".to_owned(),
            (None, _) => "all methods".to_owned(),
        }
    }

    fn reuse(&self) -> String {
        let counts = self.counts;
        let of = |computed: usize, needed: usize, one: &str, many: &str| {
            format!("{} computed, {} reused", counted(computed, one, many), needed - computed)
        };
        let tuning = match counts.tuning {
            0 => String::new(),
            tuning => format!("; limits tuned by {}", counted(tuning, "simulation", "simulations")),
        };
        format!(
            "{}; {}{tuning}",
            of(counts.clusterings, counts.clusterings_needed, "clustering", "clusterings"),
            of(counts.simulations, counts.simulations_needed, "simulation", "simulations"),
        )
    }

    /// Returns the facts of the report's heading.
    fn facts(&self, analyzed: &Analyzed<'_>) -> CommandResult<Vec<(&'static str, String)>> {
        let workflow = |workflow: &Workflow| {
            let (tasks, levels) = (workflow.tasks().len(), workflow.levels().len());
            format!("{}: {tasks} tasks on {levels} levels", workflow.name())
        };
        let workflows: Vec<String> = self.workflows.iter().map(workflow).collect();
        Ok(vec![
            ("Workflows", workflows.join("; ")),
            ("Clustering", self.clustering()),
            ("Method", analyzed.method()),
            ("Responses", RESPONSES.to_owned()),
            ("Options", self.platform()?),
            ("Seed", self.problem.seed.to_string()),
            ("Computed", self.reuse()),
        ])
    }

    /// Returns the line on the options of the platform, which parameters replace.
    fn platform(&self) -> CommandResult<String> {
        Ok(table::platform(&settings(self.args, &Point::default())?))
    }

    fn show(&self, out: &Path, analyzed: &Analyzed<'_>) -> CommandResult {
        print_line(&format!("{}; parameters of {} vary", self.platform()?, self.file.display()));
        print_line(&format!("{}; seed {}", analyzed.method(), self.problem.seed));
        print_line(&format!("{}: {}", self.clustering(), self.reuse()));
        print_line("");
        analyzed.show();
        for response in self.constant {
            let value = response.column.values[0].unwrap_or_default();
            print_line(&format!("{} is {value} in all evaluations", response.column.name));
        }
        if !self.constant.is_empty() {
            print_line("");
        }
        analyzed.analyses.iter().flat_map(summary::conclusion).for_each(|line| print_line(&line));
        print_line(&format!("results in {}; open {}", out.display(), out.join("report.html").display()));
        Ok(())
    }
}

/// Meaning of the responses.
const RESPONSES: &str = "makespan: seconds from the start to the end of the last job; gain: 1 − makespan / makespan without \
                         clustering; job-count: number of jobs; moved-bytes: bytes that workers fetch";
