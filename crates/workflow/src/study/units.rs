//! The units of a study: its tiles by specimen and position, and the layouts of inputs with bounds.

use super::{Slides, StudyTile, Tiling};
use crate::bounds::{InputBounds, UnitSelector};
use crate::workflow::{InputOrigin, Workflow};
use pleach_regions::{MAX_PARTS, UnitBox, UnitLayout};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use thiserror::Error;

/// A stage input has bounds that the units of a study do not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitsError {
    /// The study has files of single tiles, whose positions are unknown.
    #[error(
        "stage {stage} reads region {region} with bounds \"{bounds}\"; single tiles have no neighbors: \"slides\" or \"images\" are needed"
    )]
    Tiles {
        /// The stage.
        stage: String,
        /// The region.
        region: String,
        /// Its bounds.
        bounds: InputBounds,
    },
    /// The tiles of the study have a halo of their own.
    #[error(
        "input.halo: {found} is not allowed with a workflow whose stages state bounds (stage {stage}); allowed: 0"
    )]
    OwnHalo {
        /// Pixels of the halo.
        found: u32,
        /// First stage with bounds.
        stage: String,
    },
    /// A halo reaches beyond a neighbor.
    #[error(
        "stage {stage}: bounds \"{bounds}\" reach beyond the neighbors of tile {tile}, of {side} px along {axis}; larger tiles are needed"
    )]
    Beyond {
        /// The stage.
        stage: String,
        /// The bounds.
        bounds: InputBounds,
        /// Name of the tile whose neighbor is too small.
        tile: String,
        /// Its side, pixels.
        side: u32,
        /// The axis.
        axis: char,
    },
    /// A specimen has more units than one input can join.
    #[error(
        "stage {stage}: bounds \"whole\" of a specimen of {found} tiles; up to {MAX_PARTS} are allowed: larger tiles reduce their number"
    )]
    TooMany {
        /// The stage.
        stage: String,
        /// Units of the specimen.
        found: usize,
    },
    /// Images of several times cannot be joined.
    #[error(
        "stage {stage}: bounds \"whole\" of region {region}, an image, in a specimen of several times; points, polygons, objects and tables are allowed"
    )]
    Times {
        /// The stage.
        stage: String,
        /// The region.
        region: String,
    },
}

/// One unit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    specimen: usize,
    cell: [u32; 4],
    axes: usize,
    pixels: UnitBox,
}

/// Bounds of a unit without a position.
const NOWHERE: UnitBox = UnitBox { start: [0; 3], length: [1; 3] };

/// The units of a study, in the order of its tiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    units: Vec<Unit>,
    at: HashMap<(usize, [u32; 4]), usize>,
    /// Tiles of each specimen, ascending.
    specimens: Vec<Vec<usize>>,
    /// The units have positions: they are not files of single tiles.
    are_placed: bool,
}

impl Units {
    /// Finds the units among the tiles of a study.
    #[must_use]
    pub fn of(tiles: &[StudyTile], slides: Option<&Slides>) -> Self {
        let mut specimens: Vec<Vec<usize>> = Vec::new();
        let mut known: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut units = Vec::with_capacity(tiles.len());
        for (number, tile) in tiles.iter().enumerate() {
            let mut open = || {
                specimens.push(Vec::new());
                specimens.len() - 1
            };
            let (specimen, cell, axes, pixels) = match (&tile.block, &tile.slide, slides) {
                (Some(block), ..) => {
                    let specimen = *known.entry(&tile.path).or_insert_with(open);
                    (specimen, block.cell, usize::from(block.axes), block.bounds())
                }
                (None, Some(part), Some(slides)) => {
                    let specimen = *known.entry(&tile.path).or_insert_with(open);
                    let [x, y, width, height] = part.core;
                    let pixels = UnitBox { start: [x, y, 0], length: [width, height, 1] };
                    let cell = match slides.tiling {
                        Tiling::Grid(side) => [x / side.max(1), y / side.max(1), 0, 0],
                        // Regions of interest have no neighbors.
                        Tiling::Regions => [2 * specimens[specimen].len() as u32, 0, 0, 0],
                    };
                    (specimen, cell, 2, pixels)
                }
                _ => (open(), [0; 4], 2, NOWHERE),
            };
            specimens[specimen].push(number);
            units.push(Unit { specimen, cell, axes, pixels });
        }
        let at =
            units.iter().enumerate().map(|(number, unit)| ((unit.specimen, unit.cell), number)).collect();
        let are_placed = slides.is_some() || tiles.iter().all(|tile| tile.block.is_some());
        Self { units, at, specimens, are_placed }
    }

