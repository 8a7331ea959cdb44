//! Answers questions about a result folder from its records.

use super::NAME;
use super::answer::{ExplainedRun, Explanation, RecordedTask, RepeatedExecution};
use super::events::{Outcome, TaskEvent};
use super::plan_table::KnownSource;
use super::records::{Execution, Records, UnreadableRecords};
use super::run_trace::{AttemptEnd, InstanceTrace, TracedTask, trace};
use super::summary::{self, level_name};
use pleach_dispatch::SlotKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Runs to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSelection {
    /// The evaluation. Without it, the answer has the totals of all runs.
    pub evaluation: Option<usize>,
    /// Name of the only tile.
    pub tile: Option<String>,
    /// Number of the only phase, from 1.
    pub phase: Option<usize>,
}

/// A question cannot be answered from records.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The folder has no records.
    #[error(
        "{}: has no {NAME}, which pleach run and pleach results write; run the study again, or predict with pleach explain \
         STUDY.toml",
        folder.display()
    )]
    NoRecords {
        /// The folder.
        folder: PathBuf,
    },
    /// Records cannot be read.
    #[error("{0}")]
    Unreadable(#[from] UnreadableRecords),
    /// The study has no such evaluation, tile or phase.
    #[error("{field} {value}: {allowed} is allowed in this study")]
    Selection {
        /// `evaluation`, `tile` or `phase`.
        field: &'static str,
        /// The wrong value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
}

/// Trace of an instance without records.
static NO_TRACE: InstanceTrace = InstanceTrace::EMPTY;

/// Explains runs of a result folder, or all its tasks in totals.
///
/// # Errors
/// [`ExplainError`] if the folder has no records, if they cannot be read, or if the study has no such run.
pub fn explain_folder(folder: &Path, selection: &RunSelection) -> Result<Explanation, ExplainError> {
    let files = files(folder, selection.phase)?;
    let mut answer = Explanation { is_complete: true, ..Explanation::default() };
    let mut all = Vec::with_capacity(files.len());
    for (phase, file) in files {
        let records = Records::read(&file)?;
        answer.notes.extend(records.notes.iter().cloned());
        if let Some(plan) = records.last_plan() {
            answer.study.clone_from(&plan.study);
        }
        all.push((phase, records));
    }
    answer.is_complete = answer.notes.is_empty();
    match selection.evaluation {
        None => all.iter().for_each(|(phase, records)| summary::add(&mut answer, phase.as_deref(), records)),
        Some(evaluation) => {
            check_evaluation(&all, evaluation)?;
            let tile = selection.tile.as_deref();
            check_tile(&all, tile)?;
            for (phase, records) in &all {
                answer.runs.extend(runs(phase.as_deref(), records, evaluation, tile));
            }
        }
    }
    Ok(answer)
}

/// Returns the files of records, each with the name of its phase's folder.
fn files(folder: &Path, phase: Option<usize>) -> Result<Vec<(Option<String>, PathBuf)>, ExplainError> {
    let own = folder.join(NAME);
    let mut phases = Vec::new();
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("phase-").and_then(|rest| rest.split('-').next());
        if let Some(number) = number.and_then(|number| number.parse::<usize>().ok())
            && entry.path().join(NAME).is_file()
        {
            phases.push((number, name, entry.path().join(NAME)));
        }
    }
    phases.sort_unstable();
    let last = phases.last().map_or(0, |(number, ..)| *number);
    let is_chosen = |number: usize| phase.is_none_or(|phase| phase == number);
    let chosen = phases.into_iter().filter(|(number, ..)| is_chosen(*number));
    let mut files: Vec<_> = chosen.map(|(_, name, file)| (Some(name), file)).collect();
    if last == 0 && own.is_file() {
        files = vec![(None, own)];
    } else if last == 0 {
        return Err(ExplainError::NoRecords { folder: folder.to_owned() });
    }
    match phase {
        Some(phase) if files.is_empty() || last == 0 => Err(ExplainError::Selection {
            field: "phase",
            value: phase.to_string(),
            allowed: if last == 0 { "no phase".to_owned() } else { format!("1 to {last}") },
        }),
        _ => Ok(files),
    }
}

