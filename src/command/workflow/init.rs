//! `pleach init`: writes a study file for the images of a folder. `pleach schema`: prints the schema of study files.

use super::import::write_new;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_interop::study_start::{STUDY_FILE, start};
use pleach_workflow::STUDY_SCHEMA;
use std::path::Path;

/// Name of the schema beside the study file, which names it.
const SCHEMA_FILE: &str = "study.schema.json";

/// Runs `pleach init`.
pub(crate) fn execute(folder: &Path) -> CommandResult {
    let started = start(folder)?;
    let mut files = vec![(STUDY_FILE.to_owned(), started.text)];
    // The schema of an earlier study in this folder stays.
    if folder.join(SCHEMA_FILE).symlink_metadata().is_err() {
        files.push((SCHEMA_FILE.to_owned(), STUDY_SCHEMA.to_owned()));
    }
    write_new(folder, &files)?;
    let file = folder.join(STUDY_FILE);
    print_line(&format!("{}: {}", file.display(), started.findings.join("; ")));
    print_line(&format!("next: pleach plan {}", file.display()));
    Ok(())
}

/// Runs `pleach schema`.
pub(crate) fn print_schema() -> CommandResult {
    print_line(STUDY_SCHEMA.trim_end());
    Ok(())
}
