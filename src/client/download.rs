//! A study's results, brought into a folder: all of them or, after any interruption, none. What arrives goes into a draft beside
//! the folder (`download/draft.rs`), which is published when it is complete.

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

/// The file that says whose results they are.
const PLAN: &str = "plan.json";

/// Longest of these: it has a few figures for each stage.
const MAX_PLAN_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Plan {
    study_digest: String,
}

/// Brings all result files of a study into a folder, and returns their number. A folder with results of another study is
/// left alone. Until all files are there, and after an error, the folder is as it was; files of an earlier download of the
/// same study are replaced.
///
/// # Errors
/// [`CommandError::Input`] where the folder cannot be used or written to, and as [`Client::study`].
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

/// How often a file is asked for of which not all arrives: each time the manager has answered, so it is there.
const ATTEMPTS: usize = 3;

/// Writes a file into the draft, and waits until it is on the medium. What is cut short is asked for again.
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

/// How soon an interruption is heard of while nothing arrives.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Pieces that may wait to be written.
const AHEAD: usize = 2;

/// A body piece by piece, read on a thread of its own: a manager that stalls delays no interruption. The thread ends with
/// the body, with its receiver, or with the process.
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
