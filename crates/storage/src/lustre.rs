//! Lustre file systems: whether a folder is on one, and over how many of its servers new files are spread.
//!
//! Settings are made by Lustre's own program, `lfs`; nothing here is needed to read or write.

use crate::TierError;
use rustix::fs::statfs;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `statfs` calls a Lustre file system (`LUSTRE_SUPER_MAGIC`, linux/lustre/lustre_user.h).
const MAGIC: u64 = 0x0BD0_0BD0;

/// How the bytes of each file are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Striping {
    /// Over how many targets: -1 for all; as the file system has it where it is none.
    pub count: Option<i32>,
    /// Bytes on one before the next: a multiple of 65 536; as the file system has it where it is none.
    pub size_bytes: Option<u64>,
}

impl Striping {
    /// What `lfs` is called with for the files that will be made in a folder.
    #[must_use]
    pub fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["setstripe".into()];
        if let Some(count) = self.count {
            words.extend(["--stripe-count".into(), count.to_string().into()]);
        }
        if let Some(bytes) = self.size_bytes {
            words.extend(["--stripe-size".into(), bytes.to_string().into()]);
        }
        // A folder whose name begins with a dash is no option.
        words.extend(["--".into(), folder.into()]);
        words
    }

    /// Sets it for a folder on Lustre, and says whether that was done; elsewhere, and where nothing is to be set, it is not.
    ///
    /// # Errors
    /// [`TierError::Io`] when the folder cannot be looked at, or `lfs` is not there or fails.
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

/// Whether a folder is on a Lustre file system.
///
/// # Errors
/// What the system says.
pub fn is_lustre(folder: &Path) -> io::Result<bool> {
    // The type is as wide as the platform's words, and perhaps signed.
    Ok(statfs(folder)?.f_type as u64 & u64::from(u32::MAX) == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_lfs() {
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
    fn elsewhere_nothing_is_set() {
        let folder = tempfile::tempdir().unwrap();
        if is_lustre(folder.path()).unwrap() {
            return;
        }
        assert!(!Striping { count: Some(4), size_bytes: None }.apply(folder.path()).unwrap());
        assert!(is_lustre(&folder.path().join("none")).is_err());
    }
}
