//! Tables of `pleach cluster`: imbalance of levels, makespan and gain of each clustering, gains of several workflows.

mod execution;

use super::candidates::{Candidate, Limits, SeedMean, Settings, Simulated, vertical_name};
use super::evaluation::{Evaluation, Rule, regret_of_rule};
use super::portfolio::LevelPortfolio;
use crate::cli::MethodArg;
use pleach_clustering::LevelMetrics;
use pleach_clustering::simulate::{Delay, Gain};
use pleach_planner::memory_size::human;
use pleach_workflow::text::quoted;

/// Maximum number of characters of a workflow's name: several are headers of columns.
const MAX_NAME: usize = 40;

/// Returns the lines of all workflows.
pub(super) fn show(evaluations: &[Evaluation], settings: &Settings, method: MethodArg) -> Vec<String> {
    let mut lines = vec![platform(settings)];
    for evaluation in evaluations {
        lines.push(String::new());
        lines.push(heading(evaluation));
        lines.push(String::new());
        lines.extend(levels(evaluation));
        lines.push(String::new());
        lines.extend(clusterings(evaluation));
        lines.extend(evaluation.simulated.iter().filter_map(limits));
        lines.extend(evaluation.simulated.iter().filter_map(|simulated| seeds(evaluation, simulated)));
        lines.extend(execution::lines(evaluation));
        if method == MethodArg::Best {
            lines.push(String::new());
            lines.extend(choice(evaluation));
        }
        for more in [
            evaluation.sensitivity.as_ref().map(|sensitivity| sensitivity.lines(method)),
            evaluation.portfolio.as_ref().map(LevelPortfolio::lines),
        ] {
            lines.extend(more.into_iter().flat_map(|more| std::iter::once(String::new()).chain(more)));
        }
    }
    if method == MethodArg::Best && evaluations.len() > 1 {
        lines.push(String::new());
        lines.extend(regrets(evaluations));
    }
    if method == MethodArg::All && evaluations.len() > 1 {
        lines.push(String::new());
        lines.extend(gains(evaluations));
    }
    lines
}

/// Returns the line on workers, bandwidth and delays.
pub(super) fn platform(settings: &Settings) -> String {
    let platform = settings.platform;
    let overheads = platform.overheads();
    let delays = [
        ("engine", overheads.engine),
        ("queue", overheads.queue),
        ("clustering", overheads.clustering),
        ("post", overheads.post),
    ];
    let delay = |(name, delay): &(&str, Delay)| match delay {
        Delay::Fixed(seconds) => format!("{name} {seconds} s"),
        Delay::Weibull { shape, .. } => {
            format!("{name} {:.3} s on average (Weibull, shape {shape})", delay.mean())
        }
    };
    let some = delays.iter().filter(|(_, delay)| delay.mean() > 0.0).map(delay);
    let delays: Vec<String> = some.collect();
    let delays = if delays.is_empty() { "none".to_owned() } else { delays.join(", ") };
    let workers = counted(platform.workers().get(), "worker", "workers");
    format!("{workers}, {}/s; delays: {delays}", human(platform.bytes_per_second() as u64))
}

fn heading(evaluation: &Evaluation) -> String {
    let workflow = &evaluation.workflow;
    format!(
        "{}: {} on {}, {}, {} s of run time",
        name(evaluation),
        counted(workflow.tasks().len(), "task", "tasks"),
        counted(workflow.levels().len(), "level", "levels"),
        counted(workflow.edges().count(), "dependency", "dependencies"),
        number(workflow.total_seconds())
    )
}

/// Returns the name of a workflow for the terminal: without control characters, and not too long.
fn name(evaluation: &Evaluation) -> String {
    quoted(evaluation.workflow.name(), MAX_NAME)
}

