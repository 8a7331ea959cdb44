//! The OME-XML of an OME-TIFF: sides, type, calibration, channels, and the directory of each plane.

use crate::image::error::Problem;
use pleach_regions::NumberType;
use pleach_workflow::VolumeInfo;
use roxmltree::{Document, Node};

/// Maximum number of planes: those of 1,000 times of 100 planes in 10 channels.
const MAX_PLANES: usize = 1 << 20;

/// Directories of the planes.
pub(super) struct Planes {
    /// Indices of z, time and channel by speed, the fastest first.
    order: [usize; 3],
    /// Directory of each plane. `None` if the file has none. Empty if planes are in the order of the dimensions.
    directories: Vec<Option<usize>>,
}

impl Planes {
    /// Returns the directory of the plane of a channel, z and time.
    pub(super) fn directory(&self, info: &VolumeInfo, [channel, z, t]: [u32; 3]) -> Option<usize> {
        let sides = [info.sides[2], info.sides[3], info.channels];
        let plane = number(self.order, sides, [z, t, channel]);
        if self.directories.is_empty() { Some(plane) } else { self.directories.get(plane).copied().flatten() }
    }
}

/// Returns the number of planes that the metadata states.
pub(super) fn planes(info: &VolumeInfo) -> usize {
    [info.sides[2], info.sides[3], info.channels].iter().map(|side| *side as usize).product()
}

/// Returns the number of a plane in an order of the dimensions z, time and channel.
fn number([first, second, third]: [usize; 3], sides: [u32; 3], at: [u32; 3]) -> usize {
    let (sides, at) = (sides.map(|side| side as usize), at.map(|place| place as usize));
    at[first] + sides[first] * (at[second] + sides[second] * at[third])
}

/// Reads the description of the first image.
pub(super) fn described(text: &str) -> Result<(VolumeInfo, Planes), Problem> {
    let document = Document::parse(text)?;
    let pixels = document.descendants().find(|node| node.tag_name().name() == "Pixels");
    let pixels = pixels.ok_or_else(|| Problem::missing("Pixels", "the description of an image"))?;
    let needed = |name: &str| {
        pixels.attribute(name).ok_or_else(|| Problem::missing(format!("Pixels.{name}"), "an attribute"))
    };
    let side = |name: &str| {
        let text = needed(name)?;
        let side = text.parse().ok().filter(|side: &u32| *side > 0);
        side.ok_or_else(|| Problem::field(format!("Pixels.{name}"), text, "1 to 2^32 - 1"))
    };
    let sides = [side("SizeX")?, side("SizeY")?, side("SizeZ")?, side("SizeT")?];
    let channels = side("SizeC")?;
    let planes = [sides[3], channels]
        .iter()
        .fold(u64::from(sides[2]), |all, side| all.saturating_mul(u64::from(*side)));
    if planes > MAX_PLANES as u64 {
        let found = format!("{planes} planes");
        return Err(Problem::field("Pixels.SizeZ, SizeC, SizeT", found, format!("up to {MAX_PLANES}")));
    }
    let number = match needed("Type")? {
        "uint8" => NumberType::U8,
        "uint16" => NumberType::U16,
        "float" => NumberType::F32,
        other => return Err(Problem::field("Pixels.Type", other, "uint8, uint16, float")),
    };
    let channel_nodes = pixels.children().filter(|node| node.tag_name().name() == "Channel");
    let mut channel_names = Vec::new();
    for (place, channel) in channel_nodes.enumerate() {
        match channel.attribute("SamplesPerPixel") {
            None | Some("1") => {}
            Some(found) => {
                return Err(Problem::field(format!("Channel {place}.SamplesPerPixel"), found, "1"));
            }
        }
        channel_names.push(channel.attribute("Name").unwrap_or_default().to_owned());
    }
    let order = order(needed("DimensionOrder")?)?;
    let directories = directories(pixels, order, [sides[2], sides[3], channels])?;
    let info = VolumeInfo {
        sides,
        has_z: sides[2] > 1,
        channels,
        channel_names,
        number,
        pixel_um: ["X", "Y", "Z"].map(|axis| micrometers(pixels, axis)),
        step_seconds: seconds(pixels),
    };
    Ok((info, Planes { order, directories }))
}

