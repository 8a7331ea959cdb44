//! Formats plans: one plan stage by stage, several plans as rows of one table.

use pleach_planner::memory_size::human;
use pleach_planner::{PlanRecord, TransferForecast};

/// Returns lines for the plans of one study, all for the same number of workers.
pub(super) fn show(study: &str, plans: &[PlanRecord]) -> Vec<String> {
    match plans {
        [] => Vec::new(),
        [plan] => by_stage(plan),
        plans => side_by_side(study, plans),
    }
}

fn by_stage(plan: &PlanRecord) -> Vec<String> {
    let figures = &plan.summary;
    let mut lines = vec![format!(
        "{}{}: {} evaluations, {} runs; about {} s on {} workers{} (lower bound {} s), {}; planned in {:.0} ms",
        plan.strategy,
        plan.reuse.map(|reuse| format!(", {reuse}")).unwrap_or_default(),
        figures.evaluations,
        figures.runs,
        seconds(figures.predicted_makespan_seconds),
        plan.workers,
        accelerators(figures.accelerators),
        seconds(figures.lower_bound_seconds),
        memory(plan),
        plan.planning_seconds.unwrap_or_default() * 1e3,
    )];
    let header = [
        "stage",
        "replicas",
        "instances",
        "all tasks",
        "tasks",
        "reuse",
        "by cost",
        "buckets",
        "max s",
        "min s",
        "HRV",
    ];
    let rows = figures.per_stage.iter().map(|stage| {
        [
            stage.stage.clone(),
            stage.instances_without_reuse.to_string(),
            stage.instances.to_string(),
            stage.tasks_after_stage_merging.to_string(),
            stage.tasks.to_string(),
            percent(stage.reuse_fraction),
            percent(stage.cost_reuse_fraction),
            stage.buckets.to_string(),
            seconds(stage.max_bucket_cost),
            seconds(stage.min_bucket_cost),
            variance(stage.bucket_cost_hrv),
        ]
    });
    lines.extend(aligned(1, header, rows).into_iter().map(|line| format!("  {line}")));
    let shared: usize = figures.per_stage.iter().map(|stage| stage.transferred).sum();
    if shared > 0 {
        lines.push(format!("  {shared} tasks are executed in one bucket and used by others"));
    }
    lines.extend(transfers(figures.transfers).map(|line| format!("  {line}")));
    if figures.bucket_overhead_seconds > 0.0 {
        let overhead = seconds(figures.bucket_overhead_seconds);
        lines.push(format!(
            "  each bucket has an overhead of {overhead} s in the makespan and its lower bound"
        ));
    }
    if figures.reference_tasks > 0 {
        lines.push(format!("  and {} tasks for the run at default parameters", figures.reference_tasks));
    }
    lines.extend(about_value(&[plan]).map(|line| format!("  {line}")));
    lines
}

/// Returns the text for the accelerators beside the workers.
fn accelerators(accelerators: u32) -> String {
    match accelerators {
        0 => String::new(),
        1 => " and 1 accelerator".to_owned(),
        _ => format!(" and {accelerators} accelerators"),
    }
}

/// Returns a line on the outputs that workers need from each other, if there are any.
fn transfers(forecast: TransferForecast) -> Option<String> {
    let TransferForecast { transfers, bytes, recomputed_tasks, .. } = forecast;
    let moved = format!("workers transfer the outputs of {transfers} tasks ({:.0} MB)", bytes as f64 / 1e6);
    match (transfers, recomputed_tasks) {
        (0, 0) => None,
        (_, 0) => Some(moved),
        (_, again) => Some(format!("{moved}, and execute {again} tasks again, which is faster")),
    }
}

/// Returns the memory that a worker needs if the plan was made for a memory limit. Otherwise returns the predicted peak
/// of the largest buckets.
fn memory(plan: &PlanRecord) -> String {
    match plan.min_bytes {
        Some(bytes) => format!("a worker needs {} MB", bytes.div_ceil(1_000_000)),
        None => format!("{:.0} MB", plan.summary.predicted_peak_bytes as f64 / 1e6),
    }
}

