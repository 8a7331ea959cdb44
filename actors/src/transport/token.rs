//! Tokens for workers without a certificate: for one use, or for many uses until an end time.
//!
//! A token is a text of [`TOKEN_LETTERS`] letters. It contains its end, its number of uses, and the fingerprint of the
//! authority's certificate. The worker verifies the manager by this fingerprint. The authority's token key seals the token,
//! so that only the authority can create one and no list of valid tokens is needed. Used single-use tokens are recorded
//! ([`used`]). A token admits workers only, never managers or clients.

pub mod used;

use super::certs::CertsError;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Prefix of tokens. The digit is the version of their format.
const PREFIX: &str = "pleach1-";
/// Number, end, uses, fingerprint, seal.
const TOKEN_BYTES: usize = ID_BYTES + 8 + 1 + FINGERPRINT_BYTES + SEAL_BYTES;
/// Length of a token's text in letters.
pub const TOKEN_LETTERS: usize = PREFIX.len() + 2 * TOKEN_BYTES;
const ID_BYTES: usize = 16;
const FINGERPRINT_BYTES: usize = 32;
const SEAL_BYTES: usize = 32;
const KEY_BYTES: usize = 32;

/// Maximum lifetime of a token. Its holder can join as a worker, so longer access requires a certificate.
pub const MAX_TTL: Duration = Duration::from_secs(30 * 86_400);

/// Number of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub(crate) [u8; ID_BYTES]);

/// SHA-256 of an authority's certificate in DER, as `openssl x509 -fingerprint -sha256` shows it.
pub type Fingerprint = [u8; FINGERPRINT_BYTES];

/// Reason for a refused token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The text does not have the format of a token.
    #[error("not a token; {TOKEN_LETTERS} letters that begin with {PREFIX} are allowed, without spaces")]
    Form,
    /// The seal is not from this authority, or the token was changed.
    #[error("the token was not created by the authority of this cluster, or has been changed")]
    Seal,
    /// The token has expired.
    #[error("the token expired {0} s ago; create another with `pleach certs token`")]
    Ended(u64),
    /// The token is for one use and has been used.
    #[error("the token is for one use and has been used; create another with `pleach certs token`")]
    Used,
    /// The lifetime is outside the allowed range.
    #[error("token lifetime of {0} s; 1 s to 30 days are allowed")]
    Ttl(u64),
}

/// An unverified token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: TokenId,
    ends: u64,
    is_once: bool,
    authority: Fingerprint,
    seal: [u8; SEAL_BYTES],
}

impl Token {
    /// Returns the unverified fingerprint of the token's authority.
    #[must_use]
    pub fn authority(&self) -> &Fingerprint {
        &self.authority
    }

    /// Returns the token's unverified end, in seconds since 1970.
    #[must_use]
    pub fn ends(&self) -> u64 {
        self.ends
    }

    fn sealed(&self) -> Vec<u8> {
        let uses = [u8::from(self.is_once)];
        [&self.id.0[..], &self.ends.to_le_bytes(), &uses, &self.authority].concat()
    }
}

/// Omits the token, because a reader of the log could use it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("ends", &self.ends).field("once", &self.is_once).finish_non_exhaustive()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}{}", hex(&self.sealed()), hex(&self.seal))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(TokenError::Form)?;
        let bytes: [u8; TOKEN_BYTES] = unhex(digits).ok_or(TokenError::Form)?;
        let (id, rest) = bytes.split_first_chunk().ok_or(TokenError::Form)?;
        let (ends, rest) = rest.split_first_chunk().ok_or(TokenError::Form)?;
        let ([uses], rest) = rest.split_first_chunk().ok_or(TokenError::Form)?;
        let (authority, rest) = rest.split_first_chunk().ok_or(TokenError::Form)?;
        let (seal, _) = rest.split_first_chunk().ok_or(TokenError::Form)?;
        let is_once = match uses {
            0 => false,
            1 => true,
            _ => return Err(TokenError::Form),
        };
        let ends = u64::from_le_bytes(*ends);
        Ok(Self { id: TokenId(*id), ends, is_once, authority: *authority, seal: *seal })
    }
}

/// Key that seals tokens.
pub struct TokenKey {
    bytes: [u8; KEY_BYTES],
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

/// Rights of a verified token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// Number of the token.
    pub id: TokenId,
    /// The token is for one use and must be unused.
    pub is_once: bool,
}

impl TokenKey {
    /// Generates a new key.
    ///
    /// # Errors
    /// Returns [`CertsError::Random`].
    pub fn generate() -> Result<Self, CertsError> {
        Ok(Self { bytes: random()? })
    }

