//! An open slide: its pyramid levels, magnification and pixels.
//!
//! `read.rs` computes the pixels of a magnification from those of a level.

use crate::error::SlideError;
use crate::limits::{MAX_OVERVIEW_PX, MAX_PIECE_PX};
use crate::scale::Scale;
use crate::{libtiff, tags};
use openslide_rs::errors::OpenSlideError;
use openslide_rs::{Address, OpenSlide, Region, Size};
use pleach_regions::{PixelRectangle, Raster, Resolution};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Microns per pixel of scanners: 100x has 0.1, an overview 10.
const SCANNED: std::ops::RangeInclusive<f64> = 0.05..=20.0;

/// One level of a slide's pyramid. The first has the scanned resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PyramidLevel {
    /// Width, pixels.
    pub width_px: u32,
    /// Height, pixels.
    pub height_px: u32,
    /// Pixels of the first level per pixel, along each axis.
    pub downsample: f64,
}

/// An open slide. Any number of threads may read it at once.
///
/// A failed read makes the slide unusable: every later read fails with the same cause. The caller may reopen the slide.
#[derive(Debug)]
pub struct Slide {
    path: PathBuf,
    handle: OpenSlide,
    format: String,
    levels: Vec<PyramidLevel>,
    /// For each level, the damage that would make its pixels wrong.
    damages: Vec<Option<String>>,
    objective_power: Option<f64>,
    resolution: Option<Resolution>,
}

