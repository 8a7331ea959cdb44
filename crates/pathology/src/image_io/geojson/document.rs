//! Features and geometries of GeoJSON (RFC 7946), with the properties that QuPath writes.
//!
//! Members that are not listed here are ignored, `crs` and a third coordinate too.

use crate::image_io::annotation_set::DERIVED;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Positions of an outline or hole, pixels.
pub(super) type Ring = Vec<[f64; 2]>;

/// Type of a GeoJSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Kind {
    FeatureCollection,
    Feature,
    Polygon,
    MultiPolygon,
    GeometryCollection,
    Point,
    MultiPoint,
    LineString,
    MultiLineString,
}

/// A feature or a geometry: a member of a list, or the whole document without the features of a collection.
#[derive(Default, Deserialize)]
#[serde(expecting = "a feature or a geometry")]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: Option<Kind>,
    /// `Some(None)` for `null`.
    #[serde(default, deserialize_with = "present")]
    pub(super) geometry: Option<Option<Geometry>>,
    /// Outline of a cell's nucleus, which replaces that of the cell.
    #[serde(rename = "nucleusGeometry")]
    pub(super) nucleus: Option<Geometry>,
    pub(super) properties: Option<Properties>,
    pub(super) coordinates: Option<Coordinates>,
    pub(super) geometries: Option<Vec<Geometry>>,
}

pub(super) fn present<'de, D: Deserializer<'de>>(of: D) -> Result<Option<Option<Geometry>>, D::Error> {
    Option::deserialize(of).map(Some)
}

impl Item {
    /// Returns the geometry, or `None` for `null`.
    ///
    /// # Errors
    /// Returns a message about a missing or unsuitable member.
    pub(super) fn into_geometry(self) -> Result<Option<Geometry>, String> {
        match self.kind {
            None => Err("missing field `type`".to_owned()),
            Some(Kind::FeatureCollection) => {
                Err("a FeatureCollection in a list; a feature or a geometry is expected".to_owned())
            }
            Some(Kind::Feature) => match (self.nucleus, self.geometry) {
                (Some(nucleus), _) => Ok(Some(nucleus)),
                (None, Some(geometry)) => Ok(geometry),
                (None, None) => Err("missing field `geometry`".to_owned()),
            },
            Some(kind) => Geometry::try_from(RawGeometry {
                kind,
                coordinates: self.coordinates,
                geometries: self.geometries,
            })
            .map(Some),
        }
    }
}

/// Properties of a feature.
#[derive(Default, Deserialize)]
#[serde(expecting = "an object of properties")]
pub(super) struct Properties {
    name: Option<Text>,
    classification: Option<Classification>,
}

/// A text, or any other value.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Other(IgnoredAny),
}

/// Class of an annotation, as versions of QuPath write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Classification {
    Name(String),
    /// `name` is `"Tumor: Positive"` for a class derived from `Tumor`, and `names` lists both.
    Object {
        name: Option<String>,
        names: Option<Vec<String>>,
    },
    Other(IgnoredAny),
}

impl Properties {
    /// Returns the name of the annotation.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.name {
            Some(Text::Text(name)) => Some(name),
            Some(Text::Other(_)) | None => None,
        }
    }

    /// Returns the full name of the class.
    pub(super) fn class(&self) -> Option<String> {
        let found = match &self.classification {
            Some(Classification::Name(name) | Classification::Object { name: Some(name), .. }) => {
                name.clone()
            }
            Some(Classification::Object { name: None, names: Some(names) }) => names.join(DERIVED),
            Some(Classification::Object { .. } | Classification::Other(_)) | None => return None,
        };
        (!found.is_empty()).then_some(found)
    }
}

/// Polygons of a geometry.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawGeometry")]
pub(super) enum Geometry {
    /// An outline and its holes for each part.
    Parts(Vec<Vec<Ring>>),
    /// Points, lines, and geometries without positions.
    WithoutArea,
    Collection(Vec<Geometry>),
}