    /// Returns the key as the text of its file.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}\n", hex(&self.bytes))
    }

    /// Reads the key from the text of its file. `None` if the text is not a key.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        unhex(text.trim()).map(|bytes| Self { bytes })
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.bytes)
    }

    /// Creates a token for the cluster of the authority with this fingerprint. `now` is a time since 1970.
    ///
    /// # Errors
    /// Returns [`CertsError::Random`].
    pub fn make(
        &self,
        authority: Fingerprint,
        now: Duration,
        ttl: Ttl,
        is_once: bool,
    ) -> Result<Token, CertsError> {
        // Saturates, because a clock may be set to any time.
        let ends = now.as_secs().saturating_add(ttl.0.as_secs());
        let mut token = Token { id: TokenId(random()?), ends, is_once, authority, seal: [0; SEAL_BYTES] };
        let seal = hmac::sign(&self.hmac(), &token.sealed());
        token.seal.copy_from_slice(seal.as_ref());
        Ok(token)
    }

    /// Verifies that this key sealed the token and that the token has not ended. [`used`] tracks its use.
    ///
    /// # Errors
    /// Returns [`TokenError::Seal`] and [`TokenError::Ended`].
    pub fn check(&self, token: &Token, now: Duration) -> Result<TokenGrant, TokenError> {
        // Verified before the other fields are used. The comparison takes constant time.
        hmac::verify(&self.hmac(), &token.sealed(), &token.seal).map_err(|_| TokenError::Seal)?;
        match now.as_secs().checked_sub(token.ends) {
            Some(ago) => Err(TokenError::Ended(ago)),
            None => Ok(TokenGrant { id: token.id, is_once: token.is_once }),
        }
    }
}

/// Lifetime of a token: 1 s to [`MAX_TTL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(Duration);

impl Ttl {
    /// Checks a lifetime.
    ///
    /// # Errors
    /// Returns [`TokenError::Ttl`].
    pub fn new(ttl: Duration) -> Result<Self, TokenError> {
        let is_allowed = ttl >= Duration::from_secs(1) && ttl <= MAX_TTL;
        if is_allowed { Ok(Self(ttl)) } else { Err(TokenError::Ttl(ttl.as_secs())) }
    }
}

/// Returns the SHA-256 of `bytes`.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut fingerprint = [0; FINGERPRINT_BYTES];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    fingerprint
}

fn random<const N: usize>() -> Result<[u8; N], CertsError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| CertsError::Random)?;
    Ok(bytes)
}

/// Returns the bytes as hexadecimal digits, two per byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    // Digits only, because `from_str_radix` also accepts a sign.
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn token(key: &TokenKey, is_once: bool) -> Token {
        key.make([7; 32], NOW, Ttl::new(HOUR).unwrap(), is_once).unwrap()
    }

    #[test]
    fn a_token_is_good_until_it_ends() {
        let key = TokenKey::generate().unwrap();
        for is_once in [false, true] {
            let text = token(&key, is_once).to_string();
            assert_eq!(text.len(), TOKEN_LETTERS);
            let read: Token = text.parse().unwrap();
            let good = |now| key.check(&read, now).map(|good| good.is_once);
            assert_eq!(good(NOW), Ok(is_once));
            assert_eq!(good(NOW + HOUR - Duration::from_secs(1)), Ok(is_once));
            assert_eq!(good(NOW + HOUR), Err(TokenError::Ended(0)));
            assert_eq!(good(NOW + 2 * HOUR), Err(TokenError::Ended(3600)));
        }
    }

    #[test]
    fn a_key_survives_its_file() {
        let key = TokenKey::generate().unwrap();
        let again = TokenKey::from_text(&key.to_text()).unwrap();
        assert!(again.check(&token(&key, true), NOW).is_ok());
        assert!(TokenKey::from_text("12").is_none());
    }

    #[test]
    fn a_token_does_not_last_for_ever() {
        for ttl in [Duration::ZERO, Duration::from_millis(999), MAX_TTL + HOUR, Duration::MAX] {
            assert!(matches!(Ttl::new(ttl), Err(TokenError::Ttl(_))));
        }
    }

    proptest! {
        /// A change of any digit invalidates a token.
        #[test]
        fn changed_token_is_refused(at in 0..2 * TOKEN_BYTES, digit in 1..16u32) {
            let key = TokenKey::generate().unwrap();
            let mut text = token(&key, false).to_string().into_bytes();
            let place = &mut text[PREFIX.len() + at];
            let old = char::from(*place).to_digit(16).unwrap();
            *place = char::from_digit(old ^ digit, 16).unwrap() as u8;
            match String::from_utf8(text).unwrap().parse::<Token>() {
                Ok(token) => prop_assert_eq!(key.check(&token, NOW), Err(TokenError::Seal)),
                Err(error) => prop_assert_eq!(error, TokenError::Form),
            }
        }

        #[test]
        fn another_key_is_refused(_n in 0..8u8) {
            let token = token(&TokenKey::generate().unwrap(), true);
            prop_assert_eq!(TokenKey::generate().unwrap().check(&token, NOW), Err(TokenError::Seal));
        }

        #[test]
        fn parsing_noise_does_not_panic(text in ".{0,200}", digits in "pleach1-[0-9a-fé]{170,190}") {
            let _ = (text.parse::<Token>(), digits.parse::<Token>());
        }
    }
}
