//! Limits on the pixels read at once.

/// Maximum pixels of one piece (a TIFF's tile) of a level: 4096 × 4096, larger than any scanner writes (256–1024
/// per side). The reader decodes whole pieces, so a header that claims more would cost more memory than the region
/// read.
pub(crate) const MAX_PIECE_PX: u64 = 1 << 24;

/// Maximum pixels read for an overview: a gigapixel takes some 30 s. Slides have levels of a few megapixels. Only a
/// slide with a single level of a whole section exceeds the limit.
pub(crate) const MAX_OVERVIEW_PX: u64 = 1 << 30;
