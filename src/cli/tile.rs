//! Arguments of the commands that work on single tiles, and of those that write segmentations.

mod export;

pub(crate) use export::{ApplyArgs, ExportArgs, FileArgs, ParameterArgs};

use super::at_least_one;
use super::operations::PythonArgs;
use clap::Args;
use pleach_pathology::tissue;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SegmentArgs {
    /// The tile (PNG, JPEG or TIFF)
    pub(crate) tile: PathBuf,
    /// File for the mask (1-bit PNG)
    #[arg(long, value_name = "MASK.png")]
    pub(crate) out: PathBuf,
    /// Workflow file whose stage writes a mask, or the name of a built-in workflow [default: nuclei]
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) workflow: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// New folder for a region template with all regions that the tasks write (see pleach region)
    #[arg(long, value_name = "DIR")]
    pub(crate) regions: Option<PathBuf>,
    /// File for the features of each nucleus: a name that ends in .csv or .geojson
    #[arg(long, value_name = "FILE")]
    pub(crate) features: Option<PathBuf>,
    /// Parameter value, as in G1=60; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Normalize the stain first
    #[arg(long)]
    pub(crate) normalize: bool,
    /// Print the time of each operation
    #[arg(long)]
    pub(crate) timings: bool,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Tiles of yours [default: two generated tiles of 512 px]
    #[arg(value_name = "TILE")]
    pub(crate) tiles: Vec<PathBuf>,
    /// Folder for the tiles, the study file and the results
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TissueArgs {
    /// Folder for the tiles and their label maps, with --slide a file for the slide (tiled TIFF), or with --volume a folder for
    /// the image (OME-Zarr)
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) out: PathBuf,
    /// Make one slide of this size in pixels, 512x512 to 262144x262144
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = slide_size, conflicts_with_all = ["size", "count"])]
    pub(crate) slide: Option<[u32; 2]>,
    /// Make one image of moving spots with these sides in pixels along x, y and z, and this number of times
    #[arg(long, value_name = "XxYxZxTIMES", value_parser = volume_sides, conflicts_with_all = ["size", "count", "slide"])]
    pub(crate) volume: Option<[u32; 4]>,
    /// File for the outlines of the slide's nuclei (GeoJSON)
    #[arg(long, value_name = "FILE", requires = "slide")]
    pub(crate) annotations: Option<PathBuf>,
    /// Compress the slide without loss
    #[arg(long, requires = "slide")]
    pub(crate) lossless: bool,
    /// JPEG quality of the slide (1-100)
    #[arg(long, value_name = "N", default_value_t = 80, requires = "slide", conflicts_with = "lossless", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) quality: u8,
    /// Side of a tile in pixels
    #[arg(long, value_name = "PX", default_value = "512", value_parser = at_least_one::<u32>)]
    pub(crate) size: u32,
    /// Number of tiles
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) count: NonZeroU32,
    /// Seed; the same seed gives the same tiles
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Reads the size of a slide.
fn slide_size(text: &str) -> Result<[u32; 2], String> {
    let allowed = 512..=tissue::slide::MAX_SLIDE_PX;
    let sides =
        text.split_once('x').and_then(|(width, height)| Some([width.parse().ok()?, height.parse().ok()?]));
    match sides {
        Some(sides) if sides.iter().all(|side| allowed.contains(side)) => Ok(sides),
        _ => {
            Err(format!("WIDTHxHEIGHT with sides of {} to {} px is allowed", allowed.start(), allowed.end()))
        }
    }
}

/// Reads the sides and times of an image of more dimensions.
fn volume_sides(text: &str) -> Result<[u32; 4], String> {
    let sides: Option<Vec<u32>> = text.split('x').map(|side| side.parse().ok()).collect();
    let sides = sides.and_then(|sides| <[u32; 4]>::try_from(sides).ok());
    let allowed = 1..=MAX_VOLUME_SIDE;
    let values = |sides: &[u32; 4]| sides.iter().map(|side| u64::from(*side)).product::<u64>();
    match sides {
        Some(sides)
            if sides.iter().all(|side| allowed.contains(side)) && values(&sides) <= MAX_VOLUME_VALUES =>
        {
            Ok(sides)
        }
        _ => Err(format!(
            "XxYxZxTIMES of 1 to {MAX_VOLUME_SIDE} each, and up to {MAX_VOLUME_VALUES} pixels in all, are allowed"
        )),
    }
}

/// Maximum side of a generated image.
const MAX_VOLUME_SIDE: u32 = 16_384;

/// Maximum pixels of a generated image: 8 GB.
const MAX_VOLUME_VALUES: u64 = 1 << 32;
