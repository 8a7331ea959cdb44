//! Formats `pleach plan --granularity`: tasks and stages that would take less time as one.

use super::table::{aligned, percent, seconds};
use crate::exit::CommandError;
use pleach_planner::{Grains, GranularityRecord, PlanningInput, granularity};

/// Finds the granularity of a study, with an overhead of a task in microseconds.
pub(super) fn find(
    input: PlanningInput<'_>,
    overhead_microseconds: f64,
) -> Result<GranularityRecord, CommandError> {
    granularity(input, overhead_microseconds * 1e-6).map_err(CommandError::input)
}

/// Formats it as lines.
pub(super) fn show(record: &GranularityRecord) -> Vec<String> {
    let overhead = |seconds: f64| format!("{} µs", (seconds * 1e9).round() / 1e3);
    let mut lines = vec![format!(
        "granularity: a task has an overhead of {}, a stage instance of {}",
        overhead(record.task_overhead_seconds),
        overhead(record.stage_overhead_seconds)
    )];
    for stage in &record.stages {
        lines.extend(of_steps(&format!("tasks of {}", stage.name), stage));
    }
    lines.extend(of_steps("stages", &record.workflow));
    lines
}

fn of_steps(title: &str, grains: &Grains) -> Vec<String> {
    let fused: Vec<String> =
        grains.groups.iter().filter(|group| group.len() > 1).map(|group| group.join(" + ")).collect();
    let outcome = if fused.is_empty() {
        format!("  {title}: {} s; separate steps take the least time", seconds(grains.separate_seconds))
    } else {
        let (before, after) = (seconds(grains.separate_seconds), seconds(grains.seconds));
        let saved = percent(grains.saved_fraction());
        format!("  {title}: {before} s; {after} s ({saved} less) with {} as one", fused.join(", "))
    };
    let rows = grains
        .steps
        .iter()
        .map(|step| [step.name.clone(), step.instances.to_string(), seconds(step.seconds)]);
    let table = aligned(1, ["", "instances", "s"], rows);
    std::iter::once(outcome).chain(table.into_iter().map(|line| format!("    {line}"))).collect()
}
