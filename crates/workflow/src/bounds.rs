//! Bounds of stage inputs: the part of the specimen that a stage needs around its own unit.

use pleach_regions::ElementType;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Bounds of an input that a stage needs. A stage runs once a *unit*: a tile of a slide, or a block of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputBounds {
    /// The region of the own unit.
    #[default]
    Own,
    /// The region of the own unit with these pixels of its neighbors on either side, along x, y and z.
    Halo([u32; 3]),
    /// The regions of all units of the specimen, joined.
    Whole,
    /// The region of the unit at this distance in units, along x, y, z and time. Empty if no such unit exists.
    Offset([i32; 4]),
    /// The region of one unit, which a task of the stage joins with others. The expansion of the other bounds yields it.
    Unit(UnitSelector),
}

/// One unit of the specimen, seen from a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitSelector {
    /// The unit at this distance in units along x, y, z and time, or the own unit if none exists.
    Offset([i32; 4]),
    /// A unit by its number in the specimen, or the first one if there are fewer.
    Number {
        /// Its number, from 0.
        number: u32,
        /// Number of units of the largest specimen.
        of: u32,
    },
}

/// Names of the axes of an offset.
const AXES: [&str; 4] = ["x", "y", "z", "t"];

impl fmt::Display for InputBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Whole => f.write_str("whole"),
            Self::Halo(halo) => {
                f.write_str("halo")?;
                let named = AXES.iter().zip(halo).filter(|(_, px)| **px > 0);
                named.into_iter().try_for_each(|(axis, px)| write!(f, " {axis} {px}"))
            }
            Self::Offset(offset) => {
                f.write_str("offset")?;
                write_offset(f, offset)
            }
            Self::Unit(UnitSelector::Offset(offset)) => {
                f.write_str("unit")?;
                write_offset(f, offset)
            }
            Self::Unit(UnitSelector::Number { number, .. }) => write!(f, "unit {number}"),
        }
    }
}

fn write_offset(f: &mut fmt::Formatter<'_>, offset: &[i32; 4]) -> fmt::Result {
    let named = AXES.iter().zip(offset).filter(|(_, units)| **units != 0);
    named.into_iter().try_for_each(|(axis, units)| write!(f, " {axis}{units:+}"))
}

impl UnitSelector {
    /// Returns the divisor that turns the pixels of a joined region into about those of one unit.
    pub(crate) fn share(self) -> u64 {
        match self {
            Self::Offset(_) => 1,
            Self::Number { of, .. } => u64::from(of.max(1)),
        }
    }
}

/// Maximum halo along an axis and maximum offset, which keeps sums of them within 32 bits.
pub(crate) const MAX_HALO_PX: u32 = 1 << 16;

/// A bound that a stage input cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoundsProblem {
    /// Regions of this type cannot be joined.
    #[error("bounds \"{bounds}\" of a region of type {element}; allowed for this type: {}", allowed(*element))]
    Element {
        /// The bounds.
        bounds: InputBounds,
        /// Element type of the region.
        element: ElementType,
    },
    /// The region has the bounds of the specimen already.
    #[error(
        "bounds \"{bounds}\" of a region of the whole specimen; \"own\" is allowed, as stage \"{stage}\" runs once a specimen"
    )]
    OfSpecimen {
        /// The bounds.
        bounds: InputBounds,
        /// The stage that writes it.
        stage: String,
    },
    /// Two inputs of a stage have different halos.
    #[error("bounds \"{bounds}\" beside \"{first}\" of another input; one halo is allowed for a stage")]
    Halos {
        /// The bounds.
        bounds: InputBounds,
        /// Bounds of the first input with a halo.
        first: InputBounds,
    },
    /// The halo or offset is too large.
    #[error("bounds \"{0}\"; up to {MAX_HALO_PX} along each axis are allowed")]
    TooFar(InputBounds),
}

fn allowed(element: ElementType) -> impl fmt::Display {
    match (element.has_bounds(), element.has_empty()) {
        (true, true) => "own, halo, whole, offset",
        (true, false) => "own, halo, whole",
        (false, true) => "own, whole, offset",
        (false, false) => "own",
    }
}
