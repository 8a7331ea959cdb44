//! One region of the cache: its forms, its users, and its value.

use crate::{DataRegion, ElementType, EncodedRegion, RegionKey, TaskKey};
use std::sync::Arc;

/// Bytes per second of decoding, and so of the gain of a found result: half the speed measured on masks and label maps
/// (`benches/RESULTS.md`), because a task's thread has to be woken as well.
const DECODED_BYTES_PER_SECOND: f64 = 2e9;

/// Regions of fewer bytes are never encoded: their fixed costs exceed the gain.
const MIN_ENCODED_BYTES: u64 = 4096;

/// Form of a cached region.
#[derive(Clone, Debug)]
pub enum CachedForm {
    /// As tasks read it.
    Decoded(Arc<DataRegion>),
    /// Encoded in memory.
    Encoded(Arc<EncodedRegion>),
}

impl CachedForm {
    /// Returns the region, decoded if necessary. `None` if its bytes have changed in memory.
    #[must_use]
    pub fn region(&self) -> Option<Arc<DataRegion>> {
        match self {
            Self::Decoded(region) => Some(Arc::clone(region)),
            Self::Encoded(encoded) => encoded.decode().ok().map(Arc::new),
        }
    }

    /// Returns whether the region must be decoded.
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        matches!(self, Self::Encoded(_))
    }

    /// Returns the element type of the region.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::Decoded(region) => region.element(),
            Self::Encoded(encoded) => encoded.element(),
        }
    }

    /// Returns the bytes of the decoded region.
    #[must_use]
    pub fn region_bytes(&self) -> u64 {
        match self {
            Self::Decoded(region) => region.bytes(),
            Self::Encoded(encoded) => encoded.region_bytes(),
        }
    }
}

/// Progress of the encoding of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    None,
    /// Another thread encodes it.
    Running,
    /// It does not shrink enough.
    Refused,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Always there while the region has a holder.
    pub(super) decoded: Option<Arc<DataRegion>>,
    pub(super) encoded: Option<Arc<EncodedRegion>>,
    pub(super) region_bytes: u64,
    pub(super) attempt: Attempt,
    pub(super) holders: usize,
    /// Tasks that have it among their outputs, with their sources as far as they have one. Tiles with equal results share them.
    pub(super) keys: Vec<(TaskKey, Option<RegionKey>)>,
    /// Seconds of the most expensive of those tasks.
    pub(super) seconds: f64,
    /// Its value, set when it becomes idle or changes its form.
    pub(super) worth: Worth,
    /// Number of its last release.
    pub(super) released: u64,
    /// Whether the sources of all its tasks are gone. The region is then dropped at its last release.
    pub(super) is_last: bool,
}

impl Entry {
    pub(super) fn new(region: Arc<DataRegion>) -> Self {
        Self {
            region_bytes: region.bytes(),
            decoded: Some(region),
            encoded: None,
            attempt: Attempt::None,
            holders: 0,
            keys: Vec::new(),
            seconds: 0.0,
            worth: Worth(f64::NEG_INFINITY),
            released: 0,
            is_last: false,
        }
    }

    /// Returns the form for a reader: decoded if the region has both.
    pub(super) fn form(&self) -> Option<CachedForm> {
        let decoded = self.decoded.clone().map(CachedForm::Decoded);
        decoded.or_else(|| self.encoded.clone().map(CachedForm::Encoded))
    }

    /// Returns the bytes of the decoded form, 0 without it.
    pub(super) fn decoded_bytes(&self) -> u64 {
        if self.decoded.is_some() { self.region_bytes } else { 0 }
    }

    /// Returns the bytes of the encoded form, 0 without it.
    pub(super) fn encoded_bytes(&self) -> u64 {
        self.encoded.as_ref().map_or(0, |encoded| encoded.bytes())
    }

    /// Returns whether encoding may pay off: the region is not encoded yet, and decoding is faster than recomputing it.
    pub(super) fn is_encodable(&self) -> bool {
        self.encoded.is_none()
            && self.attempt == Attempt::None
            && self.region_bytes >= MIN_ENCODED_BYTES
            && self.seconds > self.decode_seconds()
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn decode_seconds(&self) -> f64 {
        self.region_bytes as f64 / DECODED_BYTES_PER_SECOND
    }

    /// Returns the seconds that the idle region saves for each byte, in the smallest form that it has or is expected to get.
    /// `share` is the expected share of a region's bytes that its encoded form takes.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn density(&self, share: f64) -> f64 {
        let raw_bytes = self.region_bytes.max(1) as f64;
        let decoded_later = (self.seconds - self.decode_seconds()).max(0.0);
        match &self.encoded {
            Some(encoded) => decoded_later / encoded.bytes() as f64,
            None if self.attempt == Attempt::Running || self.is_encodable() => {
                decoded_later / (raw_bytes * share)
            }
            None => self.seconds / raw_bytes,
        }
    }
}

/// Value of an idle region. Ordered as numbers, never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worth(pub(super) f64);

impl Eq for Worth {}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
