//! Result folder of a study: ownership, result files and previews.

use crate::provenance;
use pleach_study::Defect;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// File that names the study that owns the folder.
pub const PLAN: &str = "plan.json";

/// Result files of any study. A folder with one of them belongs to a study.
pub const RESULTS: [&str; 11] = [
    PLAN,
    "samples.csv",
    "responses.csv",
    "failed.csv",
    "indices.csv",
    "indices.json",
    "best.csv",
    "run.json",
    "report.html",
    "survivors.json",
    provenance::NAME,
];

/// Subfolder for the requested images.
const PREVIEWS: &str = "previews";

/// Part of `plan.json` that identifies the owner.
#[derive(Serialize, Deserialize)]
struct Digest {
    study_digest: String,
}

/// Owner of the results in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The folder has no results.
    None,
    /// The study with this digest.
    Study(String),
    /// Unknown: `plan.json` is damaged for this reason.
    Damaged(String),
    /// Unknown: the folder has this file but no `plan.json`.
    Unknown(&'static str),
}

/// Returns the owner of the results in a folder.
pub fn owner(path: &Path) -> Owner {
    let mut results = RESULTS.iter().chain([&PREVIEWS]);
    // Links are not followed: a dangling one occupies the name too.
    let Some(&name) = results.find(|name| path.join(name).symlink_metadata().is_ok()) else {
        return Owner::None;
    };
    match fs::read(path.join(PLAN)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Owner::Unknown(name),
        Err(error) => Owner::Damaged(error.to_string()),
        Ok(text) => match study_of(&text) {
            Ok(digest) => Owner::Study(digest),
            Err(error) => Owner::Damaged(error.to_string()),
        },
    }
}

/// Returns the digest of the study of a `plan.json`.
pub fn study_of(plan: &[u8]) -> serde_json::Result<String> {
    serde_json::from_slice::<Digest>(plan).map(|plan| plan.study_digest)
}

/// Returns the names of the result files in a folder.
pub fn results_in(path: &Path) -> Vec<String> {
    let is_there = |name: &String| path.join(name).symlink_metadata().is_ok();
    let previews = fs::read_dir(path.join(PREVIEWS)).into_iter().flatten().flatten();
    let previews = previews.map(|entry| format!("{PREVIEWS}/{}", entry.file_name().to_string_lossy()));
    RESULTS.iter().map(|name| (*name).to_owned()).filter(is_there).chain(previews).collect()
}

/// Checks that files can be created in a folder. Creates the folder if it is missing.
pub fn probe(path: &Path) -> std::io::Result<()> {
    let probe = path.join(".pleach-write-test");
    fs::create_dir_all(path).and_then(|()| File::create(&probe)).and_then(|_| fs::remove_file(&probe))
}

