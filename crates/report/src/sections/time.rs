//! Section on the time of each operation.

use crate::Report;
use crate::charts::svg::Drawing;
use crate::page::format_number::{Rounding, count, counted, duration, percent};
use crate::page::html::{Html, Table, html, p};
use pleach_dispatch::cost_model::LEAST_OVERHEAD_SECONDS;
use pleach_results::record::CostRecord;
use pleach_workflow::{Workflow, plain_name};

/// Returns the section.
pub(crate) fn section(report: &Report<'_>) -> Html {
    let run = report.run;
    let total: f64 = run.operations.iter().map(|operation| operation.seconds).sum();
    let mut operations: Vec<_> = run.operations.iter().collect();
    operations.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let longest = operations.first().map_or(0.0, |operation| operation.seconds);
    let mean_ms = |seconds: f64, runs: u64| if runs == 0 { 0.0 } else { seconds * 1e3 / runs as f64 };
    let slowest = operations.iter().map(|o| mean_ms(o.seconds, o.runs)).fold(0.0, f64::max);
    let (seconds, milliseconds) = (Rounding::of(longest), Rounding::of(slowest));

    let header = ["operation", "what it does", "runs", "total,\u{a0}s", "mean,\u{a0}ms", "share", ""];
    let caption = "Time per operation, longest first; mean: per run";
    let mut table = Table::new("numbers times", caption, header);
    for operation in operations {
        let share = if total > 0.0 { operation.seconds / total } else { 0.0 };
        table.row([
            Html::from(&operation.name),
            Html::of_class("span", "what", purpose(&report.study.workflow, &operation.name)),
            count(operation.runs).into(),
            seconds.show(operation.seconds).into(),
            milliseconds.show(mean_ms(operation.seconds, operation.runs)).into(),
            percent(share).into(),
            bar(if longest > 0.0 { operation.seconds / longest } else { 0.0 }),
        ]);
    }
    let text = format!(
        "Operations took {} in total, on {}; the study took {} from the start of the command to the indices.",
        duration(total),
        counted(run.workers as usize, "worker", "workers"),
        duration(run.wall_seconds),
    );
    html![p(text + &overhead(run.bucket_overhead_seconds) + &cost(run.cost.as_ref())), table.finish()]
}

/// Returns a sentence on the measured overhead of a bucket. Empty if it is unknown or too short to matter.
fn overhead(seconds: Option<f64>) -> String {
    let shown = seconds.filter(|seconds| *seconds >= LEAST_OVERHEAD_SECONDS);
    shown.map_or_else(String::new, |seconds| {
        format!(" Before its first task, a bucket took {} on its slot.", duration(seconds))
    })
}

/// Returns a sentence on the cost of the workers. Empty for local runs, and without workers of pools.
fn cost(cost: Option<&CostRecord>) -> String {
    let Some(cost) = cost.filter(|cost| cost.paid_seconds > 0.0) else { return String::new() };
    let predicted =
        cost.predicted_cost.map_or_else(String::new, |predicted| format!(", {predicted:.2} predicted"));
    format!(
        " Workers of pools were paid for {}, {} of it to start: {:.2} with egress{predicted}.",
        duration(cost.paid_seconds),
        duration(cost.starting_seconds),
        cost.cost,
    )
}

/// Returns the names and descriptions of the tasks that run an operation.
fn purpose(workflow: &Workflow, operation: &str) -> String {
    let tasks = workflow
        .stages
        .iter()
        .flat_map(|stage| &stage.tasks)
        .filter(|task| plain_name(&task.operation) == operation);
    tasks.map(|task| format!("{}: {}", task.name, task.description)).collect::<Vec<_>>().join("; ")
}

fn bar(share: f64) -> Html {
    const WIDTH_PX: f64 = 120.0;
    let mut drawing = Drawing::new(WIDTH_PX, 12.0, "");
    drawing.rect("left", [0.0, 0.5, share * WIDTH_PX, 11.0]);
    drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overheads_that_change_plans_are_named() {
        assert_eq!(overhead(Some(12.0)), " Before its first task, a bucket took 12.0 s on its slot.");
        assert_eq!((overhead(Some(0.05)), overhead(None)), (String::new(), String::new()));
    }
}
