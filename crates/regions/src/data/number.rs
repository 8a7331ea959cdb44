//! Number types of dense and ragged arrays, and their values as one type.
//!
//! The number type is known at run time, from descriptors and files. Callers that know it statically request
//! a slice of it ([`TypedValues::get`]). Other modules add shapes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NumberType {
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl NumberType {
    /// All number types.
    pub const ALL: [Self; 5] = [Self::U8, Self::U16, Self::I32, Self::F32, Self::F64];

    /// Returns the bytes per number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Returns the name, as in Rust.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Consecutive numbers of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TypedValues {
    /// See [`NumberType::U8`].
    U8(#[serde(with = "serde_bytes")] Vec<u8>),
    /// See [`NumberType::U16`].
    U16(Vec<u16>),
    /// See [`NumberType::I32`].
    I32(Vec<i32>),
    /// See [`NumberType::F32`].
    F32(Vec<f32>),
    /// See [`NumberType::F64`].
    F64(Vec<f64>),
}

mod sealed {
    pub trait Sealed {}
}

/// Rust type of one of the [`NumberType`]s. Sealed.
pub trait Sample: sealed::Sealed + Copy + Default + PartialOrd + fmt::Debug + Into<f64> + 'static {
    /// Its number type.
    const NUMBER: NumberType;

    /// Returns the values as this type, if they have it.
    fn of(values: &TypedValues) -> Option<&[Self]>;

    /// Wraps values of this type.
    fn into_values(values: Vec<Self>) -> TypedValues;
}

/// Applies the same expression to the slice of any variant of `$values`.
macro_rules! each {
    ($values:expr, $slice:ident => $result:expr) => {
        match $values {
            TypedValues::U8($slice) => $result,
            TypedValues::U16($slice) => $result,
            TypedValues::I32($slice) => $result,
            TypedValues::F32($slice) => $result,
            TypedValues::F64($slice) => $result,
        }
    };
}
pub(crate) use each;

macro_rules! samples {
    ($($type:ident $kind:ident)*) => { $(
        impl sealed::Sealed for $type {}

        impl Sample for $type {
            const NUMBER: NumberType = NumberType::$kind;

            fn of(values: &TypedValues) -> Option<&[Self]> {
                if let TypedValues::$kind(values) = values { Some(values) } else { None }
            }

            fn into_values(values: Vec<Self>) -> TypedValues {
                TypedValues::$kind(values)
            }
        }
    )* };
}

/// Little-endian bytes of numbers, used for digests and encodings.
pub(crate) trait LittleEndian: Copy {
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    fn to_bytes(self) -> Self::Bytes;
    fn from_bytes(bytes: &Self::Bytes) -> Self;
}

samples! { u8 U8 u16 U16 i32 I32 f32 F32 f64 F64 }

macro_rules! little_endian {
    ($($type:ident)*) => { $(
        impl LittleEndian for $type {
            type Bytes = [u8; size_of::<$type>()];

            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }

            fn from_bytes(bytes: &Self::Bytes) -> Self {
                Self::from_le_bytes(*bytes)
            }
        }
    )* };
}

little_endian! { u8 u16 i32 f32 f64 u32 u64 }

/// Writes numbers as bytes. `bytes` has exactly their length.
pub(crate) fn write_numbers<T: LittleEndian>(numbers: &[T], bytes: &mut [u8]) {
    for (bytes, number) in bytes.chunks_exact_mut(size_of::<T>()).zip(numbers) {
        bytes.copy_from_slice(number.to_bytes().as_ref());
    }
}

/// Reads numbers from `bytes`. An incomplete last number is ignored.
pub(crate) fn read_numbers<T: LittleEndian>(bytes: &[u8]) -> Vec<T> {
    let whole = bytes.chunks_exact(size_of::<T::Bytes>());
    whole.filter_map(|bytes| T::Bytes::try_from(bytes).ok()).map(|bytes| T::from_bytes(&bytes)).collect()
}

impl TypedValues {
    /// Returns the number type.
    #[must_use]
    pub fn number(&self) -> NumberType {
        match self {
            Self::U8(_) => NumberType::U8,
            Self::U16(_) => NumberType::U16,
            Self::I32(_) => NumberType::I32,
            Self::F32(_) => NumberType::F32,
            Self::F64(_) => NumberType::F64,
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        each!(self, values => size_of_val(values.as_slice()) as u64)
    }

    /// Returns the values, if they have this type.
    #[must_use]
    pub fn get<T: Sample>(&self) -> Option<&[T]> {
        T::of(self)
    }

    /// Returns the number at an index as a float. `None` beyond the last.
    #[must_use]
    pub fn get_f64(&self, place: usize) -> Option<f64> {
        each!(self, values => real(values, place))
    }

    /// Creates the values of this type from `bytes`.
    pub(crate) fn from_bytes(number: NumberType, bytes: Vec<u8>) -> Self {
        match number {
            NumberType::U8 => Self::U8(bytes),
            NumberType::U16 => Self::U16(read_numbers(&bytes)),
            NumberType::I32 => Self::I32(read_numbers(&bytes)),
            NumberType::F32 => Self::F32(read_numbers(&bytes)),
            NumberType::F64 => Self::F64(read_numbers(&bytes)),
        }
    }
}

fn real<T: Sample>(values: &[T], place: usize) -> Option<f64> {
    values.get(place).map(|value| (*value).into())
}

impl<T: Sample> From<Vec<T>> for TypedValues {
    fn from(values: Vec<T>) -> Self {
        T::into_values(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_values_report_their_number_type() {
        for (number, values) in NumberType::ALL.into_iter().zip([
            TypedValues::from(vec![1_u8, 255]),
            vec![1_u16, 65_535].into(),
            vec![-1_i32, i32::MIN].into(),
            vec![0.5_f32, -0.0].into(),
            vec![1e300_f64, 0.1].into(),
        ]) {
            assert_eq!(values.number(), number);
            assert_eq!((values.len(), values.is_empty()), (2, false));
            assert_eq!(values.bytes(), 2 * number.bytes() as u64);
            assert_eq!(values.get::<u8>().is_some(), number == NumberType::U8);
            let mut bytes = vec![0; 2 * number.bytes()];
            each!(&values, slice => write_numbers(slice, &mut bytes));
            assert_eq!(TypedValues::from_bytes(number, bytes), values, "{number}");
        }
        assert_eq!(TypedValues::from(vec![-3_i32]).get_f64(0), Some(-3.0));
        assert_eq!(TypedValues::from(vec![-3_i32]).get_f64(1), None);
    }

    #[test]
    fn the_lowest_byte_comes_first() {
        let mut bytes = [0; 4];
        write_numbers(&[0x0102_u16, 0x0304], &mut bytes);
        assert_eq!(bytes, [2, 1, 4, 3]);
    }
}
