//! Bounds of stage inputs in descriptors.

use crate::bounds::InputBounds;
use pleach_regions::ElementType;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A region that a stage reads, with the bounds that it needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a region object")]
pub(crate) struct InputDescriptor {
    pub(crate) region: String,
    #[serde(rename = "type")]
    pub(crate) element: ElementType,
    /// Name within the stage, so that a stage can read a region with several bounds. By default that of the region.
    #[serde(default, rename = "as")]
    name: Option<String>,
    #[serde(default)]
    pub(crate) bounds: BoundsDescriptor,
}

impl InputDescriptor {
    /// Returns the name within the stage.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.region)
    }
}

/// Bounds as written: `"own"`, `"whole"`, `{"halo": 8}`, `{"halo": {"x": 8, "z": 2}}` or `{"offset": {"t": 1}}`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "\"own\", \"whole\", a \"halo\" or an \"offset\"")]
pub(crate) enum BoundsDescriptor {
    #[default]
    Own,
    Whole,
    Halo(HaloDescriptor),
    Offset(OffsetDescriptor),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "units along x, y, z and t")]
pub(crate) struct OffsetDescriptor {
    #[serde(default)]
    x: i32,
    #[serde(default)]
    y: i32,
    #[serde(default)]
    z: i32,
    #[serde(default)]
    t: i32,
}

/// Pixels along each axis. A single number holds for x and y.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HaloDescriptor([u32; 3]);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "pixels along x, y and z")]
struct HaloByAxis {
    #[serde(default)]
    x: u32,
    #[serde(default)]
    y: u32,
    #[serde(default)]
    z: u32,
}

/// Implemented by hand: a derived choice between the two forms loses the location of a mistake.
impl<'de> Deserialize<'de> for HaloDescriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrAxes;
        impl<'de> Visitor<'de> for NumberOrAxes {
            type Value = HaloDescriptor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pixels or an object of x, y and z")
            }

            fn visit_u64<E: serde::de::Error>(self, px: u64) -> Result<Self::Value, E> {
                let px = u32::try_from(px).unwrap_or(u32::MAX);
                Ok(HaloDescriptor([px, px, 0]))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let HaloByAxis { x, y, z } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(HaloDescriptor([x, y, z]))
            }
        }
        deserializer.deserialize_any(NumberOrAxes)
    }
}

impl From<BoundsDescriptor> for InputBounds {
    fn from(descriptor: BoundsDescriptor) -> Self {
        match descriptor {
            BoundsDescriptor::Own | BoundsDescriptor::Halo(HaloDescriptor([0, 0, 0])) => Self::Own,
            BoundsDescriptor::Whole => Self::Whole,
            BoundsDescriptor::Halo(HaloDescriptor(halo)) => Self::Halo(halo),
            BoundsDescriptor::Offset(OffsetDescriptor { x, y, z, t }) if [x, y, z, t] == [0; 4] => Self::Own,
            BoundsDescriptor::Offset(OffsetDescriptor { x, y, z, t }) => Self::Offset([x, y, z, t]),
        }
    }
}
