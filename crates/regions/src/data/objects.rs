//! Annotated objects: outlines with a class and named numbers, such as nuclei with their area and probability.
//!
//! The caller interprets classes and numbers. This module computes nothing.

use crate::data::polygons::{OutlineError, Outlines, Position, Rings};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Outline of an object.
#[derive(Clone, Debug)]
pub enum Outline<'a> {
    /// Closed rings, as of a polygon.
    Polygon(Rings<'a>),
    /// An upright rectangle.
    Box {
        /// Its lowest corner.
        low: Position,
        /// Its highest corner.
        high: Position,
    },
}

/// One object.
#[derive(Clone, Debug)]
pub struct AnnotatedObject<'a> {
    /// Outline.
    pub outline: Outline<'a>,
    /// Class.
    pub class: &'a str,
    /// Numbers, in the order of [`AnnotatedObjects::columns`]. NaN means unknown.
    pub numbers: &'a [f64],
}

/// Errors of creating objects.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ObjectError {
    /// Invalid outline.
    #[error(transparent)]
    Outline(#[from] OutlineError),
    /// The number of values does not match the column names.
    #[error("object {object}: {found} numbers; {expected}, one per column, are allowed")]
    Numbers {
        /// Index of the object.
        object: usize,
        /// Number of its values.
        found: usize,
        /// Number of column names.
        expected: usize,
    },
    /// The class does not exist.
    #[error("object {object}: class {class}; classes below {classes} are allowed")]
    Class {
        /// Index of the object.
        object: usize,
        /// Number of its class.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// Two classes or two columns have the same name.
    #[error("objects: duplicate name {name:?}; names must be unique")]
    Twice {
        /// The name.
        name: String,
    },
}

/// Objects in a fixed order, all with the same named numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct AnnotatedObjects {
    /// A box is one ring of two positions, its corners.
    outlines: Outlines,
    class_of: Vec<u32>,
    classes: Vec<String>,
    columns: Vec<String>,
    /// Values of all objects, object by object.
    numbers: Vec<f64>,
}

impl AnnotatedObjects {
    /// Creates an empty list of objects with these column names.
    ///
    /// # Errors
    /// Returns [`ObjectError::Twice`] if two names are equal.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = N>) -> Result<Self, ObjectError> {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        each_once(&columns)?;
        Ok(Self { columns, ..Self::default() })
    }

    /// Adds an object whose outline is a polygon.
    ///
    /// # Errors
    /// Returns [`ObjectError::Outline`] if the rings are invalid, and [`ObjectError::Numbers`] if the number
    /// of values does not match the columns. The object is then not added.
    pub fn push_polygon<R: AsRef<[Position]>>(
        &mut self,
        rings: &[R],
        class: &str,
        numbers: &[f64],
    ) -> Result<(), ObjectError> {
        // Checked by itself, so that a refused outline never becomes part of the list.
        let mut alone = Outlines::default();
        alone.push(rings.iter().map(AsRef::as_ref)).and_then(|()| alone.check(false))?;
        self.push(rings.iter().map(AsRef::as_ref), class, numbers)
    }

    /// Adds an object whose outline is a box.
    ///
    /// # Errors
    /// Same as [`push_polygon`](Self::push_polygon).
    pub fn push_box(
        &mut self,
        low: Position,
        high: Position,
        class: &str,
        numbers: &[f64],
    ) -> Result<(), ObjectError> {
        let corners = [low, high];
        let mut alone = Outlines::default();
        alone.push([&corners[..]]).and_then(|()| alone.check(true))?;
        self.push([&corners[..]], class, numbers)
    }

    fn push<'a>(
        &mut self,
        rings: impl IntoIterator<Item = &'a [Position]>,
        class: &str,
        numbers: &[f64],
    ) -> Result<(), ObjectError> {
        let (found, expected) = (numbers.len(), self.columns.len());
        if found != expected {
            return Err(ObjectError::Numbers { object: self.len(), found, expected });
        }
        // The only change that can fail comes first, so that all lists stay equally long.
        self.outlines.push(rings)?;
        let known = self.classes.iter().position(|known| known == class);
        let class = known.unwrap_or_else(|| {
            self.classes.push(class.to_owned());
            self.classes.len() - 1
        });
        // The number of classes is at most that of objects, whose positions fit in 32 bits.
        self.class_of.push(class as u32);
        self.numbers.extend_from_slice(numbers);
        Ok(())
    }

    /// Creates objects from untrusted parts. Checks all of them.
    pub(crate) fn of_parts(
        outlines: Outlines,
        class_of: Vec<u32>,
        classes: Vec<String>,
        columns: Vec<String>,
        numbers: Vec<f64>,
    ) -> Result<Self, ObjectError> {
        outlines.check(true)?;
        each_once(&classes)?;
        each_once(&columns)?;
        let objects = outlines.len();
        let strange = class_of.iter().position(|class| *class as usize >= classes.len());
        if let Some(object) = strange {
            return Err(ObjectError::Class { object, class: class_of[object], classes: classes.len() });
        }
        let expected = objects * columns.len();
        if numbers.len() != expected || class_of.len() != objects {
            return Err(ObjectError::Numbers { object: objects, found: numbers.len(), expected });
        }
        Ok(Self { outlines, class_of, classes, columns, numbers })
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outlines.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the class names in order of first use.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Returns the column names.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the objects in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = AnnotatedObject<'_>> {
        let columns = self.columns.len();
        (0..self.len()).map(move |object| {
            let mut rings = self.outlines.rings(object);
            let first = if rings.len() == 1 { rings.clone().next() } else { None };
            let outline = match first {
                Some(&[low, high]) => Outline::Box { low, high },
                _ => Outline::Polygon(rings.by_ref().clone()),
            };
            let class = &self.classes[self.class_of[object] as usize];
            AnnotatedObject { outline, class, numbers: &self.numbers[object * columns..][..columns] }
        })
    }

    pub(crate) fn outlines(&self) -> &Outlines {
        &self.outlines
    }

    pub(crate) fn class_of(&self) -> &[u32] {
        &self.class_of
    }

    /// Returns the values of all objects, object by object.
    #[must_use]
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// Returns the bytes of its lists and names.
    pub(crate) fn bytes(&self) -> u64 {
        let names = self.classes.iter().chain(&self.columns);
        let names: usize = names.map(|name| name.len() + size_of::<String>()).sum();
        let lists = size_of_val(self.class_of.as_slice()) + size_of_val(self.numbers.as_slice());
        self.outlines.bytes() + (names + lists) as u64
    }
}

