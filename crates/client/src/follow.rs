//! Follows studies until they end.

use super::Client;
use super::error::{ClientError, StudyEndError};
use pleach_api::schema::{StudyState, StudyStatus, WorkerStatus};
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval between requests: frequent enough for a reader, and negligible load on the manager.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Follows a study until it ends. `show` gets each status before the end.
///
/// # Errors
/// Returns the errors of [`Client::study`]. [`ClientError::Interrupted`] does not cancel the study.
pub fn to_its_end(
    client: &Client,
    id: &str,
    mut show: impl FnMut(&StudyStatus),
) -> Result<StudyStatus, ClientError> {
    loop {
        let study = client.study(id)?;
        if study.state.is_over() {
            return Ok(study);
        }
        show(&study);
        client.waiting().pause(LOOK_EVERY)?;
    }
}

/// Converts the end of a study into the result of the command that waited for it.
///
/// # Errors
/// [`StudyEndError`] if the study has no results, or some runs failed.
pub fn verdict(study: &StudyStatus) -> Result<(), StudyEndError> {
    let (id, message) = (|| study.id.clone(), || study.message.clone());
    match study.state {
        StudyState::Failed => Err(StudyEndError::Failed { study: id(), message: message() }),
        StudyState::Canceled => Err(StudyEndError::Canceled { study: id(), message: message() }),
        _ if study.failed > 0 => Err(StudyEndError::FailedRuns { study: id(), runs: study.failed }),
        _ => Ok(()),
    }
}

/// Follows one study, or all studies that are not over, until they end. `show` gets the last status of each watched
/// study, by id, and all workers. Returns the last status of each study.
///
/// # Errors
/// Returns the errors of [`to_its_end`].
pub fn watch(
    client: &Client,
    id: Option<&str>,
    mut show: impl FnMut(&BTreeMap<String, StudyStatus>, &[WorkerStatus]),
) -> Result<Vec<StudyStatus>, ClientError> {
    let mut watched: BTreeMap<String, StudyStatus> = BTreeMap::new();
    loop {
        look(client, id, &mut watched)?;
        // Shown before the check, so that the last frame has the end of each study.
        show(&watched, &client.workers()?);
        if watched.values().all(|study| study.state.is_over()) {
            return Ok(watched.into_values().collect());
        }
        client.waiting().pause(LOOK_EVERY)?;
    }
}

/// Queries the studies once.
fn look(
    client: &Client,
    id: Option<&str>,
    watched: &mut BTreeMap<String, StudyStatus>,
) -> Result<(), ClientError> {
    let studies = match id {
        Some(id) => vec![client.study(id)?],
        None => client.studies()?,
    };
    for study in studies {
        // Skip studies that had ended before the watch began.
        if id.is_some() || !study.state.is_over() || watched.contains_key(&study.id) {
            watched.insert(study.id.clone(), study);
        }
    }
    Ok(())
}
