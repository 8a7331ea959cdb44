//! Summary of a finished study as lines of text: influential parameters, cost, and the place of the results.
//!
//! Lines have at most 80 columns. Only paths may be longer, since users copy them. The report has the same
//! content in more detail.

mod conclusion;

pub use conclusion::conclusion;

use crate::phases::Phase;
use pleach_planner::memory_size::human;
use pleach_results::analysis::{Analysis, CorrelationTable, IndexTable, ParameterCorrelation};
use pleach_results::record::RunRecord;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::vbd::VbdIndices;
use pleach_sensitivity::warnings::Warning;
use std::path::Path;

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Maximum length of a name that leaves room for its numbers.
const NAME_COLUMNS: usize = 40;

/// Reuse levels in the order of their rows, and whether a level without reuse has a row.
const LEVELS: [(&str, bool); 6] = [
    ("stage", true),
    ("tree", true),
    ("dataflow", false),
    ("value", false),
    ("cache", false),
    ("earlier", false),
];

/// Returns the summary of a study. `budget_bytes` is the memory limit of the regions, if any.
pub fn lines(run: &RunRecord, analyses: &[Analysis], out: &Path, budget_bytes: Option<u64>) -> Vec<String> {
    let lines = analyses.iter().flat_map(ranking).chain(small_samples(analyses));
    let lines = lines.chain(growth(run)).chain(responses(run)).chain(table(run, budget_bytes));
    lines.chain([location(out)]).collect()
}

