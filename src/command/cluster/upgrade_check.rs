//! `pleach upgrade-check`: compares the format versions of stored files with those that this program reads.
//!
//! It reads folders of an earlier or later version and changes nothing. [`super::doctor`] compares files with their checksums.

mod folder_kind;
mod study;

use super::items::{Items, Severity};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_json;
use folder_kind::FolderKind;
use pleach_actors::transport::hello::Version;
use pleach_cache as cache;
use pleach_execution::cost_history;
use pleach_provision::READ_FORMATS;
use pleach_server::service::provision;
use pleach_server::service::state::record;
use pleach_server::service::state::{self, IDENTITY, STUDIES};
use pleach_storage as storage;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Remedy for files of a later version.
const NEWER: &str =
    "start the version of pleach that wrote it, or restore a copy of the time before the upgrade";

/// Longer than the first line of any file with a marker.
const MARKER_LIMIT_BYTES: u64 = 128;

/// Runs the command.
pub(in crate::command) fn execute(folders: &[PathBuf], json: bool) -> CommandResult {
    let mut kinds = Vec::with_capacity(folders.len());
    for folder in folders {
        kinds.push((folder, FolderKind::of(folder)?));
    }
    let mut items = Items::default();
    program(&mut items);
    for (folder, kind) in kinds {
        match kind {
            FolderKind::State => state_directory(&mut items, folder),
            FolderKind::Cache(found) => {
                let known = [cache::MARKER, cache::EARLIER_MARKER];
                marker(&mut items, &folder.join(cache::MARKER_NAME), &found, &known);
                costs(&mut items, folder);
            }
            FolderKind::Tier(found) => {
                marker(&mut items, &folder.join(cache::MARKER_NAME), &found, &[storage::MARKER]);
            }
            FolderKind::Results => study::results(&mut items, folder),
        }
    }
    if json {
        print_json(&items)?;
    } else {
        items.print("formats");
    }
    match items.count(Severity::Error) {
        0 => Ok(()),
        unread => Err(CommandError::SomeFailed(format!("{unread} formats are not read by this version"))),
    }
}

/// Lists the versions of this program.
fn program(items: &mut Items) {
    let Version { protocol, build } = Version::current();
    items.note(
        format!("pleach {build}"),
        format!("protocol {protocol} between nodes"),
        "stop the workers, replace the manager, then the workers: nodes of different protocols refuse each other",
    );
}

/// Compares the first line of a file with those that this version reads, the one that it writes first.
fn marker(items: &mut Items, path: &Path, found: &str, known: &[&str]) {
    let subject = path.display().to_string();
    if known.first() == Some(&found) {
        items.ok(subject, found);
    } else if known.contains(&found) {
        let found = format!("{found}, of an earlier version; this version reads it and writes {}", known[0]);
        items.note(subject, found, "nothing, or keep a copy to return to the earlier version");
    } else {
        items.error(subject, format!("{found:?}; this version reads {}", known.join(", ")), NEWER);
    }
}

/// Compares a number with the one that this version reads and writes.
fn number(items: &mut Items, path: &Path, what: &str, found: u32, known: u32) {
    let subject = path.display().to_string();
    if found == known {
        items.ok(subject, format!("{what} {found}"));
    } else {
        items.error(subject, format!("{what} {found}; this version reads {known}"), NEWER);
    }
}

/// Returns the first line of a file. `None` if the file is missing.
fn first_line(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MARKER_LIMIT_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// Compares the learned costs, which begin with the name of their format and a digest.
fn costs(items: &mut Items, folder: &Path) {
    let path = folder.join(cost_history::NAME);
    let Some(line) = first_line(&path) else { return };
    let found = line.split(' ').next().unwrap_or_default();
    if found == cost_history::FORMAT {
        return items.ok(path.display().to_string(), found);
    }
    let found = format!("{found:?}; this version reads {}", cost_history::FORMAT);
    items.warning(
        path.display().to_string(),
        found,
        "nothing: plans use declared costs until a study has ended",
    );
}

fn state_directory(items: &mut Items, folder: &Path) {
    let path = folder.join(IDENTITY);
    match state::format_of(folder) {
        Some(found) => number(items, &path, "state directory format", found, state::FORMAT),
        None => items.error(
            path.display().to_string(),
            "missing or corrupt",
            "restore it from a backup; pleach doctor --state checks all files",
        ),
    }
    let path = folder.join(provision::FILE);
    if let Some(found) = first_line(&path) {
        marker(items, &path, &found, &READ_FORMATS.map(str::trim_end));
    }
    costs(items, folder);
    let studies = folder.join(STUDIES);
    match record::list(&studies) {
        Ok(listed) => listed.studies.iter().for_each(|(id, folder)| study::stored(items, *id, folder)),
        Err(error) => items.error(studies.display().to_string(), error.to_string(), "make it readable"),
    }
}
