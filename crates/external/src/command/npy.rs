//! Arrays of numpy in files: version 1.0, little-endian, in C order.
//!
//! Follows numpy's description of the format (`numpy.lib.format`): a magic text, the length of a header, the header as a
//! literal of Python, and the numbers. Shapes are those that operations in Python get.

use crate::manifest::ExternalPort;
use pleach_regions::{DataRegion, ElementType, NumberType};

/// Magic text and version.
const START: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// 64 bytes: the numbers start at a multiple of it, so that a map of the file is aligned.
const ALIGNMENT: usize = 64;

/// Header of a file.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    dtype: String,
    shape: Vec<u64>,
}

/// Returns a region as file.
pub(super) fn encode(port: &ExternalPort, region: &DataRegion) -> Vec<u8> {
    let mut shape = region.shape().to_vec();
    let mut content = region.content();
    if region.element() == ElementType::Bgr8 {
        if port.is_rgb {
            content.to_mut().chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
        }
    } else if region.element() != ElementType::Labels && shape.last() == Some(&1) {
        // The channel of a volume stays if `decode` would take z for y.
        if shape.len() < 4 || port.is_volume {
            shape.pop();
        }
    }
    let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
    // A tuple of one element has a comma.
    let sides = if sides.len() == 1 { format!("{},", sides[0]) } else { sides.join(", ") };
    let dtype = dtype(region.element());
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({sides}), }}");
    let length = (START.len() + 2 + header.len() + 1).next_multiple_of(ALIGNMENT) - START.len() - 2;
    header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
    header.push('\n');
    // At most 4 numbers of 20 digits make a header of far less than 64 KiB.
    let length = (header.len() as u16).to_le_bytes();
    [&START[..], &length, header.as_bytes(), &content].concat()
}

/// Reads a file. Returns the mistake with the allowed values.
pub(super) fn decode(port: &ExternalPort, file: &[u8]) -> Result<DataRegion, String> {
    let element = port.port.element;
    let (header, numbers) = split(file)?;
    let mut shape = header.shape.clone();
    let dimensions: &[usize] = match element {
        ElementType::Bgr8 => &[3],
        ElementType::Gray8 | ElementType::Mask | ElementType::Labels => &[2],
        _ => &[1, 2, 3, 4],
    };
    if !dimensions.contains(&shape.len()) || (element == ElementType::Bgr8 && shape[2] != 3) {
        let allowed = match element {
            ElementType::Bgr8 => "(rows, columns, 3)",
            ElementType::Gray8 | ElementType::Mask | ElementType::Labels => "(rows, columns)",
            _ => "1 to 4 dimensions",
        };
        return Err(format!("shape {shape:?}; {allowed} is allowed for {element}"));
    }
    let content = match (element, header.dtype.as_str()) {
        (ElementType::Labels, dtype) => labels(dtype, numbers)?,
        (ElementType::Mask, "|b1") => numbers.iter().map(|byte| if *byte == 0 { 0 } else { 255 }).collect(),
        (_, given) if given == dtype(element) => numbers.to_vec(),
        (_, given) => return Err(refused(element, given)),
    };
    let mut content = content;
    match element {
        ElementType::Bgr8 if port.is_rgb => {
            content.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
        }
        ElementType::Mask => super::format::check_mask(&content)?,
        _ => {}
    }
    let has_channels = match element {
        ElementType::Bgr8 | ElementType::Labels => true,
        ElementType::Gray8 | ElementType::Mask => false,
        _ => shape.len() == 4 || (shape.len() == 3 && !port.is_volume),
    };
    if !has_channels {
        shape.push(1);
    }
    let region = DataRegion::from_content(element, &shape, content);
    region.ok_or_else(|| {
        let bytes = numbers.len();
        format!("{bytes} bytes of {} do not fit shape {:?}", header.dtype, header.shape)
    })
}

/// Returns the type of the numbers of an element type.
fn dtype(element: ElementType) -> &'static str {
    match (element, element.number()) {
        (ElementType::Labels, _) => "<u4",
        (_, Some(NumberType::U16)) => "<u2",
        (_, Some(NumberType::I32)) => "<i4",
        (_, Some(NumberType::F32)) => "<f4",
        (_, Some(NumberType::F64)) => "<f8",
        (_, Some(NumberType::U8) | None) => "|u1",
    }
}

fn refused(element: ElementType, given: &str) -> String {
    let also = match element {
        ElementType::Mask => " or \"|b1\"",
        ElementType::Labels => ", \"|u1\", \"<u2\", \"<i4\", \"<u8\" or \"<i8\"",
        _ => "",
    };
    format!("dtype \"{given}\"; \"{}\"{also} is allowed for {element}", dtype(element))
}

