//! Quarantine: corrupt files and studies of a state directory, each with a file that gives the reason.
//!
//! A file or study is moved in one step. The reason is on disk before the move, so every entry has a reason. The
//! operator removes entries.

use super::{StateError, sync};
use pleach_results::folder::publish;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the quarantine folder within the state directory.
pub const QUARANTINE: &str = "quarantine";

/// Suffix of the file that gives the reason for the entry of the same name.
pub(crate) const REASON: &str = ".reason.txt";

/// Maximum number of names tried for one entry: `NAME`, `NAME-2`, and so on.
const MAX_NAMES: usize = 10_000;

/// Transfer of an entry to quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuarantineAction {
    /// Rename, in one step.
    Move,
    /// Copy of a file that the caller replaces afterwards.
    Copy,
}

/// Moves or copies a file or folder to quarantine as `name`, with a number appended if the name is taken. Returns its
/// new path.
///
/// # Errors
/// [`StateError`] when it cannot be moved or copied. It then stays in place.
pub(super) fn set_aside(
    state: &Path,
    from: &Path,
    action: QuarantineAction,
    name: &str,
    reason: &str,
) -> Result<PathBuf, StateError> {
    let folder = state.join(QUARANTINE);
    let fail = |cause| StateError::NotSetAside { from: from.to_owned(), quarantine: folder.clone(), cause };
    fs::create_dir_all(&folder).map_err(fail)?;
    let names =
        std::iter::once(name.to_owned()).chain((2..MAX_NAMES).map(|number| format!("{name}-{number}")));
    let is_free = |name: &String| {
        let reason = folder.join(format!("{name}{REASON}"));
        // A reason without its entry comes from a move that failed, and occupies the name. Links are not followed,
        // because a dangling one occupies the name too.
        folder.join(name).symlink_metadata().is_err() && reason.symlink_metadata().is_err()
    };
    let full = || StateError::QuarantineFull { quarantine: folder.clone(), name: name.to_owned() };
    let name = names.into_iter().find(is_free).ok_or_else(full)?;
    let to = folder.join(&name);
    // Write the reason before the move: no entry may lack a reason.
    publish(&folder.join(format!("{name}{REASON}")), format!("{reason}\n").as_bytes()).map_err(fail)?;
    match action {
        QuarantineAction::Move => fs::rename(from, &to).map_err(fail)?,
        QuarantineAction::Copy => _ = fs::copy(from, &to).map_err(fail)?,
    }
    sync(from.parent().unwrap_or(Path::new(".")))?;
    sync(&folder)?;
    Ok(to)
}

/// Entry in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Path of the file or folder in the quarantine folder.
    pub path: PathBuf,
    /// Text of the file that gives the reason, without surrounding white space. Empty if that file cannot be read.
    pub reason: String,
    /// Id of the study if the entry is the folder of a whole study.
    pub(crate) study: Option<u32>,
}

/// Lists the entries in quarantine by name.
///
/// # Errors
/// [`std::io::Error`] when the folder cannot be read.
pub fn list(state: &Path) -> std::io::Result<Vec<SetAside>> {
    let entries = match fs::read_dir(state.join(QUARANTINE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(REASON) {
            continue;
        }
        let reason = fs::read(path.with_file_name(format!("{name}{REASON}"))).unwrap_or_default();
        let reason = String::from_utf8_lossy(&reason).trim().to_owned();
        let number = name.strip_prefix("study-").map(|rest| rest.split('-').next().unwrap_or_default());
        let study = number.filter(|_| path.is_dir()).and_then(|number| number.parse().ok());
        found.push(SetAside { path, reason, study });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
