//! Idle regions of the cache in their orders, and all bytes that the cache alone accounts for.

use super::entry::{Attempt, Entry, Worth};
use crate::RegionIdentity;
use std::collections::BTreeSet;

/// Part of a region's bytes that its encoded form is expected to take before any region was encoded: that of a mask with one
/// bit for each pixel.
const EXPECTED_SHARE: f64 = 1.0 / 8.0;

/// Weight of [`EXPECTED_SHARE`] in bytes of regions, beside those that were encoded: 8 masks of 1024 × 1024 pixels.
const EXPECTED_BYTES: f64 = 8e6;

/// Idle regions and their bytes.
#[derive(Debug)]
pub(super) struct IdleRegions {
    /// All of them, in eviction order.
    by_worth: BTreeSet<(Worth, RegionIdentity)>,
    /// Those with both forms, in release order.
    copies: BTreeSet<(u64, RegionIdentity)>,
    /// Those to be encoded, in release order.
    untried: BTreeSet<(u64, RegionIdentity)>,
    /// Regions in use that have an encoded form as well.
    spare: BTreeSet<RegionIdentity>,
    /// Decoded bytes of idle regions, and encoded bytes of all.
    bytes: u64,
    /// Decoded bytes of `copies` and `untried`.
    reducible_bytes: u64,
    encoded_bytes: u64,
    /// The value of the last evicted region, added to later values (L of GreedyDual-Size).
    inflation: f64,
    /// Bytes of encoded regions before and after.
    shrunk_bytes: (f64, f64),
}

impl Default for IdleRegions {
    fn default() -> Self {
        Self {
            by_worth: BTreeSet::new(),
            copies: BTreeSet::new(),
            untried: BTreeSet::new(),
            spare: BTreeSet::new(),
            bytes: 0,
            reducible_bytes: 0,
            encoded_bytes: 0,
            inflation: 0.0,
            shrunk_bytes: (EXPECTED_BYTES, EXPECTED_BYTES * EXPECTED_SHARE),
        }
    }
}

impl IdleRegions {
    /// Adds the forms of a region: of an idle one to the orders, of one in use the encoded form alone.
    pub(super) fn add(&mut self, identity: RegionIdentity, entry: &mut Entry) {
        self.bytes += entry.encoded_bytes();
        self.encoded_bytes += entry.encoded_bytes();
        if entry.holders > 0 {
            if entry.encoded.is_some() {
                self.spare.insert(identity);
            }
            return;
        }
        entry.worth = Worth(self.inflation + entry.density(self.shrunk_bytes.1 / self.shrunk_bytes.0));
        let is_new = self.by_worth.insert((entry.worth, identity));
        assert!(is_new, "a result becomes idle twice: {identity:?}");
        self.bytes += entry.decoded_bytes();
        if entry.decoded.is_none() {
            return;
        }
        let queue = match entry.encoded {
            Some(_) => &mut self.copies,
            None if entry.is_encodable() => &mut self.untried,
            None => return,
        };
        queue.insert((entry.released, identity));
        self.reducible_bytes += entry.region_bytes;
    }

    /// Removes the forms of a region, as far as [`add`](Self::add) has added them. Call it before they or the holders change.
    pub(super) fn remove(&mut self, identity: RegionIdentity, entry: &Entry) {
        let mut bytes = entry.encoded_bytes();
        self.encoded_bytes -= bytes;
        if self.by_worth.remove(&(entry.worth, identity)) {
            assert!(entry.holders == 0, "an idle result had {} holders", entry.holders);
            bytes += entry.decoded_bytes();
        } else {
            assert!(entry.holders > 0, "a result is neither idle nor in use: {identity:?}");
            self.spare.remove(&identity);
        }
        let place = (entry.released, identity);
        if self.copies.remove(&place) || self.untried.remove(&place) {
            self.reducible_bytes -= entry.region_bytes;
        }
        assert!(self.bytes >= bytes, "a result of {bytes} bytes leaves the idle ones, of {}", self.bytes);
        self.bytes -= bytes;
    }

    /// Records that a region takes `encoded` bytes after encoding.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn record_share(&mut self, entry: &Entry, encoded: u64) {
        self.shrunk_bytes.0 += entry.region_bytes as f64;
        self.shrunk_bytes.1 += encoded as f64;
    }

    /// Returns the region to evict next, whose value is added to later ones.
    pub(super) fn next_evicted(&mut self) -> Option<RegionIdentity> {
        let (worth, identity) = self.by_worth.first()?;
        self.inflation = worth.0;
        Some(*identity)
    }

    /// Returns the region whose decoded form is dropped next, since it has an encoded one.
    pub(super) fn oldest_copy(&self) -> Option<RegionIdentity> {
        self.copies.first().map(|(_, identity)| *identity)
    }

    /// Returns the region that is encoded next.
    pub(super) fn oldest_untried(&self) -> Option<RegionIdentity> {
        self.untried.first().map(|(_, identity)| *identity)
    }

    /// Returns a region in use whose encoded form can be dropped.
    pub(super) fn any_spare(&self) -> Option<RegionIdentity> {
        self.spare.first().copied()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn encoded_bytes(&self) -> u64 {
        self.encoded_bytes
    }

    pub(super) fn reducible_bytes(&self) -> u64 {
        self.reducible_bytes
    }
}

/// Marks an idle region as being encoded.
pub(super) fn start_attempt(idle: &mut IdleRegions, identity: RegionIdentity, entry: &mut Entry) {
    idle.remove(identity, entry);
    entry.attempt = Attempt::Running;
    idle.add(identity, entry);
}
