//! Byte-exact tests of encodings, and tests of rejected input.

use super::*;
use crate::{Interval, LabelMap, Raster, Resolution, Table};

fn encoded(region: &DataRegion) -> Vec<u8> {
    region.encode(&region.digest())
}

#[test]
fn encoding_of_version_1_is_byte_exact() {
    let region = DataRegion::Mask(Raster::new(3, 3, 1, vec![255, 0, 0, 0, 255, 0, 0, 0, 255]).unwrap());
    let bytes = encoded(&region);
    assert_eq!(bytes[..16], [b'P', b'L', b'R', b'G', 1, 3, 1, 1, 3, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(bytes[16..48], region.digest().0);
    // Pixels 0, 4 and 8, the first in the lowest bit.
    assert_eq!(bytes[48..], [0b1_0001, 1]);
    assert_eq!(DataRegion::decode(&bytes), Ok((region.clone(), region.digest())));
}

#[test]
fn parts_are_an_encoding_in_two() {
    let mask = DataRegion::Mask(Raster::filled(80, 50, 1, 255).unwrap());
    let noise = (0..4000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let gray = DataRegion::Gray8(Raster::new(80, 50, 1, noise).unwrap());
    for region in [mask, gray, DataRegion::Table(Table::new([("dice", 0.25)]))] {
        let digest = region.digest();
        let (head, body) = region.encode_parts(&digest, true);
        assert_eq!([&head.0[..], &body].concat(), region.encode(&digest));
        assert_eq!(head.digest(), digest);
        let (plain, content) = region.encode_parts(&digest, false);
        assert!(region.element() == ElementType::Table || matches!(content, Cow::Borrowed(_)));
        for (head, body) in [(head, body), (plain, content)] {
            let body = body.into_owned();
            assert_eq!(DataRegion::decode_parts(&head, body), Ok((region.clone(), digest)));
        }
    }
}

#[test]
fn pixels_as_they_are_are_not_copied() {
    let region = DataRegion::Gray8(Raster::filled(80, 50, 1, 7).unwrap());
    let (head, body) = region.encode_parts(&region.digest(), false);
    let body = body.into_owned();
    let place = body.as_ptr();
    let (region, _) = DataRegion::decode_parts(&head, body).unwrap();
    assert_eq!(region.raster(ElementType::Gray8).unwrap().data().as_ptr(), place);
}

#[test]
fn decode_errors_name_their_cause() {
    let region = DataRegion::Gray8(Raster::new(2, 2, 1, vec![1, 2, 3, 4]).unwrap());
    let bytes = encoded(&region);
    let with = |place: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        DataRegion::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0, 0), "decode a data region: no header in 52 bytes");
    assert_eq!(with(4, 7), "decode a data region: encoding version 7; 1 and 2 are allowed");
    let header = "decode a data region: invalid header with element type 9, coding 0 and shape 2 x 2 x 1";
    assert_eq!(with(5, 9), header);
    let length = "decode a data region: 4 bytes of content do not match the 6 bytes of its shape";
    assert_eq!(with(8, 3), length);
    assert!(with(50, 0).starts_with("decode a data region: content does not match digest "));
    // Another type with the same shape.
    assert!(with(5, 3).starts_with("decode a data region: content does not match digest "));
}

#[test]
fn a_table_that_counts_more_columns_than_it_has_is_refused() {
    let mut bytes = encoded(&DataRegion::Table(Table::new([("dice", 0.25)])));
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(DataRegion::decode(&bytes), Err(DecodeError::Length { .. })));
}

#[test]
fn encoding_of_version_2_is_byte_exact() {
    let region = DataRegion::Labels(LabelMap::new(4, 2, vec![0, 0, 0, 9, 9, 9, 9, 300]).unwrap());
    let bytes = encoded(&region);
    assert_eq!(bytes[..16], [b'P', b'L', b'R', b'G', 2, 4, 4, 0, 32, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[16..48], region.digest().0);
    // The length of the fields, then the shape in 16 bytes: 2 rows, 4 columns.
    assert_eq!(bytes[48..58], [22, 0, 0, 0, 1, 0, 16, 0, 0, 0]);
    assert_eq!(bytes[58..74], [2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    // After the checksum: three labels of 0, four of 9, one of 300.
    assert_eq!(bytes[82..], [3, 0, 4, 9, 1, 172, 2]);
    assert_eq!(DataRegion::decode(&bytes), Ok((region.clone(), region.digest())));
}

#[test]
fn encoding_carries_the_bounds_of_a_region() {
    let region = DataRegion::Gray8(Raster::new(2, 2, 1, vec![1, 2, 3, 4]).unwrap());
    let digest = region.digest();
    let axes = [Interval::new(100, 102).unwrap(), Interval::new(-7, -5).unwrap()];
    let bounds = SpatialBounds::new(&axes, Some(Resolution::from_microns_per_px(0.25).unwrap())).unwrap();
    let (head, body) = region.encode_with(&digest, CompressionEffort::Quick, Some(&bounds));
    let bytes = [&head.0[..], &body].concat();
    let (found, description) = DataRegion::decode_described(&bytes).unwrap();
    assert_eq!(found, region);
    assert_eq!((description.version, description.minor), (2, 0));
    assert_eq!((description.bounds, description.stored_bytes), (Some(bounds), 4));
    assert_eq!((description.coding, description.digest), ("as it is", digest));
    let plain = Description::read(&encoded(&region)).unwrap();
    assert_eq!((plain.version, plain.bounds, plain.shape.to_vec()), (1, None, vec![2, 2, 1]));
}

#[test]
fn encodings_of_version_1_are_read_as_ever() {
    // A label map written before runs existed, with uncompressed labels.
    let region = DataRegion::Labels(LabelMap::new(2, 1, vec![0, 70_000]).unwrap());
    let mut bytes = vec![b'P', b'L', b'R', b'G', 1, 4, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0];
    bytes.extend(region.digest().0);
    bytes.extend([0, 0, 0, 0, 0x70, 0x11, 1, 0]);
    assert_eq!(DataRegion::decode(&bytes), Ok((region, Head(*bytes.first_chunk().unwrap()).digest())));
    // Version 1 rejects later codings and element types.
    for (place, value) in [(6, 4), (6, 5), (5, 6), (5, 19)] {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        assert!(matches!(DataRegion::decode(&bytes), Err(DecodeError::Header { .. })), "{value} at {place}");
    }
}

#[test]
fn later_version_is_distinguished_from_corruption() {
    let region = DataRegion::Scalar(0.5);
    let mut bytes = encoded(&region);
    bytes[7] = 4;
    // Rejected because the checksum covers the head.
    assert_eq!(DataRegion::decode(&bytes), Err(DecodeError::Fields));
    bytes[4] = 3;
    let error = DataRegion::decode(&bytes).unwrap_err();
    assert!(error.is_newer());
    let text = "decode a data region: encoding version 3; 1 and 2 are allowed";
    assert_eq!(error.to_string(), text);
    bytes[4] = 0;
    assert!(!DataRegion::decode(&bytes).unwrap_err().is_newer());
}
