//! Lines of the operator's log about the progress of a study: submitted, resumed, started, ended. `remarks` gives the
//! conditions that keep a running study waiting.

use super::study_runner::ReadyStudy;
use crate::http::control::Submitter;
use crate::service::state::{StoredSubmission, StudyEnd};
use pleach_api::schema::StudyCost;
use std::time::Duration;
use tracing::info;

pub(super) fn submitted(
    id: u32,
    kept: &StoredSubmission,
    client: &Submitter,
    ready: &ReadyStudy,
    missing: usize,
) {
    let (name, evaluations, tiles) = (&kept.submission.name, ready.evaluations(), ready.tiles());
    info!(
        study = id,
        name,
        client = %client,
        evaluations,
        tiles,
        missing,
        "study {id} ({name}) submitted by {client}: {evaluations} evaluations on {tiles} tiles"
    );
}

pub(super) fn resumed(id: u32, kept: &StoredSubmission, missing: usize) {
    let name = &kept.submission.name;
    info!(study = id, name, missing, "study {id} ({name}) resumed after a restart of the manager");
}

pub(super) fn started(id: u32, ready: &ReadyStudy) {
    info!(study = id, "study {id} started: {}", ready.summary());
}

pub(super) fn ended(id: u32, kept: &StoredSubmission, ended: &StudyEnd, reused: u64, took: Duration) {
    let name = &kept.submission.name;
    let StudyEnd { state, evaluations_done: evaluations, tasks_executed: executed, failed, .. } = ended;
    let seconds = took.as_secs_f64();
    info!(
        study = id,
        name,
        %state,
        seconds,
        evaluations,
        executed,
        reused,
        failed,
        "study {id} ({name}) is {state} after {seconds:.1} s: {evaluations} evaluations, {executed} tasks executed, {reused} \
         reused, {failed} runs failed"
    );
}

/// Logs the final cost of a study. Nothing without workers of pools.
pub(super) fn paid(id: u32, cost: &StudyCost) {
    if cost.pools.is_empty() {
        return;
    }
    let StudyCost { cost: paid, predicted_cost, workers_started, workers_lost, workers_replaced, .. } = cost;
    let predicted = predicted_cost.map_or("unknown".to_owned(), |predicted| format!("{predicted:.2}"));
    info!(
        study = id,
        paid,
        predicted_cost,
        workers_started,
        workers_lost,
        workers_replaced,
        "study {id} has cost {paid:.2} (predicted: {predicted}): {workers_started} workers started, {workers_lost} lost, \
         {workers_replaced} replaced"
    );
}
