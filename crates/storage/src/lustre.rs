//! Lustre file systems: detection, and striping of new files over servers.
//!
//! Striping is set by Lustre's program `lfs`. Reading and writing do not need this module.

use crate::TierError;
use rustix::fs::statfs;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Type of a Lustre file system in `statfs` (`LUSTRE_SUPER_MAGIC`, linux/lustre/lustre_user.h).
const MAGIC: u64 = 0x0BD0_0BD0;

/// Striping of new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Striping {
    /// Number of targets, -1 for all. `None` keeps the file system's default.
    pub count: Option<i32>,
    /// Bytes per stripe, a multiple of 65,536. `None` keeps the file system's default.
    pub size_bytes: Option<u64>,
}

impl Striping {
    /// Returns the arguments of `lfs` for new files in a folder.
    #[must_use]
    pub fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["setstripe".into()];
        if let Some(count) = self.count {
            words.extend(["--stripe-count".into(), count.to_string().into()]);
        }
        if let Some(bytes) = self.size_bytes {
            words.extend(["--stripe-size".into(), bytes.to_string().into()]);
        }
        // `--` keeps a folder name with a leading dash from being parsed as an option.
        words.extend(["--".into(), folder.into()]);
        words
    }

    /// Sets the striping of a folder. Returns false if the folder is not on Lustre or there is nothing to set.
    ///
    /// # Errors
    /// Returns [`TierError::Io`] if the folder cannot be queried, or `lfs` is missing or fails.
    pub fn apply(&self, folder: &Path) -> Result<bool, TierError> {
        let failed = |source| TierError::Io { action: "set the stripes of", path: folder.to_owned(), source };
        if *self == Self::default() || !is_lustre(folder).map_err(failed)? {
            return Ok(false);
        }
        let mut command = Command::new("lfs");
        let ended = command.args(self.arguments(folder)).stdin(Stdio::null()).output().map_err(failed)?;
        if ended.status.success() {
            return Ok(true);
        }
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(failed(io::Error::other(format!("lfs ended with {}: {said}", ended.status))))
    }
}

/// Returns whether a folder is on a Lustre file system.
///
/// # Errors
/// Returns the system error.
pub fn is_lustre(folder: &Path) -> io::Result<bool> {
    // `f_type` has the width of the platform's word and may be signed.
    Ok(statfs(folder)?.f_type as u64 & u64::from(u32::MAX) == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn striping_becomes_arguments_of_lfs() {
        let words = |count, size_bytes| {
            let words = Striping { count, size_bytes }.arguments(Path::new("/lustre/-a b"));
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all = ["setstripe", "--stripe-count", "-1", "--stripe-size", "1048576", "--", "/lustre/-a b"];
        assert_eq!(words(Some(-1), Some(1 << 20)), all);
        assert_eq!(words(None, None), ["setstripe", "--", "/lustre/-a b"]);
        assert_eq!(words(Some(4), None), ["setstripe", "--stripe-count", "4", "--", "/lustre/-a b"]);
    }

    #[test]
    fn striping_outside_lustre_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        if is_lustre(folder.path()).unwrap() {
            return;
        }
        assert!(!Striping { count: Some(4), size_bytes: None }.apply(folder.path()).unwrap());
        assert!(is_lustre(&folder.path().join("none")).is_err());
    }
}
