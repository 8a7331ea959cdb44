//! Metadata of OME-Zarr 0.5 groups and of Zarr 3 arrays.

use super::CHANNEL;
use super::array::ZarrArray;
use crate::image::error::Problem;
use pleach_regions::NumberType;
use pleach_workflow::VolumeInfo;
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// 16 MiB: maximum length of metadata. That of a plate of 384 wells takes some 100 kB.
const MAX_METADATA_BYTES: u64 = 16 << 20;

/// Names of the axes by role.
const ROLES: [&str; 5] = ["x", "y", "z", "t", "c"];

#[derive(Deserialize)]
pub(super) struct Group {
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
struct Attributes {
    ome: Option<Ome>,
}

#[derive(Deserialize)]
struct Ome {
    version: Option<String>,
    #[serde(default)]
    multiscales: Vec<Multiscale>,
    omero: Option<Omero>,
}

#[derive(Deserialize)]
struct Omero {
    #[serde(default)]
    channels: Vec<OmeroChannel>,
}

#[derive(Deserialize)]
struct OmeroChannel {
    #[serde(default)]
    label: String,
}

#[derive(Deserialize)]
struct Multiscale {
    axes: Vec<Axis>,
    datasets: Vec<Dataset>,
    #[serde(default, rename = "coordinateTransformations")]
    transformations: Vec<Transformation>,
}

#[derive(Deserialize)]
pub(super) struct Axis {
    name: String,
    unit: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Dataset {
    pub(super) path: String,
    #[serde(default, rename = "coordinateTransformations")]
    transformations: Vec<Transformation>,
}

#[derive(Deserialize)]
struct Transformation {
    #[serde(default)]
    scale: Vec<f64>,
}

/// Metadata of an array, as far as it is read.
#[derive(Deserialize)]
pub(super) struct ArrayMetadata {
    pub(super) zarr_format: u32,
    pub(super) node_type: String,
    pub(super) shape: Vec<u64>,
    pub(super) data_type: Value,
    pub(super) chunk_grid: Extension,
    pub(super) chunk_key_encoding: Extension,
    pub(super) fill_value: Value,
    pub(super) codecs: Vec<Extension>,
    #[serde(default)]
    pub(super) storage_transformers: Vec<Value>,
}

/// A named part of the metadata with its settings.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Extension {
    Name(String),
    Settings {
        name: String,
        #[serde(default)]
        configuration: Value,
    },
}

impl Extension {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Settings { name, .. } => name,
        }
    }

    /// Returns a setting. `Null` if it is missing.
    pub(super) fn setting(&self, key: &str) -> &Value {
        match self {
            Self::Settings { configuration, .. } => &configuration[key],
            Self::Name(_) => &Value::Null,
        }
    }
}

/// Image of a group.
pub(super) struct GroupImage {
    pub(super) axes: Vec<Axis>,
    pub(super) dataset: Dataset,
    scales: Vec<Transformation>,
    channel_names: Vec<String>,
}

impl Group {
    /// Returns the first image of the group.
    pub(super) fn image(self) -> Result<GroupImage, Problem> {
        let missing = |field: &str, needed| Problem::missing(format!("attributes.ome{field}"), needed);
        let ome = self.attributes.ome.ok_or_else(|| missing("", "the metadata of OME-Zarr 0.5"))?;
        match ome.version {
            Some(version) if version == "0.5" => {}
            version => {
                let found = version.map_or_else(|| "none".to_owned(), |version| format!("\"{version}\""));
                return Err(Problem::field("attributes.ome.version", found, "\"0.5\""));
            }
        }
        let image = ome.multiscales.into_iter().next();
        let Multiscale { axes, datasets, transformations: scales } =
            image.ok_or_else(|| missing(".multiscales", "an image"))?;
        let dataset = datasets.into_iter().next();
        let dataset = dataset.ok_or_else(|| missing(".multiscales[0].datasets", "an array"))?;
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
        if !dataset.path.split('/').all(is_plain) {
            let found = format!("\"{}\"", dataset.path);
            return Err(Problem::field(
                "attributes.ome.multiscales[0].datasets[0].path",
                found,
                "a path below the group",
            ));
        }
        let channel_names =
            ome.omero.into_iter().flat_map(|omero| omero.channels).map(|channel| channel.label).collect();
        Ok(GroupImage { axes, dataset, scales, channel_names })
    }
}

