//! Checks the folder of one study: its submission, its end, and its results or, for an open study, its journals.

use super::Report;
use super::state::{NO_CHECKSUM, unexpected};
use pleach_api::digest::InputDigest;
use pleach_api::schema::StudyState;
use pleach_execution::rounds::phases;
use pleach_results::folder::study_of;
use pleach_results::journal;
use pleach_results::survivors::{PhaseSurvivors, SURVIVORS};
use pleach_server::service::results::{self, Checksums};
use pleach_server::service::state::record::{self, COST, ENDED, Record, SUBMISSION};
use pleach_server::service::state::{StoredSubmission, StudyEnd};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Remedy for files without which a manager quarantines the study.
const QUARANTINE: &str =
    "restore it from a backup before the manager's next start, which moves the study to quarantine";

/// Remedy for records that the manager derives from results.
const RESTORED: &str = "the manager recreates it from the current results; only a backup has their checksums";

/// Remedy for files that only clients read.
const SUBMIT_AGAIN: &str =
    "the manager does not serve it: restore it from a backup, or submit the study again";

/// Checks the folder. Returns the input files that the study still needs.
pub(super) fn check(
    report: &mut Report,
    id: u32,
    folder: &Path,
    is_at_work: bool,
) -> Vec<(InputDigest, PathBuf)> {
    let known = [SUBMISSION, ENDED, COST, "results"];
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut others: Vec<PathBuf> =
        entries.filter(|path| !known.iter().any(|known| path.ends_with(known))).collect();
    others.sort_unstable();
    others.iter().for_each(|path| unexpected(report, path, is_at_work));
    let Some(kept) = submission(report, id, folder, is_at_work) else { return Vec::new() };
    let path = folder.join(ENDED);
    match record::read_ended(folder) {
        Record::Missing if is_at_work => {}
        Record::Missing if record::complete_by_results(&kept, &folder.join("results")).is_some() => {
            report.error(&path, "missing, although all results exist", RESTORED);
        }
        Record::Missing => {
            check_unfinished(report, &kept, &folder.join("results"));
            let files = kept.submission.files().into_iter();
            return files.map(|file| (file.digest, PathBuf::from(file.path))).collect();
        }
        Record::Sound(content) => {
            if !content.is_checksummed {
                report.note(&path, "it has no checksum", NO_CHECKSUM);
            }
            report.sound(&path);
            check_finished(report, &content.value, &folder.join("results"));
        }
        Record::Corrupt(why) => {
            report.error(&path, format!("corrupt: {why}"), RESTORED);
        }
        Record::Unreadable(why) => {
            report.error(&path, why.to_string(), "make it readable: the manager skips the study until then");
        }
    }
    Vec::new()
}

/// Checks the submission of a study and returns it. `None` if it is missing or corrupt.
fn submission(report: &mut Report, id: u32, folder: &Path, is_at_work: bool) -> Option<StoredSubmission> {
    let path = folder.join(SUBMISSION);
    match record::read_submission(folder) {
        Record::Missing if is_at_work => None,
        Record::Missing => {
            report.note(
                folder,
                format!("study {id} was being submitted when the manager ended"),
                "it can be removed",
            );
            None
        }
        Record::Sound(content) => {
            if !content.is_checksummed {
                report.note(&path, "it has no checksum", NO_CHECKSUM);
            }
            report.sound(&path);
            Some(content.value)
        }
        Record::Corrupt(why) => {
            report.error(&path, format!("corrupt: {why}"), QUARANTINE);
            None
        }
        Record::Unreadable(why) => {
            report.error(&path, why.to_string(), "make it readable: the manager skips the study until then");
            None
        }
    }
}

/// Checks the results of a study that has ended.
fn check_finished(report: &mut Report, ended: &StudyEnd, folder: &Path) {
    match &ended.results {
        Some(checksums) => verify(report, checksums, folder),
        None if ended.state == StudyState::Complete => {
            report.note(folder, "results without checksums", NO_CHECKSUM);
        }
        None => {}
    }
}

fn verify(report: &mut Report, checksums: &Checksums, folder: &Path) {
    for (name, expected) in checksums {
        let path = folder.join(name);
        match results::checksum(&path) {
            Ok(found) if found == *expected => report.sound(&path),
            Ok(_) => report.error(&path, "corrupt: its checksum does not match its content", SUBMIT_AGAIN),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                report.error(&path, "missing", SUBMIT_AGAIN);
            }
            Err(error) => report.error(&path, error.to_string(), "make it readable for the manager"),
        }
    }
    match results::names(folder) {
        Ok(names) => {
            for name in names.iter().filter(|name| !checksums.contains_key(*name)) {
                report.warning(
                    &folder.join(name),
                    "unexpected",
                    "not a result of the study: the manager does not serve it",
                );
            }
        }
        Err(error) => report.error(folder, error.to_string(), "make it readable for the manager"),
    }
}

/// Checks the files that the manager needs to resume a study.
fn check_unfinished(report: &mut Report, kept: &StoredSubmission, results: &Path) {
    if !results.exists() {
        return;
    }
    let names = phases::names(&kept.submission.study);
    let folders = std::iter::once(results.to_owned()).chain(names.iter().map(|name| results.join(name)));
    for folder in folders.filter(|folder| folder.is_dir()) {
        part(report, &folder);
    }
}

fn part(report: &mut Report, folder: &Path) {
    let path = folder.join("plan.json");
    if let Ok(text) = fs::read(&path) {
        match study_of(&text) {
            Ok(_) => report.sound(&path),
            Err(_) => report.error(&path, "corrupt: invalid content", "the manager plans the study again"),
        }
    }
    let path = folder.join(SURVIVORS);
    if let Ok(text) = fs::read(&path) {
        match PhaseSurvivors::of_text(&text) {
            Ok((_, is_checksummed)) => {
                if !is_checksummed {
                    report.note(&path, "it has no checksum", NO_CHECKSUM);
                }
                report.sound(&path);
            }
            Err(why) => {
                report.error(
                    &path,
                    format!("corrupt: {why}"),
                    "the manager selects the survivors again from the responses of the phase",
                );
            }
        }
    }
    let path = folder.join(journal::NAME);
    let Ok(file) = File::open(&path) else { return };
    let read = journal::count(file);
    match read {
        Ok(bytes) if bytes.corrupt == 0 && bytes.intact > 0 => report.sound(&path),
        Ok(bytes) if bytes.intact == 0 => {
            report.error(
                &path,
                "corrupt: invalid first line",
                "the manager computes all its responses again",
            );
        }
        Ok(bytes) if bytes.is_torn => {
            let problem = format!("incomplete or corrupt last line of {} bytes", bytes.corrupt);
            report.warning(&path, problem, "the manager computes its response again, as after a crash");
        }
        Ok(bytes) => {
            let problem = format!("corrupt: invalid data in its last {} bytes", bytes.corrupt);
            report.error(&path, problem, "the manager computes their responses again");
        }
        Err(error) => report.error(&path, error.to_string(), "make it readable for the manager"),
    }
}
