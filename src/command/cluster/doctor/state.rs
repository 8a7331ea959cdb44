//! Checks the state directory of a manager: compares every persistent file with its checksum.
//!
//! A manager may be running. It then writes files of open studies, which the check skips.

use super::{Report, study};
use crate::exit::{CommandError, CommandResult};
use pleach_api::digest::InputDigest;
use pleach_api::token::ApiToken;
use pleach_execution::cost_history;
use pleach_server::service::StoredLedger;
use pleach_server::service::provision;
use pleach_server::service::results::checksum;
use pleach_server::service::state::quarantine::{self, QUARANTINE};
use pleach_server::service::state::record::{self, Record};
use pleach_server::service::state::{IDENTITY, LOCK, ManagerIdentity, REMOVED, STUDIES};
use serde::de::DeserializeOwned;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Names of the other files and folders in a state directory.
const INPUTS: &str = "inputs";
const TOKEN: &str = "token";
const SPENT: &str = "spent.json";
const POD_COSTS: &str = "pod-costs.json";
const WORKERS: &str = "workers";

/// Names of all files and folders in a state directory. `lost+found` exists if it is the root of a file system.
const KNOWN: [&str; 13] = [
    IDENTITY,
    LOCK,
    STUDIES,
    INPUTS,
    TOKEN,
    SPENT,
    POD_COSTS,
    provision::FILE,
    WORKERS,
    cost_history::NAME,
    QUARANTINE,
    REMOVED,
    "lost+found",
];

/// Suffix of a file that is being written.
const PART: &str = ".part";

/// A remedy for files without checksum.
pub(super) const NO_CHECKSUM: &str = "an earlier version wrote it, and changes cannot be detected";

/// Checks the directory.
pub(super) fn check(folder: &Path) -> CommandResult<Report> {
    let fail = |error: std::io::Error| CommandError::Input(format!("--state {}: {error}", folder.display()));
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        names.push(entry.map_err(fail)?.path());
    }
    // File systems list entries in different orders, and the output must not differ.
    names.sort_unstable();
    let studies = folder.join(STUDIES);
    if !studies.is_dir() && !folder.join(IDENTITY).exists() {
        let path = folder.display();
        return Err(CommandError::Input(format!(
            "--state {path}: not the state directory of a manager; the directory of its --state is allowed"
        )));
    }
    let mut report = Report::default();
    let is_at_work = is_at_work(folder);
    if is_at_work {
        report.note(folder, "a manager is running", "studies that have not ended are not checked");
    }
    for path in names.iter().filter(|path| !KNOWN.iter().any(|known| path.ends_with(known))) {
        unexpected(&mut report, path, is_at_work);
    }
    identity(&mut report, folder);
    let forgotten = "the manager ignores its content at the next start and writes it again";
    file::<StoredLedger>(&mut report, &folder.join(SPENT), forgotten);
    file::<Vec<String>>(&mut report, &folder.join(POD_COSTS), forgotten);
    costs(&mut report, folder);
    let token = folder.join(TOKEN);
    match ApiToken::read(&token) {
        _ if !token.exists() => {}
        Ok(_) => report.sound(&token),
        Err(error) => report.error(
            &token,
            without_path(&error, &token),
            "remove it, and the manager creates another one at its next start",
        ),
    }
    let mut needed = Vec::new();
    match record::list(&studies) {
        Ok(listed) => {
            listed.unknown.iter().for_each(|path| unexpected(&mut report, path, is_at_work));
            for (id, path) in &listed.studies {
                needed.extend(study::check(&mut report, *id, path, is_at_work));
            }
        }
        Err(error) => report.error(&studies, error.to_string(), "the manager does not start without it"),
    }
    inputs(&mut report, &folder.join(INPUTS), &needed, is_at_work);
    match quarantine::list(folder) {
        Ok(things) => things.iter().for_each(|thing| {
            let why = format!("in quarantine: {}", thing.reason);
            report.warning(
                &thing.path,
                why,
                "remove it when you no longer need it; the manager removes no input file before",
            );
        }),
        Err(error) => report.error(&folder.join(QUARANTINE), error.to_string(), "make it readable"),
    }
    let removed = folder.join(REMOVED);
    if !is_at_work && fs::read_dir(&removed).is_ok_and(|mut studies| studies.next().is_some()) {
        report.note(&removed, "studies that are being removed", "the manager removes them at its next start");
    }
    Ok(report)
}

