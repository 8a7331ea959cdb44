//! Past values of a flow-influenced variable, as part of a key.
//!
//! Paper 004, Section 5.2, defines which variables need a history. The caller defines the bytes of a value.

/// Past values of a variable, in order. Contributes 32 bytes to a key, independent of their number.
#[derive(Debug, Clone)]
pub struct ValueHistory {
    hasher: blake3::Hasher,
    values: u64,
    bytes: u64,
}

/// Domain separation of histories from all other uses of the hash. The number increases when the byte string
/// below changes.
const CONTEXT: &str = "pleach value history 1";

impl Default for ValueHistory {
    fn default() -> Self {
        Self { hasher: blake3::Hasher::new_derive_key(CONTEXT), values: 0, bytes: 0 }
    }
}

impl ValueHistory {
    /// Records the current value of the variable. Every iteration records, even if the value did not change.
    pub fn record(&mut self, value: &[u8]) {
        // The length precedes the value, so that different histories never give the same bytes.
        self.hasher.update(&(value.len() as u64).to_le_bytes());
        self.hasher.update(value);
        self.values += 1;
        self.bytes = self.bytes.saturating_add(value.len() as u64);
    }

    /// Number of recorded values.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Total bytes of all values: the size of this history as an attribute.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the key contribution of the history so far. Equal if and only if equal values were recorded in equal
    /// order.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(values: &[&[u8]]) -> ValueHistory {
        let mut history = ValueHistory::default();
        values.iter().for_each(|value| history.record(value));
        history
    }

    #[test]
    fn values_their_order_and_their_number_count() {
        let digests = [
            history(&[]),
            history(&[b""]),
            history(&[b"", b""]),
            history(&[b"ab"]),
            history(&[b"a", b"b"]),
            history(&[b"b", b"a"]),
            history(&[b"a", b"b", b"b"]),
        ]
        .map(|history| history.digest());
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest), "number {place} has another's digest");
        }
        assert_eq!(history(&[b"a", b"b"]).digest(), digests[4]);
    }

    #[test]
    fn history_grows_after_a_digest() {
        let mut grown = history(&[&8_f64.to_le_bytes()]);
        assert_eq!((grown.values(), grown.bytes()), (1, 8));
        let before = grown.digest();
        grown.record(&4_f64.to_le_bytes());
        assert_eq!((grown.values(), grown.bytes()), (2, 16));
        assert_ne!(grown.digest(), before);
        assert_eq!(grown.digest(), history(&[&8_f64.to_le_bytes(), &4_f64.to_le_bytes()]).digest());
    }
}
