//! Repair of the result folder of an unfinished study: moves each corrupt file to quarantine, so that the study can
//! continue without it.
//!
//! Everything in such a folder follows from the submission and the journal. Each record of a journal has its own
//! checksum, so only its first line is checked here.

use super::state::quarantine::QuarantineAction;
use super::state::{StateDir, StateError, failed_at};
use pleach_results::folder::{publish, study_of};
use pleach_results::journal;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// Makes an existing result folder name the study that it belongs to. A missing folder stays missing.
///
/// # Errors
/// [`StateError`] when the folder cannot be read or written.
pub(super) fn owner_of(state: &StateDir, id: u32, out: &Path, digest: &str) -> Result<(), StateError> {
    let path = out.join("plan.json");
    let why = match fs::read(&path) {
        Ok(text) => match study_of(&text) {
            Ok(found) if found == digest => return Ok(()),
            Ok(_) => "belongs to another study",
            Err(_) => "invalid content",
        },
        Err(error) if error.kind() == ErrorKind::NotFound => "",
        Err(error) => return Err(failed_at(&path)(error)),
    };
    if !why.is_empty() {
        // A copy: `publish` replaces the file below, so the folder names an owner at any time.
        state.set_aside(id, &path, QuarantineAction::Copy, why)?;
    }
    if !out.exists() {
        return Ok(());
    }
    // The runner writes the complete plan after planning.
    let owner = serde_json::json!({ "study_digest": digest }).to_string();
    publish(&path, owner.as_bytes()).map_err(failed_at(&path))
}

/// Moves a journal with a corrupt first line to quarantine. Its results are computed again.
///
/// # Errors
/// [`StateError`] when the journal cannot be read or moved.
pub(super) fn journal_in(state: &StateDir, id: u32, out: &Path) -> Result<(), StateError> {
    let path = out.join(journal::NAME);
    let fail = failed_at(&path);
    match File::open(&path).map(journal::has_header) {
        Ok(is_sound) if is_sound.as_ref().is_ok_and(|is_sound| *is_sound) => Ok(()),
        Ok(is_sound) => {
            is_sound.map_err(fail)?;
            state.set_aside(id, &path, QuarantineAction::Move, "the first line does not match its checksum")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::state::quarantine;
    use pleach_results::journal::Header;

    #[test]
    fn owner_of_a_folder_is_restored_and_what_was_there_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::open(place.path()).unwrap();
        let out = state.results(1);
        owner_of(&state, 1, &out, "a").unwrap();
        assert!(!out.exists(), "a study that has not begun has no folder");
        fs::create_dir_all(&out).unwrap();
        let plan = out.join("plan.json");
        for (content, aside) in
            [("{\"study_digest\": \"a\", \"x\": 1}", 0), ("{\"study", 1), ("{\"study_digest\": \"b\"}", 2)]
        {
            fs::write(&plan, content).unwrap();
            owner_of(&state, 1, &out, "a").unwrap();
            assert_eq!(study_of(&fs::read(&plan).unwrap()).unwrap(), "a", "{content}");
            assert_eq!(quarantine::list(place.path()).unwrap().len(), aside, "{content}");
            assert_eq!(fs::read(&plan).unwrap() == content.as_bytes(), aside == 0, "{content}");
        }
        fs::remove_file(&plan).unwrap();
        owner_of(&state, 1, &out, "a").unwrap();
        assert_eq!(study_of(&fs::read(&plan).unwrap()).unwrap(), "a");
    }

    #[test]
    fn journal_with_a_corrupt_first_line_is_set_aside() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::open(place.path()).unwrap();
        let out = state.results(1);
        journal_in(&state, 1, &out).unwrap();
        fs::create_dir_all(&out).unwrap();
        let (path, line) = (out.join(journal::NAME), Header::new(&[("seed", "1".to_owned())]).line());
        fs::write(&path, format!("{line}rest that is cut sh")).unwrap();
        journal_in(&state, 1, &out).unwrap();
        assert!(path.exists() && quarantine::list(place.path()).unwrap().is_empty());
        for wrong in ["", &line[..40], &line.replace("seed", "seeD")] {
            fs::write(&path, wrong).unwrap();
            journal_in(&state, 1, &out).unwrap();
            assert!(!path.exists(), "{wrong}");
        }
        let aside = quarantine::list(place.path()).unwrap();
        assert!(
            aside.len() == 3 && aside[0].reason.contains("studies/1/results/journal: corrupt"),
            "{aside:?}"
        );
    }
}