fn each_once(names: &[String]) -> Result<(), ObjectError> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(ObjectError::Twice { name: pair[0].clone() }))
}

/// Serialized form of objects: their parts, so that deserialization checks them again.
#[derive(Serialize, Deserialize)]
struct Stored {
    ends: Vec<u32>,
    ring_ends: Vec<u32>,
    positions: Vec<Position>,
    class_of: Vec<u32>,
    classes: Vec<String>,
    columns: Vec<String>,
    numbers: Vec<f64>,
}

impl TryFrom<Stored> for AnnotatedObjects {
    type Error = ObjectError;

    fn try_from(stored: Stored) -> Result<Self, ObjectError> {
        let outlines = Outlines::of_parts(stored.ends, stored.ring_ends, stored.positions)?;
        Self::of_parts(outlines, stored.class_of, stored.classes, stored.columns, stored.numbers)
    }
}

impl From<AnnotatedObjects> for Stored {
    fn from(objects: AnnotatedObjects) -> Self {
        let AnnotatedObjects { outlines, class_of, classes, columns, numbers } = objects;
        let (ends, ring_ends) = (outlines.ends().to_vec(), outlines.ring_ends().to_vec());
        let positions = outlines.positions().to_vec();
        Self { ends, ring_ends, positions, class_of, classes, columns, numbers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> AnnotatedObjects {
        let mut objects = AnnotatedObjects::new(["area", "probability"]).unwrap();
        let ring = [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]];
        objects.push_polygon(&[ring], "tumour", &[6.0, 0.75]).unwrap();
        objects.push_box([1.0, 2.0], [3.0, 5.0], "lymphocyte", &[6.0, f64::NAN]).unwrap();
        objects
    }

    #[test]
    fn objects_are_found_again() {
        let objects = two();
        let found: Vec<_> = objects.iter().collect();
        assert!(matches!(&found[0].outline, Outline::Polygon(rings) if rings.len() == 1));
        assert!(matches!(found[1].outline, Outline::Box { low: [1.0, 2.0], high: [3.0, 5.0] }));
        assert_eq!([found[0].class, found[1].class], ["tumour", "lymphocyte"]);
        assert_eq!(found[0].numbers, [6.0, 0.75]);
        // Two outlines with one ring each, five positions, two classes, four numbers, and names.
        let names = 24 * 4 + "tumour".len() + "lymphocyte".len() + "area".len() + "probability".len();
        assert_eq!(objects.bytes(), (2 * 4 + 2 * 4 + 5 * 16 + 2 * 4 + 4 * 8 + names) as u64);
    }

    #[test]
    fn invalid_object_is_refused_and_not_added() {
        let mut objects = two();
        let numbers = objects.push_box([0.0; 2], [1.0; 2], "x", &[1.0]).unwrap_err().to_string();
        assert_eq!(numbers, "object 2: 1 numbers; 2, one per column, are allowed");
        assert!(objects.push_box([2.0; 2], [1.0; 2], "x", &[1.0; 2]).is_err());
        assert!(objects.push_polygon(&[[[0.0; 2]; 2]], "x", &[1.0; 2]).is_err());
        assert_eq!((objects.len(), objects.classes().len()), (2, 2));
        let twice = AnnotatedObjects::new(["area", "area"]).unwrap_err().to_string();
        assert_eq!(twice, "objects: duplicate name \"area\"; names must be unique");
    }

    #[test]
    fn deserialized_objects_are_validated() {
        let mut objects = AnnotatedObjects::new(["area"]).unwrap();
        objects.push_box([0.0; 2], [1.0; 2], "x", &[1.0]).unwrap();
        let text = serde_json::to_string(&objects).unwrap();
        assert_eq!(serde_json::from_str::<AnnotatedObjects>(&text).unwrap(), objects);
        assert!(
            serde_json::from_str::<AnnotatedObjects>(&text.replace("\"class_of\":[0]", "\"class_of\":[1]"))
                .is_err()
        );
    }
}