/// Returns whether a manager holds the lock. Releases the shared lock at once, so that a manager may start.
fn is_at_work(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes the leading path from an error message, because the report prints the path first.
fn without_path(error: &impl ToString, path: &Path) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).map_or_else(|| text.clone(), str::to_owned)
}

fn identity(report: &mut Report, folder: &Path) {
    let path = folder.join(IDENTITY);
    if !path.exists() {
        report.error(
            &path,
            "missing",
            "restore it from a backup, or the manager continues under a new number",
        );
    } else {
        file::<ManagerIdentity>(
            report,
            &path,
            "the manager does not start: restore it from a backup, or remove it",
        );
    }
}

/// Checks a file that may be missing.
fn file<T: DeserializeOwned>(report: &mut Report, path: &Path, remedy: &str) {
    match record::read::<T>(path) {
        Record::Missing => {}
        Record::Sound(content) => {
            if !content.is_checksummed {
                report.note(path, "it has no checksum", NO_CHECKSUM);
            }
            report.sound(path);
        }
        Record::Corrupt(why) => report.error(path, format!("corrupt: {why}"), remedy),
        Record::Unreadable(why) => report.error(path, why.to_string(), "make it readable for the manager"),
    }
}

/// Checks the learned costs of operations.
fn costs(report: &mut Report, folder: &Path) {
    let path = folder.join(cost_history::NAME);
    match cost_history::verify(folder) {
        _ if !path.exists() => {}
        Ok(Some(_)) => report.sound(&path),
        Ok(None) => {
            report.error(
                &path,
                "corrupt: its digest differs",
                "plans use declared costs until a study has ended",
            );
        }
        Err(error) => report.error(&path, error.to_string(), "make it readable for the manager"),
    }
}

/// Reports a file or folder that does not belong to a state directory.
pub(super) fn unexpected(report: &mut Report, path: &Path, is_at_work: bool) {
    if !path.as_os_str().as_encoded_bytes().ends_with(PART.as_bytes()) {
        report.warning(path, "unexpected", "not part of a state directory: remove it if you created it");
    } else if !is_at_work {
        report.note(path, "incomplete: a process ended while writing it", "it can be removed");
    }
}

/// Checks input files against the digests in their names, and reports missing input files that open studies `needed`.
fn inputs(report: &mut Report, folder: &Path, needed: &[(InputDigest, PathBuf)], is_at_work: bool) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => return report.error(folder, error.to_string(), "make it readable for the manager"),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digest = name.split('.').next().unwrap_or_default().parse::<InputDigest>();
        match digest {
            // Folder of links to the files of a slide, which are checked themselves.
            Ok(_) if path.is_dir() => {}
            Ok(digest) if name == digest.to_string() => match checksum(path) {
                Ok(found) if found == digest => report.sound(path),
                Ok(_) => report.error(
                    path,
                    "corrupt: its content has another digest",
                    "remove it, and resubmit the studies that read it: the client sends it",
                ),
                Err(error) => report.error(path, error.to_string(), "make it readable for the manager"),
            },
            _ => unexpected(report, path, is_at_work),
        }
    }
    for (digest, path) in needed {
        if !folder.join(digest.to_string()).exists() && !path.exists() {
            let problem = format!("missing, and input file {digest} is not in the state directory");
            report.warning(
                path,
                problem,
                "submit the study again from a machine with the file: the client sends it",
            );
        }
    }
}
