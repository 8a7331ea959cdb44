//! Figures of `pleach cluster`, as SVG files.

use super::candidates::{Settings, Simulated};
use super::evaluation::Evaluation;
use crate::exit::{CommandError, CommandResult};
use pleach_clustering::LevelMetrics;
use pleach_report::drawings::clustering::{
    ClusteredGraph, GainChart, GraphTask, ImbalanceChart, JobTimeline, LevelImbalance, MAX_GRAPH_TASKS,
    TimelineJob,
};
use pleach_results::folder::publish;
use std::collections::HashSet;
use std::path::Path;

/// Maximum number of characters of a workflow's name in names of files.
const MAX_NAME: usize = 60;

/// Draws the figures of all workflows into a folder. Returns notices on figures that were left out.
pub(super) fn draw(
    folder: &Path,
    evaluations: &[Evaluation],
    settings: &Settings,
) -> CommandResult<Vec<String>> {
    std::fs::create_dir_all(folder).map_err(|error| {
        CommandError::of_write(&error, format!("--plot {}: {error}; a folder is allowed", folder.display()))
    })?;
    let (mut names, mut notices) = (HashSet::new(), Vec::new());
    for (number, evaluation) in evaluations.iter().enumerate() {
        let mut prefix = String::new();
        if evaluations.len() > 1 {
            prefix = format!("{}-", file_name(evaluation.workflow.name()));
            while !names.insert(prefix.clone()) {
                prefix = format!("{}-{prefix}", number + 1);
            }
        }
        for (name, svg) in figures(evaluation, settings) {
            let path = folder.join(format!("{prefix}{name}.svg"));
            publish(&path, svg.as_bytes()).map_err(|error| {
                CommandError::writing(format_args!("--plot {}: failed to write", path.display()), &error)
            })?;
        }
        let tasks = evaluation.workflow.tasks().len();
        if tasks > MAX_GRAPH_TASKS {
            notices.push(format!(
                "{}: {prefix}graph.svg is left out: {tasks} tasks; up to {MAX_GRAPH_TASKS} are drawn",
                evaluation.file.display()
            ));
        }
    }
    Ok(notices)
}

/// Returns a name of a workflow as part of the name of a file. Other characters than letters, digits, `-` and `_` are replaced.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
    name.chars().take(MAX_NAME).map(plain).collect()
}

/// Returns the names and contents of the figures of a workflow.
fn figures(evaluation: &Evaluation, settings: &Settings) -> Vec<(&'static str, String)> {
    let workflow = evaluation.workflow.name();
    let shown = evaluation.shown();
    let clustering = shown.candidate.in_words();
    let bars: Vec<(String, f64)> = evaluation
        .simulated
        .iter()
        .map(|simulated| (simulated.candidate.in_words(), evaluation.gain(simulated)))
        .collect();
    let [before, after] = [&evaluation.imbalance.before, &evaluation.imbalance.after]
        .map(|levels| levels.iter().map(level).collect::<Vec<_>>());
    let jobs = timeline(shown);
    let timeline = JobTimeline {
        workflow,
        clustering: &clustering,
        workers: settings.platform.workers().get(),
        makespan: shown.execution.makespan,
        jobs: &jobs,
    };
    let mut figures = vec![
        ("gains", GainChart { workflow, bars: &bars }.svg()),
        (
            "imbalance",
            ImbalanceChart { workflow, clustering: &clustering, before: &before, after: &after }.svg(),
        ),
        ("timeline", timeline.svg()),
    ];
    figures.extend(graph(evaluation, &clustering).map(|svg| ("graph", svg)));
    figures
}

fn level(metrics: &LevelMetrics) -> LevelImbalance {
    let variance = metrics.variance;
    LevelImbalance {
        tasks: metrics.tasks,
        metrics: [variance.hrv, variance.hifv, variance.hdv, variance.prv],
    }
}

fn timeline(shown: &Simulated) -> Vec<TimelineJob> {
    let job = |(record, tasks): (&pleach_clustering::simulate::JobRecord, &Vec<u32>)| TimelineJob {
        worker: record.worker as usize,
        started: record.started,
        phases: [record.queue, record.transfer, record.clustering, record.run],
        tasks: tasks.len(),
    };
    shown.execution.jobs.iter().zip(shown.clustering.jobs()).map(job).collect()
}

/// Returns the graph of the tasks. `None` for a workflow with too many.
fn graph(evaluation: &Evaluation, clustering: &str) -> Option<String> {
    let workflow = &evaluation.workflow;
    if workflow.tasks().len() > MAX_GRAPH_TASKS {
        return None;
    }
    let job_of = evaluation.shown().clustering.job_of();
    let task = |(number, task): (u32, &pleach_clustering::Task)| GraphTask {
        name: format!("{} {}", task.id, task.kind),
        level: workflow.level_of(number),
        job: job_of[number as usize] as usize,
    };
    let tasks: Vec<GraphTask> = (0..).zip(workflow.tasks()).map(task).collect();
    let edges: Vec<(usize, usize)> =
        workflow.edges().map(|(parent, child)| (parent as usize, child as usize)).collect();
    Some(ClusteredGraph { workflow: workflow.name(), clustering, tasks: &tasks, edges: &edges }.svg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_workflows_are_no_paths() {
        assert_eq!(file_name("../a b/Montage_25"), "___a_b_Montage_25");
        assert_eq!(file_name(&"x".repeat(1000)).len(), MAX_NAME);
    }
}