/// Returns the size of a pixel along an axis.
fn micrometers(pixels: Node<'_, '_>, axis: &str) -> Option<f64> {
    let um = match pixels.attribute(format!("PhysicalSize{axis}Unit").as_str()).unwrap_or("µm") {
        "Å" => 1e-4,
        "nm" => 1e-3,
        // The sign of micro, and the Greek letter.
        "µm" | "\u{3bc}m" => 1.0,
        "mm" => 1e3,
        "cm" => 1e4,
        "m" => 1e6,
        _ => return None,
    };
    positive(pixels.attribute(format!("PhysicalSize{axis}").as_str())?, um)
}

/// Returns the seconds between times.
fn seconds(pixels: Node<'_, '_>) -> Option<f64> {
    let seconds = match pixels.attribute("TimeIncrementUnit").unwrap_or("s") {
        "ns" => 1e-9,
        "µs" | "\u{3bc}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    positive(pixels.attribute("TimeIncrement")?, seconds)
}

/// Returns a positive number in another unit.
fn positive(text: &str, unit: f64) -> Option<f64> {
    text.trim().parse().ok().map(|size: f64| size * unit).filter(|size| size.is_finite() && *size > 0.0)
}

/// Reads the order of z, time and channel.
fn order(text: &str) -> Result<[usize; 3], Problem> {
    let places = ['Z', 'T', 'C'].map(|dimension| text.find(dimension));
    match places {
        [Some(z), Some(t), Some(c)] if text.len() == 5 && text.starts_with("XY") => {
            let mut order = [0, 1, 2];
            order.sort_by_key(|dimension| [z, t, c][*dimension]);
            Ok(order)
        }
        _ => Err(Problem::field("Pixels.DimensionOrder", text, "XYZCT and the other orders of Z, C and T")),
    }
}

/// Returns the directory of each plane that `TiffData` elements state. Empty without them.
fn directories(
    pixels: Node<'_, '_>,
    order: [usize; 3],
    sides: [u32; 3],
) -> Result<Vec<Option<usize>>, Problem> {
    let elements: Vec<Node<'_, '_>> =
        pixels.children().filter(|node| node.tag_name().name() == "TiffData").collect();
    let names = elements.iter().flat_map(Node::children).filter_map(|node| node.attribute("FileName"));
    let names: Vec<&str> = names.collect();
    if let Some(other) = names.iter().find(|name| **name != names[0]) {
        return Err(Problem::field("TiffData.UUID.FileName", *other, "all planes in one file"));
    }
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let planes = sides.iter().map(|side| *side as usize).product();
    let mut directories = vec![None; planes];
    for element in elements {
        let stated = |name: &str| match element.attribute(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u32>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(Problem::field(format!("TiffData.{name}"), text, "a whole number")),
            },
        };
        let at =
            [stated("FirstZ")?.unwrap_or(0), stated("FirstT")?.unwrap_or(0), stated("FirstC")?.unwrap_or(0)];
        if let Some(axis) = (0..3).find(|axis| at[*axis] >= sides[*axis]) {
            let field = ["FirstZ", "FirstT", "FirstC"][axis];
            let allowed = format!("0 to {}", sides[axis] - 1);
            return Err(Problem::field(format!("TiffData.{field}"), at[axis].to_string(), allowed));
        }
        let first = number(order, sides, at);
        let directory = stated("IFD")?;
        // Without a directory, an element stands for all planes that follow.
        let usual = if directory.is_some() { 1 } else { planes };
        let count = stated("PlaneCount")?.map_or(usual, |count| count as usize);
        let directory = directory.unwrap_or(0) as usize;
        for (step, plane) in directories.iter_mut().skip(first).take(count).enumerate() {
            *plane = Some(directory + step);
        }
    }
    Ok(directories)
}
