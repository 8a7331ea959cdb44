//! Bearer token of a manager. A client with the token may call every operation over HTTP.
//!
//! The token is a text in a file that only its owner can read. It does not expire. To change it, the operator
//! replaces the file and starts the manager again.

use crate::random;
use pleach_actors::transport::certs::CertsError;
use pleach_actors::transport::certs::secret_files::{read, write_new};
use pleach_actors::transport::token::hex;
use pleach_study::Defect;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Random bytes of a generated token: 256 bits cannot be guessed.
const TOKEN_BYTES: usize = 32;

/// Minimum length of a token from a file. As 32 hexadecimal digits it still has 128 bits, which cannot be guessed.
const SHORTEST: usize = 32;

/// Maximum length, so that the token fits into the head of a request with everything else.
const LONGEST: usize = 1024;

/// Token as text.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken(String);

/// Reason why no token is available.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("{0}")]
    File(#[from] CertsError),
    /// The text in the file is not a token.
    #[error("{}: invalid token; {SHORTEST} to {LONGEST} printable ASCII characters without spaces are \
             allowed", .0.display())]
    Form(PathBuf),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

impl ApiToken {
    /// Reads the token from a file.
    ///
    /// # Errors
    /// [`TokenError::File`] and [`TokenError::Form`] when the file cannot be read or has no valid token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let content = read(path)?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        Self::from_text(text).ok_or_else(|| TokenError::Form(path.to_owned()))
    }

    /// Parses a token, without the white space around it. `None` if the text is not a token.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (SHORTEST..=LONGEST).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// Reads the token from a file. A missing file is created with a new token, readable by its owner alone.
    ///
    /// # Errors
    /// [`TokenError`] when the file cannot be read or created, or has no valid token.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::File(CertsError::File { source, .. }))
                if source.kind() == ErrorKind::NotFound => {}
            read => return read,
        }
        let token = hex(&random::bytes::<TOKEN_BYTES>()?);
        match write_new(path, format!("{token}\n").as_bytes()) {
            // If another process has created the file meanwhile, its token counts.
            Ok(()) | Err(CertsError::Exists(_)) => Self::read(path),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the token as clients send it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `text` is the token. Compares digests in constant time, so the duration does not depend on the
    /// number of correct characters.
    pub fn is(&self, text: &[u8]) -> bool {
        blake3::hash(self.0.as_bytes()) == blake3::hash(text)
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn token_is_created_once_and_private() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let token = ApiToken::read_or_make(&path).unwrap();
        assert_eq!(token.as_str().len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ApiToken::read_or_make(&path).unwrap(), token);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing else is left behind");
        let other = ApiToken::read_or_make(&place.path().join("other")).unwrap();
        assert_ne!(other, token);
        assert!(token.is(token.as_str().as_bytes()) && !token.is(other.as_str().as_bytes()));
        assert!(!token.is(b"") && !token.is(&token.as_str().as_bytes()[..63]));
        assert!(!format!("{token:?}").contains(token.as_str()), "it gets into no log");
    }

    #[test]
    fn invalid_token_is_refused_with_its_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let forms = ["", "short", &"a b".repeat(20), &"ä".repeat(40), &"a".repeat(1025)];
        for text in forms {
            fs::write(&path, text).unwrap();
            let error = ApiToken::read_or_make(&path).unwrap_err();
            assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
            assert_eq!(fs::read(&path).unwrap(), text.as_bytes(), "it is not replaced");
        }
        fs::write(&path, format!("  {}\r\n", "a".repeat(32))).unwrap();
        assert_eq!(ApiToken::read(&path).unwrap().as_str(), "a".repeat(32));
    }
}