/// Returns a count with its noun.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns the table of levels: those of the tasks beside those of the jobs of the shown clustering.
fn levels(evaluation: &Evaluation) -> Vec<String> {
    let (before, after) = (&evaluation.imbalance.before, &evaluation.imbalance.after);
    let header = ["level", "tasks", "HRV", "HIFV", "HDV", "PRV", "jobs", "HRV", "HIFV", "HDV", "PRV"]
        .map(str::to_owned);
    let row = |level: usize| {
        let cells = std::iter::once((level + 1).to_string());
        cells.chain(of_level(before.get(level))).chain(of_level(after.get(level))).collect::<Vec<String>>()
    };
    let rows = (0..before.len().max(after.len())).map(row);
    let title =
        format!("imbalance of levels: tasks, and jobs of {}", evaluation.shown().candidate.in_words());
    let mut lines = vec![title];
    lines.extend(aligned(1, header.to_vec(), rows));
    lines
}

/// Returns the cells of a level. Vertical clustering leaves fewer levels of jobs.
fn of_level(level: Option<&LevelMetrics>) -> [String; 5] {
    let Some(level) = level else { return ["-"; 5].map(str::to_owned) };
    let metrics = level.variance;
    [
        level.tasks.to_string(),
        number(metrics.hrv),
        number(metrics.hifv),
        number(metrics.hdv),
        number(metrics.prv),
    ]
}

/// Returns the table of clusterings.
fn clusterings(evaluation: &Evaluation) -> Vec<String> {
    let header = ["method", "vertical", "jobs", "makespan s", "gain", "ratio", "moved"].map(str::to_owned);
    let row = |simulated: &Simulated| {
        let gain = simulated.gain(evaluation.baseline());
        vec![
            simulated.candidate.method.name().to_owned(),
            vertical_name(simulated.candidate.vertical).to_owned(),
            simulated.clustering.jobs().len().to_string(),
            number(simulated.execution.makespan),
            percent(gain.gain()),
            format!("{:.3}", gain.ratio()),
            human(simulated.execution.moved_bytes),
        ]
    };
    aligned(2, header.to_vec(), evaluation.simulated.iter().map(row))
}

/// Returns the line on the limits of a clustering, if it has some.
fn limits(simulated: &Simulated) -> Option<String> {
    let Limits { max_seconds, max_bytes, simulations, clusterings } = simulated.limits?;
    let bytes = max_bytes.map(|bytes| format!(" and {}", human(bytes))).unwrap_or_default();
    let origin = match simulations {
        0 => String::new(),
        _ => {
            let clusterings = counted(clusterings, "clustering", "clusterings");
            format!(", tuned by {} of {clusterings}", counted(simulations, "simulation", "simulations"))
        }
    };
    Some(format!(
        "{}: at most {} s{bytes} a job{origin}",
        simulated.candidate.in_words(),
        number(max_seconds)
    ))
}

/// Returns the line on the mean over several seeds.
fn seeds(evaluation: &Evaluation, simulated: &Simulated) -> Option<String> {
    let SeedMean { count, makespan, half_width } = simulated.seeds?;
    let baseline = evaluation.baseline().execution.makespan;
    Some(format!(
        "{}: gain {} ± {} on average of {count} seeds",
        simulated.candidate.in_words(),
        percent(Gain { makespan, baseline }.gain()),
        percent(half_width / baseline.max(f64::MIN_POSITIVE))
    ))
}

/// Returns the lines on the choice by simulation and by rule.
fn choice(evaluation: &Evaluation) -> Vec<String> {
    let shown = evaluation.shown();
    let makespan = |simulated: &&Simulated| simulated.execution.makespan;
    let others =
        evaluation.simulated.iter().enumerate().filter(|(position, _)| *position != evaluation.shown);
    let next =
        others.map(|(_, simulated)| simulated).min_by(|one, other| makespan(one).total_cmp(&makespan(other)));
    let next = next.map_or_else(String::new, |next| {
        format!("; next {}: {} s", next.candidate.in_words(), number(next.execution.makespan))
    });
    let mut lines = vec![format!(
        "by simulation: {}, gain {}: least makespan of {}, {} s{next}",
        shown.candidate.in_words(),
        percent(evaluation.gain(shown)),
        counted(evaluation.simulated.len(), "clustering", "clusterings"),
        number(shown.execution.makespan)
    )];
    lines.extend(evaluation.rule.as_ref().map(|rule| by_rule(evaluation, rule)));
    lines
}