impl Geometry {
    /// Adds the parts with an area, in order.
    pub(super) fn add_parts(self, parts: &mut Vec<Vec<Ring>>) {
        match self {
            Self::Parts(of) => parts.extend(of),
            Self::WithoutArea => {}
            Self::Collection(members) => members.into_iter().for_each(|member| member.add_parts(parts)),
        }
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a geometry")]
struct RawGeometry {
    #[serde(rename = "type")]
    kind: Kind,
    coordinates: Option<Coordinates>,
    geometries: Option<Vec<Geometry>>,
}

impl TryFrom<RawGeometry> for Geometry {
    type Error = String;

    fn try_from(raw: RawGeometry) -> Result<Self, String> {
        let missing = |name: &str| Err(format!("missing field `{name}`"));
        match (raw.kind, raw.coordinates) {
            (Kind::GeometryCollection, _) => match raw.geometries {
                Some(members) => Ok(Self::Collection(members)),
                None => missing("geometries"),
            },
            (Kind::Feature | Kind::FeatureCollection, _) => {
                Err("a feature in place of a geometry".to_owned())
            }
            (_, None) => missing("coordinates"),
            (Kind::Polygon | Kind::MultiPolygon, Some(Coordinates::Empty)) => Ok(Self::WithoutArea),
            (Kind::Polygon, Some(Coordinates::Rings(rings))) => Ok(Self::Parts(vec![rings])),
            (Kind::MultiPolygon, Some(Coordinates::Parts(parts))) => Ok(Self::Parts(parts)),
            (Kind::Polygon, Some(_)) => Err(format!("the coordinates are not a list of rings, {POSITIONS}")),
            (Kind::MultiPolygon, Some(_)) => {
                Err(format!("the coordinates are not a list of polygons, {POSITIONS}"))
            }
            (Kind::Point | Kind::MultiPoint | Kind::LineString | Kind::MultiLineString, Some(_)) => {
                Ok(Self::WithoutArea)
            }
        }
    }
}

const POSITIONS: &str = "expected a position: a list of two numbers";

/// Nested lists of positions, of the depth that the document has.
#[derive(Debug)]
pub(super) enum Coordinates {
    Empty,
    Position([f64; 2]),
    Ring(Ring),
    Rings(Vec<Ring>),
    Parts(Vec<Vec<Ring>>),
}

impl<'de> Deserialize<'de> for Coordinates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CoordinatesVisitor)
    }
}

struct CoordinatesVisitor;

impl<'de> Visitor<'de> for CoordinatesVisitor {
    type Value = Coordinates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position: a list of two numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Coordinates, A::Error> {
        // The first entry determines the depth, and all further ones have the same.
        Ok(match list.next_element()? {
            None => Coordinates::Empty,
            Some(Entry::Number(x)) => {
                let y = list.next_element()?.ok_or_else(|| Error::invalid_length(1, &self))?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Coordinates::Position([x, y])
            }
            Some(Entry::List(Coordinates::Position(first))) => {
                Coordinates::Ring(rest(list, first, position)?)
            }
            Some(Entry::List(Coordinates::Ring(first))) => Coordinates::Rings(rest(list, first, ring)?),
            Some(Entry::List(Coordinates::Rings(first))) => {
                Coordinates::Parts(rest(list, first, |part: Vec<Vec<Position>>| {
                    part.into_iter().map(ring).collect()
                })?)
            }
            Some(Entry::List(Coordinates::Empty)) => match list.next_element::<IgnoredAny>()? {
                None => Coordinates::Empty,
                Some(_) => return Err(Error::custom(format_args!("an empty list, {POSITIONS}"))),
            },
            Some(Entry::List(Coordinates::Parts(_))) => {
                return Err(Error::custom(format_args!("lists nested too deeply, {POSITIONS}")));
            }
        })
    }
}

/// Returns the first entry and all others of a list.
fn rest<'de, A: SeqAccess<'de>, E: Deserialize<'de>, T>(
    mut list: A,
    first: T,
    convert: impl Fn(E) -> T,
) -> Result<Vec<T>, A::Error> {
    let mut all = vec![first];
    while let Some(entry) = list.next_element()? {
        all.push(convert(entry));
    }
    Ok(all)
}

fn position(Position(of): Position) -> [f64; 2] {
    of
}

fn ring(of: Vec<Position>) -> Ring {
    of.into_iter().map(position).collect()
}

/// First entry of a list.
enum Entry {
    Number(f64),
    List(Coordinates),
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrList;
        impl<'de> Visitor<'de> for NumberOrList {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a position: a list of two numbers")
            }

            #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
            fn visit_i64<E>(self, number: i64) -> Result<Entry, E> {
                Ok(Entry::Number(number as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
            fn visit_u64<E>(self, number: u64) -> Result<Entry, E> {
                Ok(Entry::Number(number as f64))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Entry, E> {
                Ok(Entry::Number(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Entry, A::Error> {
                CoordinatesVisitor.visit_seq(list).map(Entry::List)
            }
        }
        deserializer.deserialize_any(NumberOrList)
    }
}

/// The first two numbers of a list.
struct Position([f64; 2]);

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TwoOrMore;
        impl<'de> Visitor<'de> for TwoOrMore {
            type Value = Position;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a position: a list of two numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Position, A::Error> {
                let mut position = [0.0; 2];
                for (place, coordinate) in position.iter_mut().enumerate() {
                    let missing = || Error::invalid_length(place, &self);
                    *coordinate = list.next_element()?.ok_or_else(missing)?;
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Position(position))
            }
        }
        deserializer.deserialize_seq(TwoOrMore)
    }
}
