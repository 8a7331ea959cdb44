//! Encodes regions as NPY 1.0, NumPy's format of one array (NEP 1). Numbers are little-endian, in C order.

use pleach_regions::{DataRegion, Raster, TypedValues};

/// First bytes of an NPY file, including version 1.0.
const MAGIC: [u8; 8] = *b"\x93NUMPY\x01\x00";

/// Alignment of the numbers in the file, in bytes.
const ALIGNMENT: usize = 64;

/// Encodes a dense region, points or a scalar. A single channel adds no dimension. Colors stay B, G, R.
pub(super) fn bytes(region: &DataRegion) -> Result<Vec<u8>, String> {
    match region {
        DataRegion::Bgr8(raster) | DataRegion::Gray8(raster) | DataRegion::Mask(raster) => {
            Ok(file("|u1", &shape_of(raster), raster.data()))
        }
        DataRegion::Labels(map) => {
            let shape = [map.height_px() as usize, map.width_px() as usize];
            Ok(file("<u4", &shape, &little_endian(map.labels(), |label| label.to_le_bytes())))
        }
        DataRegion::Array(array) => {
            let mut shape: Vec<usize> = region.shape().iter().map(|count| *count as usize).collect();
            if array.channels() == 1 {
                shape.pop();
            }
            Ok(match array.values() {
                TypedValues::U8(values) => file("|u1", &shape, values),
                TypedValues::U16(values) => {
                    file("<u2", &shape, &little_endian(values, |value| value.to_le_bytes()))
                }
                TypedValues::I32(values) => {
                    file("<i4", &shape, &little_endian(values, |value| value.to_le_bytes()))
                }
                TypedValues::F32(values) => {
                    file("<f4", &shape, &little_endian(values, |value| value.to_le_bytes()))
                }
                TypedValues::F64(values) => {
                    file("<f8", &shape, &little_endian(values, |value| value.to_le_bytes()))
                }
            })
        }
        DataRegion::Points(points) => {
            let shape = [points.len(), usize::from(points.axes())];
            Ok(file("<f8", &shape, &little_endian(points.coordinates(), |value| value.to_le_bytes())))
        }
        DataRegion::Scalar(value) => Ok(file("<f8", &[], &value.to_le_bytes())),
        other => Err(format!("a region of type {} is not an array", other.element())),
    }
}

fn shape_of(raster: &Raster) -> Vec<usize> {
    let mut shape = vec![raster.height_px() as usize, raster.width_px() as usize];
    if raster.channels() != 1 {
        shape.push(usize::from(raster.channels()));
    }
    shape
}

fn little_endian<T: Copy, const N: usize>(numbers: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| bytes(*number)).collect()
}

fn file(kind: &str, shape: &[usize], numbers: &[u8]) -> Vec<u8> {
    // A Python tuple of one number ends with a comma.
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let sides = if shape.len() == 1 { sides.trim_end() } else { sides.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sides}), }}");
    let before = MAGIC.len() + 2;
    let padded = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - before;
    header.extend(std::iter::repeat_n(' ', padded - 1 - header.len()));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    // Version 1.0 has 16 bits for this length. A header of a few dimensions takes some hundred bytes.
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DenseArray, Points};

    #[test]
    fn a_file_is_what_numpy_writes() {
        let array = DenseArray::new(&[3, 2], 1, vec![1_u16, 2, 3, 4, 5, 6].into()).unwrap();
        let bytes = bytes(&DataRegion::Array(array)).unwrap();
        // Output of `numpy.save` for arange(1, 7, dtype="<u2").reshape(2, 3).
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(b"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }");
        expected.resize(127, b' ');
        expected.extend(b"\n\x01\0\x02\0\x03\0\x04\0\x05\0\x06\0");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn shapes_are_tuples() {
        let header = |region: &DataRegion| {
            let bytes = bytes(region).unwrap();
            String::from_utf8_lossy(&bytes[10..128]).into_owned()
        };
        let line = DenseArray::new(&[4], 1, vec![0.0_f32; 4].into()).unwrap();
        assert!(header(&DataRegion::Array(line)).contains("'shape': (4,), }"));
        assert!(header(&DataRegion::Scalar(1.0)).contains("'shape': (), }"));
        let channels = DenseArray::new(&[2], 3, vec![0_u8; 6].into()).unwrap();
        assert!(
            header(&DataRegion::Array(channels))
                .contains("'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }")
        );
        assert!(header(&DataRegion::Points(Points::new(2, vec![0.0; 6]).unwrap())).contains("(3, 2)"));
    }
}
