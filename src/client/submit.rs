//! Submits a study and sends the files that the manager lacks.

use super::progress_bars::{TransferBar, plain};
use super::{Client, upload};
use crate::api::submission::Submission;
use crate::exit::{CommandError, CommandResult};
use pleach_actors::transport::token::hex;
use ring::rand::{SecureRandom, SystemRandom};

/// Maximum upload rounds. One round is enough unless the manager loses files meanwhile.
const ROUNDS: usize = 3;

/// Submits a study with all its files. Returns its id.
pub(crate) fn submit(client: &Client, submission: &Submission, is_quiet: bool) -> CommandResult<String> {
    let key = new_key()?;
    let mut submitted = client.submit(submission, &key)?;
    let id = submitted.id.clone();
    for _ in 0..ROUNDS {
        if submitted.missing.is_empty() {
            return Ok(id);
        }
        let told = plain(&id);
        client.waiting().goes_on(format!(
            "study {told} waits for files that it reads; pleach submit sends them, pleach cancel {told} ends it"
        ));
        let transfer = TransferBar::new("sending files", is_quiet);
        let sent = upload::missing(client, &submission.files(), &submitted.missing, &transfer);
        transfer.finish();
        sent?;
        // The same key identifies the same study. The manager returns the files that are still missing.
        submitted = client.submit(submission, &key)?;
    }
    if submitted.missing.is_empty() {
        return Ok(id);
    }
    Err(CommandError::Refused(format!(
        "study {}: the manager still lacks {} files that it was sent",
        plain(&id),
        submitted.missing.len()
    )))
}

/// Returns a random idempotency key. It identifies a study that is submitted twice after a lost answer.
fn new_key() -> CommandResult<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| CommandError::defect("the system gives no random numbers"))?;
    Ok(hex(&bytes))
}
