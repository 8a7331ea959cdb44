//! Layout of an input with bounds, and its form as a table.

use super::UnitError;
use crate::Table;

/// Maximum number of units that one input joins: as many as regions of a list in a descriptor.
pub const MAX_PARTS: usize = 10_000;

/// Names of the columns of a box: first pixel and side along each axis. Short, as a specimen has thousands of units. Time is
/// no axis of a region.
const AXES: [[&str; 2]; 3] = [["x", "w"], ["y", "h"], ["z", "d"]];

/// Box of a unit in pixels of its specimen: first pixel and sides along x, y and z. An image without z has side 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitBox {
    /// First pixel.
    pub start: [u32; 3],
    /// Sides, pixels.
    pub length: [u32; 3],
}

impl UnitBox {
    /// Returns the first pixel after the box along an axis.
    #[must_use]
    pub fn end(&self, axis: usize) -> u32 {
        self.start[axis].saturating_add(self.length[axis])
    }

    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.length.iter().fold(1, |pixels, side| u64::from(*side).saturating_mul(pixels))
    }

    /// Returns whether all pixels of `other` are inside.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.start[axis] <= other.start[axis] && other.end(axis) <= self.end(axis))
    }

    /// Returns the common box. `None` if there is none.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let start = [0, 1, 2].map(|axis| self.start[axis].max(other.start[axis]));
        let end = [0, 1, 2].map(|axis| self.end(axis).min(other.end(axis)));
        let is_common = (0..3).all(|axis| start[axis] < end[axis]);
        is_common.then(|| Self { start, length: [0, 1, 2].map(|axis| end[axis] - start[axis]) })
    }

    /// Returns the smallest box around both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let start = [0, 1, 2].map(|axis| self.start[axis].min(other.start[axis]));
        let end = [0, 1, 2].map(|axis| self.end(axis).max(other.end(axis)));
        Self { start, length: [0, 1, 2].map(|axis| end[axis] - start[axis]) }
    }

    fn is_sound(&self) -> bool {
        (0..3).all(|axis| self.length[axis] > 0 && self.start[axis].checked_add(self.length[axis]).is_some())
    }
}

/// Where the regions of units are in a joined region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnitLayout {
    axes: usize,
    window: UnitBox,
    own: UnitBox,
    parts: Vec<Option<UnitBox>>,
}

impl UnitLayout {
    /// Creates the layout of an input: `window` is the joined region, `own` the unit that reads it, and `parts` has the
    /// box of each unit that is joined, or `None` for one that does not exist. `axes` is 2, or 3 with z.
    ///
    /// # Errors
    /// Returns [`UnitError::Layout`] if a box is empty, or the window does not contain the own unit.
    pub fn new(
        axes: usize,
        window: UnitBox,
        own: UnitBox,
        parts: Vec<Option<UnitBox>>,
    ) -> Result<Self, UnitError> {
        if !(2..=3).contains(&axes) {
            return Err(UnitError::Layout("number of axes: 2 or 3"));
        }
        let is_flat = |of: &UnitBox| axes == 3 || (of.start[2], of.length[2]) == (0, 1);
        if !window.is_sound() || !own.is_sound() || !window.contains(&own) || !is_flat(&window) {
            return Err(UnitError::Layout("window around the own unit"));
        }
        if parts.is_empty() || parts.len() > MAX_PARTS {
            return Err(UnitError::Layout("number of units: 1 to 10,000"));
        }
        if !parts.iter().flatten().all(|part| part.is_sound() && is_flat(part)) {
            return Err(UnitError::Layout("box of a unit"));
        }
        Ok(Self { axes, window, own, parts })
    }

    /// Returns the number of axes: 2, or 3 with z.
    #[must_use]
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Returns the box of the joined region.
    #[must_use]
    pub fn window(&self) -> &UnitBox {
        &self.window
    }

    /// Returns the box of the unit that reads the joined region.
    #[must_use]
    pub fn own(&self) -> &UnitBox {
        &self.own
    }

    /// Returns the boxes of the joined units, in the order of their regions.
    #[must_use]
    pub fn parts(&self) -> &[Option<UnitBox>] {
        &self.parts
    }

    /// Returns the sides along the first [`axes`](Self::axes).
    pub(super) fn sides(&self, of: &UnitBox) -> Vec<u32> {
        of.length[..self.axes].to_vec()
    }

    /// Returns the layout as a table of whole numbers: axes, then first pixel and side of window,
    /// own unit and each part.
    /// An absent part has sides of 0.
    #[must_use]
    pub fn to_table(&self) -> Table {
        let mut columns = vec![("axes".to_owned(), self.axes as f64)];
        let absent = UnitBox { start: [0; 3], length: [0; 3] };
        let parts = self.parts.iter().map(|part| part.as_ref().unwrap_or(&absent));
        for of in [&self.window, &self.own].into_iter().chain(parts) {
            for (axis, [start, side]) in AXES.iter().enumerate() {
                columns.push(((*start).to_owned(), f64::from(of.start[axis])));
                columns.push(((*side).to_owned(), f64::from(of.length[axis])));
            }
        }
        Table::new(columns)
    }

    /// Reads the layout from its table.
    ///
    /// # Errors
    /// Returns [`UnitError::Layout`] if the table is none.
    pub fn from_table(table: &Table) -> Result<Self, UnitError> {
        let mut numbers = Vec::new();
        for (_, value) in table.columns() {
            let is_whole = (0.0..=f64::from(u32::MAX)).contains(&value) && value.fract() == 0.0;
            numbers.push(if is_whole { value as u32 } else { return Err(UnitError::Layout("number")) });
        }
        let (Some(&axes), Some(boxes)) = (numbers.first(), numbers.get(1..)) else {
            return Err(UnitError::Layout("columns"));
        };
        let (boxes, rest) = boxes.as_chunks::<6>();
        let mut boxes = boxes.iter().map(|&[x, width, y, height, z, depth]| UnitBox {
            start: [x, y, z],
            length: [width, height, depth],
        });
        let (Some(window), Some(own), []) = (boxes.next(), boxes.next(), rest) else {
            return Err(UnitError::Layout("columns"));
        };
        let parts = boxes.map(|part| (part.length != [0; 3]).then_some(part)).collect();
        Self::new(axes as usize, window, own, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> UnitLayout {
        let own = UnitBox { start: [8, 0, 2], length: [8, 4, 2] };
        let window = UnitBox { start: [6, 0, 1], length: [12, 6, 4] };
        UnitLayout::new(3, window, own, vec![Some(own), None, Some(window)]).unwrap()
    }

    #[test]
    fn layout_survives_its_table() {
        assert_eq!(UnitLayout::from_table(&layout().to_table()), Ok(layout()));
    }

    #[test]
    fn changed_table_is_no_layout() {
        let table = layout().to_table();
        let columns: Vec<(String, f64)> =
            table.columns().map(|(name, value)| (name.to_owned(), value)).collect();
        for (place, bad) in [(0, 4.0), (0, 1.5), (1, 9.0), (2, 0.0), (8, f64::NAN), (13, -1.0), (14, 5e9)] {
            let mut changed = columns.clone();
            changed[place].1 = bad;
            assert!(UnitLayout::from_table(&Table::new(changed)).is_err(), "{place}: {bad}");
        }
        for length in [0, 1, 7, 13, columns.len() - 1] {
            let cut = columns[..length].iter().cloned();
            assert!(UnitLayout::from_table(&Table::new(cut)).is_err(), "{length}");
        }
    }
}
