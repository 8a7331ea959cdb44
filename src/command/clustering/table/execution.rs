//! Table of executed clusterings beside the simulated ones.

use super::{aligned, number, percent};
use crate::command::clustering::candidates::{Simulated, vertical_name};
use crate::command::clustering::evaluation::Evaluation;
use crate::command::clustering::executed::Executed;

/// Returns the lines on the execution of a workflow. None without `--execute`.
pub(super) fn lines(evaluation: &Evaluation) -> Vec<String> {
    let Some(baseline) = evaluation.executed.first() else { return Vec::new() };
    let header =
        ["method", "vertical", "jobs", "simulated s", "executed s", "gain", "executed", "difference"];
    let row = |(simulated, executed): (&Simulated, &Executed)| {
        let gain = simulated.gain(evaluation.baseline()).gain();
        let executed_gain = executed.gain(baseline);
        vec![
            simulated.candidate.method.name().to_owned(),
            vertical_name(simulated.candidate.vertical).to_owned(),
            simulated.clustering.jobs().len().to_string(),
            number(simulated.execution.makespan),
            makespan(executed),
            percent(gain),
            percent(executed_gain),
            percent(executed_gain - gain),
        ]
    };
    let rows = evaluation.simulated.iter().zip(&evaluation.executed).map(row);
    let mut lines = vec![String::new(), "execution by emulated tasks".to_owned()];
    lines.extend(aligned(2, header.map(str::to_owned).to_vec(), rows));
    lines.push(overhead(evaluation));
    lines
}

/// Returns the mean makespan, with its range if there are several.
fn makespan(executed: &Executed) -> String {
    let mean = number(executed.mean());
    if executed.records.len() == 1 {
        return mean;
    }
    let (least, greatest) = executed.range();
    format!("{mean} ({} to {})", number(least), number(greatest))
}

/// Returns the line on the time of the manager: the executed makespan beyond the simulated one, for each job in a row.
fn overhead(evaluation: &Evaluation) -> String {
    let (simulated, executed) = (evaluation.baseline(), &evaluation.executed[0]);
    let workers = simulated.execution.busy_seconds.len() as f64;
    let jobs_in_row = simulated.clustering.jobs().len() as f64 / workers;
    let beyond = executed.mean() - simulated.execution.makespan;
    format!("without clustering: {:.1} ms a job beyond the simulation", 1e3 * beyond / jobs_in_row.max(1.0))
}
