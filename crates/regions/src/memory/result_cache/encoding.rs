//! Encoding of idle regions: the choice of regions, and the exchange of forms.
//!
//! The caller encodes on other threads and without the lock of the cache. A region can be used or evicted meanwhile.

use super::ResultCache;
use super::entry::Attempt;
use super::idle::start_attempt;
use crate::{DataRegion, EncodedRegion, RegionIdentity};
use std::sync::Arc;

/// An idle region to be encoded. [`ResultCache::finish_encoding`] must follow.
#[derive(Clone, Debug)]
pub struct RegionToEncode {
    /// Its identity.
    pub identity: RegionIdentity,
    /// The region.
    pub region: Arc<DataRegion>,
}

impl ResultCache {
    /// Returns the regions to encode so that at most `decoded_bytes` of idle decoded regions are left that can be encoded.
    /// Regions with both forms lose the decoded one at once. The regions being encoded take at most `max_bytes` in total:
    /// these are not counted if the region is evicted meanwhile.
    pub fn start_encoding(&mut self, decoded_bytes: u64, max_bytes: u64) -> Vec<RegionToEncode> {
        let mut all = Vec::new();
        while self.idle.reducible_bytes() > decoded_bytes {
            if let Some(identity) = self.idle.oldest_copy() {
                self.drop_decoded(identity);
                continue;
            }
            let Some(identity) = self.idle.oldest_untried() else { break };
            let Some(entry) = self.regions.get_mut(&identity) else { break };
            if self.encoding_bytes + entry.region_bytes > max_bytes {
                break;
            }
            let Some(region) = entry.decoded.clone() else { break };
            start_attempt(&mut self.idle, identity, entry);
            self.encoding_bytes += entry.region_bytes;
            all.push(RegionToEncode { identity, region });
        }
        all
    }

    /// Replaces the decoded form of a region by the encoded one. With `None`, the region does not shrink enough, and stays as
    /// it is.
    pub fn finish_encoding(&mut self, done: &RegionToEncode, encoded: Option<EncodedRegion>) {
        let RegionToEncode { identity, region } = done;
        assert!(self.encoding_bytes >= region.bytes(), "a result is encoded twice: {identity:?}");
        self.encoding_bytes -= region.bytes();
        // Evicted meanwhile, or also inserted again.
        let Some(entry) = self.regions.get_mut(identity) else { return };
        if entry.attempt != Attempt::Running {
            return;
        }
        self.idle.remove(*identity, entry);
        entry.attempt = if encoded.is_some() { Attempt::None } else { Attempt::Refused };
        // In use meanwhile: the encoded form would be additional bytes, which the caller has not admitted.
        if let Some(encoded) = encoded.filter(|_| entry.holders == 0) {
            self.idle.record_share(entry, encoded.bytes());
            entry.encoded = Some(Arc::new(encoded));
            entry.decoded = None;
        }
        self.idle.add(*identity, entry);
    }

    /// Returns the decoded bytes of idle regions that can be encoded or are encoded already.
    #[must_use]
    pub fn reducible_bytes(&self) -> u64 {
        self.idle.reducible_bytes()
    }

    /// Returns the bytes of encoded forms.
    #[must_use]
    pub fn encoded_bytes(&self) -> u64 {
        self.idle.encoded_bytes()
    }

    /// Drops the decoded form of an idle region that has an encoded one.
    pub(super) fn drop_decoded(&mut self, identity: RegionIdentity) {
        let entry = self.regions.get_mut(&identity);
        assert!(entry.is_some(), "an idle result is not in the cache: {identity:?}");
        let Some(entry) = entry else { return };
        self.idle.remove(identity, entry);
        assert!(entry.encoded.is_some(), "the only form of a result is dropped: {identity:?}");
        entry.decoded = None;
        self.idle.add(identity, entry);
    }

    /// Drops the encoded form of a region in use.
    pub(super) fn drop_encoded(&mut self, identity: RegionIdentity) {
        let entry = self.regions.get_mut(&identity);
        assert!(entry.is_some(), "a result in use is not in the cache: {identity:?}");
        let Some(entry) = entry else { return };
        self.idle.remove(identity, entry);
        assert!(entry.decoded.is_some(), "the only form of a result is dropped: {identity:?}");
        entry.encoded = None;
        self.idle.add(identity, entry);
    }
}
