//! The bearer token of a manager: whoever has it may do everything over HTTP.
//!
//! It is a text in a file that its owner alone can read. It does not expire; to change it, its file is replaced and
//! the manager started again.

use pleach_actors::transport::certs::CertsError;
use pleach_actors::transport::certs::secret_files::{read, write_new};
use pleach_actors::transport::token::hex;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Random bytes of a token that is made here: nobody guesses 256 bits.
const TOKEN_BYTES: usize = 32;

/// The shortest token that is taken from a file: half of that is still beyond guessing.
const SHORTEST: usize = 32;

/// The longest; it has to fit a header's line along with everything else.
const LONGEST: usize = 1024;

/// A token, as text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiToken(String);

/// Why there is no token.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    /// Its file cannot be read or written.
    #[error(transparent)]
    File(#[from] CertsError),
    /// The text is none.
    #[error("{}: {SHORTEST} to {LONGEST} letters, digits and signs of ASCII without spaces are allowed", .0.display())]
    Form(PathBuf),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl ApiToken {
    /// That of a file.
    ///
    /// # Errors
    /// [`TokenError::File`] and [`TokenError::Form`].
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let content = read(path)?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        Self::from_text(text).ok_or_else(|| TokenError::Form(path.to_owned()))
    }

    /// That of a text, if it is one; spaces and line ends around it do not count.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (SHORTEST..=LONGEST).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// That of a file, which is made where there is none, with a new token, for its owner alone.
    ///
    /// # Errors
    /// [`TokenError`].
    pub(crate) fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::File(CertsError::File { source, .. }))
                if source.kind() == ErrorKind::NotFound => {}
            read => return read,
        }
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| TokenError::Random)?;
        match write_new(path, format!("{}\n", hex(&bytes)).as_bytes()) {
            // Whoever was first has made it.
            Ok(()) | Err(CertsError::Exists(_)) => Self::read(path),
            Err(error) => Err(error.into()),
        }
    }

    /// As it is shown to a manager.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the text. How long that takes does not depend on how much of it is right: what is compared are
    /// digests, in constant time.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
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
    fn it_is_made_once_and_its_owners() {
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
    fn what_is_no_token_is_refused_with_its_file() {
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
