//! Polygons: outlines of segmented objects, with holes and parts.
//!
//! All positions are in one list, so that 100,000 outlines take three allocations. This module computes no
//! areas or overlaps, and does not trace pixels.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A position in pixels, x and y, from the region's top left corner.
pub type Position = [f64; 2];

/// Minimum number of positions of a ring that encloses an area.
const MIN_OF_A_RING: usize = 3;

/// Errors of outlines.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum OutlineError {
    /// A ring has too few positions.
    #[error("outline {outline}: a ring of {positions} positions; at least {MIN_OF_A_RING} are needed")]
    Short {
        /// Index of the outline.
        outline: usize,
        /// Positions of the ring.
        positions: usize,
    },
    /// A coordinate is infinite or NaN.
    #[error("outline {outline}: coordinate {value}; finite values are allowed")]
    NotFinite {
        /// Index of the outline.
        outline: usize,
        /// The coordinate.
        value: f64,
    },
    /// A box ends before it begins.
    #[error("outline {outline}: a box from {low:?} to {high:?}; the second corner must be the higher one")]
    Reversed {
        /// Index of the outline.
        outline: usize,
        /// Its first corner.
        low: Position,
        /// Its second corner.
        high: Position,
    },
    /// The number of rings or positions exceeds 32 bits.
    #[error("outline {outline}: too many positions in all outlines; up to 4294967295 are allowed")]
    TooMany {
        /// Index of the outline.
        outline: usize,
    },
    /// The ends of rings or outlines are inconsistent.
    #[error("outlines: ends of rings or outlines are not ascending up to the last position")]
    Ends,
}

/// Rings in groups, one group per outline.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outlines {
    /// End of each outline, in rings.
    ends: Vec<u32>,
    /// End of each ring, in positions.
    ring_ends: Vec<u32>,
    positions: Vec<Position>,
}

impl Outlines {
    /// Creates outlines from untrusted parts. Checks the ends, but not the positions.
    pub(crate) fn of_parts(
        ends: Vec<u32>,
        ring_ends: Vec<u32>,
        positions: Vec<Position>,
    ) -> Result<Self, OutlineError> {
        let fits = |ends: &[u32], of: usize| {
            ends.is_sorted() && ends.last().map_or(of == 0, |end| *end as usize == of)
        };
        if !fits(&ends, ring_ends.len()) || !fits(&ring_ends, positions.len()) {
            return Err(OutlineError::Ends);
        }
        Ok(Self { ends, ring_ends, positions })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn ring_count(&self) -> usize {
        self.ring_ends.len()
    }

    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub(crate) fn ring_ends(&self) -> &[u32] {
        &self.ring_ends
    }

    pub(crate) fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Returns the bytes of its lists.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(self.ends.as_slice())
            + size_of_val(self.ring_ends.as_slice())
            + size_of_val(self.positions.as_slice())) as u64
    }

    /// Returns the rings of an existing outline.
    pub(crate) fn rings(&self, outline: usize) -> Rings<'_> {
        Rings { outlines: self, rings: start(&self.ends, outline)..self.ends[outline] as usize }
    }

    /// Adds an outline. On failure the list is unchanged.
    pub(crate) fn push<'a>(
        &mut self,
        rings: impl IntoIterator<Item = &'a [Position]>,
    ) -> Result<(), OutlineError> {
        let before = (self.ring_ends.len(), self.positions.len());
        let outline = self.len();
        for ring in rings {
            self.positions.extend_from_slice(ring);
            let end = u32::try_from(self.positions.len());
            self.ring_ends.push(end.unwrap_or(u32::MAX));
            if end.is_err() {
                // A refused outline leaves nothing behind, so that the ends still match the positions.
                self.ring_ends.truncate(before.0);
                self.positions.truncate(before.1);
                return Err(OutlineError::TooMany { outline });
            }
        }
        // Only 2^32 empty rings could exceed 32 bits here: the loop above limits rings with positions.
        self.ends.push(u32::try_from(self.ring_ends.len()).map_err(|_| OutlineError::TooMany { outline })?);
        Ok(())
    }

    /// Checks that all coordinates are finite and all rings valid. With `boxes`, rings of two positions are boxes.
    pub(crate) fn check(&self, boxes: bool) -> Result<(), OutlineError> {
        (0..self.len()).try_for_each(|outline| {
            let rings = self.rings(outline);
            let is_box = boxes && rings.len() == 1;
            rings.clone().try_for_each(|ring| check_ring(outline, ring, is_box))
        })
    }
}

/// Returns the start of a group.
fn start(ends: &[u32], number: usize) -> usize {
    if number == 0 { 0 } else { ends[number - 1] as usize }
}

fn check_ring(outline: usize, ring: &[Position], may_be_box: bool) -> Result<(), OutlineError> {
    if let Some(&value) = ring.as_flattened().iter().find(|value| !value.is_finite()) {
        return Err(OutlineError::NotFinite { outline, value });
    }
    match *ring {
        [low, high] if may_be_box => {
            let reversed = low[0] > high[0] || low[1] > high[1];
            if reversed { Err(OutlineError::Reversed { outline, low, high }) } else { Ok(()) }
        }
        _ if ring.len() < MIN_OF_A_RING => Err(OutlineError::Short { outline, positions: ring.len() }),
        _ => Ok(()),
    }
}

