//! The document as a stream of annotations.

use super::document::{Coordinates, Geometry, Item, Kind, Properties, present};
use crate::image_io::annotation_set::Builder;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The whole document, whose annotations go to a builder.
pub(super) struct Root<'a, 'b> {
    pub(super) builder: &'a mut Builder<'b>,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a GeoJSON object or a list of features")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        Features { builder: self.builder }.visit_seq(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (mut item, mut has_features) = (Item::default(), false);
        while let Some(key) = members.next_key::<Member>()? {
            match key {
                Member::Type => item.kind = Some(members.next_value()?),
                Member::Features => {
                    members.next_value_seed(Features { builder: &mut *self.builder })?;
                    has_features = true;
                }
                Member::Geometry => item.geometry = members.next_value_seed(Present)?,
                Member::Nucleus => item.nucleus = members.next_value::<Option<Geometry>>()?,
                Member::Properties => item.properties = members.next_value::<Option<Properties>>()?,
                Member::Coordinates => item.coordinates = members.next_value::<Option<Coordinates>>()?,
                Member::Geometries => item.geometries = members.next_value()?,
                Member::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        match (item.kind, has_features) {
            (Some(Kind::FeatureCollection), true) => Ok(()),
            (Some(Kind::FeatureCollection), false) => Err(Error::missing_field("features")),
            (None, _) => Err(Error::missing_field("type")),
            (Some(_), true) => Err(Error::custom("features are members of a FeatureCollection only")),
            (Some(_), false) => add(item, self.builder, true),
        }
    }
}

/// Members of the document.
#[derive(serde::Deserialize)]
#[serde(field_identifier)]
enum Member {
    #[serde(rename = "type")]
    Type,
    #[serde(rename = "features")]
    Features,
    #[serde(rename = "geometry")]
    Geometry,
    #[serde(rename = "nucleusGeometry")]
    Nucleus,
    #[serde(rename = "properties")]
    Properties,
    #[serde(rename = "coordinates")]
    Coordinates,
    #[serde(rename = "geometries")]
    Geometries,
    #[serde(other)]
    Other,
}

/// A geometry or `null`.
struct Present;

impl<'de> DeserializeSeed<'de> for Present {
    type Value = Option<Option<Geometry>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        present(deserializer)
    }
}

/// A list of features or geometries.
struct Features<'a, 'b> {
    builder: &'a mut Builder<'b>,
}

impl<'de> DeserializeSeed<'de> for Features<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Features<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of features")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(FeatureSeed { builder: &mut *self.builder })?.is_some() {}
        Ok(())
    }
}

/// One feature or geometry of a list.
struct FeatureSeed<'a, 'b> {
    builder: &'a mut Builder<'b>,
}

impl<'de> DeserializeSeed<'de> for FeatureSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let item = <Item as serde::Deserialize>::deserialize(deserializer)?;
        add(item, self.builder, false)
    }
}

/// Adds the annotation of a feature or geometry. The members of a bare collection are one annotation each.
fn add<E: Error>(mut item: Item, builder: &mut Builder<'_>, is_document: bool) -> Result<(), E> {
    let properties = item.properties.take().unwrap_or_default();
    let (name, class) = (properties.name(), properties.class());
    let is_bare = is_document && item.kind == Some(Kind::GeometryCollection);
    let geometries = match item.into_geometry().map_err(Error::custom)? {
        Some(Geometry::Collection(members)) if is_bare => members,
        Some(geometry) => vec![geometry],
        None => vec![Geometry::WithoutArea],
    };
    for geometry in geometries {
        let mut parts = Vec::new();
        geometry.add_parts(&mut parts);
        // The builder keeps the error, which has its own message.
        builder.add(parts, class.as_deref(), name).map_err(|()| E::custom("invalid outline"))?;
    }
    Ok(())
}
