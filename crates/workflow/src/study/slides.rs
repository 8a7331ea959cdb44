//! Slides of a study: files found by pattern, and their tiling.
//!
//! This module opens no slide. The reader of a slide checks its properties and finds the tiles with tissue.

use super::inputs::{StudyTile, found};
use super::wording::{NUMBER, SECTION, SWITCH, fail};
use super::{StudyError, StudyProblem};
use crate::toml_fields::Section;
use crate::value::Real;
use pleach_regions::{PixelRectangle, Table};
use serde::{Deserialize, Serialize};

/// Allowed tile sides in pixels. Below 64, planning and dispatch would take longer than the work. A tile of 16,384
/// takes 0.8 GB.
const TILE_PX: std::ops::RangeInclusive<u64> = 64..=16_384;

/// Allowed tilings.
const TILE: &str = "a side of 64 to 16384 px, or \"regions\" (a tile for each region of interest)";

/// Default tile side: that of the published studies.
const DEFAULT_TILE_PX: u64 = 4_096;

/// Default halo, pixels: a nucleus is at most 60 px long at 40x. On the slide of the test data, clumps of up to 151 px
/// also count once with this halo. The length of the longest object less 1 px always suffices.
const DEFAULT_HALO_PX: u64 = 64;

/// Maximum halo, pixels. A tile of 4,096 px then has a window of four times the area of its core.
const MAX_HALO_PX: u64 = 2_048;

/// Default minimum tissue fraction of a tile. The segmentation itself finds no objects on tiles with at least 90 %
/// background.
const DEFAULT_TISSUE: f64 = 0.01;

/// Slides of a study and their tiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slides {
    /// The slides, in order of their paths, each once.
    pub files: Vec<StudyTile>,
    /// Magnification of the read. `None` uses the slide's own.
    pub magnification: Option<Real>,
    /// Tiling of each slide.
    #[serde(rename = "tile_px")]
    pub tiling: Tiling,
    /// Pixels around a core that tasks also compute on.
    pub halo_px: u32,
    /// Selects the tiles with tissue. `None` uses all tiles.
    pub tissue: Option<TissueRule>,
}

/// Tiling of a slide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TilingText", into = "TilingText")]
pub enum Tiling {
    /// A grid of square cores with this side, pixels. Cores at the right and at the bottom may be smaller.
    Grid(u32),
    /// A core for each region of interest: its bounding box.
    Regions,
}

/// A tiling as study files and kept studies have it: a side, or a word.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum TilingText {
    Side(u32),
    Word(TilingWord),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TilingWord {
    Regions,
}

impl From<TilingText> for Tiling {
    fn from(text: TilingText) -> Self {
        match text {
            TilingText::Side(side) => Self::Grid(side),
            TilingText::Word(TilingWord::Regions) => Self::Regions,
        }
    }
}

impl From<Tiling> for TilingText {
    fn from(tiling: Tiling) -> Self {
        match tiling {
            Tiling::Grid(side) => Self::Side(side),
            Tiling::Regions => Self::Word(TilingWord::Regions),
        }
    }
}

/// Rule for the tiles with tissue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TissueRule {
    /// Minimum tissue fraction of a tile's core, 0 to 1.
    pub least: Real,
    /// Saturation, 0–255, above which a pixel is tissue. `None` selects a threshold for each slide.
    pub saturation: Option<u8>,
}

/// A tile of a slide: its position in pixels of the slide at the magnification.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlideTile {
    /// Magnification. `None` is the slide's own.
    pub magnification: Option<Real>,
    /// Left, top, width and height of the core. Objects and pixels in it count for this tile only.
    pub core: [u32; 4],
    /// Bounds of the computed window: the core and its halo, clipped to the slide.
    pub window: [u32; 4],
}

/// Columns of a core's table: pixels of the window to the left of the core and above it, and the core's sides.
const CORE_COLUMNS: [&str; 4] = ["left", "top", "width", "height"];

impl SlideTile {
    /// Returns the window that tasks compute on.
    #[must_use]
    pub fn window(&self) -> PixelRectangle {
        rectangle(self.window)
    }

    /// Returns the number of pixels of the window.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        u64::from(self.window[2]) * u64::from(self.window[3])
    }

    /// Maximum side of a core, pixels.
    pub const MAX_SIDE_PX: u32 = *TILE_PX.end() as u32;

    /// Returns whether the tile respects the limits of [`Slides`]: a core within its window, and a window within the
    /// maximum.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let most = TILE_PX.end() + 2 * MAX_HALO_PX;
        (0..2).all(|axis| {
            let [core, window] = [self.core, self.window].map(|sides| {
                let start = u64::from(sides[axis]);
                start..start + u64::from(sides[axis + 2])
            });
            let is_within = window.start <= core.start && core.end <= window.end;
            !core.is_empty() && is_within && window.end - window.start <= most
        })
    }

    /// Returns the core within the window as the table that operations read.
    #[must_use]
    pub fn core_table(&self) -> Table {
        let ([left, top, width, height], [x, y, ..]) = (self.core, self.window);
        let sides = [left.saturating_sub(x), top.saturating_sub(y), width, height];
        Table::new(CORE_COLUMNS.into_iter().zip(sides.map(f64::from)))
    }
}

/// Returns the core that a table describes, within its window. Returns `None` for any other table.
#[must_use]
pub fn core_of(table: &Table) -> Option<PixelRectangle> {
    let mut sides = [0; 4];
    for (side, column) in sides.iter_mut().zip(CORE_COLUMNS) {
        let found = table.get(column)?;
        let is_whole = (0.0..=f64::from(u32::MAX)).contains(&found) && found.fract() == 0.0;
        *side = is_whole.then_some(found as u32)?;
    }
    Some(rectangle(sides))
}

