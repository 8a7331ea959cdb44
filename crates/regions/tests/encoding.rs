//! Laws of the encoding: decoding restores the encoded region, digests do not depend on the encoding, and
//! untrusted bytes are harmless.

use pleach_pages::{RecyclingAllocator, metered};
use pleach_regions::{
    AnnotatedObjects, CompressionEffort, DataRegion, DenseArray, Interval, LabelMap, MAX_EXPANSION,
    MAX_OVERHEAD_BYTES, NumberType, Points, Polygons, Position, RaggedArray, Raster, Resolution,
    SpatialBounds, Table, TypedValues,
};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

/// Constant allowance: the hash's state, and the names of columns, which a table holds one by one.
const SMALL_BYTES: u64 = 8192;

/// Pixels in runs, as in images, so that every coding is sometimes chosen.
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

/// `length` numbers of this type, with any bits.
fn numbers(number: NumberType, length: usize) -> impl Strategy<Value = TypedValues> {
    values(length * 8, any::<u8>().boxed()).prop_map(move |bytes| {
        let bits = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        match number {
            NumberType::U8 => bits.map(|bits| bits as u8).collect::<Vec<_>>().into(),
            NumberType::U16 => bits.map(|bits| bits as u16).collect::<Vec<_>>().into(),
            NumberType::I32 => bits.map(|bits| bits as i32).collect::<Vec<_>>().into(),
            NumberType::F32 => bits.map(|bits| f32::from_bits(bits as u32)).collect::<Vec<_>>().into(),
            NumberType::F64 => bits.map(f64::from_bits).collect::<Vec<_>>().into(),
        }
    })
}

fn number() -> impl Strategy<Value = NumberType> {
    prop::sample::select(NumberType::ALL.to_vec())
}

fn array() -> impl Strategy<Value = DataRegion> {
    (prop::collection::vec(1..9_u32, 1..=3), 1..4_u16, number()).prop_flat_map(
        |(extents, channels, number)| {
            let length = extents.iter().product::<u32>() as usize * usize::from(channels);
            numbers(number, length).prop_map(move |values| {
                DataRegion::Array(DenseArray::new(&extents, channels, values).expect("of that shape"))
            })
        },
    )
}

fn ragged() -> impl Strategy<Value = DataRegion> {
    (prop::collection::vec(0..6_u64, 0..8), number()).prop_flat_map(|(lengths, number)| {
        numbers(number, lengths.iter().sum::<u64>() as usize).prop_map(move |values| {
            let mut end = 0;
            let ends = lengths.iter().map(|length| {
                end += length;
                end
            });
            DataRegion::Ragged(RaggedArray::new(ends.collect(), values).expect("as many values"))
        })
    })
}

fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![(-100..100_i32).prop_map(f64::from), -1e9..1e9, Just(-0.0)]
}

fn rings() -> impl Strategy<Value = Vec<Vec<Position>>> {
    prop::collection::vec(prop::collection::vec([coordinate(), coordinate()], 3..7), 0..3)
}

fn objects() -> impl Strategy<Value = DataRegion> {
    let one = (rings(), any::<bool>(), "[a-c]{0,2}", any::<u64>().prop_map(f64::from_bits));
    (prop::collection::vec(one, 0..6), any::<bool>()).prop_map(|(all, has_area)| {
        let mut objects = AnnotatedObjects::new(has_area.then_some("area")).expect("one name");
        for (rings, is_box, class, number) in all {
            let numbers = &[number][..usize::from(has_area)];
            if is_box {
                objects.push_box([-1.5, 0.0], [2.0, 0.0], &class, numbers).expect("a box");
            } else {
                objects.push_polygon(&rings, &class, numbers).expect("rings");
            }
        }
        DataRegion::Objects(Box::new(objects))
    })
}

fn region() -> impl Strategy<Value = DataRegion> {
    let mask = prop::sample::select(vec![0, 255]).boxed();
    let label = |bytes: &[u8]| bytes.iter().fold(0, |label, byte| label << 8 | u32::from(*byte));
    prop_oneof![
        raster(3, any::<u8>().boxed()).prop_map(DataRegion::Bgr8),
        raster(1, any::<u8>().boxed()).prop_map(DataRegion::Gray8),
        raster(1, mask).prop_map(DataRegion::Mask),
        raster(1, any::<u8>().boxed()).prop_map(DataRegion::Mask),
        raster(4, any::<u8>().boxed()).prop_map(move |bytes| {
            let labels = bytes.data().chunks_exact(4).map(label).collect();
            let labels = LabelMap::new(bytes.width_px(), bytes.height_px(), labels);
            DataRegion::Labels(labels.expect("of that shape"))
        }),
        raster(1, any::<u8>().boxed()).prop_map(|bytes| {
            let labels = bytes.data().iter().map(|label| u32::from(*label)).collect();
            let labels = LabelMap::new(bytes.width_px(), bytes.height_px(), labels);
            DataRegion::Labels(labels.expect("of that shape"))
        }),
        prop::collection::vec((".{0,8}", any::<u64>().prop_map(f64::from_bits)), 0..6)
            .prop_map(|columns| DataRegion::Table(Table::new(columns))),
        array(),
        ragged(),
        (1..=3_u8, prop::collection::vec(coordinate(), 0..20)).prop_map(|(axes, mut coordinates)| {
            coordinates.truncate(coordinates.len() / usize::from(axes) * usize::from(axes));
            DataRegion::Points(Points::new(axes, coordinates).expect("whole points"))
        }),
        prop::collection::vec(rings(), 0..5)
            .prop_map(|all| DataRegion::Polygons(Box::new(Polygons::new(all).expect("rings")))),
        objects(),
        any::<u64>().prop_map(|bits| DataRegion::Scalar(f64::from_bits(bits))),
    ]
}