impl Slide {
    /// Opens a slide and reads its properties.
    ///
    /// # Errors
    /// Returns a [`SlideError`] if the slide cannot be read, has an unsupported format, or is inconsistent.
    pub fn open(path: &Path) -> Result<Self, SlideError> {
        let path = path.to_owned();
        let unreadable = |cause| SlideError::Unreadable { path: path.clone(), cause };
        // Checked before opening: opening a pipe waits for a writer.
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(SlideError::NoFile { path });
        }
        // The reader reports files without read permission as "unsupported".
        File::open(&path).and_then(|mut file| file.read(&mut [0])).map_err(unreadable)?;
        libtiff::capture();
        // Discards an earlier error of this thread, so that later messages quote only errors of this slide.
        libtiff::last_error();
        let handle = OpenSlide::new(&path).map_err(|error| said(&path, error))?;
        let property = |name: &str| handle.property_value(name).ok();
        let positive = |name: &str| property(name)?.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
        let sides = handle.all_level_dimensions().iter().zip(handle.all_level_downsamples());
        let level = |(size, downsample): (&Size, &f64)| PyramidLevel {
            width_px: size.w,
            height_px: size.h,
            downsample: *downsample,
        };
        let levels: Vec<PyramidLevel> = sides.map(level).collect();
        let is_sound = |level: &PyramidLevel| {
            let PyramidLevel { width_px, height_px, downsample } = *level;
            width_px > 0 && height_px > 0 && downsample.is_finite() && downsample >= 1.0
        };
        if levels.is_empty() || !levels.iter().all(is_sound) {
            let cause = "inconsistent levels".to_owned();
            return Err(SlideError::Damaged { path, cause });
        }
        for level in 0..levels.len() {
            // Both sides are text of the file, so their product may exceed 64 bits.
            let side = |name: &str| property(&format!("openslide.level[{level}].tile-{name}"))?.parse().ok();
            if let (Some(width_px), Some(height_px)) = (side("width"), side("height"))
                && u64::saturating_mul(width_px, height_px) > MAX_PIECE_PX
            {
                return Err(SlideError::LargePieces { path, level, width_px, height_px });
            }
        }
        let damages = damages(&path, &levels);
        let microns = |axis: &str| positive(&format!("openslide.mpp-{axis}"));
        // Scanners' pixels are square. The two values differ in their last digits at most.
        // Older versions of OpenSlide do not read the resolution tags of plain TIFF.
        let of_tags = |axis: &str| {
            let px_per_unit = positive(&format!("tiff.{axis}Resolution"))?;
            let microns_per_unit = match property("tiff.ResolutionUnit").as_deref() {
                Some("centimeter") => 1e4,
                Some("inch") => 25_400.0,
                _ => return None,
            };
            // Programs that know no resolution write that of screens and printers.
            Some(microns_per_unit / px_per_unit).filter(|microns| SCANNED.contains(microns))
        };
        let microns = microns("x").zip(microns("y")).or_else(|| of_tags("X").zip(of_tags("Y")));
        let microns = microns.map(|(x, y)| f64::midpoint(x, y));
        Ok(Self {
            format: property("openslide.vendor").unwrap_or_default(),
            objective_power: positive("openslide.objective-power"),
            resolution: microns.and_then(|microns| Resolution::from_microns_per_px(microns).ok()),
            levels,
            damages,
            handle,
            path,
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the format, named after the scanner's vendor: `aperio`, `hamamatsu`, `generic-tiff`, ….
    #[must_use]
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Returns the pyramid levels, the finest first.
    #[must_use]
    pub fn levels(&self) -> &[PyramidLevel] {
        &self.levels
    }

    /// Returns the magnification of the scanner's objective. Returns `None` if the slide does not state it.
    #[must_use]
    pub fn objective_power(&self) -> Option<f64> {
        self.objective_power
    }

    /// Returns the resolution of the first level. Returns `None` if the slide does not state it.
    #[must_use]
    pub fn resolution(&self) -> Option<Resolution> {
        self.resolution
    }

    /// Returns the magnification of the first level: that of the objective, or by convention that of its resolution.
    #[must_use]
    pub fn magnification(&self) -> Option<f64> {
        self.objective_power.or_else(|| self.resolution.map(Resolution::magnification))
    }

    /// Returns the scale of a magnification, or of the scan without one.
    ///
    /// # Errors
    /// Returns [`SlideError::Magnification`] if it exceeds that of the scan, or leaves no pixel. Returns
    /// [`SlideError::NoMagnification`] if the slide does not state its own.
    pub fn scale(&self, magnification: Option<f64>) -> Result<Scale, SlideError> {
        let path = || self.path.clone();
        let (factor, own) = match magnification {
            None => (1.0, 0.0),
            Some(magnification) => match self.magnification() {
                None => return Err(SlideError::NoMagnification { path: path(), magnification }),
                Some(own) => (own / magnification, own),
            },
        };
        let magnification = magnification.unwrap_or_default();
        let shorter = self.levels[0].width_px.min(self.levels[0].height_px);
        let refused = || SlideError::Magnification {
            path: path(),
            magnification,
            own,
            least: own / f64::from(shorter),
        };
        // NaN is in no range, so it is rejected too.
        if !(1.0..=f64::from(u32::MAX)).contains(&factor) {
            return Err(refused());
        }
        Scale::at(&self.levels, factor).ok_or_else(refused)
    }

    /// Reads the whole slide, reduced so that neither side exceeds `side_px`. A smaller slide keeps its size.
    ///
    /// # Errors
    /// Returns [`SlideError::NoOverview`] if this would read more than 2^30 pixels. Otherwise returns the errors of
    /// [`read`](Self::read).
    pub fn overview(&self, side_px: u32) -> Result<Raster, SlideError> {
        let PyramidLevel { width_px, height_px, .. } = self.levels[0];
        let factor = f64::from(width_px.max(height_px)) / f64::from(side_px.max(1));
        // At most the shorter side, so that one pixel of it is left.
        let factor = factor.clamp(1.0, f64::from(width_px.min(height_px)));
        let no_overview = |level: PyramidLevel| SlideError::NoOverview {
            path: self.path.clone(),
            width_px: level.width_px,
            height_px: level.height_px,
        };
        let scale = Scale::at(&self.levels, factor).ok_or_else(|| no_overview(self.levels[0]))?;
        let level = self.levels[scale.level];
        if u64::from(level.width_px) * u64::from(level.height_px) > MAX_OVERVIEW_PX {
            return Err(no_overview(level));
        }
        let Scale { width_px, height_px, .. } = scale;
        self.read(&scale, PixelRectangle { x_px: 0, y_px: 0, width_px, height_px })
    }

    /// Reads pixels of a level as premultiplied ARGB in native byte order.
    pub(crate) fn level_pixels(&self, level: usize, part: PixelRectangle) -> Result<Vec<u8>, SlideError> {
        if let Some(cause) = &self.damages[level] {
            return Err(SlideError::Damaged { path: self.path.clone(), cause: cause.clone() });
        }
        // Discards an earlier error of this thread, so that the message quotes only an error of this read.
        libtiff::last_error();
        // Regions begin at pixels of the first level. For a level cut to whole pixels this selects the nearest
        // pixel.
        let downsample = self.levels[level].downsample;
        let start = |level_px: u32| (f64::from(level_px) * downsample).round() as u32;
        let region = Region {
            size: Size { w: part.width_px, h: part.height_px },
            level: level as u32,
            address: Address { x: start(part.x_px), y: start(part.y_px) },
        };
        self.handle.read_region(&region).map_err(|error| match error {
            OpenSlideError::OutOfMemory { .. } | OpenSlideError::ImageTooLarge { .. } => SlideError::Memory {
                path: self.path.clone(),
                width_px: part.width_px,
                height_px: part.height_px,
            },
            other => said(&self.path, other),
        })
    }
}

/// Returns the damage of each level. Levels of most formats have the size of their directory. In other formats,
/// damage anywhere affects all levels.
fn damages(path: &Path, levels: &[PyramidLevel]) -> Vec<Option<String>> {
    let mut damages = vec![None; levels.len()];
    for tags::CorruptLevel { size_px, cause } in tags::damages(path) {
        let is_of = |level: &PyramidLevel| size_px == [level.width_px, level.height_px].map(u64::from);
        let is_known = levels.iter().any(is_of);
        for (level, damage) in levels.iter().zip(&mut damages) {
            if is_of(level) || !is_known {
                damage.get_or_insert_with(|| cause.clone());
            }
        }
    }
    damages
}

/// Converts the reader's error.
fn said(path: &Path, error: OpenSlideError) -> SlideError {
    let path = path.to_owned();
    match error {
        OpenSlideError::UnsupportedFile(_) => SlideError::Unsupported { path },
        OpenSlideError::LibraryError(text) => {
            // OpenSlide's own text often only names the function that failed.
            let detail = libtiff::last_error().map_or_else(String::new, |detail| format!(": {detail}"));
            SlideError::Damaged { path, cause: one_line(&format!("{text}{detail}")) }
        }
        other => SlideError::Damaged { path, cause: one_line(&other.to_string()) },
    }
}

/// Makes a text from a damaged file printable: one line of at most 300 characters.
fn one_line(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
