//! Trace of an executed task instance: the content of its outputs, without the outputs.
//!
//! `trace/layout.rs` serializes it. The caller decides where to store it.

mod layout;

use crate::{KeyComponents, StudyLabel};
use pleach_regions::{DataRegion, Digest};

/// 4 KiB: maximum encoded size of an output inside the trace. Tables of metrics take a few hundred bytes, and a separate
/// disk read for each would cost more.
pub const INLINE_LIMIT_BYTES: usize = 4096;

/// One output of a task instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The digest of its content.
    pub digest: Digest,
    /// Its bytes in memory.
    pub bytes: u64,
    /// Its encoding, if that is small.
    inline: Option<Vec<u8>>,
}

impl Output {
    /// Creates an output from a region. `digest` is its own.
    #[must_use]
    pub fn new(region: &DataRegion, digest: Digest) -> Self {
        // Regions above 8 times the limit rarely compress to it, so they are not encoded.
        let encoded = (region.bytes() <= 8 * INLINE_LIMIT_BYTES as u64).then(|| region.encode(&digest));
        let inline = encoded.filter(|bytes| bytes.len() <= INLINE_LIMIT_BYTES);
        Self { digest, bytes: region.bytes(), inline }
    }

    /// Returns the region, if the trace contains it. `None` if its content does not match the digest.
    #[must_use]
    pub fn region(&self) -> Option<DataRegion> {
        let (region, digest) = DataRegion::decode(self.inline.as_ref()?).ok()?;
        (digest == self.digest).then_some(region)
    }
}

/// Trace of an executed task instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its outputs, in the operation's order.
    pub outputs: Vec<Output>,
    /// Its run time.
    pub seconds: f64,
    /// The components of its key.
    pub components: KeyComponents,
    /// Study and user that it was made for. `None` in folders of earlier versions.
    pub label: Option<StudyLabel>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{Raster, Table};

    #[test]
    fn small_outputs_are_whole_inside_and_large_ones_only_named() {
        let table = DataRegion::Table(Table::new([("dice", 0.5)]));
        let output = Output::new(&table, table.digest());
        assert_eq!(output.region(), Some(table));

        let mut state = 1_u32;
        let noise = std::iter::from_fn(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((state >> 24) as u8)
        });
        let noise = noise.take(5000).collect();
        let image = DataRegion::Gray8(Raster::new(100, 50, 1, noise).unwrap());
        let output = Output::new(&image, image.digest());
        assert!(output.region().is_none());
        assert_eq!((output.bytes, output.digest), (5000, image.digest()));
    }

    #[test]
    fn inline_region_with_wrong_digest_is_ignored() {
        let table = |value| DataRegion::Table(Table::new([("dice", value)]));
        let mut output = Output::new(&table(0.5), table(0.5).digest());
        output.digest = table(0.25).digest();
        assert_eq!(output.region(), None);
    }
}
