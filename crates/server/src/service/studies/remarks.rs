//! Remarks on studies and workers: conditions that keep a study waiting, and conditions that an operator should
//! resolve, and the overhead that explains the size of buckets.
//!
//! They follow from the manager's present view. A study that no worker can execute has no predicted remaining time.

use pleach_actors::manager::{ManagerView, StudyView, WorkerState, WorkerView};
use pleach_api::schema::{StudyState, StudyStatus};

/// Adds the remarks to a study.
///
/// `on_accelerators` lists the operations of the study that need an accelerator.
pub(super) fn with(
    mut study: StudyStatus,
    id: u32,
    on_accelerators: &[&str],
    view: &ManagerView,
) -> StudyStatus {
    if study.state != StudyState::Running {
        return study;
    }
    let running = view.studies.iter().find(|running| running.id.study == id);
    let missing = lacks_workers(running, on_accelerators, &view.workers);
    if missing.is_some() {
        study.remaining_seconds = None;
    }
    study.remarks.extend(missing);
    match running.map_or(0, |running| running.lost_workers) {
        0 => {}
        1 => study.remarks.push("1 worker lost".to_owned()),
        lost => study.remarks.push(format!("{lost} workers lost")),
    }
    let overhead = running.map_or(0.0, |running| running.bucket_overhead_seconds);
    if overhead > 0.0 {
        study.remarks.push(format!("buckets sized for an overhead of {overhead:.1} s each"));
    }
    study
}

/// Returns why no worker can execute a study, or `None` if one can. `running` is `None` until the study is planned.
fn lacks_workers(
    running: Option<&StudyView>,
    on_accelerators: &[&str],
    workers: &[WorkerView],
) -> Option<String> {
    if workers.is_empty() {
        return Some("no workers".to_owned());
    }
    let active = || workers.iter().filter(|worker| worker.state == WorkerState::Active);
    if active().next().is_none() {
        return Some("all workers are draining".to_owned());
    }
    // Workers that run other stages of the study do not help here.
    if running.is_some()
        && let Some(operation) = on_accelerators.first()
        && active().all(|worker| worker.accelerators as usize <= worker.closed_slots.len())
    {
        return Some(format!("waiting for a worker with an accelerator, which {operation} needs"));
    }
    let running = running.filter(|running| running.able_workers == 0)?;
    let needs = |worker: &WorkerView| match worker.spill_bytes >= running.min_bytes {
        true => running.min_bytes_with_spill,
        false => running.min_bytes,
    };
    let fits = |worker: &WorkerView| needs(worker) <= worker.memory_bytes;
    if active().any(fits) {
        let refused = active().flat_map(|worker| {
            worker
                .code
                .refusals
                .iter()
                .map(move |cause| format!("; {} refuses its code: {cause}", worker.name))
        });
        return Some(format!("no worker has the operations of a stage{}", refused.collect::<String>()));
    }
    let largest = active().map(|worker| worker.memory_bytes).max().unwrap_or(0);
    Some(format!(
        "waiting for workers with {} MB; the largest has {} MB",
        running.min_bytes.div_ceil(1_000_000),
        largest / 1_000_000
    ))
}

