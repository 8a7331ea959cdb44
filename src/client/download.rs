//! Downloads a study's results into a folder: all files or, after an interruption, none. Files arrive in a draft
//! (`download/draft.rs`). The client publishes the draft when it is complete.

mod draft;

use super::Client;
use super::progress_bars::TransferBar;
use crate::api::schema::is_result_name;
use crate::exit::{CommandError, CommandResult};
use draft::Draft;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use ureq::http::header::CONTENT_LENGTH;

/// The file that names the study of a results folder.
const PLAN: &str = "plan.json";

/// Maximum length of `plan.json`, which holds a few numbers for each stage.
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
/// Returns [`CommandError::Input`] if the folder is unusable, and the errors of [`Client::study`].
pub(crate) fn results(client: &Client, id: &str, out: &Path, transfer: &TransferBar) -> CommandResult<usize> {
    let names = client.result_names(id)?;
    if let Some(name) = names.iter().find(|name| !is_result_name(name)) {
        return Err(CommandError::Refused(format!(
            "the manager names a result {name:?}, which would lead elsewhere"
        )));
    }
    let digest = if names.iter().any(|name| name == PLAN) { digest(client, id)? } else { String::new() };
    let draft = Draft::open(out, &digest)?;
    for name in &names {
        fetch(client, id, name, &draft, transfer)?;
    }
    client.waiting().check()?;
    draft.publish(&names)?;
    Ok(names.len())
}

fn digest(client: &Client, id: &str) -> CommandResult<String> {
    let mut response = client.result(id, PLAN)?;
    let plan = super::json::<Plan>(&mut response, MAX_PLAN_BYTES);
    let plan = plan.map_err(|why| {
        CommandError::Refused(format!("{}: {PLAN} of study {id} is damaged: {why}", client.manager))
    })?;
    Ok(plan.study_digest)
}

/// Attempts to fetch a file that arrives incomplete. The manager has answered each time, so the file exists.
const ATTEMPTS: usize = 3;

/// Writes a file into the draft and syncs it. Fetches the file again if it arrives incomplete.
fn fetch(client: &Client, id: &str, name: &str, draft: &Draft, transfer: &TransferBar) -> CommandResult {
    let target = draft.files().join(name);
    let fail = |error: io::Error| draft.failed(name, &error);
    fs::create_dir_all(target.parent().unwrap_or(Path::new("."))).map_err(fail)?;
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        let mut file = File::create(&target).map_err(fail)?;
        let response = client.result(id, name)?;
        let length = response.headers().get(CONTENT_LENGTH);
        let length: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
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
                Ok(Err(error)) => break Err(error.to_string()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        match ended {
            Ok(()) if length.is_none_or(|length| length == received) => {
                return file.sync_all().map_err(fail);
            }
            Ok(()) => why = format!("{received} of {} bytes arrived", length.unwrap_or_default()),
            Err(error) => why = error,
        }
        transfer.back_to(before);
    }
    Err(CommandError::Refused(format!("{}: {name} of study {id}: {why}", client.manager)))
}

/// Interval between checks for an interruption while no data arrives.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum pieces that wait to be written.
const AHEAD: usize = 2;

/// Reads a body in pieces on its own thread, so that a stalled manager does not delay an interruption. The thread ends
/// with the body, with its receiver or with the process.
fn pieces(mut body: impl Read + Send + 'static) -> CommandResult<Receiver<io::Result<Vec<u8>>>> {
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
    std::thread::Builder::new().name("download".to_owned()).spawn(read).map_err(CommandError::defect)?;
    Ok(receive)
}
