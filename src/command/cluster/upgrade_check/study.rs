//! Formats of a study's files: the submission on a manager, journals, records of tasks, and results.

use super::super::items::Items;
use super::{NEWER, first_line, number};
use pleach_api::submission;
use pleach_results::record::RESULTS_FORMAT;
use pleach_results::{journal, provenance};
use pleach_server::service::state::record::{self, Record, SUBMISSION};
use serde::Deserialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fields of `run.json` that name versions.
#[derive(Deserialize)]
struct RunVersions {
    version: String,
    /// 1 in results of versions that wrote no number.
    #[serde(default = "first_format")]
    format: u32,
}

fn first_format() -> u32 {
    1
}

/// Checks a study of a state directory.
pub(super) fn stored(items: &mut Items, id: u32, folder: &Path) {
    let path = folder.join(SUBMISSION);
    let is_over = matches!(record::read_ended(folder), Record::Sound(_));
    match record::read_submission(folder) {
        Record::Missing => return,
        Record::Sound(content) => {
            let submission = &content.value.submission;
            number(items, &path, "submission format", submission.version(), submission::VERSION);
            if !is_over && submission.build() != VERSION {
                items.warning(
                    format!("study {id}"),
                    format!("open, and submitted by pleach {}; this is pleach {VERSION}", submission.build()),
                    "start that version again until the study has ended, or cancel it and submit it again",
                );
            }
        }
        Record::Corrupt(why) => items.error(
            path.display().to_string(),
            why.to_string(),
            "start the version of pleach that wrote it; pleach doctor --state checks all files",
        ),
        Record::Unreadable(why) => {
            items.error(path.display().to_string(), why.to_string(), "make it readable")
        }
    }
    let results = folder.join("results");
    if results.is_dir() {
        self::results(items, &results);
    }
}

/// Checks the files of a folder of results, and those of its phases.
pub(super) fn results(items: &mut Items, folder: &Path) {
    run(items, &folder.join("run.json"));
    for part in parts(folder) {
        records(items, &part.join(provenance::NAME));
        journaled(items, &part.join(journal::NAME));
    }
}

/// Returns the folder and those of its phases, in their order.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_phase = |path: &PathBuf| {
        path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("phase-"))
    };
    let mut phases: Vec<PathBuf> = entries.filter(is_phase).collect();
    phases.sort_unstable();
    std::iter::once(folder.to_owned()).chain(phases).collect()
}

fn run(items: &mut Items, path: &Path) {
    let Ok(text) = fs::read(path) else { return };
    match serde_json::from_slice::<RunVersions>(&text) {
        Ok(found) => {
            let what = format!("results of pleach {}, format", found.version);
            number(items, path, &what, found.format, RESULTS_FORMAT);
        }
        Err(error) => {
            items.error(path.display().to_string(), format!("corrupt: {error}"), "restore it from a copy")
        }
    }
}

fn records(items: &mut Items, path: &Path) {
    let Some(found) = first_line(path) else { return };
    let known = String::from_utf8_lossy(provenance::MAGIC);
    let subject = path.display().to_string();
    if found == known.trim_end() {
        items.ok(subject, found);
    } else {
        let found = format!("{found:?}; this version reads {}", known.trim_end());
        items.error(
            subject,
            found,
            "use the version of pleach that wrote it for pleach explain; results do not depend on it",
        );
    }
}

/// Checks a journal, which only the version that wrote it continues.
fn journaled(items: &mut Items, path: &Path) {
    let Ok(file) = File::open(path) else { return };
    let subject = path.display().to_string();
    match journal::read_header(file) {
        Ok(Some(header)) if header.format() != journal::FORMAT => {
            let found = format!("journal format {}; this version reads {}", header.format(), journal::FORMAT);
            items.error(subject, found, NEWER);
        }
        Ok(Some(header)) if header.version() != VERSION => items.warning(
            subject,
            format!("journal of pleach {}; this is pleach {VERSION}", header.version()),
            "resume the study with that version, or run it again with --overwrite",
        ),
        Ok(Some(header)) => items.ok(subject, format!("journal format {}", header.format())),
        Ok(None) => items.error(
            subject,
            "corrupt: invalid first line",
            "its responses are computed again; pleach doctor --state checks all files",
        ),
        Err(error) => items.error(subject, error.to_string(), "make it readable"),
    }
}