fn bounds() -> impl Strategy<Value = SpatialBounds> {
    let axis = (-1000..1000_i64, 0..500_i64).prop_map(|(start, length)| {
        Interval::new(start, start + length).expect("it does not end before it starts")
    });
    (prop::collection::vec(axis, 1..=3), prop::option::of(0.01..100.0)).prop_map(|(axes, microns)| {
        let resolution = microns.map(|microns| Resolution::from_microns_per_px(microns).expect("within"));
        SpatialBounds::new(&axes, resolution).expect("one to three axes")
    })
}

/// Returns whether two regions are equal to the bit. `==` treats NaN as different from itself.
fn same(one: &DataRegion, other: &DataRegion) -> bool {
    let bits = |values: &TypedValues| -> Vec<u64> {
        (0..values.len()).filter_map(|place| values.get_f64(place)).map(f64::to_bits).collect()
    };
    let table = |table: &Table| -> Vec<(String, u64)> {
        table.columns().map(|(name, value)| (name.to_owned(), value.to_bits())).collect()
    };
    match (one, other) {
        (DataRegion::Table(one), DataRegion::Table(other)) => table(one) == table(other),
        (DataRegion::Array(one), DataRegion::Array(other)) => {
            let shape =
                |array: &DenseArray| (array.extents().to_vec(), array.channels(), array.values().number());
            shape(one) == shape(other) && bits(one.values()) == bits(other.values())
        }
        (DataRegion::Ragged(one), DataRegion::Ragged(other)) => {
            one.ends() == other.ends()
                && one.values().number() == other.values().number()
                && bits(one.values()) == bits(other.values())
        }
        (DataRegion::Points(one), DataRegion::Points(other)) => {
            let bits = |points: &Points| points.coordinates().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            one.axes() == other.axes() && bits(one) == bits(other)
        }
        (DataRegion::Polygons(one), DataRegion::Polygons(other)) => {
            format!("{one:?}") == format!("{other:?}")
        }
        // Debug output does not show the bits of NaN, so numbers are also compared by their bits.
        (DataRegion::Objects(one), DataRegion::Objects(other)) => {
            let bits = |objects: &AnnotatedObjects| {
                objects.numbers().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            format!("{one:?}") == format!("{other:?}") && bits(one) == bits(other)
        }
        (DataRegion::Scalar(one), DataRegion::Scalar(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn encoded_region_round_trips(region in region()) {
        let digest = region.digest();
        let bytes = region.encode(&digest);
        prop_assert!(bytes.len() as u64 <= region.bytes() + MAX_OVERHEAD_BYTES);
        let (decoded, found) = DataRegion::decode(&bytes).unwrap();
        prop_assert!(same(&decoded, &region));
        prop_assert_eq!(found, digest);
        prop_assert_eq!(decoded.digest(), digest);
    }

    /// Effort and bounds change neither the region nor its digest.
    #[test]
    fn effort_and_bounds_change_nothing(
        region in region(), effort in prop::sample::select(vec![CompressionEffort::None, CompressionEffort::Quick, CompressionEffort::Small]),
        bounds in prop::option::of(bounds()),
    ) {
        let digest = region.digest();
        let (head, body) = region.encode_with(&digest, effort, bounds.as_ref());
        prop_assert!((48 + body.len()) as u64 <= region.bytes() + MAX_OVERHEAD_BYTES);
        let (decoded, found) = DataRegion::decode_parts(&head, body.to_vec()).unwrap();
        prop_assert!(same(&decoded, &region) && found == digest);
        let (decoded, description) = DataRegion::decode_described(&[&head.0[..], &body].concat()).unwrap();
        prop_assert!(same(&decoded, &region));
        prop_assert_eq!((description.bounds, description.digest), (bounds, digest));
        prop_assert_eq!((description.element, description.shape), (region.element(), region.shape()));
    }

    #[test]
    fn other_content_has_another_digest(one in region(), other in region()) {
        prop_assert_eq!(same(&one, &other), one.digest() == other.digest());
    }

    /// A flipped bit is detected, unless it is unused (the padding of a mask's last byte).
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

    /// Decoding stays within the stated memory for a header with any claims before few bytes.
    #[test]
    fn decoding_version_1_allocates_within_the_stated_factor(
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

/// Returns an encoding of version 2 with this content and a consistent header.
fn claimed(element: u8, coding: u8, content_bytes: u64, shape: &[u64], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b'P', b'L', b'R', b'G', 2, element, coding, 0];
    bytes.extend(content_bytes.to_le_bytes());
    bytes.extend([0; 32]);
    bytes.extend((6 + 8 * shape.len() as u32).to_le_bytes());
    bytes.extend([1, 0]);
    bytes.extend((8 * shape.len() as u32).to_le_bytes());
    bytes.extend(shape.iter().flat_map(|count| count.to_le_bytes()));
    let check = blake3::derive_key("pleach data region header 2", &bytes);
    bytes.extend(&check[..8]);
    bytes.extend(body);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The same for version 2, with large, small and mismatched shapes, and lengths that fit them or do not.
    #[test]
    fn decoding_version_2_allocates_within_the_stated_factor(
        element in 0..21_u8, coding in 0..11_u8, content_bytes in prop_oneof![0..2000_u64, any::<u64>()],
        shape in prop::collection::vec(prop_oneof![0..20_u64, 0..3000_u64, any::<u64>()], 0..7),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = claimed(element, coding, content_bytes, &shape, &body);
        let (_, peak) = metered(|| DataRegion::decode(&bytes).is_ok());
        prop_assert!(peak <= MAX_EXPANSION * bytes.len() as u64 + SMALL_BYTES, "{peak} bytes");
    }
}

/// The content that grows most on reading stays within the limit: empty names, 4 zero bytes each, which LZ4
/// compresses best.
#[test]
fn empty_names_stay_within_the_stated_factor() {
    let content_bytes = 4 << 20;
    let block = lz4_flex::block::compress(&vec![0; content_bytes]);
    let shape = [0, 0, 0, content_bytes as u64 / 4, 0];
    let bytes = claimed(18, 2, content_bytes as u64, &shape, &block);
    let (is_read, peak) = metered(|| DataRegion::decode(&bytes).is_ok());
    assert!(!is_read, "a name is there once");
    assert!(peak <= MAX_EXPANSION * bytes.len() as u64 + SMALL_BYTES, "{peak} bytes of {}", bytes.len());
}

/// The largest expansion is that of a large empty mask. It needs the stated factor and stays within it.
#[test]
fn an_empty_mask_takes_next_to_nothing() {
    let region = DataRegion::Mask(Raster::filled(4096, 4096, 1, 0).unwrap());
    let bytes = region.encode(&region.digest());
    assert!(bytes.len() < 16 << 10, "{} bytes", bytes.len());
    let (decoded, peak) = metered(|| DataRegion::decode(&bytes).unwrap().0);
    assert!(decoded == region);
    assert!(peak > 1000 * bytes.len() as u64 && peak <= MAX_EXPANSION * bytes.len() as u64 + SMALL_BYTES);
}

/// Digests outlive a program. They must not change without a new version of every format that stores them.
#[test]
fn digests_stay_what_they_are() {
    let mut objects = AnnotatedObjects::new(["area"]).unwrap();
    objects.push_box([0.0; 2], [2.0; 2], "nucleus", &[4.0]).unwrap();
    let regions = [
        DataRegion::Bgr8(Raster::new(1, 1, 3, vec![1, 2, 3]).unwrap()),
        DataRegion::Mask(Raster::new(2, 1, 1, vec![0, 255]).unwrap()),
        DataRegion::Labels(LabelMap::new(2, 1, vec![0, 70_000]).unwrap()),
        DataRegion::Table(Table::new([("dice", 0.5)])),
        DataRegion::Array(DenseArray::new(&[2], 1, vec![0.5_f32, -1.0].into()).unwrap()),
        DataRegion::Ragged(RaggedArray::new(vec![1, 2], vec![1_u8, 2].into()).unwrap()),
        DataRegion::Points(Points::new(2, vec![1.0, 2.0]).unwrap()),
        DataRegion::Polygons(Box::new(Polygons::new([[[[0.0; 2], [1.0, 0.0], [0.0, 1.0]]]]).unwrap())),
        DataRegion::Objects(Box::new(objects)),
        DataRegion::Scalar(0.5),
    ];
    let digests = regions.map(|region| region.digest().to_string()[..16].to_owned());
    assert_eq!(
        digests,
        [
            "45e258c3f420a2bb",
            "1dce8677b5083c69",
            "8d1779eea8d11074",
            "8934c9bcb8f377a2",
            "146ea1b4e2af175d",
            "e36be73ef8210bee",
            "cfc8c3d39cb6656e",
            "83c833a3767c93d3",
            "74004ba90b69baaf",
            "7f58bc94101a4c83"
        ]
    );
}
