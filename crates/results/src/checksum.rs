//! JSON files that carry the BLAKE3 checksum of their content.
//!
//! The checksum covers the bytes of the content. The envelope around it has only one form, so a change of any byte is
//! found. A file without the envelope is read in the format of an earlier version. The caller writes, names and
//! replaces files.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Bytes of the envelope before the checksum.
const HEAD: &[u8] = b"{\"blake3\":\"";

/// Bytes between checksum and content.
const MIDDLE: &[u8] = b"\",\"content\":";

/// Bytes of the envelope after the content.
const TAIL: &[u8] = b"}\n";

/// Number of hexadecimal digits of a BLAKE3 checksum.
const DIGITS: usize = 2 * blake3::OUT_LEN;

/// Content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content<T> {
    /// Parsed content, without the envelope.
    pub value: T,
    /// `false` if an earlier version wrote the file, so that a change may go unnoticed.
    pub is_checksummed: bool,
}

/// Reason why a file is corrupt.
#[derive(Debug, Error)]
pub enum CorruptError {
    /// The content differs from the content that was written.
    #[error("its checksum does not match its content")]
    Checksum,
    /// The file has neither the envelope nor the content of an earlier version.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
}

/// Returns the bytes of a file with this content.
///
/// # Errors
/// [`serde_json::Error`] when the content cannot be serialized.
pub fn encode(content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let content = serde_json::to_vec(content)?;
    let checksum = blake3::hash(&content).to_hex();
    Ok([HEAD, checksum.as_bytes(), MIDDLE, &content, TAIL].concat())
}

/// Parses the bytes of a file and verifies the checksum.
///
/// # Errors
/// [`CorruptError`] when neither [`encode`] nor an earlier version has written these bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Content<T>, CorruptError> {
    let Some(rest) = bytes.strip_prefix(HEAD) else {
        return Ok(Content { value: serde_json::from_slice(bytes)?, is_checksummed: false });
    };
    let (checksum, rest) = rest.split_at_checked(DIGITS).ok_or(CorruptError::Checksum)?;
    let content = rest.strip_prefix(MIDDLE).and_then(|rest| rest.strip_suffix(TAIL));
    let content = content.ok_or(CorruptError::Checksum)?;
    if blake3::hash(content).to_hex().as_bytes() != checksum {
        return Err(CorruptError::Checksum);
    }
    Ok(Content { value: serde_json::from_slice(content)?, is_checksummed: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Numbers = BTreeMap<u32, f64>;

    #[test]
    fn content_with_checksum_is_read_back() {
        let numbers = Numbers::from([(1, 0.5), (7, -1e300)]);
        let bytes = encode(&numbers).unwrap();
        assert_eq!(decode(&bytes).unwrap(), Content { value: numbers.clone(), is_checksummed: true });
        // The whole file is an ordinary JSON document.
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["content"]["7"], -1e300);
        let plain = serde_json::to_vec(&numbers).unwrap();
        assert_eq!(decode(&plain).unwrap(), Content { value: numbers, is_checksummed: false });
    }

    #[test]
    fn change_of_any_bit_and_any_cut_is_found() {
        let bytes = encode(&Numbers::from([(1, 0.5), (7, 12.25)])).unwrap();
        for place in 0..bytes.len() {
            assert!(decode::<Numbers>(&bytes[..place]).is_err(), "cut at {place}");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                assert!(decode::<Numbers>(&changed).is_err(), "bit {bit} of byte {place}");
            }
        }
    }
}
