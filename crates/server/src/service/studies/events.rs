//! Lines of the operator's log about the progress of a study: submitted, resumed, started, ended. `remarks` gives the
//! conditions that keep a running study waiting.

use super::study_runner::ReadyStudy;
use crate::http::control::Submitter;
use crate::service::state::{StoredSubmission, StudyEnd};
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