    /// Returns the number of units of the largest specimen.
    #[must_use]
    pub fn max_units(&self) -> usize {
        self.specimens.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns, for each tile, the first tile of its specimen.
    #[must_use]
    pub fn first_of_specimen(&self) -> Vec<u32> {
        let first = |unit: &Unit| self.specimens[unit.specimen][0];
        // A study has fewer than 2^32 tiles: its runs have ids of 32 bits.
        self.units.iter().map(|unit| first(unit) as u32).collect()
    }

    /// Returns the tile that a selector names for a tile.
    #[must_use]
    pub fn select(&self, tile: usize, selector: UnitSelector) -> usize {
        match selector {
            UnitSelector::Offset(offset) => self.neighbor(tile, offset).unwrap_or(tile),
            UnitSelector::Number { number, .. } => {
                let members = &self.specimens[self.units[tile].specimen];
                members.get(number as usize).copied().unwrap_or(members[0])
            }
        }
    }

    fn neighbor(&self, tile: usize, offset: [i32; 4]) -> Option<usize> {
        let unit = &self.units[tile];
        let mut cell = unit.cell;
        for (cell, offset) in cell.iter_mut().zip(offset) {
            *cell = cell.checked_add_signed(offset)?;
        }
        self.at.get(&(unit.specimen, cell)).copied()
    }

    /// Returns the selectors of the units that an input with bounds joins. Empty for an input of the own unit.
    #[must_use]
    pub fn selectors(&self, bounds: InputBounds) -> Vec<UnitSelector> {
        match bounds {
            InputBounds::Own | InputBounds::Unit(_) => Vec::new(),
            InputBounds::Offset(offset) => vec![UnitSelector::Offset(offset)],
            InputBounds::Whole => {
                let of = self.max_units() as u32;
                (0..of).map(|number| UnitSelector::Number { number, of }).collect()
            }
            InputBounds::Halo(halo) => {
                let reach = |axis: usize| {
                    let has_neighbors = self.units.iter().any(|unit| unit.cell[axis] > 0);
                    i32::from(halo[axis] > 0 && has_neighbors)
                };
                let [x, y, z] = [0, 1, 2].map(reach);
                let rows = (-z..=z).flat_map(move |z| (-y..=y).map(move |y| (y, z)));
                let offsets = rows.flat_map(move |(y, z)| (-x..=x).map(move |x| [x, y, z, 0]));
                offsets.map(UnitSelector::Offset).collect()
            }
        }
    }

    /// Returns the layout of an input with bounds on a tile. `None` if the bounds have none.
    #[must_use]
    pub fn layout(&self, tile: usize, bounds: InputBounds) -> Option<UnitLayout> {
        let unit = self.units.get(tile)?;
        let own = unit.pixels;
        let mut parts = Vec::new();
        for selector in self.selectors(bounds) {
            let selected = match selector {
                UnitSelector::Offset(offset) => self.neighbor(tile, offset),
                UnitSelector::Number { number, .. } => {
                    self.specimens[unit.specimen].get(number as usize).copied()
                }
            };
            parts.push(selected.map(|selected| self.units[selected].pixels));
        }
        match bounds {
            InputBounds::Own | InputBounds::Unit(_) => None,
            InputBounds::Halo(halo) => UnitLayout::new(unit.axes, self.window(tile, halo), own, parts).ok(),
            InputBounds::Offset(_) => UnitLayout::new(unit.axes, own, own, parts).ok(),
            InputBounds::Whole => {
                let whole = parts.iter().flatten().copied().reduce(|one, other| one.union(&other))?;
                // Equal for all tiles of the specimen, so that the stage runs once.
                UnitLayout::new(unit.axes, whole, whole, parts).ok()
            }
        }
    }

    /// Returns the pixels of a tile with a halo, which ends where a neighbor along an axis is missing.
    fn window(&self, tile: usize, halo: [u32; 3]) -> UnitBox {
        let mut window = self.units[tile].pixels;
        for axis in 0..3 {
            let side = |direction: i32| {
                let mut offset = [0; 4];
                offset[axis] = direction;
                let neighbor = self.neighbor(tile, offset).filter(|_| halo[axis] > 0);
                neighbor.map_or(0, |neighbor| self.units[neighbor].pixels.length[axis].min(halo[axis]))
            };
            let (before, after) = (side(-1), side(1));
            // Saturates, because the positions of a submission may contradict each other.
            window.start[axis] = window.start[axis].saturating_sub(before);
            window.length[axis] = window.length[axis].saturating_add(before).saturating_add(after);
        }
        window
    }

    /// Returns, for each stage of an expanded workflow, the pixels that it works on on each tile of `tile_pixels` pixels.
    #[must_use]
    pub fn stage_pixels(&self, workflow: &Workflow, tile_pixels: &[u64]) -> Vec<Vec<u64>> {
        let mut all: Vec<Vec<u64>> = Vec::with_capacity(workflow.stages.len());
        let once = workflow.runs_once();
        for stage in &workflow.stages {
            let mut pixels = tile_pixels.to_vec();
            for input in &stage.inputs {
                let InputOrigin::Input(number) = input.origin else { continue };
                let Some(bounds) = workflow.layout_of(number) else { continue };
                for (tile, pixels) in pixels.iter_mut().enumerate() {
                    let window = self.layout(tile, bounds).map_or(0, |layout| layout.window().pixels());
                    *pixels = window.max(*pixels);
                }
            }
            // A stage after one that runs once a specimen reads what that one writes, in the size of the specimen.
            for input in stage.inputs.iter().filter(|input| input.bounds == InputBounds::Own) {
                if let InputOrigin::Stage { stage: earlier, .. } = input.origin
                    && once[earlier]
                    && input.region.element.has_bounds()
                {
                    pixels.iter_mut().zip(&all[earlier]).for_each(|(own, of)| *own = (*of).max(*own));
                }
            }
            all.push(pixels);
        }
        all
    }

    /// Checks that the units have the bounds that a stage needs.
    pub(super) fn check(
        &self,
        bounds: InputBounds,
        (stage, region): (&str, &crate::workflow::RegionDecl),
        tiles: &[StudyTile],
    ) -> Result<(), UnitsError> {
        let stage = stage.to_owned();
        if !self.are_placed {
            return Err(UnitsError::Tiles { stage, region: region.region.clone(), bounds });
        }
        let found = self.max_units();
        match bounds {
            InputBounds::Whole if found > MAX_PARTS => Err(UnitsError::TooMany { stage, found }),
            InputBounds::Whole
                if !region.element.has_empty() && self.units.iter().any(|unit| unit.cell[3] > 0) =>
            {
                Err(UnitsError::Times { stage, region: region.region.clone() })
            }
            InputBounds::Halo(halo) => {
                let Some((tile, axis)) = self.beyond(halo) else { return Ok(()) };
                let side = self.units[tile].pixels.length[axis];
                let (tile, axis) = (tiles[tile].name.clone(), ['x', 'y', 'z'][axis]);
                Err(UnitsError::Beyond { stage, bounds, tile, side, axis })
            }
            _ => Ok(()),
        }
    }

    /// Returns a unit that a halo of a neighbor reaches beyond, with the axis: a smaller one that is not the last one.
    fn beyond(&self, halo: [u32; 3]) -> Option<(usize, usize)> {
        let tiles = (0..self.units.len()).flat_map(|tile| [0, 1, 2].map(|axis| (tile, axis)));
        tiles.into_iter().find(|&(tile, axis)| {
            let is_there = |direction: i32| {
                let mut offset = [0; 4];
                offset[axis] = direction;
                self.neighbor(tile, offset).is_some()
            };
            self.units[tile].pixels.length[axis] < halo[axis] && is_there(-1) && is_there(1)
        })
    }
}