/// Returns labels of 32 bits, from any integers in range.
fn labels(given: &str, numbers: &[u8]) -> Result<Vec<u8>, String> {
    let wide = |size: usize, number: fn(&[u8]) -> i128| {
        let mut content = Vec::with_capacity(numbers.len() / size * 4);
        for bytes in numbers.chunks_exact(size) {
            let label = number(bytes);
            let label = u32::try_from(label)
                .map_err(|_| format!("label {label}; 0 to {} is allowed for labels", u32::MAX))?;
            content.extend(label.to_le_bytes());
        }
        Ok(content)
    };
    match given {
        "<u4" => Ok(numbers.to_vec()),
        "|u1" => wide(1, |bytes| bytes[0].into()),
        "<u2" => wide(2, |bytes| u16::from_le_bytes(fixed(bytes)).into()),
        "<i4" => wide(4, |bytes| i32::from_le_bytes(fixed(bytes)).into()),
        "<u8" => wide(8, |bytes| u64::from_le_bytes(fixed(bytes)).into()),
        "<i8" => wide(8, |bytes| i64::from_le_bytes(fixed(bytes)).into()),
        other => Err(refused(ElementType::Labels, other)),
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    all.copy_from_slice(bytes);
    all
}

/// Returns the header and the numbers of a file.
fn split(file: &[u8]) -> Result<(Header, &[u8]), String> {
    let rest = file.strip_prefix(START).ok_or("no npy file of version 1.0, which is allowed")?;
    let parts = rest.split_first_chunk::<2>().and_then(|(length, rest)| {
        let length = usize::from(u16::from_le_bytes(*length));
        Some((std::str::from_utf8(rest.get(..length)?).ok()?, rest.get(length..)?))
    });
    let (text, numbers) = parts.ok_or("an incomplete header")?;
    let entry = |key: &str| Some(text.split_once(key)?.1.trim_start().strip_prefix(':')?.trim_start());
    let malformed = || format!("the header {}; descr, fortran_order and shape are required", text.trim_end());
    if entry("'fortran_order'").is_some_and(|value| value.starts_with("True")) {
        return Err("Fortran order; C order is allowed (numpy.ascontiguousarray)".to_owned());
    }
    let dtype = entry("'descr'").ok_or_else(malformed)?;
    // A record has a list instead of a text.
    let quoted = dtype.strip_prefix('\'').and_then(|dtype| dtype.split_once('\''));
    let dtype = quoted.map_or("a record", |(dtype, _)| dtype).to_owned();
    let sides = entry("'shape'").and_then(|shape| shape.strip_prefix('(')?.split_once(')'));
    let sides = sides.ok_or_else(malformed)?.0.split(',').map(str::trim).filter(|side| !side.is_empty());
    let shape = sides.map(str::parse::<u64>).collect::<Result<_, _>>().map_err(|_| malformed())?;
    Ok((Header { dtype, shape }, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DenseArray, LabelMap, Raster};
    use pleach_workflow::Port;

    fn port(element: ElementType) -> ExternalPort {
        ExternalPort { port: Port { name: "a", element }, is_rgb: false, is_volume: false, format: None }
    }

    fn file(dtype: &str, order: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [&START[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), numbers].concat()
    }

    #[test]
    fn file_is_that_of_numpy() {
        // numpy.save of numpy.arange(6, dtype="<u2").reshape(2, 3)
        let array = DenseArray::new(&[3, 2], 1, vec![0_u16, 1, 2, 3, 4, 5].into()).unwrap();
        let region = DataRegion::Array(array);
        let mut wanted =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }".to_vec();
        wanted.resize(127, b' ');
        wanted.extend(b"\n\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00");
        let written = encode(&port(ElementType::ArrayU16), &region);
        assert_eq!(written, wanted);
        assert_eq!(decode(&port(ElementType::ArrayU16), &written).unwrap(), region);
    }

    #[test]
    fn regions_come_back() {
        let floats = vec![f32::from_bits(0x7fc0_1234), -0.0, f32::INFINITY, 1e-45, 0.1, 3.0];
        let mut volume = port(ElementType::ArrayF32);
        volume.is_volume = true;
        for (port, extents, channels) in [
            (port(ElementType::ArrayF32), &[6][..], 1),
            (port(ElementType::ArrayF32), &[3, 2], 1),
            (port(ElementType::ArrayF32), &[3, 1], 2),
            (port(ElementType::ArrayF32), &[1, 2, 3], 1),
            (volume.clone(), &[1, 2, 3], 1),
            (volume, &[1, 3, 1], 2),
        ] {
            let region =
                DataRegion::Array(DenseArray::new(extents, channels, floats.clone().into()).unwrap());
            let back = decode(&port, &encode(&port, &region)).unwrap();
            assert_eq!((back.shape(), back.content()), (region.shape(), region.content()));
        }
        let labels = DataRegion::Labels(LabelMap::new(2, 1, vec![0, u32::MAX]).unwrap());
        let of_labels = port(ElementType::Labels);
        assert_eq!(decode(&of_labels, &encode(&of_labels, &labels)).unwrap(), labels);
    }

    #[test]
    fn channels_are_reversed_for_rgb() {
        let mut rgb = port(ElementType::Bgr8);
        rgb.is_rgb = true;
        let region = DataRegion::Bgr8(Raster::new(2, 1, 3, vec![1, 2, 3, 4, 5, 6]).unwrap());
        let written = encode(&rgb, &region);
        assert!(written.ends_with(&[3, 2, 1, 6, 5, 4]));
        assert_eq!(decode(&rgb, &written).unwrap(), region);
        assert!(encode(&port(ElementType::Bgr8), &region).ends_with(&[1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn integers_become_labels_and_booleans_masks() {
        let of = |dtype, numbers: &[u8]| {
            decode(&port(ElementType::Labels), &file(dtype, "False", "(1, 2)", numbers))
        };
        let labels = DataRegion::Labels(LabelMap::new(2, 1, vec![1, 255]).unwrap());
        assert_eq!(of("'|u1'", &[1, 255]).unwrap(), labels);
        assert_eq!(of("'<u2'", &[1, 0, 255, 0]).unwrap(), labels);
        assert_eq!(of("'<i4'", &[1, 0, 0, 0, 255, 0, 0, 0]).unwrap(), labels);
        let long = [1, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(of("'<i8'", &long).unwrap(), labels);
        assert_eq!(of("'<u8'", &long).unwrap(), labels);
        let negative = of("'<i4'", &[0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0]).unwrap_err();
        assert_eq!(negative, "label -1; 0 to 4294967295 is allowed for labels");
        let mask = decode(&port(ElementType::Mask), &file("'|b1'", "False", "(1, 2)", &[0, 1])).unwrap();
        assert_eq!(mask, DataRegion::Mask(Raster::new(2, 1, 1, vec![0, 255]).unwrap()));
    }

    #[test]
    fn other_files_are_refused_with_the_allowed_dtype() {
        let gray = port(ElementType::Gray8);
        let array = port(ElementType::ArrayF32);
        for (port, file, wanted) in [
            (
                &array,
                file("'>f4'", "False", "(1,)", &[0; 4]),
                "dtype \">f4\"; \"<f4\" is allowed for array-f32",
            ),
            (&gray, file("'<f8'", "False", "(1, 1)", &[0; 8]), "dtype \"<f8\"; \"|u1\" is allowed for gray8"),
            (
                &array,
                file("[('a', '<f4')]", "False", "(1,)", &[0; 4]),
                "dtype \"a record\"; \"<f4\" is allowed for array-f32",
            ),
            (
                &array,
                file("'<f4'", "True", "(2, 2)", &[0; 16]),
                "Fortran order; C order is allowed (numpy.ascontiguousarray)",
            ),
            (&array, file("'<f4'", "False", "(2,)", &[0; 4]), "4 bytes of <f4 do not fit shape [2]"),
            (&array, file("'<f4'", "False", "(0,)", &[]), "0 bytes of <f4 do not fit shape [0]"),
            (
                &array,
                file("'<f4'", "False", "(9999999999999, 9999999999999)", &[]),
                "0 bytes of <f4 do not fit shape [9999999999999, 9999999999999]",
            ),
            (
                &array,
                file("'<f4'", "False", "()", &[]),
                "shape []; 1 to 4 dimensions is allowed for array-f32",
            ),
            (
                &gray,
                file("'|u1'", "False", "(1, 1, 3)", &[0; 3]),
                "shape [1, 1, 3]; (rows, columns) is allowed for gray8",
            ),
            (
                &port(ElementType::Mask),
                file("'|u1'", "False", "(1, 2)", &[0, 1]),
                "value 1; 0 and 255 are allowed in a mask",
            ),
            (&gray, b"\x93NUMPY\x01\x00v\x00{'descr'".to_vec(), "an incomplete header"),
            (&gray, b"\x89PNG".to_vec(), "no npy file of version 1.0, which is allowed"),
        ] {
            assert_eq!(decode(port, &file).unwrap_err(), wanted);
        }
    }
}
