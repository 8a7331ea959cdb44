//! Submits a study and sends the files that the manager lacks.

use super::error::SubmitError;
use super::remote_text::plain;
use super::transfer::TransferProgress;
use super::{Client, upload};
use pleach_actors::transport::token::hex;
use pleach_api::random;
use pleach_api::submission::Submission;
use pleach_study::Defect;

/// Maximum upload rounds. One round is enough unless the manager loses files meanwhile.
const ROUNDS: usize = 3;

/// Submits a study with all its files. Returns its id. `show` begins the display of one upload round.
///
/// # Errors
/// [`SubmitError`] if the manager refuses the study or a file, if a file is unreadable or has changed, or after an
/// interruption.
pub fn submit<T: TransferProgress>(
    client: &Client,
    submission: &Submission,
    show: impl Fn() -> T,
) -> Result<String, SubmitError> {
    let key = new_key()?;
    let mut submitted = client.submit(submission, &key)?;
    let id = submitted.id.clone();
    for _ in 0..ROUNDS {
        if submitted.missing.is_empty() {
            return Ok(id);
        }
        let study_id = plain(&id);
        // Set before the upload: an interruption leaves a submitted study behind.
        client.waiting().set_message(format!(
            "study {study_id} waits for input files; pleach submit sends them, pleach cancel {study_id} \
             ends the study"
        ));
        let transfer = show();
        let sent = upload::missing(client, &submission.files(), &submitted.missing, &transfer);
        // Before the error is returned, so that its message is not printed into the bar.
        transfer.finish();
        sent?;
        // The same key identifies the same study. The manager returns the files that are still missing.
        submitted = client.submit(submission, &key)?;
    }
    if submitted.missing.is_empty() {
        return Ok(id);
    }
    Err(SubmitError::StillMissing { study: id, files: submitted.missing.len() })
}

/// Returns a random idempotency key. It identifies a study that is submitted twice after a lost answer.
fn new_key() -> Result<String, Defect> {
    Ok(hex(&random::bytes::<16>()?))
}
