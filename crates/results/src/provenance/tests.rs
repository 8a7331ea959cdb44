//! Records from their writer to the answers: sharing, reuse, losses, rounds, and damage to the file.

use super::blocks::MAGIC;
use super::equal_results::EqualResults;
use super::explain::{ExplainError, RunSelection, explain_folder};
use super::plan_table::{PlanTable, StageNames};
use super::writer::Recorder;
use super::{Explanation, NAME, RecordedTask};
use pleach_dispatch::directory::MemberId;
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskProvenance, TaskReport, TaskSource};
use pleach_dispatch::study::{InstanceEnd, InstanceReport, WorkerReports};
use pleach_dispatch::{InstanceId, LeaseId};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// Plan of one stage with 2 tasks and an instance for each of the evaluations, which share the first task.
fn plan(evaluations: usize, known: &[u32]) -> PlanTable {
    let tasks = ["first", "second"].map(|name| (name.to_owned(), format!("operation.{name}")));
    let classes = (1..=evaluations as u32).flat_map(|second| [0, second]);
    PlanTable {
        study: "s".to_owned(),
        tiles: vec!["tile".to_owned()],
        first_evaluation: 1,
        evaluations,
        stages: vec![StageNames { name: "stage".to_owned(), tasks: tasks.into() }],
        instances: (0..evaluations as u32).collect(),
        first_tasks: (0..evaluations).map(|instance| (0, 2 * instance)).collect(),
        classes: classes.collect(),
        known: [BTreeSet::new(), known.iter().copied().collect(), BTreeSet::new()],
        shared_in_buckets: 1,
        recalled: 0,
    }
}

fn ran(task: u32, instance: u32, seconds: f64) -> TaskReport {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
    let provenance = TaskProvenance {
        instance,
        started_micros: 1_500_000 + u64::from(task),
        source: None,
        ..TaskProvenance::default()
    };
    TaskReport { task, stage: 0, done, cache_seconds: 0.0, provenance }
}

fn reused(task: u32, instance: u32, level: ReuseSource, source: Option<TaskSource>) -> TaskReport {
    let provenance = TaskProvenance { instance, source, ..TaskProvenance::default() };
    TaskReport { done: TaskOutcome::Reused(level), provenance, ..ran(task, instance, 0.0) }
}

/// Reports an instance. The worker `w1` is member 1 of the result directory.
fn report(
    records: &Recorder,
    worker: &str,
    lease: u64,
    instance: u32,
    end: InstanceEnd,
    tasks: &[TaskReport],
) {
    let members = HashMap::from([(MemberId(1), "w1".to_owned())]);
    let (lease, instance) = (LeaseId(lease), InstanceId(instance));
    let reports = &[InstanceReport { lease, instance, end, tasks }];
    records.observer().report(&WorkerReports { worker, members: &members, reports });
}

fn of(folder: &Path, evaluation: usize) -> Vec<RecordedTask> {
    let selection = RunSelection { evaluation: Some(evaluation), ..RunSelection::default() };
    let answer = explain_folder(folder, &selection).unwrap();
    assert_eq!(answer.runs.len(), 1);
    answer.runs[0].tasks.clone()
}

fn totals(folder: &Path) -> Explanation {
    explain_folder(folder, &RunSelection::default()).unwrap()
}

fn sources(tasks: &[RecordedTask]) -> Vec<(&str, Option<usize>)> {
    tasks.iter().map(|task| (task.source.as_str(), task.evaluation)).collect()
}