fn by_rule(evaluation: &Evaluation, rule: &Rule) -> String {
    let chosen = &evaluation.simulated[rule.position];
    format!(
        "by rule: {}, gain {}, regret {}: {}",
        chosen.candidate.in_words(),
        percent(evaluation.gain(chosen)),
        percent(evaluation.regret(rule)),
        rule.reason
    )
}

/// Returns the table of the choices by rule: a row for each workflow.
fn regrets(evaluations: &[Evaluation]) -> Vec<String> {
    let header = ["workflow", "gain", "regret of the rule", "by simulation", "by rule"].map(str::to_owned);
    let row = |evaluation: &Evaluation| {
        let shown = evaluation.shown();
        let rule = evaluation.rule.as_ref();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            name(evaluation),
            percent(evaluation.gain(shown)),
            or_none(rule.map(|rule| percent(evaluation.regret(rule)))),
            shown.candidate.in_words(),
            or_none(rule.map(|rule| evaluation.simulated[rule.position].candidate.in_words())),
        ]
    };
    let mut lines = aligned(1, header.to_vec(), evaluations.iter().map(row));
    lines.extend(regret_of_rule(evaluations).map(|(mean, max)| {
        format!("regret of the rule: {} on average, at most {}", percent(mean), percent(max))
    }));
    lines
}

/// Returns the table of gains: a row for each candidate, a column for each workflow.
fn gains(evaluations: &[Evaluation]) -> Vec<String> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for simulated in evaluations.iter().flat_map(|evaluation| &evaluation.simulated) {
        if !candidates.contains(&simulated.candidate) {
            candidates.push(simulated.candidate);
        }
    }
    let names = evaluations.iter().map(name);
    let header: Vec<String> = ["method", "vertical"].map(str::to_owned).into_iter().chain(names).collect();
    let row = |candidate: &Candidate| {
        let gain = |evaluation: &Evaluation| {
            let found = evaluation.simulated.iter().find(|simulated| simulated.candidate == *candidate);
            // A vertical mode without effect is left out of a workflow.
            found.map_or_else(|| "-".to_owned(), |simulated| percent(evaluation.gain(simulated)))
        };
        let names = [candidate.method.name(), vertical_name(candidate.vertical)].map(str::to_owned);
        names.into_iter().chain(evaluations.iter().map(gain)).collect::<Vec<String>>()
    };
    let mut lines = vec!["gain by workflow; -: the same jobs as with fewer steps".to_owned()];
    lines.extend(aligned(2, header, candidates.iter().map(row)));
    lines
}

/// Aligns cells in columns: the first `names` columns left, all others right.
pub(super) fn aligned(
    names: usize,
    header: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Vec<String> {
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

/// Formats a number with two significant digits or more.
pub(super) fn number(number: f64) -> String {
    match number.abs() {
        1000.0.. => format!("{number:.0}"),
        100.0.. => format!("{number:.1}"),
        10.0.. => format!("{number:.2}"),
        0.001.. => format!("{number:.3}"),
        // Rounding of sums leaves less than this of equal numbers.
        1e-9.. => format!("{number:.1e}"),
        _ => "0".to_owned(),
    }
}

/// Formats a fraction as a percentage.
pub(super) fn percent(fraction: f64) -> String {
    // Adding 0 turns −0 into 0.
    format!("{:.1} %", (fraction * 1000.0).round() / 10.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let rows = [cells(["a", "12345"]), cells(["long", "1"])];
        assert_eq!(
            aligned(1, cells(["x", "n"]), rows.into_iter()),
            ["x         n", "a     12345", "long      1"]
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 1e-17, 0.000_486, 0.0123, 1.0328, 99.5, 123.45, 53198.8].map(number),
            ["0", "0", "4.9e-4", "0.012", "1.033", "99.50", "123.5", "53199"]
        );
        assert_eq!([-0.00001, 0.466, -0.238].map(percent), ["0.0 %", "46.6 %", "-23.8 %"]);
    }
}
