//! Downloads a study's results into a folder: all files or, after an interruption, none. Files arrive in a draft
//! (`download/draft.rs`). The client publishes the draft when it is complete.

mod draft;
mod error;

pub use error::{DownloadError, OutError, OutProblem};

use super::Client;
use super::error::AnswerError;
use super::transfer::TransferProgress;
use draft::Draft;
use error::TransferError;
use pleach_api::schema::is_result_name;
use pleach_results::folder::PLAN;
use pleach_study::Defect;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use ureq::http::header::CONTENT_LENGTH;

/// Maximum length of `plan.json`, which names the study of a results folder and holds a few numbers for each stage.
const MAX_PLAN_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Plan {
    study_digest: String,
}

/// Downloads all result files of a study into a folder. Returns the number of files. Replaces files of an earlier
/// download of the same study and keeps results of any other study. Until all files have arrived, and after an error,
/// the folder is unchanged.
///
/// # Errors
/// [`DownloadError`] if the folder is unusable or a request fails.
pub fn results(
    client: &Client,
    id: &str,
    out: &Path,
    transfer: &dyn TransferProgress,
) -> Result<usize, DownloadError> {
    let names = client.result_names(id)?;
    if let Some(name) = names.iter().find(|name| !is_result_name(name)) {
        return Err(DownloadError::ForeignName { name: name.clone() });
    }
    // Before the draft, which compares the digest with the owner of the folder: a refusal costs no transfer.
    let digest = if names.iter().any(|name| name == PLAN) { digest(client, id)? } else { String::new() };
    let draft = Draft::open(out, &digest)?;
    for name in &names {
        fetch(client, id, name, &draft, transfer)?;
    }
    // The last check: an interruption during the publish may leave a part of the files.
    client.waiting().check()?;
    draft.publish(&names)?;
    Ok(names.len())
}

fn digest(client: &Client, id: &str) -> Result<String, DownloadError> {
    let mut response = client.result(id, PLAN)?;
    let plan = super::json::<Plan>(&mut response, MAX_PLAN_BYTES);
    let damaged = |cause: AnswerError| DownloadError::CorruptPlan {
        manager: client.manager.clone(),
        study: id.to_owned(),
        cause,
    };
    Ok(plan.map_err(damaged)?.study_digest)
}

/// Attempts to fetch a file that arrives incomplete. The manager has answered each time, so the file exists.
const ATTEMPTS: usize = 3;

/// Writes a file into the draft and syncs it. Fetches the file again if it arrives incomplete.
fn fetch(
    client: &Client,
    id: &str,
    name: &str,
    draft: &Draft,
    transfer: &dyn TransferProgress,
) -> Result<(), DownloadError> {
    let target = draft.files().join(name);
    let fail = |cause: io::Error| draft.failed(name, cause);
    fs::create_dir_all(target.parent().unwrap_or(Path::new("."))).map_err(fail)?;
    let mut attempt = 1;
    loop {
        // Truncates the bytes of an earlier attempt.
        let mut file = File::create(&target).map_err(fail)?;
        let response = client.result(id, name)?;
        let length = response.headers().get(CONTENT_LENGTH);
        let length: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
        // Result files have no maximum size. The bounded channel limits the memory instead.
        let pieces = pieces(response.into_body().into_with_config().limit(u64::MAX).reader())?;
        let before = transfer.position();
        let mut received = 0;
        let ended = loop {
            client.waiting.check()?;
            match pieces.recv_timeout(LOOK_EVERY) {
                Ok(Ok(piece)) => {
                    file.write_all(&piece).map_err(fail)?;
                    received += piece.len() as u64;
                    transfer.advance(piece.len() as u64);
                }
                Ok(Err(error)) => break Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        let cause = match ended {
            Ok(()) if length.is_none_or(|length| length == received) => {
                // Synced in the draft: a published name must not refer to unwritten bytes.
                return Ok(file.sync_all().map_err(fail)?);
            }
            Ok(()) => TransferError::Short { received, bytes: length.unwrap_or_default() },
            Err(error) => TransferError::Broken(error),
        };
        transfer.back_to(before);
        if attempt == ATTEMPTS {
            let (manager, name, study) = (client.manager.clone(), name.to_owned(), id.to_owned());
            return Err(DownloadError::Incomplete { manager, name, study, cause });
        }
        attempt += 1;
    }
}

/// Interval between checks for an interruption while no data arrives.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum pieces that wait to be written.
const AHEAD: usize = 2;

/// Reads a body in pieces on its own thread, so that a stalled manager does not delay an interruption. The thread ends
/// with the body, with its receiver or with the process.
fn pieces(mut body: impl Read + Send + 'static) -> Result<Receiver<io::Result<Vec<u8>>>, Defect> {
    let (send, receive) = sync_channel(AHEAD);
    let read = move || {
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let read = match body.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    piece.truncate(read);
                    Ok(piece)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            if send.send(read).is_err() || is_over {
                return;
            }
        }
    };
    std::thread::Builder::new().name("download".to_owned()).spawn(read).map_err(Defect::new)?;
    Ok(receive)
}
