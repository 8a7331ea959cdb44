//! Result files of a study on the manager: their names and checksums.
//!
//! The manager computes the checksums when a study ends and stores them with the record of its end. It sends a file
//! only if the checksum still matches.

use pleach_api::digest::InputDigest;
use pleach_api::schema::is_result_name;
use pleach_results::journal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// BLAKE3 checksum of each result file, by name.
pub type Checksums = BTreeMap<String, InputDigest>;

/// Files in a result folder that only the manager reads.
const OWN: [&str; 1] = [journal::NAME];

/// Returns whether clients may download a file of this name.
pub(crate) fn is_for_clients(name: &str) -> bool {
    is_result_name(name) && !OWN.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// Error for a folder or file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct UnreadableError {
    path: PathBuf,
    source: io::Error,
}

impl UnreadableError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self { path: path.to_owned(), source }
    }
}

/// Lists the result files in a folder and in the phase folders within it, sorted by name.
///
/// # Errors
/// [`UnreadableError`] when a folder cannot be read.
pub fn names(folder: &Path) -> Result<Vec<String>, UnreadableError> {
    let mut names = Vec::new();
    list(folder, "", &mut names)?;
    names.sort_unstable();
    Ok(names)
}

fn list(folder: &Path, within: &str, names: &mut Vec<String>) -> Result<(), UnreadableError> {
    let fail = UnreadableError::at(folder);
    for entry in fs::read_dir(folder).map_err(&fail)? {
        let entry = entry.map_err(&fail)?;
        let name = format!("{within}{}", entry.file_name().to_string_lossy());
        // `file_type` does not follow links, which may lead anywhere.
        let kind = entry.file_type().map_err(&fail)?;
        if !is_result_name(&name) {
            continue;
        }
        if kind.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else if kind.is_file() && is_for_clients(&name) {
            names.push(name);
        }
    }
    Ok(())
}

/// Computes the checksums of all result files in a folder.
///
/// # Errors
/// [`UnreadableError`] when the folder or a file cannot be read.
pub(crate) fn checksums(folder: &Path) -> Result<Checksums, UnreadableError> {
    let named = |name: String| {
        let path = folder.join(&name);
        let checksum = checksum(&path).map_err(UnreadableError::at(&path))?;
        Ok((name, checksum))
    };
    names(folder)?.into_iter().map(named).collect()
}

/// Computes the BLAKE3 checksum of a file's content.
///
/// # Errors
/// [`io::Error`] when the file cannot be read.
pub fn checksum(path: &Path) -> io::Result<InputDigest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().into())
}