fn check_evaluation(all: &[(Option<String>, Records)], evaluation: usize) -> Result<(), ExplainError> {
    let plans = || all.iter().filter_map(|(phase, records)| Some((phase, records.last_plan()?)));
    if plans().any(|(_, plan)| (plan.first_evaluation..=plan.evaluations).contains(&evaluation)) {
        return Ok(());
    }
    let allowed = plans().map(|(phase, plan)| {
        let of = phase.as_ref().map_or_else(String::new, |phase| format!(" ({phase})"));
        format!("{} to {}{of}", plan.first_evaluation, plan.evaluations)
    });
    let allowed = allowed.collect::<Vec<_>>().join(", ");
    Err(ExplainError::Selection { field: "evaluation", value: evaluation.to_string(), allowed })
}

fn check_tile(all: &[(Option<String>, Records)], tile: Option<&str>) -> Result<(), ExplainError> {
    let Some(tile) = tile else { return Ok(()) };
    let plan = || all.iter().find_map(|(_, records)| records.last_plan());
    let tiles = || plan().into_iter().flat_map(|plan| &plan.tiles);
    if tiles().any(|name| name == tile) {
        return Ok(());
    }
    // A study of a slide has thousands of tiles.
    let mut names: Vec<&str> = tiles().take(20).map(String::as_str).collect();
    if tiles().count() > names.len() {
        names.push("...");
    }
    let allowed = format!("one of {}", names.join(", "));
    Err(ExplainError::Selection { field: "tile", value: tile.to_owned(), allowed })
}

/// Explains an evaluation on one tile or all tiles.
fn runs(phase: Option<&str>, records: &Records, evaluation: usize, tile: Option<&str>) -> Vec<ExplainedRun> {
    let Some(plan) = records.last_plan() else { return Vec::new() };
    let is_chosen = |name: &str| tile.is_none_or(|tile| tile == name);
    let tiles: Vec<usize> = (0..plan.tiles.len()).filter(|tile| is_chosen(&plan.tiles[*tile])).collect();
    if !(plan.first_evaluation..=plan.evaluations).contains(&evaluation) {
        return Vec::new();
    }
    let unrecorded = |stage: usize, task: usize| {
        let (name, operation) = &plan.stages[stage].tasks[task];
        RecordedTask {
            stage: plan.stages[stage].name.clone(),
            task: name.clone(),
            operation: operation.clone(),
            source: "unrecorded".to_owned(),
            ..RecordedTask::default()
        }
    };
    let tasks = || {
        (0..plan.stages.len())
            .flat_map(|stage| (0..plan.stages[stage].tasks.len()).map(move |task| (stage, task)))
    };
    let mut runs: Vec<ExplainedRun> = tiles
        .iter()
        .map(|tile| ExplainedRun {
            phase: phase.map(str::to_owned),
            evaluation,
            tile: plan.tiles[*tile].clone(),
            tasks: tasks().map(|(stage, task)| unrecorded(stage, task)).collect(),
        })
        .collect();
    // From the last execution: an earlier one has the records of results that the later ones knew.
    for execution in records.executions.iter().rev() {
        add_execution(&mut runs, records, execution, evaluation, &tiles);
    }
    for (run, tile) in runs.iter_mut().zip(tiles) {
        add_known(run, records, evaluation, tile);
    }
    runs
}

/// Adds the records of one execution to runs on these tiles.
fn add_execution(
    runs: &mut [ExplainedRun],
    records: &Records,
    execution: &Execution,
    evaluation: usize,
    tiles: &[usize],
) {
    let plan = &execution.plan;
    let stages = plan.stages.len();
    let of_run = |tile: usize| (0..stages).map_while(move |stage| plan.instance(evaluation, tile, stage));
    let instances: Vec<u32> = tiles.iter().copied().flat_map(of_run).collect();
    if instances.len() < tiles.len() * stages {
        // The sample had fewer evaluations in this round.
        return;
    }
    let mut distinct = instances.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let (traces, workers) = trace(records, execution, &distinct);
    let trace_of =
        |instance: &u32| distinct.binary_search(instance).map_or(&NO_TRACE, |place| &traces[place]);
    for (place, run) in runs.iter_mut().enumerate() {
        // An execution that knew the response has used none of its tasks for this run.
        if instances[place * stages..][..stages].iter().any(|id| plan.known_source(*id).is_some()) {
            continue;
        }
        let mut tasks = run.tasks.iter_mut();
        for stage in 0..stages {
            let instance = instances[place * stages + stage];
            let trace = trace_of(&instance);
            for number in 0..plan.stages[stage].tasks.len() {
                let Some(task) = tasks.next() else { return };
                if trace.is_recorded() {
                    add_task(task, execution, (evaluation, instance, number), trace, &workers);
                }
            }
        }
    }
}