#[test]
fn tasks_of_bucket_memory_and_peer_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let records = Recorder::start(&folder.path().join(NAME), &plan(4, &[])).unwrap();
    let finished = InstanceEnd::Finished;
    // Instances 0 and 1 are one bucket. The first task is reported with instance 1, for both.
    report(&records, "w1", 1, 1, finished, &[ran(0, 0, 0.25), ran(1, 1, 0.5)]);
    report(
        &records,
        "w1",
        1,
        0,
        finished,
        &[reused(1, 0, ReuseSource::Value, Some(TaskSource::Instance(InstanceId(1))))],
    );
    let peer = reused(0, 2, ReuseSource::Peer, Some(TaskSource::Holder(MemberId(1))));
    report(&records, "w2", 2, 2, finished, &[peer, ran(1, 2, 2.0)]);
    report(&records, "w2", 3, 3, InstanceEnd::Failed, &[ran(0, 3, 1.0)]);
    records.finish().unwrap();

    let (first, second, third) = (of(folder.path(), 1), of(folder.path(), 2), of(folder.path(), 3));
    assert_eq!(sources(&first), [("run", None), ("value", Some(2))]);
    assert_eq!(
        (first[0].worker.as_deref(), first[0].seconds, first[0].started),
        (Some("w1"), Some(0.25), Some(1.5))
    );
    assert_eq!(sources(&second), [("bucket", Some(1)), ("run", None)]);
    assert_eq!(sources(&third), [("peer", None), ("run", None)]);
    assert_eq!((third[0].worker.as_deref(), third[0].holder.as_deref()), (Some("w2"), Some("w1")));
    let failed = of(folder.path(), 4);
    assert_eq!(sources(&failed), [("run", None), ("not_run", None)]);
    assert!(failed[0].failed && !failed[1].failed && first.iter().all(|task| task.repeated.is_empty()));

    let totals = totals(folder.path());
    assert!(totals.is_complete && totals.notes.is_empty());
    assert_eq!(totals.tasks_executed, Some(4));
    let reused = totals.tasks_reused.unwrap();
    let expected = [("cache", 0), ("dataflow", 1), ("peer", 1), ("value", 1)];
    assert_eq!(reused, expected.map(|(level, number)| (level.to_owned(), number)).into());
    let workers: Vec<_> =
        totals.workers.iter().map(|worker| (worker.worker.as_str(), worker.executed)).collect();
    assert_eq!(workers, [("w1", 2), ("w2", 2)]);
}

#[test]
fn lost_executions_are_listed_with_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    let records = Recorder::start(&folder.path().join(NAME), &plan(5, &[])).unwrap();
    let finished = InstanceEnd::Finished;
    let lost = |lease, instances: &[u32]| {
        let instances = instances.iter().map(|id| InstanceId(*id)).collect();
        records.observer().lost("w1", LeaseId(lease), &instances);
    };
    // The worker reports instance 0 and a task of instances 0 and 1, and is lost. The only output of 0 is lost with it.
    report(&records, "w1", 1, 0, finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
    lost(1, &[1]);
    records.observer().reopened(InstanceId(0));
    report(&records, "w2", 2, 0, finished, &[ran(0, 0, 2.0), ran(1, 0, 2.0)]);
    report(&records, "w2", 2, 1, finished, &[ran(1, 1, 2.0)]);
    // Another lease of the worker is lost, and it returns with a third one.
    lost(3, &[2]);
    lost(4, &[3]);
    report(&records, "w2", 5, 2, finished, &[ran(0, 2, 3.0), ran(1, 2, 3.0)]);
    report(&records, "w1", 4, 3, finished, &[ran(0, 3, 3.0), ran(1, 3, 3.0)]);
    // The report is sent again over a new link.
    report(&records, "w1", 4, 3, InstanceEnd::Late, &[ran(0, 3, 3.0), ran(1, 3, 3.0)]);
    // A speculative lease is slower.
    report(&records, "w1", 6, 4, finished, &[ran(0, 4, 1.0), ran(1, 4, 1.0)]);
    report(&records, "w2", 7, 4, InstanceEnd::Late, &[ran(0, 4, 9.0)]);
    records.finish().unwrap();

    let repeated = |evaluation: usize| -> Vec<Vec<(String, String, Option<f64>)>> {
        let tasks = of(folder.path(), evaluation);
        let row = |task: &RecordedTask| {
            assert!(task.source == "run" || task.source == "bucket", "{task:?}");
            let repeated = task.repeated.iter();
            repeated.map(|other| (other.worker.clone(), other.cause.clone(), other.seconds)).collect()
        };
        tasks.iter().map(row).collect()
    };
    let one = |worker: &str, cause: &str, seconds| vec![(worker.to_owned(), cause.to_owned(), seconds)];
    assert_eq!(repeated(1), [one("w1", "output lost", Some(1.0)), one("w1", "output lost", Some(1.0))]);
    assert_eq!(repeated(2), [one("w1", "worker lost", Some(1.0)), one("w1", "worker lost", None)]);
    assert_eq!(repeated(3), [one("w1", "worker lost", None), one("w1", "worker lost", None)]);
    assert_eq!(repeated(4), [vec![], vec![]]);
    assert_eq!(repeated(5), [one("w2", "too late", Some(9.0)), vec![]]);
    let totals = totals(folder.path());
    assert_eq!(
        (totals.instances_lost, totals.instances_reopened, totals.tasks_executed),
        (Some(3), Some(1), Some(14))
    );
}

