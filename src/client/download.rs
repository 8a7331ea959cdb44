//! A study's results, brought into a folder: each file whole or not at all.

use super::Client;
use super::show::Transfer;
use crate::api::view::is_result_name;
use crate::exit::{Outcome, Stop};
use crate::output::folder::Folder;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use ureq::http::header::CONTENT_LENGTH;

/// The file that says whose results they are.
const PLAN: &str = "plan.json";

/// Longest of these: it has a few figures for each stage.
const LONGEST_PLAN_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Plan {
    study_digest: String,
}

/// Brings all result files of a study into a folder, and returns their number. A folder with results of another study is
/// left alone.
///
/// # Errors
/// [`Stop::Input`] where the folder cannot be used or written to, and as [`Client::study`].
pub(crate) fn results(client: &Client, id: &str, out: &Path, transfer: &Transfer) -> Outcome<usize> {
    let names = client.result_names(id)?;
    if let Some(name) = names.iter().find(|name| !is_result_name(name)) {
        return Err(Stop::Refused(format!(
            "the manager names a result {name:?}, which would lead elsewhere"
        )));
    }
    let digest = if names.iter().any(|name| name == PLAN) { digest(client, id)? } else { String::new() };
    let folder = Folder::take(out, &digest)?;
    for name in &names {
        let target = folder.path().join(name);
        save(client, id, name, &target, transfer)?;
    }
    Ok(names.len())
}

fn digest(client: &Client, id: &str) -> Outcome<String> {
    let mut response = client.result(id, PLAN)?;
    let plan = super::json::<Plan>(&mut response, LONGEST_PLAN_BYTES);
    let plan = plan.map_err(|why| Stop::Refused(format!("{PLAN} of study {id}: {why}")))?;
    Ok(plan.study_digest)
}

/// Writes beside the target, syncs, and renames, once all of it is there. What is cut short is asked for again.
fn save(client: &Client, id: &str, name: &str, target: &Path, transfer: &Transfer) -> Outcome {
    let fail =
        |error: io::Error| Stop::writing(format_args!("--out: failed to write {}", target.display()), &error);
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(fail)?;
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let saved = fetch(client, id, name, part, transfer)
        .and_then(|()| fs::rename(part, target).map_err(fail))
        .and_then(|()| File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail));
    if saved.is_err() {
        // The error is the one to report, not what follows from it.
        let _ = fs::remove_file(part);
    }
    saved
}

/// How often a file is asked for of which not all arrives: each time the manager has answered, so it is there.
const ATTEMPTS: usize = 3;

fn fetch(client: &Client, id: &str, name: &str, part: &Path, transfer: &Transfer) -> Outcome {
    let fail =
        |error: io::Error| Stop::writing(format_args!("--out: failed to write {}", part.display()), &error);
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        let mut file = File::create(part).map_err(fail)?;
        let response = client.result(id, name)?;
        let length = response.headers().get(CONTENT_LENGTH);
        let length: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let before = transfer.position();
        let mut buffer = vec![0; 64 << 10];
        let mut received = 0;
        let ended = loop {
            client.waiting.check()?;
            match body.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(read) => {
                    io::Write::write_all(&mut file, &buffer[..read]).map_err(fail)?;
                    received += read as u64;
                    transfer.advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error.to_string()),
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
    Err(Stop::Refused(format!("{}: {name} of study {id}: {why}", client.manager)))
}
