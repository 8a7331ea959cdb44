//! Converts rings of any direction and order to polygons with holes, as GeoJSON requires (RFC 7946, section
//! 3.1.6).
//!
//! The even-odd rule determines the inside, so a ring within an odd number of other rings is a hole. Rings
//! that cross each other form no valid polygon. They are converted as if they did not cross.

use pleach_regions::Position;

/// Polygon: its outer ring, counterclockwise in its own coordinates, then its holes, clockwise. Rings are
/// closed: the last position equals the first.
pub(super) type PolygonRings = Vec<Vec<Position>>;

/// Position of a ring's probe along its first edge, as a share of the edge. Rings that contain the probe contain
/// the ring. No corner of a ring along pixel edges has this position, whatever the length of the edge.
const PROBE: f64 = 0.381_966;

/// Ring with its bounding box.
struct Ring<'a> {
    positions: &'a [Position],
    low: Position,
    high: Position,
}

/// Returns the polygons that the rings form together.
pub(super) fn parts(rings: &[&[Position]]) -> Vec<PolygonRings> {
    let rings: Vec<Ring<'_>> =
        rings.iter().filter(|ring| !ring.is_empty()).map(|ring| Ring::new(ring)).collect();
    let around: Vec<Vec<usize>> = (0..rings.len())
        .map(|ring| {
            let probe = rings[ring].probe();
            (0..rings.len()).filter(|&other| other != ring && rings[other].contains(probe)).collect()
        })
        .collect();
    let is_hole = |ring: usize| !around[ring].len().is_multiple_of(2);
    let mut part_of = vec![None; rings.len()];
    let mut parts: Vec<PolygonRings> = Vec::new();
    for ring in (0..rings.len()).filter(|&ring| !is_hole(ring)) {
        part_of[ring] = Some(parts.len());
        parts.push(vec![rings[ring].closed(true)]);
    }
    for ring in (0..rings.len()).filter(|&ring| is_hole(ring)) {
        // The innermost outer ring around the hole.
        let owner =
            around[ring].iter().filter(|&&other| !is_hole(other)).max_by_key(|&&other| around[other].len());
        match owner.and_then(|&owner| part_of[owner]) {
            Some(part) => parts[part].push(rings[ring].closed(false)),
            None => parts.push(vec![rings[ring].closed(true)]),
        }
    }
    parts
}

impl<'a> Ring<'a> {
    fn new(positions: &'a [Position]) -> Self {
        let along = |axis: usize| positions.iter().map(move |position| position[axis]);
        let low = [0, 1].map(|axis| along(axis).fold(f64::INFINITY, f64::min));
        let high = [0, 1].map(|axis| along(axis).fold(f64::NEG_INFINITY, f64::max));
        Self { positions, low, high }
    }

    fn probe(&self) -> Position {
        let (first, second) = (self.positions[0], self.positions[1 % self.positions.len()]);
        [0, 1].map(|axis| first[axis] + (second[axis] - first[axis]) * PROBE)
    }

    /// Returns each edge, including the one from the last position to the first.
    fn edges(&self) -> impl Iterator<Item = (Position, Position)> {
        let next = self.positions.iter().cycle().skip(1);
        self.positions.iter().copied().zip(next.copied())
    }

    /// Returns whether a ray from the point to the right crosses the ring an odd number of times.
    fn contains(&self, [x, y]: Position) -> bool {
        if x < self.low[0] || x > self.high[0] || y < self.low[1] || y > self.high[1] {
            return false;
        }
        let crossed = self.edges().filter(|([ax, ay], [bx, by])| {
            (*ay > y) != (*by > y) && x < ax + (bx - ax) * (y - ay) / (by - ay)
        });
        !crossed.count().is_multiple_of(2)
    }

    fn twice_area(&self) -> f64 {
        self.edges().map(|([ax, ay], [bx, by])| ax * by - bx * ay).sum()
    }

    /// Returns the closed ring, counterclockwise if `is_outer`, else clockwise.
    fn closed(&self, is_outer: bool) -> Vec<Position> {
        let mut closed = self.positions.to_vec();
        if (self.twice_area() < 0.0) == is_outer {
            closed.reverse();
        }
        closed.extend(closed.first().copied());
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(low: f64, high: f64) -> Vec<Position> {
        vec![[low, low], [high, low], [high, high], [low, high]]
    }

    #[test]
    fn a_hole_belongs_to_the_innermost_ring_around_it() {
        // From the outside: an outline, a hole, and an island with its own hole. A further outline is beside
        // them.
        let mut clockwise = square(2.0, 8.0);
        clockwise.reverse();
        let all = [square(3.0, 7.0), square(4.0, 6.0), square(0.0, 10.0), clockwise, square(20.0, 21.0)];
        let rings: Vec<&[Position]> = all.iter().map(Vec::as_slice).collect();
        let parts = parts(&rings);
        let lows: Vec<Vec<f64>> = parts
            .iter()
            .map(|part| {
                part.iter().map(|ring| ring.iter().map(|at| at[0]).fold(f64::INFINITY, f64::min)).collect()
            })
            .collect();
        assert_eq!(lows, [vec![3.0, 4.0], vec![0.0, 2.0], vec![20.0]]);
        for part in &parts {
            for (number, ring) in part.iter().enumerate() {
                assert_eq!(ring.first(), ring.last());
                assert_eq!(Ring::new(&ring[..4]).twice_area() > 0.0, number == 0);
            }
        }
    }
}