/// Two rounds: the second knows the responses of the first, and has other instance numbers.
fn two_rounds(folder: &Path) {
    let file = folder.join(NAME);
    let records = Recorder::start(&file, &plan(1, &[])).unwrap();
    report(&records, "w1", 1, 0, InstanceEnd::Finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
    records.finish().unwrap();
    let second = PlanTable { instances: vec![1, 0], ..plan(2, &[1]) };
    let records = Recorder::start(&file, &second).unwrap();
    let earlier = reused(0, 0, ReuseSource::Before, None);
    report(&records, "w2", 1, 0, InstanceEnd::Finished, &[earlier, ran(1, 0, 2.0)]);
    records.finish().unwrap();
}

#[test]
fn round_answers_for_its_own_evaluations() {
    let folder = tempfile::tempdir().unwrap();
    two_rounds(folder.path());
    let (first, second) = (of(folder.path(), 1), of(folder.path(), 2));
    assert_eq!(sources(&first), [("run", None), ("run", None)]);
    assert_eq!(first[0].worker.as_deref(), Some("w1"));
    assert_eq!(sources(&second), [("earlier", None), ("run", None)]);
    assert_eq!(second[1].worker.as_deref(), Some("w2"));
    let error =
        explain_folder(folder.path(), &RunSelection { evaluation: Some(3), ..RunSelection::default() });
    assert_eq!(error.unwrap_err().to_string(), "evaluation 3: 1 to 2 is allowed in this study");
}

#[test]
fn repeated_task_of_a_resumed_study_names_the_ended_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(NAME);
    for worker in ["w1", "w2"] {
        let records = Recorder::start(&file, &plan(1, &[])).unwrap();
        report(&records, worker, 1, 0, InstanceEnd::Finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
        records.finish().unwrap();
    }
    let tasks = of(folder.path(), 1);
    assert_eq!(tasks[1].worker.as_deref(), Some("w2"));
    assert_eq!(
        (tasks[1].repeated[0].worker.as_str(), tasks[1].repeated[0].cause.as_str()),
        ("w1", "process ended")
    );
}

#[test]
fn cut_file_answers_from_the_rest_and_is_continued() {
    let place = tempfile::tempdir().unwrap();
    two_rounds(place.path());
    let whole = fs::read(place.path().join(NAME)).unwrap();
    for length in 0..whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NAME);
        fs::write(&file, &whole[..length]).unwrap();
        let selection = RunSelection { evaluation: Some(1), ..RunSelection::default() };
        match explain_folder(folder.path(), &selection) {
            Ok(answer) => {
                let known = ["run", "unrecorded"];
                assert!(answer.runs[0].tasks.iter().all(|task| known.contains(&task.source.as_str())));
                // The end of the first round is the only cut that nothing shows.
                assert!(!answer.is_complete || answer.runs[0].tasks[0].source == "run", "cut at {length}");
            }
            Err(ExplainError::Unreadable(error)) => {
                assert!(error.to_string().contains("intact record"), "{error}")
            }
            Err(error) => panic!("{error}"),
        }
        let records = Recorder::start(&file, &plan(1, &[])).unwrap();
        report(&records, "w3", 1, 0, InstanceEnd::Finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
        records.finish().unwrap();
        assert_eq!(of(folder.path(), 1)[0].worker.as_deref(), Some("w3"), "cut at {length}");
        let executed = totals(folder.path()).tasks_executed.unwrap();
        assert!((2..=5).contains(&executed), "cut at {length}: {executed}");
    }
}

#[test]
fn changed_byte_is_detected_and_invents_no_record() {
    let place = tempfile::tempdir().unwrap();
    two_rounds(place.path());
    let file = place.path().join(NAME);
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        fs::write(&file, &changed).unwrap();
        let selection = RunSelection { evaluation: Some(1), ..RunSelection::default() };
        let Ok(answer) = explain_folder(place.path(), &selection) else {
            continue;
        };
        assert!(!answer.is_complete, "byte {at}");
        for task in &answer.runs[0].tasks {
            let is_known =
                task.source == "run" && task.worker.as_deref() == Some("w1") && task.seconds == Some(1.0);
            assert!(is_known || task.source == "unrecorded", "byte {at}: {task:?}");
        }
    }
}

