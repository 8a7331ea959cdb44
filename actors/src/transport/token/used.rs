//! Used tokens: an append-only file with one line per token.
//!
//! A token counts as used once its line is on disk. Only then does a worker get a certificate for it. A process locks the
//! file while it is open, so that two managers cannot accept the same token.

use super::{TokenId, hex, unhex};
use crate::transport::certs::CertsError;
use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Length of a line: the token's number in hexadecimal digits, and a line feed.
const LINE_BYTES: usize = 2 * super::ID_BYTES + 1;

/// Open file of used tokens.
#[derive(Debug)]
pub struct UsedTokens {
    file: File,
    path: PathBuf,
    used: HashSet<TokenId>,
    /// Bytes of complete lines.
    length: u64,
}

impl UsedTokens {
    /// Opens or creates the file. Removes an incomplete last line, which was never acknowledged.
    ///
    /// # Errors
    /// Returns [`CertsError::File`], also if another process has locked the file, and [`CertsError::Content`] if a line is
    /// not a token: ignoring it would accept used tokens again.
    pub fn open(path: &Path) -> Result<Self, CertsError> {
        let fail = |source| CertsError::File { path: path.to_owned(), source };
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
        let mut file = options.open(path).map_err(fail)?;
        // Locked before the read, so that another manager cannot append afterwards.
        file.try_lock().map_err(|error| {
            fail(match error {
                TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "locked by another manager")
                }
                TryLockError::Error(error) => error,
            })
        })?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(fail)?;
        let mut used = HashSet::new();
        for (number, line) in content.chunks_exact(LINE_BYTES).enumerate() {
            let digits = line.strip_suffix(b"\n").and_then(|digits| std::str::from_utf8(digits).ok());
            let Some(id) = digits.and_then(unhex) else {
                let what = format!("line {} is not a token; repair it to accept tokens again", number + 1);
                return Err(CertsError::Content { path: path.to_owned(), what });
            };
            used.insert(TokenId(id));
        }
        let length = (content.len() - content.len() % LINE_BYTES) as u64;
        file.set_len(length).map_err(fail)?;
        // A new file's name must be on disk before its content counts.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(Self { file, path: path.to_owned(), used, length })
    }

    /// Uses a token. Returns `false` if it has been used before. The use is on disk at the return.
    ///
    /// # Errors
    /// Returns [`CertsError::File`]. Then the token counts as unused, and the caller must not issue a certificate for it.
    pub fn use_once(&mut self, id: TokenId) -> Result<bool, CertsError> {
        if self.used.contains(&id) {
            return Ok(false);
        }
        // Overwrites an earlier incomplete line.
        let line = format!("{}\n", hex(&id.0));
        let at = SeekFrom::Start(self.length);
        let written = self.file.seek(at).and_then(|_| self.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|source| CertsError::File { path: self.path.clone(), source })?;
        // After the sync: a failed write leaves the length, and the next line overwrites its remains.
        self.length += LINE_BYTES as u64;
        self.used.insert(id);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn id(n: u8) -> TokenId {
        TokenId([n; super::super::ID_BYTES])
    }

    #[test]
    fn a_used_token_stays_used() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("used");
        let mut used = UsedTokens::open(&path).unwrap();
        assert!(used.use_once(id(1)).unwrap());
        assert!(!used.use_once(id(1)).unwrap());
        assert!(used.use_once(id(2)).unwrap());
        assert!(matches!(UsedTokens::open(&path), Err(CertsError::File { .. })), "it is open already");
        drop(used);
        let mut used = UsedTokens::open(&path).unwrap();
        assert!(!used.use_once(id(1)).unwrap());
        assert!(!used.use_once(id(2)).unwrap());
        assert!(used.use_once(id(3)).unwrap());
    }

    /// After a truncation at any byte, all complete lines count, and later lines are readable.
    #[test]
    fn torn_line_is_discarded() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("used");
        UsedTokens::open(&path).and_then(|mut used| used.use_once(id(1)).and(used.use_once(id(2)))).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut used = UsedTokens::open(&path).unwrap();
            assert_eq!(used.use_once(id(1)).unwrap(), cut < LINE_BYTES);
            assert!(used.use_once(id(9)).unwrap());
            drop(used);
            assert!(!UsedTokens::open(&path).unwrap().use_once(id(9)).unwrap());
        }
    }

    #[test]
    fn corrupt_file_is_refused_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("used");
        fs::write(&path, "x".repeat(LINE_BYTES)).unwrap();
        assert!(UsedTokens::open(&path).is_err_and(|error| error.to_string().contains("line 1")));
    }
}
