//! `pleach classify`: classifies slides or patients by the responses of a study, and analyzes which parameters change their
//! labels.

use super::analyzed::{json_bytes, table, write_files};
use crate::cli::ClassifyArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_interop::analysis::{self, DesignForm};
use pleach_interop::classification::{Assignment, Classification, GroupFeatures, GroupLabels};
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::responses::ResponseColumn;
use pleach_interop::samples::SampleTable;
use pleach_report::summary;
use pleach_results::analysis::Analysis;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_workflow::Registry;
use serde_json::{Value, json};
use std::path::Path;

/// A classification with its inputs and the indices of its responses.
struct Found {
    labels: GroupLabels,
    features: GroupFeatures,
    classification: Classification,
    responses: Vec<ResponseColumn>,
    analyses: Vec<Analysis>,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &ClassifyArgs, registry: &Registry) -> CommandResult {
    let problem = Problem::load(&args.study, registry)?;
    let wanted = MethodRequest::of(&problem, args.recipe())?;
    let samples = SampleTable::read(&problem, &args.results.join("samples.csv"))?;
    let form = DesignForm::of(&samples, &wanted)?;
    let labels = GroupLabels::read(&args.labels)?;
    let file = args.results.join("responses.csv");
    let features = GroupFeatures::read(&samples, &file, &labels, &args.feature)?;
    let clusters = args.clusters.map(|clusters| clusters as usize);
    let classification = Classification::of(&features, &labels, clusters)?;
    let responses = classification.responses(&labels);
    // Indices of a response that never varies are undefined or 0.
    let varying: Vec<ResponseColumn> =
        responses.iter().filter(|response| varies(response)).cloned().collect();
    let resamples = wanted.resamples.unwrap_or_else(|| analysis::usual_resamples(samples.rows));
    let analyses = match varying.is_empty() {
        true => Vec::new(),
        false => {
            analysis::analyze(&form, wanted.method, &varying, Bootstrap { resamples, seed: problem.seed })
                .map_err(|error| CommandError::Input(format!("{}: {error}", file.display())))?
        }
    };
    let found = Found { labels, features, classification, responses, analyses };
    let document = document(&found)?;
    if let Some(out) = &args.out {
        write(out, &found, &document)?;
    }
    if args.json {
        return print_json(&document);
    }
    show(&found);
    if let Some(out) = &args.out {
        print_line(&format!("results in {}", out.display()));
    }
    Ok(())
}

fn varies(response: &ResponseColumn) -> bool {
    let known: Vec<f64> = response.values.iter().copied().flatten().collect();
    known.iter().any(|value| *value != known[0])
}

/// Returns the document of `classification.json`.
fn document(found: &Found) -> CommandResult<Value> {
    let Found { labels, features, classification, responses, analyses } = found;
    let group = |index: usize| {
        let group = &classification.groups[index];
        let (evaluations, label_changes, cluster_changes) = group.changes();
        json!({
            "group": labels.groups[index],
            "label": labels.labels[labels.label_of[index]],
            "consensus_label": labels.labels[group.consensus.label],
            "consensus_probability": group.consensus.probability,
            "consensus_cluster": group.consensus.cluster + 1,
            "evaluations": evaluations,
            "label_changes": label_changes,
            "cluster_changes": cluster_changes,
        })
    };
    let constant = responses.iter().filter(|response| !varies(response)).map(|response| &response.name);
    let indices = analyses.iter().map(Analysis::json).collect::<Result<Vec<_>, _>>();
    Ok(json!({
        "labels": labels.labels,
        "features": features.names,
        "evaluations": features.evaluations.len(),
        "leave_one_out": classification.leave_one_out,
        "clusters": classification.clusters,
        "consensus_accuracy": classification.accuracy(labels),
        "groups": (0..labels.groups.len()).map(group).collect::<Vec<_>>(),
        "constant_responses": constant.collect::<Vec<_>>(),
        "responses": indices.map_err(CommandError::defect)?,
    }))
}

