//! Laws of the encoding: what goes in comes out, digests do not depend on it, and bytes from anywhere are harmless.

use pleach_pages::{Recycler, metered};
use pleach_regions::{DataRegion, LabelMap, MAX_EXPANSION, Raster, Table};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: Recycler = Recycler;

/// Beyond what grows with the input: the hash's own state, and the names of columns, which a table holds one by one.
const SMALL_BYTES: u64 = 8192;

/// Pixels in runs, as images have them, so that every coding is chosen sometimes.
fn values(length: usize, value: BoxedStrategy<u8>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((value, 1..40_usize), length).prop_map(move |runs| {
        runs.into_iter().flat_map(|(value, times)| std::iter::repeat_n(value, times)).take(length).collect()
    })
}

fn raster(channels: u8, value: BoxedStrategy<u8>) -> impl Strategy<Value = Raster> {
    (1..30_u32, 1..30_u32).prop_flat_map(move |(width_px, height_px)| {
        let length = width_px as usize * height_px as usize * usize::from(channels);
        values(length, value.clone())
            .prop_map(move |data| Raster::new(width_px, height_px, channels, data).expect("of that shape"))
    })
}

fn region() -> impl Strategy<Value = DataRegion> {
    let mask = prop::sample::select(vec![0, 255]).boxed();
    prop_oneof![
        raster(3, any::<u8>().boxed()).prop_map(DataRegion::Bgr8),
        raster(1, any::<u8>().boxed()).prop_map(DataRegion::Gray8),
        raster(1, mask).prop_map(DataRegion::Mask),
        raster(1, any::<u8>().boxed()).prop_map(DataRegion::Mask),
        raster(4, any::<u8>().boxed()).prop_map(|bytes| {
            let labels = bytes
                .data()
                .chunks_exact(4)
                .map(|four| four.iter().fold(0, |label, byte| label << 8 | u32::from(*byte)));
            let labels = LabelMap::new(bytes.width_px(), bytes.height_px(), labels.collect());
            DataRegion::Labels(labels.expect("of that shape"))
        }),
        prop::collection::vec((".{0,8}", any::<u64>().prop_map(f64::from_bits)), 0..6)
            .prop_map(|columns| DataRegion::Table(Table::new(columns))),
    ]
}

/// Equality to the bit: a table may hold numbers that are not equal to themselves.
fn same(one: &DataRegion, other: &DataRegion) -> bool {
    let bits = |region: &DataRegion| -> Option<Vec<(String, u64)>> {
        let table = region.table().ok()?;
        Some(table.columns().map(|(name, value)| (name.to_owned(), value.to_bits())).collect())
    };
    match (bits(one), bits(other)) {
        (None, None) => one == other,
        (one, other) => one == other,
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(region in region()) {
        let digest = region.digest();
        let bytes = region.encode(&digest);
        prop_assert!(bytes.len() as u64 <= region.bytes() + 48);
        let (decoded, found) = DataRegion::decode(&bytes).unwrap();
        prop_assert!(same(&decoded, &region));
        prop_assert_eq!(found, digest);
        prop_assert_eq!(decoded.digest(), digest);
    }

    #[test]
    fn other_content_has_another_digest(one in region(), other in region()) {
        prop_assert_eq!(same(&one, &other), one.digest() == other.digest());
    }

    /// One flipped bit, wherever it is, is found, or is one that nobody reads (the bits that fill up a mask's last byte).
    #[test]
    fn flipped_bits_are_found(region in region(), place: prop::sample::Index, bit in 0..8_u8) {
        let mut bytes = region.encode(&region.digest());
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok((decoded, digest)) = DataRegion::decode(&bytes) {
            prop_assert!(same(&decoded, &region));
            prop_assert_eq!(digest, region.digest());
        }
    }

    #[test]
    fn a_cut_or_longer_encoding_is_refused(region in region(), length: prop::sample::Index, more in 1..9_usize) {
        let bytes = region.encode(&region.digest());
        prop_assert!(DataRegion::decode(&bytes[..length.index(bytes.len())]).is_err());
        let longer: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat_n(0, more)).collect();
        prop_assert!(DataRegion::decode(&longer).is_err());
    }

    /// A header that claims anything, before few bytes.
    #[test]
    fn nothing_is_allocated_beyond_the_stated_factor(
        element in 0..7_u8, coding in 0..5_u8, channels in 0..5_u8,
        shape in any::<[u8; 8]>(), high in 0..4_usize, body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![b'P', b'L', b'R', b'G', 1, element, coding, channels];
        // Small shapes as well as large ones.
        bytes.extend(shape.iter().enumerate().map(|(place, byte)| if place % 4 <= high { *byte } else { 0 }));
        bytes.extend([0; 32]);
        bytes.extend(body);
        let (_, peak) = metered(|| DataRegion::decode(&bytes).is_ok());
        prop_assert!(peak <= MAX_EXPANSION * bytes.len() as u64 + SMALL_BYTES, "{peak} bytes");
    }
}

/// The largest expansion there is: a large mask of nothing. It shows that the factor is needed, and that it is enough.
#[test]
fn an_empty_mask_takes_next_to_nothing() {
    let region = DataRegion::Mask(Raster::filled(4096, 4096, 1, 0).unwrap());
    let bytes = region.encode(&region.digest());
    assert!(bytes.len() < 16 << 10, "{} bytes", bytes.len());
    let (decoded, peak) = metered(|| DataRegion::decode(&bytes).unwrap().0);
    assert!(decoded == region);
    assert!(peak > 1000 * bytes.len() as u64 && peak <= MAX_EXPANSION * bytes.len() as u64 + SMALL_BYTES);
}

/// Digests outlive a program: these must not change without a new version of everything that stores them.
#[test]
fn digests_stay_what_they_are() {
    let regions = [
        DataRegion::Bgr8(Raster::new(1, 1, 3, vec![1, 2, 3]).unwrap()),
        DataRegion::Mask(Raster::new(2, 1, 1, vec![0, 255]).unwrap()),
        DataRegion::Labels(LabelMap::new(2, 1, vec![0, 70_000]).unwrap()),
        DataRegion::Table(Table::new([("dice", 0.5)])),
    ];
    let digests = regions.map(|region| region.digest().to_string()[..16].to_owned());
    assert_eq!(digests, ["45e258c3f420a2bb", "1dce8677b5083c69", "8d1779eea8d11074", "8934c9bcb8f377a2"]);
}