/// Returns the summary of a study in phases: the results of each phase and the total cost.
pub fn lines_of_phases(
    phases: &[Phase<'_>],
    run: &RunRecord,
    out: &Path,
    budget_bytes: Option<u64>,
) -> Vec<String> {
    let of_phases = phases.iter().enumerate().flat_map(|(number, phase)| of_phase(number + 1, phase));
    of_phases.chain(table(run, budget_bytes)).chain([location(out)]).collect()
}

/// Returns the line with the place of the results.
fn location(out: &Path) -> String {
    format!("results in {}; open {}", out.display(), out.join("report.html").display())
}

fn of_phase(number: usize, phase: &Phase<'_>) -> Vec<String> {
    let (run, method) = (&phase.written.run, phase.prepared.study.method.kind());
    let reused: u64 = run.tasks_reused.values().sum();
    let mut lines = vec![format!(
        "phase {number}: {method}, {}, {} executed, {} reused",
        counted(run.evaluations, "evaluation"),
        counted(run.tasks_executed as usize, "task"),
        grouped(reused)
    )];
    lines.extend(phase.written.analyses.iter().flat_map(ranking));
    lines.extend(small_samples(&phase.written.analyses));
    lines.extend(growth(run));
    lines.extend(responses(run));
    if let Some(screened) = phase.screened {
        let by = format!("{} of {}", screened.rule, shortened(&screened.response, NAME_COLUMNS));
        lines.extend(wrapped(&format!("survivors by {by}: {}", screened.survivors.join(", "))));
        lines.push(String::new());
    }
    lines
}

/// Returns notes on samples that are too small for their method, the one warning that requires action. The
/// report lists the other warnings.
fn small_samples(analyses: &[Analysis]) -> Vec<String> {
    let is_small = |warning: &Warning| matches!(warning, Warning::SmallSample { .. });
    let of = |analysis: &Analysis| analysis.warnings().into_iter().find(is_small);
    let mut notes: Vec<String> =
        analyses.iter().filter_map(of).map(|warning| format!("note: {warning}")).collect();
    notes.dedup();
    notes.iter().flat_map(|note| wrapped(note).into_iter().chain([String::new()])).collect()
}

/// Describes the growth of a sample. Empty for a sample of fixed size.
fn growth(run: &RunRecord) -> Vec<String> {
    let Some(convergence) = &run.convergence else { return Vec::new() };
    let Some(last) = convergence.rounds.last() else { return Vec::new() };
    let widest = last.max_ci_width.map_or_else(|| "not known".to_owned(), number);
    let (verdict, limit) = match convergence.converged {
        true => ("converged", String::new()),
        false => (
            "not converged",
            format!(", at most {} are allowed", grouped(convergence.max_evaluations as u64)),
        ),
    };
    let of = shortened(&convergence.response, NAME_COLUMNS);
    let mut lines = wrapped(&format!(
        "maximum interval width of {of} after {}: {widest}, {verdict} for {}{limit}",
        counted(last.evaluations, "evaluation"),
        number(convergence.ci_width)
    ));
    lines.push(String::new());
    lines
}

/// Describes the default, the best and the worst evaluation of each response, and runs with an empty mask and
/// an empty reference.
fn responses(run: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for of in run.extremes.iter().filter(|of| of.evaluations.len() > 1) {
        let each = of.evaluations.iter().map(|extreme| {
            let value = match (extreme.value, extreme.evaluation) {
                (Some(value), _) => number(value),
                (None, Some(_)) => "failed".to_owned(),
                (None, None) => "not run".to_owned(),
            };
            match extreme.evaluation.filter(|evaluation| *evaluation > 0) {
                Some(evaluation) => format!("{} {value} (evaluation {evaluation})", extreme.role.name()),
                None => format!("{} {value}", extreme.role.name()),
            }
        });
        let each: Vec<String> = each.collect();
        lines.extend(wrapped(&format!("{}: {}", shortened(&of.response, NAME_COLUMNS), each.join(", "))));
    }
    if run.tiles_without_regions > 0 {
        let tiles = run.tiles_without_regions + run.tiles.len();
        let left_out = grouped(run.tiles_without_regions as u64);
        lines.extend(wrapped(&format!(
            "{left_out} of {tiles} tiles left out: no region of interest has a pixel in them"
        )));
    }
    if let Some(weights) = &run.weights {
        let area = if weights.by == "tissue" { "tissue" } else { "annotated area" };
        lines.extend(wrapped(&format!("means over tiles weigh each tile by its {area}")));
    }
    for empty in &run.both_empty {
        lines.extend(wrapped(&format!(
            "{}: mask and reference are both empty in {} of {} runs, on {}; they {}",
            shortened(&empty.response, NAME_COLUMNS),
            grouped(empty.runs as u64),
            grouped(empty.of as u64),
            counted(empty.tiles.len(), "tile"),
            if empty.left_out { "are excluded" } else { "count as 1" },
        )));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Wraps a text between words to the width of a terminal.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the parameters, the most influential first, or the reason for the absence of indices.
pub fn ranking(analysis: &Analysis) -> Vec<String> {
    if let Analysis::None { note, .. } = analysis {
        return vec!["no sensitivity indices:".to_owned(), format!("  {note}"), String::new()];
    }
    if let Analysis::Indices(Indices::Vbd(indices)) = analysis {
        return shares(indices);
    }
    if let Analysis::Correlations(found) = analysis {
        return coefficients(found);
    }
    let Some(indices) = analysis.moat() else { return numbers(analysis) };
    let ranked = crate::verdict::ranked(indices);
    if !ranked.is_empty() && ranked.iter().all(|parameter| parameter.mu_star == 0.0) {
        let response = shortened(&indices.response, NAME_COLUMNS);
        return vec![format!("{response} did not vary: no parameter has an effect"), String::new()];
    }
    let names: Vec<String> =
        ranked.iter().map(|parameter| shortened(&parameter.name, NAME_COLUMNS)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("parameter".len());
    let mut lines = vec![
        format!("parameters by their influence on {}", shortened(&indices.response, NAME_COLUMNS)),
        format!("{:<width$} {:>11} {:>11} {:>11}", "parameter", "mu*", "+-", "effect"),
    ];
    for (name, parameter) in names.iter().zip(ranked) {
        let spread = parameter.mu_star_conf.map_or_else(|| "-".to_owned(), number);
        let (mu_star, effect) = (number(parameter.mu_star), number(parameter.effect));
        lines.push(format!("{name:<width$} {mu_star:>11} {spread:>11} {effect:>11}"));
    }
    lines.push(String::new());
    lines
}

/// Returns the parameters and their correlations, the largest first.
fn coefficients(found: &CorrelationTable) -> Vec<String> {
    let response = shortened(&found.response, NAME_COLUMNS);
    if found.no_variation {
        return vec![format!("{response} did not vary: correlations are not defined"), String::new()];
    }
    let ranked = found.ranked();
    let names: Vec<String> = ranked.iter().map(|p| shortened(&p.name, NAME_COLUMNS - 8)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("parameter".len());
    let [one, two, three, four] = ParameterCorrelation::KINDS;
    let mut lines = vec![
        format!("correlations of {response} with parameters"),
        format!("{:<width$} {one:>10} {two:>10} {three:>10} {four:>10}", "parameter"),
    ];
    for (name, p) in names.iter().zip(ranked) {
        let [one, two, three, four] = p.each().map(|of| of.value.map_or_else(|| "-".to_owned(), number));
        lines.push(format!("{name:<width$} {one:>10} {two:>10} {three:>10} {four:>10}"));
    }
    lines.push(String::new());
    lines
}

/// Returns the parameters and the first 4 columns of their indices, the largest index first.
fn numbers(analysis: &Analysis) -> Vec<String> {
    let response = shortened(analysis.response(), NAME_COLUMNS);
    let Some(listed) = IndexTable::of(analysis) else { return Vec::new() };
    if listed.rows.iter().all(|(_, numbers)| numbers.iter().all(Option::is_none)) {
        return vec![format!("{response} did not vary: indices are not defined"), String::new()];
    }
    let ranked = listed.ranked();
    let names: Vec<String> = ranked.iter().map(|row| shortened(&row.0, NAME_COLUMNS - 8)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("parameter".len());
    let head = |column: &String| if column.ends_with("_conf") { "+-".to_owned() } else { column.clone() };
    let mut lines = vec![format!("parameters by their influence on {response}")];
    let line = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().take(4).map(|cell| format!(" {cell:>10}")).collect();
        format!("{name:<width$}{cells}")
    };
    lines.push(line("parameter", listed.columns.iter().map(head).collect()));
    for (name, (_, numbers)) in names.iter().zip(ranked) {
        let shown = |of: &Option<f64>| of.map_or_else(|| "-".to_owned(), number);
        lines.push(line(name, numbers.iter().map(shown).collect()));
    }
    lines.push(String::new());
    lines
}

/// Returns the parameters of a decomposition by descending total index.
fn shares(indices: &VbdIndices) -> Vec<String> {
    let response = shortened(&indices.response, NAME_COLUMNS);
    if indices.no_variation {
        return vec![format!("{response} did not vary: indices are not defined"), String::new()];
    }
    let ranked = crate::sections::indices::variance::ranked(indices);
    let names: Vec<String> = ranked.iter().map(|p| shortened(&p.name, NAME_COLUMNS - 8)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("parameter".len());
    let mut lines = vec![
        format!("parameters by their share of the variance of {response}"),
        format!("{:<width$} {:>10} {:>10} {:>10} {:>10}", "parameter", "first", "+-", "total", "+-"),
    ];
    let shown = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), number);
    for (name, p) in names.iter().zip(ranked) {
        let [first, conf, total, of_total] =
            [p.first.value, p.first.conf, p.total.value, p.total.conf].map(shown);
        lines.push(format!("{name:<width$} {first:>10} {conf:>10} {total:>10} {of_total:>10}"));
    }
    lines.push(String::new());
    lines
}

/// Returns the table of evaluations, runs, tasks executed and reused, time and memory.
fn table(run: &RunRecord, budget_bytes: Option<u64>) -> Vec<String> {
    let row = |name: &str, number: String, note: String| {
        let row = format!("{name:<22} {number:>14}  {note}");
        row.trim_end().to_owned()
    };
    let reused: u64 = run.tasks_reused.values().sum();
    let tasks = run.tasks_executed + reused + run.tasks_skipped;
    let percent = |part: u64| if tasks == 0 { String::new() } else { share(part, tasks) };
    let tiles = match run.excluded_tiles.len() {
        0 => format!("on {}", counted(run.tiles.len(), "tile")),
        left_out => format!("on {}, {left_out} of them excluded", counted(run.tiles.len(), "tile")),
    };
    let failed = if run.failed > 0 { share(run.failed as u64, run.runs as u64) } else { String::new() };
    let mut rows = vec![
        row("evaluations", grouped(run.evaluations as u64), tiles),
        row("runs", grouped(run.runs as u64), String::new()),
        row("  failed", grouped(run.failed as u64), failed),
        row("tasks", grouped(tasks), String::new()),
        row("  executed", grouped(run.tasks_executed), percent(run.tasks_executed)),
    ];
    for (level, always) in LEVELS {
        let reused = run.tasks_reused.get(level).copied().unwrap_or(0);
        if always || reused > 0 {
            let by = if level == "earlier" { "from" } else { "by" };
            rows.push(row(&format!("  reused {by} {level}"), grouped(reused), percent(reused)));
        }
    }
    if run.tasks_skipped > 0 {
        rows.push(row("  skipped", grouped(run.tasks_skipped), percent(run.tasks_skipped)));
    }
    let per_second = run.tasks_executed as f64 / run.wall_seconds.max(f64::MIN_POSITIVE);
    let speed = format!("{per_second:.1} tasks/s on {}", counted(run.workers as usize, "worker"));
    rows.push(row("wall time", duration(run.wall_seconds), speed));
    let held = run.peak_bytes_admitted;
    let budget = budget_bytes
        .map_or_else(String::new, |budget| format!("{} of {}", share(held, budget), human(budget)));
    rows.push(row("admitted, at most", human(held), budget));
    // 0 means that the operating system does not report it.
    if run.peak_rss_bytes > 0 {
        rows.push(row("resident, at most", human(run.peak_rss_bytes), String::new()));
    }
    rows
}

/// Formats a number of the ranking. Very large and very small numbers use scientific notation to fit the
/// columns.
fn number(number: f64) -> String {
    match number.abs() {
        0.0 => "0.0000".to_owned(),
        1e-4..1e6 => format!("{number:.4}"),
        _ => format!("{number:.3e}"),
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:>5.1} %", part as f64 / whole.max(1) as f64 * 100.0)
}

fn counted(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        ..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", grouped(whole / 3600), whole / 60 % 60),
    }
}

/// Groups digits by 3 with plain spaces, which survive copying from a terminal.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// Cuts a name that is too long in its middle: similar names differ at their ends.
fn shortened(name: &str, columns: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= columns {
        return name.to_owned();
    }
    let kept = columns.saturating_sub(2);
    let (head, tail) = (kept - kept / 2, letters.len() - kept / 2);
    letters[..head].iter().chain(&['.', '.']).chain(&letters[tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, Fixture};

    fn example() -> Fixture {
        fixture::moat(&[("G1", 0.0312, 0.0007), ("G2", 0.27071, 0.0389), ("MorphRecon", 0.0, 0.0)])
    }

    #[test]
    fn the_most_influential_parameter_comes_first() {
        let lines = ranking(&example().analysis);
        let expected = [
            "parameters by their influence on dice",
            "parameter          mu*          +-      effect",
            "G2              0.2707      0.0389      0.2707",
            "G1              0.0312      0.0007      0.0312",
            "MorphRecon      0.0000      0.0000      0.0000",
            "",
        ];
        assert_eq!(lines, expected);
        let mut single = example();
        single.without_spread();
        assert!(ranking(&single.analysis)[2].contains("           -  "), "no spread of one trajectory");
    }

    #[test]
    fn ranking_without_indices_states_the_reason() {
        let note = "no method yet".to_owned();
        let none = Analysis::None { method: "vbd", response: "dice".to_owned(), note };
        assert_eq!(ranking(&none), ["no sensitivity indices:", "  no method yet", ""]);
    }

    #[test]
    fn table_lists_runs_tasks_time_and_memory() {
        let expected = [
            "evaluations                       160  on 2 tiles",
            "runs                              320",
            "  failed                            0",
            "tasks                           2 896",
            "  executed                      1 838   63.5 %",
            "  reused by stage                 318   11.0 %",
            "  reused by tree                  740   25.6 %",
            "wall time                       5.1 s  360.4 tasks/s on 2 workers",
            "admitted, at most             5.77 MB   28.8 % of 20.0 MB",
            "resident, at most             52.3 MB",
        ];
        assert_eq!(table(&example().run, Some(20_000_000)), expected);
        let mut run = example().run;
        (run.failed, run.workers, run.peak_rss_bytes) = (3, 1, 0);
        run.excluded_tiles = vec!["tile-two".to_owned()];
        run.tasks_reused.insert("cache", 2000);
        let lines = table(&run, None);
        assert_eq!(lines[0], "evaluations                       160  on 2 tiles, 1 of them excluded");
        assert_eq!(lines[2], "  failed                            3    0.9 %");
        assert_eq!(lines[7], "  reused by cache               2 000   40.8 %");
        assert!(lines[8].ends_with("on 1 worker"), "{}", lines[8]);
        assert_eq!(lines[9], "admitted, at most             5.77 MB");
        assert_eq!(lines.len(), 10, "nothing about memory that the system does not tell");
    }

    #[test]
    fn lines_fit_80_columns() {
        let long = "a-parameter-of-a-name-that-no-terminal-has-room-for-whatever-it-is";
        let fixture =
            fixture::moat(&[(long, 1e300, 1e-300), ("ä", -1e300, f64::NAN), ("G1", 123_456.0, 9.9e5)]);
        let mut run = fixture.run;
        (run.evaluations, run.runs, run.failed) = (160_000_000, 1_600_000_000, 1_600_000_000);
        (run.tasks_executed, run.wall_seconds, run.workers) = (900_000_000_000, 9e6, 1024);
        (run.peak_bytes_admitted, run.peak_rss_bytes) = (u64::MAX, u64::MAX);
        let lines = ranking(&fixture.analysis).into_iter().chain(table(&run, Some(1)));
        for line in lines {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert_eq!(shortened(long, 20), "a-paramet..ver-it-is");
    }

    #[test]
    fn responses_name_default_best_and_worst() {
        let mut run = example().run;
        let line = "dice: default 1.0000, nearest 0.9120 (evaluation 7), farthest 0.1120 (evaluation";
        assert_eq!(responses(&run), [line, "  70)", ""]);
        run.both_empty = vec![pleach_results::analysis::BothEmptyRuns {
            response: "dice".to_owned(),
            runs: 160,
            of: 320,
            tiles: vec!["tile-two".to_owned()],
            left_out: false,
        }];
        let lines = responses(&run);
        assert_eq!(lines[2], "dice: mask and reference are both empty in 160 of 320 runs, on 1 tile; they");
        assert_eq!(lines[3], "  count as 1");
        (run.extremes, run.both_empty) = (Vec::new(), Vec::new());
        assert!(responses(&run).is_empty());
    }

    #[test]
    fn table_of_an_empty_study_has_no_nan() {
        let mut run = example().run;
        (run.evaluations, run.runs, run.tasks_executed, run.wall_seconds) = (0, 0, 0, 0.0);
        run.tasks_reused.clear();
        assert!(table(&run, Some(0)).iter().all(|line| !line.contains("NaN") && !line.contains("inf")));
    }
}