/// Writes the results.
fn write(out: &Path, found: &Found, document: &Value) -> CommandResult {
    let files = [
        ("groups.csv", groups(found)?),
        ("assignments.csv", assignments(found)?),
        ("responses.csv", responses(found)?),
        ("indices.csv", table(&found.analyses)?),
        ("classification.json", json_bytes(document)?),
    ];
    write_files("--out", out, &files)
}

fn csv(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> CommandResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(CommandError::defect)?;
    for row in rows {
        writer.write_record(row).map_err(CommandError::defect)?;
    }
    writer.into_inner().map_err(CommandError::defect)
}

/// Returns the table of the consensus: one row per group, its label, and the mean of each feature over the evaluations.
fn groups(found: &Found) -> CommandResult<Vec<u8>> {
    let Found { labels, features, .. } = found;
    let header: Vec<&str> =
        ["group", "label"].into_iter().chain(features.names.iter().map(String::as_str)).collect();
    let row = |group: usize| {
        let texts = [labels.groups[group].clone(), labels.labels[labels.label_of[group]].clone()];
        texts.into_iter().chain(features.consensus[group].iter().map(f64::to_string)).collect()
    };
    csv(&header, (0..labels.groups.len()).map(row))
}

/// Returns the table of assignments: one row per evaluation and group. Those of a failed run are empty.
fn assignments(found: &Found) -> CommandResult<Vec<u8>> {
    let header =
        ["evaluation", "group", "label", "label_probability", "label_changed", "cluster", "cluster_changed"];
    let Found { labels, features, classification, .. } = found;
    let row = |(evaluation, index): (usize, usize)| {
        let group = &classification.groups[index];
        let texts = |assigned: &Assignment| {
            let Assignment { label, probability, cluster } = assigned;
            vec![
                labels.labels[*label].clone(),
                probability.to_string(),
                u8::from(*label != group.consensus.label).to_string(),
                (cluster + 1).to_string(),
                u8::from(*cluster != group.consensus.cluster).to_string(),
            ]
        };
        let assigned = group.evaluations[evaluation].as_ref();
        let mut row = vec![(evaluation + 1).to_string(), labels.groups[index].clone()];
        row.extend(assigned.map_or_else(|| vec![String::new(); 5], texts));
        row
    };
    let pairs = (0..features.evaluations.len())
        .flat_map(|evaluation| (0..labels.groups.len()).map(move |group| (evaluation, group)));
    csv(&header, pairs.map(row))
}

/// Returns the table of responses, which `pleach analyze` reads.
fn responses(found: &Found) -> CommandResult<Vec<u8>> {
    let names = found.responses.iter().map(|response| response.name.as_str());
    let header: Vec<&str> = std::iter::once("evaluation").chain(names).collect();
    let row = |evaluation: usize| {
        let values = found.responses.iter().map(|response| response.values[evaluation]);
        let texts = values.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
        std::iter::once((evaluation + 1).to_string()).chain(texts).collect()
    };
    csv(&header, (0..found.features.evaluations.len()).map(row))
}

fn show(found: &Found) {
    let Found { labels, features, classification, responses, analyses } = found;
    let model = match classification.leave_one_out {
        true => "each classified by a model of the others",
        false => "classified by one model of all, since a label has only one group",
    };
    print_line(&format!(
        "{} groups, {} labels, {} features; {model}",
        labels.groups.len(),
        labels.labels.len(),
        features.names.len()
    ));
    print_line(&format!("right labels by the mean over evaluations: {:.3}", classification.accuracy(labels)));
    let width = labels.groups.iter().map(String::len).max().unwrap_or_default().max("group".len());
    print_line(&format!("{:width$}  evaluations  other label  other cluster", "group"));
    for (name, group) in labels.groups.iter().zip(&classification.groups) {
        let (evaluations, label_changes, cluster_changes) = group.changes();
        print_line(&format!("{name:width$}  {evaluations:>11}  {label_changes:>11}  {cluster_changes:>13}"));
    }
    for response in responses.iter().filter(|response| !varies(response)) {
        let value = response.values.iter().copied().flatten().next().unwrap_or_default();
        print_line(&format!("{} is {value} in all evaluations: no parameter changes it", response.name));
    }
    for line in analyses.iter().flat_map(summary::ranking) {
        print_line(&line);
    }
}
