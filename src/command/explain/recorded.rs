//! Shows records as text.

use crate::terminal::{print_line, print_notice};
use pleach_results::provenance::{ExplainedRun, Explanation, RecordedTask, RepeatedExecution};

/// Prints an answer: its runs, or its totals. Notes on missing records go to stderr.
pub(super) fn show(answer: &Explanation) {
    answer.notes.iter().for_each(|note| print_notice(note));
    answer.runs.iter().for_each(show_run);
    if answer.runs.is_empty() {
        show_totals(answer);
    }
}

fn show_run(run: &ExplainedRun) {
    let phase = run.phase.as_ref().map_or_else(String::new, |phase| format!(" of {phase}"));
    print_line(&format!("evaluation {}{phase} on {}", run.evaluation, run.tile));
    for task in &run.tasks {
        print_line(&format!(
            "  {:<14} {:<10} {:<22} {}",
            task.stage,
            task.task,
            task.operation,
            origin(task)
        ));
        for repeated in &task.repeated {
            print_line(&format!("  {:<14} {:<10} {:<22} {}", "", "", "", repetition(repeated)));
        }
    }
}

/// Returns a text for the origin of a task's result.
fn origin(task: &RecordedTask) -> String {
    let evaluation = match task.evaluation {
        Some(0) => "the reference".to_owned(),
        Some(evaluation) => format!("evaluation {evaluation}"),
        None => "another bucket".to_owned(),
    };
    let worker = task.worker.as_deref().unwrap_or("an unknown worker");
    let executed = match task.seconds {
        Some(seconds) if task.device.is_some() => {
            format!("executed on {worker} in {} (accelerator)", duration(seconds))
        }
        Some(seconds) => format!("executed on {worker} in {}", duration(seconds)),
        None => format!("found by {worker}"),
    };
    let origin = match task.source.as_str() {
        "run" => executed,
        "stage" => format!("shared with {evaluation} (same stage instance): {executed}"),
        "bucket" => format!("shared with {evaluation} (same bucket): {executed}"),
        level @ ("dataflow" | "value") => format!("reused from {evaluation} ({level}, memory of {worker})"),
        "peer" => {
            let holder = task.holder.as_deref().unwrap_or("a worker that has left");
            format!("reused from {holder} by {worker} (result directory)")
        }
        "cache" => "reused from an earlier study (task cache)".to_owned(),
        "earlier" => format!("reused from an earlier phase or round (memory of {worker})"),
        "skipped" => "skipped: its loop had ended, or it is of the other branch of a choice".to_owned(),
        "not_run" => "not run: an earlier task failed".to_owned(),
        _ => "no record".to_owned(),
    };
    if task.failed { format!("{origin}; failed") } else { origin }
}

fn duration(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.3} ms", seconds * 1e3) } else { format!("{seconds:.3} s") }
}

fn repetition(repeated: &RepeatedExecution) -> String {
    let RepeatedExecution { worker, cause, seconds, .. } = repeated;
    match seconds {
        Some(seconds) => format!("before: executed on {worker} in {} ({cause})", duration(*seconds)),
        None => format!("before: leased to {worker} ({cause})"),
    }
}

fn show_totals(answer: &Explanation) {
    let counts = |counts: &mut dyn Iterator<Item = (&String, &u64)>| {
        let counts: Vec<String> = counts
            .filter(|(_, number)| **number > 0)
            .map(|(level, number)| format!("{level} {number}"))
            .collect();
        if counts.is_empty() { "-".to_owned() } else { counts.join(", ") }
    };
    print_line(&format!(
        "{:<14} {:<14} {:<10} {:>9} {:>10}  reused",
        "", "stage", "task", "executed", "seconds"
    ));
    for task in &answer.tasks {
        let phase = task.phase.as_deref().unwrap_or_default();
        let (executed, seconds, reused) = (task.executed, task.seconds, counts(&mut task.reused.iter()));
        print_line(&format!(
            "{phase:<14} {:<14} {:<10} {executed:>9} {seconds:>10.3}  {reused}",
            task.stage, task.task
        ));
    }
    print_line("");
    for worker in &answer.workers {
        print_line(&format!(
            "{}: {} tasks executed in {:.3} s, {} reused",
            worker.worker, worker.executed, worker.seconds, worker.reused
        ));
    }
    let reused = answer.tasks_reused.iter().flatten();
    print_line(&format!(
        "{} tasks executed; reused besides the plan: {}; {} instances lost with workers, {} repeated for lost outputs",
        answer.tasks_executed.unwrap_or_default(),
        counts(&mut reused.into_iter()),
        answer.instances_lost.unwrap_or_default(),
        answer.instances_reopened.unwrap_or_default(),
    ));
}