/// Returns a line for each plan that needs more memory than a worker has.
pub(super) fn beyond(plans: &[PlanRecord], memory_bytes: u64) -> Vec<String> {
    let too_large = |plan: &&PlanRecord| plan.min_bytes.is_some_and(|bytes| bytes > memory_bytes);
    let line = |plan: &PlanRecord| {
        let reuse = plan.reuse.map(|reuse| format!(", {reuse}")).unwrap_or_default();
        let megabytes = plan.min_bytes.unwrap_or_default().div_ceil(1_000_000);
        format!(
            "{}{reuse}: needs {megabytes} MB at once, more than --memory {}; run and managers use --reuse tree if that \
             fits",
            plan.strategy,
            human(memory_bytes)
        )
    };
    plans.iter().filter(too_large).map(line).collect()
}

fn side_by_side(study: &str, plans: &[PlanRecord]) -> Vec<String> {
    let Some(first) = plans.first() else { return Vec::new() };
    let figures = &first.summary;
    let mut lines = vec![
        format!(
            "{study}: {} evaluations, {} runs, on {} workers{}",
            figures.evaluations,
            figures.runs,
            first.workers,
            accelerators(figures.accelerators)
        ),
        format!(
            "columns buckets to HRV: stage {}; makespan, bound, MB and ms of planning: whole study",
            figures.per_stage[figures.headline].stage
        ),
    ];
    let header = [
        "strategy",
        "reuse",
        "buckets",
        "tasks",
        "reused",
        "by cost",
        "max s",
        "min s",
        "HRV",
        "makespan s",
        "bound s",
        "MB",
        "ms",
    ];
    let rows = plans.iter().map(|plan| {
        let figures = &plan.summary;
        let stage = &figures.per_stage[figures.headline];
        [
            plan.strategy.to_owned(),
            plan.reuse.unwrap_or_default().to_owned(),
            stage.buckets.to_string(),
            stage.tasks.to_string(),
            percent(stage.reuse_fraction),
            percent(stage.cost_reuse_fraction),
            seconds(stage.max_bucket_cost),
            seconds(stage.min_bucket_cost),
            variance(stage.bucket_cost_hrv),
            seconds(figures.predicted_makespan_seconds),
            seconds(figures.lower_bound_seconds),
            match plan.min_bytes {
                Some(bytes) => bytes.div_ceil(1_000_000).to_string(),
                None => format!("{:.0}", figures.predicted_peak_bytes as f64 / 1e6),
            },
            format!("{:.0}", plan.planning_seconds.unwrap_or_default() * 1e3),
        ]
    });
    lines.extend(aligned(2, header, rows));
    lines.extend(about_value(&plans.iter().collect::<Vec<_>>()));
    lines
}

/// Returns a note if a plan uses value reuse, whose savings cannot be predicted.
fn about_value(plans: &[&PlanRecord]) -> Option<String> {
    plans
        .iter()
        .any(|plan| plan.reuse == Some("value"))
        .then(|| "value counts as dataflow: equal results are known only after execution".to_owned())
}

/// Aligns cells in columns: the first `names` columns left, all others right.
pub(super) fn aligned<const N: usize>(
    names: usize,
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Vec<String> {
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(line).collect()
}

/// Formats seconds with at least two significant digits.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        1000.0.. => format!("{seconds:.0}"),
        100.0.. => format!("{seconds:.1}"),
        1.0.. => format!("{seconds:.2}"),
        0.01.. => format!("{seconds:.3}"),
        0.0 => "0".to_owned(),
        _ => format!("{seconds:.1e}"),
    }
}

/// Formats a horizontal runtime variance, a ratio.
fn variance(ratio: f64) -> String {
    format!("{ratio:.3}")
}

/// Formats a reuse fraction as a percentage. A negative fraction becomes `-`: without merging, stages execute more
/// often than merging would leave, which is no reuse.
pub(super) fn percent(fraction: f64) -> String {
    if fraction < 0.0 { "-".to_owned() } else { format!("{:.2}%", fraction * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [["a".to_owned(), "12345".to_owned()], ["long".to_owned(), "1".to_owned()]];
        assert_eq!(aligned(1, ["x", "n"], rows.into_iter()), ["x        n", "a    12345", "long     1"]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.000_486, 0.01234, 1.0, 99.5, 123.45, 54321.0].map(seconds),
            ["0", "4.9e-4", "0.012", "1.00", "99.50", "123.5", "54321"]
        );
        assert_eq!([0.0, 0.33166, 1.2].map(variance), ["0.000", "0.332", "1.200"]);
        assert_eq!([-0.5, 0.0, 0.32966].map(percent), ["-", "0.00%", "32.97%"]);
    }
}
