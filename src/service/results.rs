//! Result files of a study on the manager: their names and checksums.
//!
//! Checksums are taken when a study has ended and kept with its end; a file is given out only if it still has its own.

use super::inputs::InputDigest;
use crate::api::schema::is_result_name;
use crate::journal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// BLAKE3 of each result file, by its name.
pub(crate) type Checksums = BTreeMap<String, InputDigest>;

/// Files among the results that are the manager's own.
const OWN: [&str; 1] = [journal::NAME];

/// Whether clients may have a file of this name.
pub(crate) fn is_for_clients(name: &str) -> bool {
    is_result_name(name) && !OWN.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// A folder or file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub(crate) struct UnreadableError {
    path: PathBuf,
    source: io::Error,
}

impl UnreadableError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self { path: path.to_owned(), source }
    }
}

/// Names of the result files in a folder, and in the folders of phases in it.
///
/// # Errors
/// [`UnreadableError`].
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, UnreadableError> {
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
        // A link may lead anywhere.
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

/// Checksums of the result files in a folder.
///
/// # Errors
/// [`UnreadableError`].
pub(crate) fn checksums(folder: &Path) -> Result<Checksums, UnreadableError> {
    let named = |name: String| {
        let path = folder.join(&name);
        let checksum = checksum(&path).map_err(UnreadableError::at(&path))?;
        Ok((name, checksum))
    };
    names(folder)?.into_iter().map(named).collect()
}

/// BLAKE3 of a file's content.
///
/// # Errors
/// [`io::Error`].
pub(crate) fn checksum(path: &Path) -> io::Result<InputDigest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().into())
}