/// Returns the remarks on a worker.
pub(super) fn of_worker(worker: &WorkerView) -> Vec<String> {
    let duplicate = worker.duplicate.iter().map(|duplicate| {
        let attempts = duplicate.attempts;
        format!("the same certificate is used at {}, refused {attempts} times", duplicate.location)
    });
    let closed = worker.closed_slots.iter().map(|remark| format!("accelerator {remark}"));
    duplicate.chain(closed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::PlanId;
    use std::time::Duration;
    use time::OffsetDateTime;

    fn study() -> StudyStatus {
        StudyStatus {
            id: "1".to_owned(),
            name: "toy".to_owned(),
            state: StudyState::Running,
            evaluations_done: 0,
            evaluations: 9,
            tasks_executed: 0,
            remaining_tasks: 9,
            remaining_seconds: Some(70.0),
            failed: 0,
            submitted: OffsetDateTime::UNIX_EPOCH,
            message: None,
            deadline: None,
            budget: None,
            remaining_work_seconds: None,
            phase: None,
            phases: None,
            progress: None,
            remarks: Vec::new(),
            cost: None,
        }
    }

    fn worker(memory_bytes: u64, state: WorkerState) -> WorkerView {
        WorkerView {
            name: "w".to_owned(),
            host: None,
            state,
            slots: 1,
            accelerators: 0,
            closed_slots: Vec::new(),
            leases: 0,
            bytes: 0,
            transfers: None,
            memory_bytes,
            spill_bytes: 0,
            lacking: Vec::new(),
            code: Default::default(),
            lease_end_seconds: None,
            duplicate: None,
        }
    }

    fn view(workers: Vec<WorkerView>, able_workers: usize, lost_workers: u64) -> ManagerView {
        let study = StudyView {
            id: PlanId::first_round(1),
            instances: 0,
            all_instances: 9,
            tasks: 0,
            failed: 0,
            durable: 0,
            leases: 0,
            age: Duration::ZERO,
            able_workers,
            lost_workers,
            min_bytes: 2_000_000_000,
            min_bytes_with_spill: 1_500_000_000,
            bucket_overhead_seconds: 0.0,
        };
        ManagerView { studies: vec![study], workers, ..ManagerView::default() }
    }

    fn remarks(view: &ManagerView) -> (Vec<String>, Option<f64>) {
        let study = with(study(), 1, &[], view);
        (study.remarks, study.remaining_seconds)
    }

    #[test]
    fn study_without_able_workers_states_the_reason() {
        let of = |workers, able| remarks(&view(workers, able, 0));
        let said = |text: &str| (vec![text.to_owned()], None);
        let (small, large) = (1_000_000_000, 2_000_000_000);
        assert_eq!(of(vec![], 0), said("no workers"));
        let leaving = worker(large, WorkerState::Draining);
        assert_eq!(of(vec![leaving], 0), said("all workers are draining"));
        let active = |memory| worker(memory, WorkerState::Active);
        assert_eq!(
            of(vec![active(small)], 0),
            said("waiting for workers with 2000 MB; the largest has 1000 MB")
        );
        let spilling = WorkerView { spill_bytes: 3_000_000_000, ..active(1_500_000_000) };
        assert_eq!(of(vec![spilling], 0), said("no worker has the operations of a stage"));
        assert_eq!(of(vec![active(small), active(large)], 1), (vec![], Some(70.0)));
        assert_eq!(remarks(&ManagerView::default()), said("no workers"));
    }

    #[test]
    fn lost_workers_are_counted_in_words() {
        let of = |lost| remarks(&view(vec![worker(2_000_000_000, WorkerState::Active)], 1, lost)).0;
        assert_eq!(of(0), Vec::<String>::new());
        assert_eq!((of(1), of(3)), (vec!["1 worker lost".to_owned()], vec!["3 workers lost".to_owned()]));
    }

    #[test]
    fn overhead_of_the_plan_is_a_remark() {
        let mut view = view(vec![worker(2_000_000_000, WorkerState::Active)], 1, 0);
        view.studies[0].bucket_overhead_seconds = 5.04;
        assert_eq!(remarks(&view).0, ["buckets sized for an overhead of 5.0 s each"]);
    }

    #[test]
    fn ended_study_has_no_remarks() {
        let study = StudyStatus { state: StudyState::Complete, ..study() };
        assert_eq!(with(study.clone(), 1, &["python:a.b"], &ManagerView::default()), study);
    }

    #[test]
    fn study_waits_for_an_accelerator_that_an_operation_needs() {
        let large = 2_000_000_000;
        let with_slots = |accelerators, closed: usize| WorkerView {
            accelerators,
            closed_slots: vec!["lost".to_owned(); closed],
            ..worker(large, WorkerState::Active)
        };
        let of = |workers, able, needs: &[&str]| {
            let study = with(study(), 1, needs, &view(workers, able, 0));
            (study.remarks, study.remaining_seconds)
        };
        let waits = "waiting for a worker with an accelerator, which python:a.b needs";
        // The worker may be able to run another stage.
        for (accelerators, closed) in [(0, 0), (1, 1)] {
            let said = of(vec![with_slots(accelerators, closed)], 1, &["python:a.b"]);
            assert_eq!(said, (vec![waits.to_owned()], None));
        }
        let runs = (Vec::new(), Some(70.0));
        assert_eq!(of(vec![with_slots(0, 0), with_slots(2, 1)], 1, &["python:a.b"]), runs);
        assert_eq!(of(vec![with_slots(0, 0)], 1, &[]), runs);
    }
}
