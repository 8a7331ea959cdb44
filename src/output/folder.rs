//! The folder of a study's results.

use crate::exit::{Outcome, Stop};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Result files of any study: a folder that holds one of them belongs to a study.
const RESULTS: [&str; 8] = [
    "plan.json",
    "samples.csv",
    "responses.csv",
    "failed.csv",
    "indices.csv",
    "indices.json",
    "run.json",
    "report.html",
];

/// The part of `plan.json` that says whose folder it is.
#[derive(Serialize, Deserialize)]
struct Owner {
    study_digest: String,
}

/// A folder that this study may write to.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Takes the folder for a study, creating it if need be. A folder that holds the same study's results will
    /// have them replaced.
    ///
    /// # Errors
    /// [`Stop::Input`] when it holds another study's results or cannot be written to.
    pub(crate) fn take(path: &Path, digest: &str) -> Outcome<Self> {
        let fail = |text: String| Err(Stop::Input(format!("--out {}: {text}", path.display())));
        let taken = RESULTS.iter().find(|name| path.join(name).symlink_metadata().is_ok());
        if let Some(name) = taken {
            let text = fs::read_to_string(path.join("plan.json")).unwrap_or_default();
            let owner = serde_json::from_str::<Owner>(&text).ok();
            if owner.is_none_or(|owner| owner.study_digest != digest) {
                return fail(format!("holds {name} of another study; an empty or new folder is allowed"));
            }
        }
        let folder = Self(path.to_owned());
        let probe = path.join(".pleach-write-test");
        let writable = fs::create_dir_all(path)
            .and_then(|()| File::create(&probe))
            .and_then(|_| fs::remove_file(&probe));
        match writable {
            Ok(()) => Ok(folder),
            Err(error) => fail(format!("cannot be written to: {error}")),
        }
    }

    /// Removes results of an earlier run of the same study, so that none is mistaken for one of this run.
    pub(crate) fn clear(&self) -> Outcome {
        for name in RESULTS {
            match fs::remove_file(self.0.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(self.failed(name, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a file: its whole content under its name, or nothing.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Outcome {
        publish(&self.0.join(name), content).map_err(|error| self.failed(name, &error))
    }

    /// Writes a JSON file.
    pub(crate) fn write_json(&self, name: &str, document: &impl Serialize) -> Outcome {
        let mut text = serde_json::to_vec_pretty(document).map_err(Stop::defect)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn failed(&self, name: &str, error: &std::io::Error) -> Stop {
        Stop::Input(format!("--out {}: failed to write {name}: {error}", self.0.display()))
    }
}

/// Writes beside the target, syncs, and renames: readers see the old file or the new one.
fn publish(target: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = target.with_file_name(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let published = written.and_then(|()| fs::rename(&part, target)).and_then(|()| {
        // The rename itself is durable once the folder is.
        File::open(target.parent().unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
    });
    if published.is_err() {
        let _ = fs::remove_file(&part);
    }
    published
}
