//! Dense arrays of 1–3 axes with any number of channels: distance maps, probability maps, signals, volumes.
//!
//! 8-bit images and masks are rasters, which the operations read. Arrays are for all other dense data. The
//! caller interprets the numbers.

mod view;

use crate::{Attachment, NumberType, Sample, TypedValues};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum number of axes: x, y and z.
pub const MAX_AXES: usize = 3;

/// Numbers on a grid, without padding. The channels vary fastest, then x, then y, then z.
///
/// Shape: `[z ×] [y ×] x × channels`. All sides are at least 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct DenseArray {
    /// Sides beyond the last axis are 1.
    extents: [u32; MAX_AXES],
    axes: u8,
    channels: u16,
    values: TypedValues,
    attachment: Attachment,
}

/// Errors of creating an array or taking a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// The array has no axis, or more than 3.
    #[error("array: {found} axes; 1 to {MAX_AXES} are allowed")]
    Axes {
        /// Number of axes.
        found: usize,
    },
    /// A side or the number of channels is 0, or the number of values does not match the shape.
    #[error("array: sides {extents:?} of {channels} channels do not fit {values} values")]
    Length {
        /// Sides, x first. Missing axes have 1.
        extents: [u32; MAX_AXES],
        /// Channels.
        channels: u16,
        /// Numbers given.
        values: usize,
    },
    /// The array has another number type than requested.
    #[error("array: holds {found}; {expected} is needed")]
    Kind {
        /// The requested type.
        expected: NumberType,
        /// The actual type.
        found: NumberType,
    },
    /// The number of ranges of a part differs from the number of axes.
    #[error("array: {found} ranges; one for each of {axes} axes is allowed")]
    Ranges {
        /// Number of ranges.
        found: usize,
        /// Axes of the array.
        axes: usize,
    },
    /// A part is empty, or exceeds the array.
    #[error("array: {start} to {end} along axis {axis}; a non-empty range within 0 to {extent} is allowed")]
    Part {
        /// Axis: 0 is x.
        axis: usize,
        /// First index of the part.
        start: u32,
        /// First index after the part.
        end: u32,
        /// The side.
        extent: u32,
    },
}

impl DenseArray {
    /// Creates an array with these sides, x first.
    ///
    /// # Errors
    /// Returns [`ArrayError::Axes`] unless there are 1–3 sides, and [`ArrayError::Length`] if a side or the
    /// number of channels is 0, or the number of values does not match the shape.
    pub fn new(extents: &[u32], channels: u16, values: TypedValues) -> Result<Self, ArrayError> {
        if extents.is_empty() || extents.len() > MAX_AXES {
            return Err(ArrayError::Axes { found: extents.len() });
        }
        let mut all = [1; MAX_AXES];
        all[..extents.len()].copy_from_slice(extents);
        let expected = all
            .iter()
            .try_fold(u64::from(channels), |product, extent| product.checked_mul(u64::from(*extent)));
        if expected.is_none_or(|expected| expected == 0 || expected != values.len() as u64) {
            return Err(ArrayError::Length { extents: all, channels, values: values.len() });
        }
        let axes = extents.len() as u8;
        Ok(Self { extents: all, axes, channels, values, attachment: Attachment::default() })
    }

    /// Returns the sides, x first.
    #[must_use]
    pub fn extents(&self) -> &[u32] {
        &self.extents[..usize::from(self.axes)]
    }

    /// Returns the number of channels.
    #[must_use]
    pub fn channels(&self) -> u16 {
        self.channels
    }

    /// Returns the values.
    #[must_use]
    pub fn values(&self) -> &TypedValues {
        &self.values
    }

    /// Returns what readers keep with the array.
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Returns the values, if they have this type.
    ///
    /// # Errors
    /// Returns [`ArrayError::Kind`] if they have another type.
    pub fn samples<T: Sample>(&self) -> Result<&[T], ArrayError> {
        let wrong = ArrayError::Kind { expected: T::NUMBER, found: self.values.number() };
        self.values.get().ok_or(wrong)
    }
}

/// Serialized form of an array: its parts, so that deserialization checks them again.
#[derive(Serialize, Deserialize)]
struct Stored {
    extents: Vec<u32>,
    channels: u16,
    values: TypedValues,
}

impl TryFrom<Stored> for DenseArray {
    type Error = ArrayError;

    fn try_from(Stored { extents, channels, values }: Stored) -> Result<Self, ArrayError> {
        Self::new(&extents, channels, values)
    }
}

impl From<DenseArray> for Stored {
    fn from(array: DenseArray) -> Self {
        let extents = array.extents().to_vec();
        Self { extents, channels: array.channels, values: array.values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_and_length_must_agree() {
        let array = |extents: &[u32], channels, values: usize| {
            DenseArray::new(extents, channels, vec![0.5_f32; values].into())
                .map_err(|error| error.to_string())
        };
        assert_eq!(array(&[2, 3], 2, 12).unwrap().extents(), [2, 3]);
        let length = "array: sides [2, 3, 1] of 2 channels do not fit 11 values";
        assert_eq!(array(&[2, 3], 2, 11).unwrap_err(), length);
        assert!(array(&[0], 1, 0).is_err() && array(&[1], 0, 0).is_err());
        assert!(array(&[u32::MAX; 3], u16::MAX, 1).is_err(), "beyond 64 bits");
        for found in [0, 4] {
            let axes = format!("array: {found} axes; 1 to 3 are allowed");
            assert_eq!(array(&vec![1; found], 1, 1).unwrap_err(), axes);
        }
    }

    #[test]
    fn numbers_of_another_kind_are_not_given_out() {
        let array = DenseArray::new(&[2], 1, vec![1_u16, 2].into()).unwrap();
        assert_eq!(array.samples::<u16>(), Ok(&[1, 2][..]));
        assert_eq!(array.samples::<f32>().unwrap_err().to_string(), "array: holds u16; f32 is needed");
    }

    #[test]
    fn deserialized_array_is_validated() {
        let array = DenseArray::new(&[2, 1], 1, vec![1_i32, -2].into()).unwrap();
        let text = serde_json::to_string(&array).unwrap();
        assert_eq!(serde_json::from_str::<DenseArray>(&text).unwrap(), array);
        assert!(serde_json::from_str::<DenseArray>(&text.replace("[2,1]", "[3,1]")).is_err());
    }
}
