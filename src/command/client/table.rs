//! Tables of studies and workers as text.

use super::progress_bars::{percent, time_left};
use indicatif::HumanDuration;
use pleach_api::schema::{CostEstimate, ScalingStatus, StudyStatus, WorkerStatus};
use pleach_client::plain;
use pleach_planner::memory_size::human;
use std::time::Duration;

/// Returns a table with one line for each worker.
pub(in crate::command) fn workers(workers: &[WorkerStatus]) -> String {
    let header = ["WORKER", "STATE", "CORES", "RUNNING", "USED", "MEMORY", "ADDRESS", "REMARKS"];
    lines(
        header,
        workers.iter().map(|worker| {
            let missing = worker
                .missing_operations
                .iter()
                .map(|operation| plain(operation))
                .collect::<Vec<_>>()
                .join(", ");
            let mut remarks = Vec::new();
            if !missing.is_empty() {
                remarks.push(format!("missing operations: {missing}"));
            }
            match (worker.accelerators, worker.closed_accelerators) {
                (0, _) => {}
                (all, 0) => remarks.push(format!("accelerators: {all}")),
                (all, closed) => remarks.push(format!("accelerators: {all}, {closed} closed")),
            }
            if let Some(until) = worker.time_limit {
                remarks.push(format!(
                    "until {:02}:{:02} UTC",
                    until.to_utc().hour(),
                    until.to_utc().minute()
                ));
            }
            remarks.extend(worker.remarks.iter().map(|remark| plain(remark)));
            [
                plain(&worker.name),
                worker.state.to_string(),
                worker.cores.to_string(),
                worker.running.to_string(),
                human(worker.bytes),
                human(worker.memory_bytes),
                plain(&worker.address),
                remarks.join("; "),
            ]
        }),
    )
}

/// Returns lines about the desired workers and about the cost of the deadline and the budget. Empty if the manager has
/// no pools.
pub(in crate::command) fn scaling(scaling: &ScalingStatus) -> Vec<String> {
    let (Some(wanted), Some(reason)) = (scaling.workers_desired, &scaling.reason) else { return Vec::new() };
    let pools: Vec<String> = scaling
        .pools
        .iter()
        .map(|pool| format!("{} {} of {}", plain(&pool.name), pool.running, pool.desired))
        .collect();
    let mut text = format!("workers desired: {wanted} ({}): {}", plain(reason), pools.join(", "));
    let now = CostEstimate { seconds: scaling.predicted_remaining_seconds, cost: scaling.predicted_cost };
    if now.seconds.is_some() {
        text.push_str(&format!("; {} left", price(now)));
    }
    let mut lines = vec![text];
    if let Some(fastest) = scaling.fastest {
        lines.push(format!("a deadline cannot be met; the fastest plan takes {}", price(fastest)));
    }
    if let Some(beyond) = scaling.without_budget {
        lines.push(format!("the budget is too low for the deadlines, which need {}", price(beyond)));
    }
    for pool in &scaling.pools {
        let Some(own) = &pool.provisioned else { continue };
        let mut line = format!(
            "pool {}: {} workers started, {} starting, {} leaving",
            plain(&pool.name),
            own.joined,
            own.starting,
            own.leaving
        );
        if own.failed_starts > 0 {
            line.push_str(&format!(", {} failed starts", own.failed_starts));
        }
        if !own.has_capacity {
            line.push_str("; no capacity");
        }
        if let Some(remark) = &own.remark {
            line.push_str(&format!("; {}", plain(remark)));
        }
        lines.push(line);
    }
    if !scaling.drain_order.is_empty() {
        let names: Vec<String> = scaling.drain_order.iter().map(|name| plain(name)).collect();
        lines.push(format!("surplus workers, to be drained: {}", names.join(", ")));
    }
    lines
}

fn price(price: CostEstimate) -> String {
    let seconds = price.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.map_or_else(|| "an unlimited time".to_owned(), |time| HumanDuration(time).to_string());
    price.cost.map_or(time.clone(), |cost| format!("{time} for {cost:.2}"))
}

/// Returns a line with the predicted and the paid cost of a study. `None` without workers of pools.
pub(in crate::command) fn cost(study: &StudyStatus) -> Option<String> {
    let cost = study.cost.as_ref().filter(|cost| !cost.pools.is_empty())?;
    let (id, ended) = (plain(&study.id), study.state.is_over());
    let paid = price(CostEstimate { seconds: Some(cost.seconds), cost: Some(cost.cost) });
    let mut line = format!("study {id} {}: {paid}", if ended { "took" } else { "so far" });
    if cost.predicted_seconds.is_some() {
        let predicted = CostEstimate { seconds: cost.predicted_seconds, cost: cost.predicted_cost };
        line.push_str(&format!(" (predicted: {})", price(predicted)));
    }
    let workers =
        [(cost.workers_started, "started"), (cost.workers_lost, "lost"), (cost.workers_replaced, "replaced")];
    let workers = workers.iter().filter(|(count, _)| *count > 0);
    let workers: Vec<String> = workers.map(|(count, what)| format!("{count} {what}")).collect();
    if !workers.is_empty() {
        line.push_str(&format!("; workers: {}", workers.join(", ")));
    }
    if ended && !cost.is_final {
        line.push_str("; its workers have not ended yet");
    }
    Some(line)
}

/// Returns a table with one line for each study.
pub(in crate::command) fn studies(studies: &[StudyStatus]) -> String {
    let header = [
        "STUDY",
        "NAME",
        "STATE",
        "DONE",
        "EVALUATIONS",
        "TASKS RUN",
        "LEFT",
        "TIME LEFT",
        "FAILED",
        "REMARKS",
    ];
    lines(
        header,
        studies.iter().map(|study| {
            [
                plain(&study.id),
                plain(&study.name),
                study.state.to_string(),
                percent(study).unwrap_or_default(),
                format!("{}/{}", study.evaluations_done, study.evaluations),
                study.tasks_executed.to_string(),
                study.remaining_tasks.to_string(),
                time_left(study).unwrap_or_default(),
                study.failed.to_string(),
                remarks(study),
            ]
        }),
    )
}

fn remarks(study: &StudyStatus) -> String {
    let first = study.message.as_deref().map(plain).or_else(|| study.phase_of());
    first.into_iter().chain(study.remarks.iter().map(|remark| plain(remark))).collect::<Vec<_>>().join("; ")
}

/// Formats rows as columns of the width of their longest text, separated by two spaces, without trailing spaces.
pub(in crate::command) fn lines<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need() {
        let rows = [["a", "long text", ""], ["ä and b", "", "x"]].map(|row| row.map(str::to_owned));
        let table = lines(["A", "B", "C"], rows.into_iter());
        assert_eq!(table, "A        B          C\na        long text\nä and b             x");
    }
}