/// Error of a result folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The folder holds results of another study.
    #[error("--out {}: holds {name} of another study; an empty or new folder is allowed", folder.display())]
    OfAnother {
        /// The folder.
        folder: PathBuf,
        /// A result file of the other study.
        name: &'static str,
    },
    /// The owner of the results is unknown.
    #[error(
        "--out {}: {PLAN}, which identifies the study, is corrupt: {problem}; an empty or new folder is \
         allowed",
        folder.display()
    )]
    CorruptPlan {
        /// The folder.
        folder: PathBuf,
        /// Error of reading or parsing the plan.
        problem: String,
    },
    /// The folder cannot be created or is not writable.
    #[error("--out {}: cannot be written to: {cause}", folder.display())]
    NotWritable {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        #[source]
        cause: std::io::Error,
    },
    /// A result file cannot be written or removed.
    #[error("--out {}: failed to write {name}: {cause}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// Name of the file.
        name: String,
        /// The system's error.
        #[source]
        cause: std::io::Error,
    },
    /// A file in the folder cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: std::io::Error,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Folder that this study may write to.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Claims the folder for a study and creates it if it is missing. Results of the same study will be
    /// replaced.
    ///
    /// # Errors
    /// [`FolderError`] if it holds results of another or an unknown study, or is not writable.
    pub fn take(path: &Path, digest: &str) -> Result<Self, FolderError> {
        let folder = path.to_owned();
        match owner(path) {
            Owner::None => {}
            Owner::Study(owner) if owner == digest => {}
            Owner::Study(_) => return Err(FolderError::OfAnother { folder, name: PLAN }),
            Owner::Damaged(problem) => return Err(FolderError::CorruptPlan { folder, problem }),
            Owner::Unknown(name) => return Err(FolderError::OfAnother { folder, name }),
        }
        let not_writable = |cause| FolderError::NotWritable { folder: path.to_owned(), cause };
        probe(path).map(|()| Self(path.to_owned())).map_err(not_writable)
    }

    /// Returns a subfolder, which belongs to the same study.
    pub fn part(&self, name: &str) -> Self {
        Self(self.0.join(name))
    }

    /// Removes the results of an earlier run of the same study, so that they cannot be mistaken for results
    /// of this run.
    pub fn clear(&self) -> Result<(), FolderError> {
        // Remove plan.json last: after an interruption, the remaining files still belong to this study.
        for name in RESULTS.into_iter().rev() {
            match fs::remove_file(self.0.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(self.failed(name, error));
                }
                _ => {}
            }
        }
        clear_previews(&self.0.join(PREVIEWS)).map_err(|error| self.failed(PREVIEWS, error))
    }

    /// Writes a requested image and returns its path within the folder.
    pub fn write_preview(&self, name: &str, content: &[u8]) -> Result<String, FolderError> {
        let name = format!("{PREVIEWS}/{name}");
        fs::create_dir_all(self.0.join(PREVIEWS)).map_err(|error| self.failed(&name, error))?;
        self.write(&name, content)?;
        Ok(name)
    }

    /// Returns whether the folder has a file of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Removes a file and syncs the folder.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        let removed = fs::remove_file(self.0.join(name)).and_then(|()| File::open(&self.0)?.sync_all());
        removed.map_err(|error| self.failed(name, error))
    }

    /// Writes a file with atomic publish.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        publish(&self.0.join(name), content).map_err(|error| self.failed(name, error))
    }

    /// Writes a JSON file with atomic publish.
    pub fn write_json(&self, name: &str, document: &impl Serialize) -> Result<(), FolderError> {
        let mut text = serde_json::to_vec_pretty(document).map_err(Defect::new)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    /// Returns the path of the subfolder for images.
    pub fn previews(&self) -> PathBuf {
        self.0.join(PREVIEWS)
    }

    /// Returns the path of the folder, as given to [`Self::take`] or extended by [`Self::part`].
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn failed(&self, name: &str, cause: std::io::Error) -> FolderError {
        FolderError::Write { folder: self.0.clone(), name: name.to_owned(), cause }
    }
}

/// Removes the images of an earlier run, and their folder if it is then empty. Removes a symbolic link
/// without following it.
fn clear_previews(folder: &Path) -> std::io::Result<()> {
    match folder.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(folder),
        Ok(_) => {}
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        // Names of previews start with the number of the evaluation.
        let numbered = name.split_once('-').is_some_and(|(number, _)| number.parse::<u64>().is_ok());
        if numbered && (name.ends_with(".png") || name.ends_with(".png.part")) {
            fs::remove_file(entry.path())?;
        }
    }
    // Fails if other files remain, and keeps the folder in that case.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Publishes a file atomically: writes `NAME.part`, syncs it and renames it. Readers see the old file or the
/// new one.
pub fn publish(target: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = target.with_file_name(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(content)?;
        // Before the rename: the target's name must not refer to bytes that a loss of power can take.
        file.sync_all()
    });
    let published = written.and_then(|()| fs::rename(&part, target)).and_then(|()| {
        // Syncing the folder makes the rename durable. The folder of a bare file name is the current one.
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
    });
    if published.is_err() {
        // The caller gets the first error. A remaining part is overwritten by the next publish.
        let _ = fs::remove_file(&part);
    }
    published
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_previews_are_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(PREVIEWS);
        clear_previews(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        for name in ["0-tile-s-t-r.png", "12-a.png.part", "figure-1.png", "3-notes.txt", "7.png"] {
            fs::write(folder.join(name), "").unwrap();
        }
        clear_previews(&folder).unwrap();
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["3-notes.txt", "7.png", "figure-1.png"]);
        for name in left {
            fs::remove_file(folder.join(name)).unwrap();
        }
        clear_previews(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn files_behind_a_link_are_not_removed() {
        let place = tempfile::tempdir().unwrap();
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("1-a.png"), "").unwrap();
        let link = place.path().join(PREVIEWS);
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        clear_previews(&link).unwrap();
        assert!(theirs.join("1-a.png").exists() && link.symlink_metadata().is_err());
    }
}
