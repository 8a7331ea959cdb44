//! Which tokens have been used: a file that only grows, a line each.
//!
//! A token counts as used once its line is on disk; only then does anybody get a certificate for it. Whoever has the
//! file open has it alone, so that two managers do not each let the same token in.

use super::{TokenId, hex, unhex};
use crate::transport::certs::CertsError;
use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a line: the token's number in hexadecimal digits, and the end of the line.
const LINE_BYTES: usize = 2 * super::ID_BYTES + 1;

/// See the module.
#[derive(Debug)]
pub struct UsedTokens {
    file: File,
    path: PathBuf,
    used: HashSet<TokenId>,
    /// Bytes of whole lines.
    length: u64,
}

impl UsedTokens {
    /// Opens the file, or makes it. A last line that is not whole was never acknowledged, and goes.
    ///
    /// # Errors
    /// [`CertsError::File`], also when another process has it open, and [`CertsError::Content`] when a line is no token:
    /// to go on would let used ones in again.
    pub fn open(path: &Path) -> Result<Self, CertsError> {
        let fail = |source| CertsError::File { path: path.to_owned(), source };
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
        let mut file = options.open(path).map_err(fail)?;
        file.try_lock().map_err(|error| {
            fail(match error {
                TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another manager has it open")
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
                let what =
                    format!("line {} is no token; tokens cannot be used until it is repaired", number + 1);
                return Err(CertsError::Content { path: path.to_owned(), what });
            };
            used.insert(TokenId(id));
        }
        let length = (content.len() - content.len() % LINE_BYTES) as u64;
        file.set_len(length).map_err(fail)?;
        // A new file's name is on disk before anything in it counts.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(Self { file, path: path.to_owned(), used, length })
    }

    /// Uses a token; false when it has been used. It is on disk when this returns.
    ///
    /// # Errors
    /// [`CertsError::File`]; the token then counts as unused, and no certificate may be given for it.
    pub fn use_once(&mut self, id: TokenId) -> Result<bool, CertsError> {
        if self.used.contains(&id) {
            return Ok(false);
        }
        // An earlier line that failed half-way is written over.
        let line = format!("{}\n", hex(&id.0));
        let at = SeekFrom::Start(self.length);
        let written = self.file.seek(at).and_then(|_| self.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|source| CertsError::File { path: self.path.clone(), source })?;
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

    /// Cut anywhere: all whole lines count, and what is written next can be read.
    #[test]
    fn a_torn_line_goes() {
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
    fn a_damaged_file_lets_nobody_in() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("used");
        fs::write(&path, "x".repeat(LINE_BYTES)).unwrap();
        assert!(UsedTokens::open(&path).is_err_and(|error| error.to_string().contains("line 1")));
    }
}
