//! The manager's folder: who the manager is, how often it was started, and a folder for each study.
//!
//! It belongs to one process at a time. Every file is written whole or not at all, synced before it has its name.

use crate::command::node::random;
use crate::exit::{Outcome, Stop};
use crate::service::submission::Submission;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::serde::rfc3339;

/// Who the manager is, as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    /// A number that no other manager has: workers know it by that.
    number: u64,
    /// How often it has been started: no lease of one start is one of another.
    starts: u32,
}

/// How a study ended, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    pub(crate) state: crate::api::view::StudyState,
    pub(crate) message: Option<String>,
    pub(crate) evaluations_done: u64,
    pub(crate) tasks_executed: u64,
    pub(crate) failed: u64,
}

/// What is written down of a study as it is submitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) submission: Submission,
    /// By which a client submits it again.
    pub(crate) key: Option<String>,
    #[serde(with = "rfc3339")]
    pub(crate) submitted: OffsetDateTime,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    identity: Identity,
    /// Held as long as the process lives.
    _lock: File,
}

impl State {
    /// Takes the folder for this process, and counts the start.
    ///
    /// # Errors
    /// [`Stop::Input`] when another process has it, or it cannot be written to, or holds something else.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let fail =
            |error: std::io::Error| Stop::writing(format_args!("--state {}", folder.display()), &error);
        fs::create_dir_all(folder.join("studies")).map_err(fail)?;
        let path = folder.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Stop::Input(format!(
                    "--state {}: another manager is at work there; one manager for each folder is allowed",
                    folder.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let path = folder.join("manager.json");
        let mut identity = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Stop::Input(format!("{}: {error}; it says which manager this is", path.display()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Identity { number: random()?, starts: 0 }
            }
            Err(error) => return Err(fail(error)),
        };
        identity.starts += 1;
        let state = Self { folder: folder.to_owned(), identity, _lock: lock };
        write(&path, &json(&state.identity)?)?;
        Ok(state)
    }

    /// The number of this state.
    pub(crate) fn number(&self) -> u64 {
        self.identity.number
    }

    /// How often it was started, with this time.
    pub(crate) fn starts(&self) -> u32 {
        self.identity.starts
    }

    /// Where files that clients have sent are kept.
    pub(crate) fn inputs(&self) -> PathBuf {
        self.folder.join("inputs")
    }

    /// Where it is kept which pods may have another deletion cost than 0.
    pub(crate) fn pod_costs(&self) -> PathBuf {
        self.folder.join("pod-costs.json")
    }

    /// Where it is kept what studies that have not ended have cost.
    pub(crate) fn spent(&self) -> PathBuf {
        self.folder.join("spent.json")
    }

    /// Where the token of the HTTP interface is.
    pub(crate) fn token(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// The folder of a study.
    pub(crate) fn study(&self, id: u32) -> PathBuf {
        self.folder.join("studies").join(id.to_string())
    }

    /// The folder of a study's results.
    pub(crate) fn results(&self, id: u32) -> PathBuf {
        self.study(id).join("results")
    }

    /// Studies that are kept, and how they ended if they have.
    ///
    /// # Errors
    /// [`Stop::Input`] when one of them cannot be read. A study that was being submitted when the process ended is none.
    pub(crate) fn studies(&self) -> Outcome<Vec<(u32, Kept, Option<Ended>)>> {
        let folder = self.folder.join("studies");
        let fail = |error: std::io::Error| Stop::Input(format!("{}: {error}", folder.display()));
        let mut studies = Vec::new();
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let Some(kept) = read(&self.study(id).join("submission.json"))? else { continue };
            let ended = read(&self.study(id).join("ended.json"))?;
            studies.push((id, kept, ended));
        }
        studies.sort_by_key(|(id, _, _)| *id);
        Ok(studies)
    }

    /// Keeps a study; when this returns it is on disk.
    ///
    /// # Errors
    /// [`Stop::Input`] when it cannot be written.
    pub(crate) fn keep(&self, id: u32, kept: &Kept) -> Outcome {
        let folder = self.study(id);
        fs::create_dir_all(&folder).map_err(|error| Stop::writing(folder.display(), &error))?;
        write(&folder.join("submission.json"), &json(kept)?)?;
        sync(&self.folder.join("studies"))
    }

    /// Keeps how a study ended.
    ///
    /// # Errors
    /// [`Stop::Input`] when it cannot be written.
    pub(crate) fn end(&self, id: u32, ended: &Ended) -> Outcome {
        write(&self.study(id).join("ended.json"), &json(ended)?)
    }
}

fn json(content: &impl Serialize) -> Outcome<Vec<u8>> {
    serde_json::to_vec(content).map_err(Stop::defect)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Outcome<Option<T>> {
    let fail = |error: String| Stop::Input(format!("{}: {error}", path.display()));
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| fail(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// Writes a file: whole, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let part = path.with_extension("part");
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    });
    if let Err(error) = written {
        // Whatever there is of it takes room.
        let _ = fs::remove_file(&part);
        return Err(Stop::writing(path.display(), &error));
    }
    sync(path.parent().unwrap_or(Path::new(".")))
}

fn sync(folder: &Path) -> Outcome {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Stop::writing(folder.display(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_managers() {
        let folder = tempfile::tempdir().unwrap();
        let first = State::open(folder.path()).unwrap();
        let Err(Stop::Input(text)) = State::open(folder.path()) else { panic!("two managers") };
        assert!(text.contains("another manager is at work there"), "{text}");
        let number = first.number();
        assert_eq!(first.starts(), 1);
        drop(first);
        let again = State::open(folder.path()).unwrap();
        assert_eq!((again.number(), again.starts()), (number, 2));
        assert!(again.studies().unwrap().is_empty());
    }

    #[test]
    fn what_is_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        drop(State::open(folder.path()).unwrap());
        fs::write(folder.path().join("manager.json"), "{").unwrap();
        let Err(Stop::Input(text)) = State::open(folder.path()) else { panic!("it was read") };
        assert!(text.contains("manager.json"), "{text}");
    }
}