/// Adds the records of a task in one execution. A task with records of a later execution was executed again.
fn add_task(
    task: &mut RecordedTask,
    execution: &Execution,
    (evaluation, instance, number): (usize, u32, usize),
    trace: &InstanceTrace,
    workers: &[String],
) {
    let name = |worker: usize| workers[worker].clone();
    let found = trace.task(number);
    let repeated = trace.repeated(number).into_iter().map(|(end, worker, event)| {
        let cause = match end {
            AttemptEnd::WorkerLost => "worker lost",
            AttemptEnd::OutputLost | AttemptEnd::Finished => "output lost",
            AttemptEnd::MissingInput => "input missing",
            AttemptEnd::Late => "too late",
            AttemptEnd::Failed => "failed",
        };
        execution_of(event, name(worker), cause)
    });
    if task.source != "unrecorded" {
        let before = found.filter(|found| matches!(found.event.outcome, Outcome::Executed { .. }));
        let before = before.map(|found| execution_of(Some(found.event), name(found.worker), "process ended"));
        task.repeated.extend(before.into_iter().chain(repeated));
        return;
    }
    let is_failed = trace.accepted().is_some_and(|accepted| accepted.end == AttemptEnd::Failed);
    let Some(found) = found else {
        if is_failed {
            task.source = "not_run".to_owned();
        }
        return;
    };
    fill(task, execution, (evaluation, instance), found, workers);
    // An unreported execution counts as repeated only if the task ran again.
    let ran = task.seconds.is_some();
    task.repeated.extend(repeated.filter(|execution| ran || execution.seconds.is_some()));
    // Later tasks of a failed instance have no record.
    task.failed = is_failed && ran && trace.task(number + 1).is_none();
}

fn execution_of(event: Option<TaskEvent>, worker: String, cause: &str) -> RepeatedExecution {
    let (started, seconds) = match event.map(|event| event.outcome) {
        Some(Outcome::Executed { started_micros, micros, .. }) => {
            (Some(started_micros as f64 / 1e6), Some(micros as f64 / 1e6))
        }
        _ => (None, None),
    };
    RepeatedExecution { worker, cause: cause.to_owned(), started, seconds }
}

/// Fills in the record of a task.
fn fill(
    task: &mut RecordedTask,
    execution: &Execution,
    (evaluation, instance): (usize, u32),
    TracedTask { worker, event }: TracedTask,
    workers: &[String],
) {
    let first =
        |instance: u32| execution.first_evaluations.get(instance as usize).map(|first| *first as usize);
    task.worker = workers.get(worker).cloned();
    match event.outcome {
        Outcome::Executed { started_micros, micros, device } => {
            let is_own = event.instance == instance;
            let source = match (is_own, first(instance) == Some(evaluation)) {
                (true, true) => "run",
                (true, false) => "stage",
                (false, _) => "bucket",
            };
            task.source = source.to_owned();
            task.evaluation = first(event.instance).filter(|_| source != "run");
            task.device = (device == SlotKind::Accelerator).then(|| "accelerator".to_owned());
            task.started = Some(started_micros as f64 / 1e6);
            task.seconds = Some(micros as f64 / 1e6);
        }
        Outcome::Reused { level, from, holder } => {
            task.source = level_name(level).to_owned();
            task.evaluation = from.and_then(first);
            task.holder = holder.and_then(|holder| workers.get(holder).cloned());
        }
        Outcome::Skipped => task.source = "skipped".to_owned(),
    }
}

/// Completes tasks without a record: the response was in the task cache, or a task before it failed.
fn add_known(run: &mut ExplainedRun, records: &Records, evaluation: usize, tile: usize) {
    let is_recalled = records.executions.iter().any(|Execution { plan, .. }| {
        let mut instances = (0..plan.stages.len()).filter_map(|stage| plan.instance(evaluation, tile, stage));
        instances.any(|instance| plan.known_source(instance) == Some(KnownSource::Cache))
    });
    let has_failed = run.tasks.iter().any(|task| task.failed);
    let mut after_failure = false;
    for task in &mut run.tasks {
        after_failure |= task.failed;
        if task.source == "unrecorded" && is_recalled {
            task.source = "cache".to_owned();
        } else if task.source == "unrecorded" && has_failed && after_failure {
            task.source = "not_run".to_owned();
        }
    }
}