fn rectangle([x_px, y_px, width_px, height_px]: [u32; 4]) -> PixelRectangle {
    PixelRectangle { x_px, y_px, width_px, height_px }
}

/// Keys of `[input]` that require slides.
pub(crate) const KEYS: [&str; 6] = ["slides", "magnification", "tile", "halo", "skip_background", "tissue"];

/// Reads the slides of a study. Returns `None` for a study of tiles.
pub(super) fn slides(input: &Section<'_>) -> Result<Option<Slides>, StudyError> {
    if !input.has("slides") {
        return match KEYS.into_iter().find(|key| input.has(key)) {
            Some(key) => fail(input, key, StudyProblem::SlidesOnly),
            None => Ok(None),
        };
    }
    if input.has("tiles") {
        return fail(input, "slides", StudyProblem::TilesAndSlides);
    }
    let files = found(input, "slides")?;
    let magnification = match input.number("magnification", NUMBER)? {
        None => None,
        Some(given) => match Real::try_from(given) {
            Ok(magnification) if given > 0.0 => Some(magnification),
            _ => {
                return input.not_allowed(
                    "magnification",
                    &number(given),
                    "more than 0, up to the slide's own",
                );
            }
        },
    };
    let tiling = tiling(input)?;
    let most = match tiling {
        Tiling::Grid(tile_px) => MAX_HALO_PX.min(u64::from(tile_px) - 1),
        Tiling::Regions => MAX_HALO_PX,
    };
    let halo_px = input.integer("halo", 0, most)?.unwrap_or(DEFAULT_HALO_PX.min(most)) as u32;
    let tissue = tissue(input)?;
    Ok(Some(Slides { files, magnification, tiling, halo_px, tissue }))
}

fn tiling(input: &Section<'_>) -> Result<Tiling, StudyError> {
    if input.is_text("tile") {
        return match input.text("tile", "a text")? {
            Some("regions") => Ok(Tiling::Regions),
            other => input.not_allowed("tile", &format!("\"{}\"", other.unwrap_or_default()), TILE),
        };
    }
    let side = input.integer("tile", *TILE_PX.start(), *TILE_PX.end())?.unwrap_or(DEFAULT_TILE_PX);
    Ok(Tiling::Grid(side as u32))
}

fn tissue(input: &Section<'_>) -> Result<Option<TissueRule>, StudyError> {
    let skips = input.boolean("skip_background", SWITCH)?.unwrap_or(true);
    let section = input.section("tissue", SECTION)?;
    if !skips {
        return match section {
            Some(_) => input.not_allowed("tissue", "a rule", "none with skip_background = false"),
            None => Ok(None),
        };
    }
    let (mut least, mut saturation) = (DEFAULT_TISSUE, None);
    if let Some(section) = section {
        section.allow(&["min_fraction", "saturation"])?;
        least = section.number("min_fraction", NUMBER)?.unwrap_or(least);
        if !(0.0..=1.0).contains(&least) {
            return section.not_allowed("min_fraction", &number(least), "0 to 1, a share of the tile");
        }
        saturation = section.integer("saturation", 0, 255)?;
    }
    match Real::try_from(least) {
        Ok(least) => Ok(Some(TissueRule { least, saturation })),
        Err(_) => input.not_allowed("tissue", &number(least), "0 to 1, a share of the tile"),
    }
}

/// Formats a number as TOML writes it.
pub(super) fn number(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(core: [u32; 4], window: [u32; 4]) -> SlideTile {
        SlideTile { magnification: None, core, window }
    }

    #[test]
    fn core_table_holds_the_core_relative_to_its_window() {
        let inner = tile([512, 1024, 512, 300], [448, 960, 640, 364]);
        let core = PixelRectangle { x_px: 64, y_px: 64, width_px: 512, height_px: 300 };
        assert_eq!((core_of(&inner.core_table()), inner.pixels()), (Some(core), 640 * 364));
        assert!(inner.is_sound());
        for table in [
            Table::new([("left", 0.0), ("top", 0.0), ("width", 8.0)]),
            Table::new([("left", 0.0), ("top", 0.0), ("width", 8.5), ("height", 1.0)]),
            Table::new([("left", -1.0), ("top", 0.0), ("width", 8.0), ("height", 1.0)]),
            Table::new([("left", f64::NAN), ("top", 0.0), ("width", 8.0), ("height", 1.0)]),
            Table::new([("left", 5e9), ("top", 0.0), ("width", 8.0), ("height", 1.0)]),
        ] {
            assert_eq!(core_of(&table), None);
        }
    }

    #[test]
    fn kept_tilings_are_read_again() {
        for (tiling, text) in [(Tiling::Grid(4_096), "4096"), (Tiling::Regions, "\"regions\"")] {
            assert_eq!(serde_json::to_string(&tiling).expect("text"), text);
            assert_eq!(serde_json::from_str::<Tiling>(text).expect("a tiling"), tiling);
        }
    }

    #[test]
    fn invalid_tiles_are_detected() {
        for unsound in [
            tile([0, 0, 0, 8], [0, 0, 8, 8]),
            tile([4, 0, 8, 8], [0, 0, 8, 8]),
            tile([0, 0, 8, 8], [1, 0, 8, 8]),
            tile([0, 0, 8, 8], [0, 0, 100_000, 8]),
            tile([u32::MAX, 0, 2, 8], [u32::MAX, 0, 1, 8]),
        ] {
            assert!(!unsound.is_sound(), "{unsound:?}");
        }
    }
}