#[test]
fn unreadable_folders_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = || explain_folder(folder.path(), &RunSelection::default()).unwrap_err().to_string();
    assert!(refusal().contains("has no provenance.bin"), "{}", refusal());
    let file = folder.path().join(NAME);
    fs::write(&file, b"pleach provenance 2\nnew").unwrap();
    assert!(refusal().contains("format 2 is not allowed; 1"), "{}", refusal());
    for noise in [&b""[..], b"noise", MAGIC] {
        fs::write(&file, noise).unwrap();
        assert!(refusal().contains("is an intact record"), "{}", refusal());
    }
    fs::remove_file(&file).unwrap();
    for phase in ["phase-1-moat", "phase-2-vbd"] {
        fs::create_dir(folder.path().join(phase)).unwrap();
        two_rounds(&folder.path().join(phase));
    }
    let select = |evaluation, tile: Option<&str>, phase| {
        let tile = tile.map(str::to_owned);
        explain_folder(folder.path(), &RunSelection { evaluation: Some(evaluation), tile, phase })
    };
    assert_eq!(select(2, Some("tile"), None).unwrap().runs.len(), 2);
    let one = select(2, None, Some(2)).unwrap().runs;
    assert_eq!((one.len(), one[0].phase.as_deref()), (1, Some("phase-2-vbd")));
    assert_eq!(totals(folder.path()).tasks_executed, Some(6));
    for (answer, expected) in [
        (
            select(0, None, None),
            "evaluation 0: 1 to 2 (phase-1-moat), 1 to 2 (phase-2-vbd) is allowed in this study",
        ),
        (select(1, Some("b"), None), "tile b: one of tile is allowed in this study"),
        (select(1, None, Some(3)), "phase 3: 1 to 2 is allowed in this study"),
    ] {
        assert_eq!(answer.unwrap_err().to_string(), expected);
    }
}

#[test]
fn records_that_cannot_be_written_are_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        Recorder::start(&folder.path().join("none").join(NAME), &plan(1, &[])).unwrap_err().to_string();
    assert!(error.contains("none/provenance.bin: failed to write: "), "{error}");
}

#[test]
fn tasks_with_reused_results_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(NAME);
    let read = || EqualResults::read(folder.path());
    let message = |expected: &str| {
        let error = read().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    message(": has no provenance.bin; the folder of a study without phases is allowed");
    let records = Recorder::start(&file, &plan(4, &[])).unwrap();
    let finished = InstanceEnd::Finished;
    let value = |instance, from| {
        reused(1, instance, ReuseSource::Value, Some(TaskSource::Instance(InstanceId(from))))
    };
    report(&records, "w1", 1, 0, finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
    report(&records, "w1", 1, 1, finished, &[value(1, 0)]);
    report(&records, "w1", 2, 2, finished, &[ran(1, 2, 1.0)]);
    report(&records, "w1", 2, 3, finished, &[value(3, 1)]);
    records.finish().unwrap();
    let results = read().unwrap();
    assert_eq!((results.tiles(), results.evaluations()), (1, 4));
    let (first, second) = (results.task("stage", "first").unwrap(), results.task("stage", "second").unwrap());
    assert_eq!(results.task("stage", "third"), None);
    let numbers = |task| (1..=4).map(|run| results.number(run, 0, task).unwrap()).collect::<Vec<_>>();
    assert_eq!((numbers(first), numbers(second)), (vec![0; 4], vec![1, 1, 3, 1]));
    assert_eq!((results.number(0, 0, first), results.number(5, 0, first)), (None, None));

    // The worker had forgotten the instances of two results. The first two tasks of the plan have one class.
    fs::remove_file(&file).unwrap();
    let records = Recorder::start(&file, &plan(4, &[])).unwrap();
    report(&records, "w1", 1, 0, finished, &[ran(0, 0, 1.0), ran(1, 0, 1.0)]);
    report(&records, "w1", 1, 1, finished, &[reused(0, 1, ReuseSource::Dataflow, None), value(1, 0)]);
    report(&records, "w1", 2, 2, finished, &[reused(1, 2, ReuseSource::Value, None)]);
    records.finish().unwrap();
    let results = read().unwrap();
    let numbers = |task| (1..=4).map(|run| results.number(run, 0, task).unwrap()).collect::<Vec<_>>();
    assert_eq!((numbers(first), numbers(second)), (vec![0; 4], vec![1, 1, 3, 4]));

    // Results of other workers have no instance.
    let records = Recorder::start(&file, &plan(1, &[])).unwrap();
    message("has corrupt records, or no end; the records of one execution of all tasks are needed");
    report(&records, "w1", 3, 0, finished, &[reused(0, 0, ReuseSource::Peer, None)]);
    records.finish().unwrap();
    message("has 2 executions; ");
    fs::remove_file(&file).unwrap();
    let records = Recorder::start(&file, &plan(1, &[])).unwrap();
    report(&records, "w1", 3, 0, finished, &[reused(0, 0, ReuseSource::Peer, None)]);
    records.finish().unwrap();
    message("1 results have the source \"peer\", without an instance");
    fs::remove_file(&file).unwrap();
    Recorder::start(&file, &plan(2, &[1])).unwrap().finish().unwrap();
    message("some responses were known before");
}