/// The rings of one outline.
#[derive(Clone, Debug)]
pub struct Rings<'a> {
    outlines: &'a Outlines,
    rings: std::ops::Range<usize>,
}

impl<'a> Iterator for Rings<'a> {
    type Item = &'a [Position];

    fn next(&mut self) -> Option<Self::Item> {
        let ring = self.rings.next()?;
        let Outlines { ring_ends, positions, .. } = self.outlines;
        Some(&positions[start(ring_ends, ring)..ring_ends[ring] as usize])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rings.size_hint()
    }
}

impl ExactSizeIterator for Rings<'_> {}

/// Polygons in a fixed order. A point is inside a polygon if a ray from it crosses the rings an odd number of
/// times, so rings may be holes and parts, of either direction. The first position of a ring is not repeated
/// at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<Vec<Position>>>", into = "Vec<Vec<Vec<Position>>>")]
pub struct Polygons(pub(crate) Outlines);

impl Polygons {
    /// Creates polygons from their rings.
    ///
    /// # Errors
    /// Returns an [`OutlineError`] if a ring has fewer than 3 positions, a coordinate is not finite, or there
    /// are 2^32 positions or more.
    pub fn new<P, R>(polygons: impl IntoIterator<Item = P>) -> Result<Self, OutlineError>
    where
        P: IntoIterator<Item = R>,
        R: AsRef<[Position]>,
    {
        let mut outlines = Outlines::default();
        for polygon in polygons {
            let rings: Vec<R> = polygon.into_iter().collect();
            outlines.push(rings.iter().map(AsRef::as_ref))?;
        }
        Self::of_outlines(outlines)
    }

    pub(crate) fn of_outlines(outlines: Outlines) -> Result<Self, OutlineError> {
        outlines.check(false)?;
        Ok(Self(outlines))
    }

    /// Returns the number of polygons.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no polygons.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rings of each polygon.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Rings<'_>> {
        (0..self.len()).map(|polygon| self.0.rings(polygon))
    }

    /// Returns the positions of all rings, ring by ring.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        self.0.positions()
    }
}

impl TryFrom<Vec<Vec<Vec<Position>>>> for Polygons {
    type Error = OutlineError;

    fn try_from(polygons: Vec<Vec<Vec<Position>>>) -> Result<Self, OutlineError> {
        Self::new(polygons)
    }
}

impl From<Polygons> for Vec<Vec<Vec<Position>>> {
    fn from(polygons: Polygons) -> Self {
        polygons.iter().map(|rings| rings.map(<[Position]>::to_vec).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triangle(x: f64) -> Vec<Position> {
        vec![[x, 0.0], [x + 1.0, 0.0], [x, 1.0]]
    }

    #[test]
    fn rings_are_found_again() {
        let all = vec![vec![triangle(0.0), triangle(5.0)], vec![], vec![triangle(9.0)]];
        let polygons = Polygons::new(all.clone()).unwrap();
        assert_eq!((polygons.len(), polygons.positions().len()), (3, 9));
        let found: Vec<Vec<Vec<Position>>> = polygons.clone().into();
        assert_eq!(found, all);
        assert_eq!(polygons.iter().map(|rings| rings.len()).collect::<Vec<_>>(), [2, 0, 1]);
        assert!(Polygons::new(Vec::<Vec<Vec<Position>>>::new()).unwrap().is_empty());
        let text = serde_json::to_string(&polygons).unwrap();
        assert_eq!(serde_json::from_str::<Polygons>(&text).unwrap(), polygons);
    }

    #[test]
    fn invalid_ring_is_refused() {
        let refusal = |ring: Vec<Position>| Polygons::new([[triangle(0.0)], [ring]]).unwrap_err().to_string();
        let short = "outline 1: a ring of 2 positions; at least 3 are needed";
        assert_eq!(refusal(vec![[0.0; 2], [1.0; 2]]), short);
        let infinite = "outline 1: coordinate inf; finite values are allowed";
        assert_eq!(refusal(vec![[0.0; 2], [1.0; 2], [0.0, f64::INFINITY]]), infinite);
    }

    #[test]
    fn ends_that_do_not_fit_are_refused() {
        let outlines = |ends: &[u32], ring_ends: &[u32], positions| {
            Outlines::of_parts(ends.to_vec(), ring_ends.to_vec(), vec![[0.0; 2]; positions])
        };
        assert!(outlines(&[1, 2], &[3, 6], 6).is_ok() && outlines(&[], &[], 0).is_ok());
        for (ends, ring_ends, positions) in [
            (&[1, 3][..], &[3, 6][..], 6),
            (&[2, 1], &[3, 6], 6),
            (&[1, 2], &[6, 3], 6),
            (&[1, 2], &[3, 6], 7),
            (&[], &[3], 3),
            (&[0], &[], 1),
        ] {
            assert_eq!(outlines(ends, ring_ends, positions), Err(OutlineError::Ends));
        }
    }
}