/// Reads metadata of a limited length.
pub(super) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Problem> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_METADATA_BYTES).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Returns the role of each axis.
pub(super) fn axes(axes: &[Axis], dimensions: usize) -> Result<Vec<usize>, Problem> {
    let field = |found: String, allowed| Problem::field("attributes.ome.multiscales[0].axes", found, allowed);
    let mut roles = Vec::new();
    for axis in axes {
        match ROLES.iter().position(|role| *role == axis.name) {
            Some(role) if !roles.contains(&role) => roles.push(role),
            _ => return Err(field(format!("\"{}\"", axis.name), "t, c, z, y and x, each once")),
        }
    }
    if roles.len() != dimensions || !roles.contains(&0) || !roles.contains(&1) {
        let found = format!("{} axes of an array of {dimensions} dimensions", roles.len());
        return Err(field(found, "one for each dimension, with x and y"));
    }
    Ok(roles)
}

/// Returns the sides, the type and the calibration of an image.
pub(super) fn info(image: &GroupImage, roles: &[usize], array: &ZarrArray) -> Result<VolumeInfo, Problem> {
    let mut sides = [1_u32; 5];
    for (role, side) in roles.iter().zip(&array.shape) {
        sides[*role] = *side;
    }
    // The scales of the array and of the image follow each other.
    let size = |role: usize, unit: fn(&str) -> Option<f64>| {
        let axis = roles.iter().position(|known| *known == role)?;
        let unit = unit(image.axes[axis].unit.as_deref()?)?;
        let scales = image.dataset.transformations.iter().chain(&image.scales);
        let mut scales = scales.filter_map(|of| of.scale.get(axis)).peekable();
        scales.peek()?;
        Some(scales.product::<f64>() * unit).filter(|size| size.is_finite() && *size > 0.0)
    };
    let [x, y, z, t, channels] = sides;
    Ok(VolumeInfo {
        sides: [x, y, z, t],
        has_z: roles.contains(&2),
        channels: if roles.contains(&CHANNEL) { channels } else { 1 },
        channel_names: image.channel_names.clone(),
        number: array.number,
        pixel_um: [0, 1, 2].map(|role| size(role, micrometers)),
        step_seconds: size(3, seconds),
    })
}

/// Returns the number type of an array.
pub(super) fn number(data_type: &Value) -> Result<NumberType, Problem> {
    match data_type.as_str() {
        Some("uint8") => Ok(NumberType::U8),
        Some("uint16") => Ok(NumberType::U16),
        Some("float32") => Ok(NumberType::F32),
        _ => Err(Problem::field("data_type", data_type.to_string(), "uint8, uint16, float32")),
    }
}

/// Micrometers of a unit of length, by the names of UDUNITS-2, as NGFF has them.
fn micrometers(unit: &str) -> Option<f64> {
    Some(match unit {
        "angstrom" => 1e-4,
        "nanometer" => 1e-3,
        "micrometer" => 1.0,
        "millimeter" => 1e3,
        "centimeter" => 1e4,
        "meter" => 1e6,
        _ => return None,
    })
}

/// Seconds of a unit of time.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "nanosecond" => 1e-9,
        "microsecond" => 1e-6,
        "millisecond" => 1e-3,
        "second" => 1.0,
        "minute" => 60.0,
        "hour" => 3600.0,
        "day" => 86_400.0,
        _ => return None,
    })
}
