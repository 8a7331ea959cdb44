//! Traces outlines of masks: closed loops along the edges between object and background pixels.
//!
//! Pixels outside the mask count as background. Pixels that touch only at a corner are not connected.

/// Corners of a closed loop, in pixels, y downwards. An edge joins the last corner to the first. Loops around
/// objects run clockwise on the screen, loops around holes counterclockwise.
pub type Loop = Vec<[i32; 2]>;

/// Bits of a pixel in a bordered plane: it is of the object, and a loop has passed the edge above it.
const OBJECT: u8 = 1;
const PASSED: u8 = 2;

/// Returns the loops of a mask of `width` pixels, in raster order of their first edges.
pub fn trace(mask: &[u8], width: usize) -> Vec<Loop> {
    if width == 0 {
        return Vec::new();
    }
    let is_object = |pixel: &u8| if *pixel == 0 { 0 } else { OBJECT };
    let mut plane = vec![0; (width + 2) * (mask.len() / width + 2)];
    for (row, to) in mask.chunks_exact(width).zip(plane.chunks_exact_mut(width + 2).skip(1)) {
        to[1..=width].iter_mut().zip(row).for_each(|(to, pixel)| *to = is_object(pixel));
    }
    let mut loops = trace_bordered(&mut plane, width + 2).loops;
    for corner in loops.iter_mut().flatten() {
        *corner = corner.map(|position| position - 1);
    }
    loops
}

/// Loops of a mask, and numbers of the cells of 2 × 2 px on them.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    pub(crate) loops: Vec<Loop>,
    /// Cells with 1 or 3 pixels of an object.
    pub(crate) corners: u64,
    /// Cells with 2 pixels side by side.
    pub(crate) sides: u64,
    /// Cells with 2 pixels on a diagonal.
    pub(crate) diagonals: u64,
}

/// Traces the loops of a plane of 0 and 1 with background on all four sides. Positions are those of the plane. Tracing marks
/// other bits of the plane.
pub(crate) fn trace_bordered(plane: &mut [u8], width: usize) -> Traced {
    // Every loop has an edge with an object below and background above. Tracing starts at such an edge and
    // marks all of them, so that each loop is traced once.
    let mut walk = Walk { plane, width, edges: 0, turns: 0, crossings: 0 };
    let mut loops = Vec::new();
    for start in (width..walk.plane.len().saturating_sub(width)).step_by(8) {
        let mut begins = walk.edges_below(start);
        while begins != 0 {
            let pixel = start + begins.trailing_zeros() as usize / 8;
            begins &= begins - 1;
            // The loop of an earlier pixel may have passed here.
            if walk.plane[pixel] & PASSED == 0 {
                loops.push(walk.follow(pixel));
            }
        }
    }
    // A loop turns once in a cell with 1 or 3 pixels, and two loops, or one of them twice, turn in a cell with a diagonal.
    let diagonals = walk.crossings / 2;
    Traced { loops, corners: walk.turns - walk.crossings, sides: walk.edges - walk.turns, diagonals }
}

/// A bordered plane, and sums over the loops that were followed.
struct Walk<'a> {
    plane: &'a mut [u8],
    width: usize,
    edges: u64,
    turns: u64,
    /// Turns between two pixels that touch at a corner.
    crossings: u64,
}

impl Walk<'_> {
    /// Returns for 8 pixels, a byte each, whether they are of an object and the ones above are not.
    fn edges_below(&self, start: usize) -> u64 {
        let word = |pixels: &[u8]| match pixels.first_chunk::<8>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => pixels.iter().rev().fold(0, |word, pixel| word << 8 | u64::from(*pixel)),
        };
        let (above, here) = (word(&self.plane[start - self.width..]), word(&self.plane[start..]));
        here & !above & (u64::MAX / 255 * u64::from(OBJECT))
    }

    /// Traces the loop whose edge to the right of the pixel `start` has its object below. The walk keeps objects on its
    /// right side.
    fn follow(&mut self, start: usize) -> Loop {
        let width = self.width;
        // A heading is a right turn from the one before: right, down, left, up. The corner at a pixel is its upper left one.
        let steps = [1, width as isize, -1, -(width as isize)];
        // From the corner after a step, the pixels ahead on the right and on the left side.
        let ahead = [[0, width], [1, 0], [width + 1, 1], [width, width + 1]];
        let (mut corners, mut corner, mut heading) = (Vec::new(), start, 0);
        loop {
            if heading == 0 {
                self.plane[corner] |= PASSED;
            }
            corner = corner.wrapping_add_signed(steps[heading]);
            self.edges += 1;
            let [right, left] = ahead[heading].map(|back| self.plane[corner - back] & OBJECT != 0);
            let next = match (right, left) {
                (false, _) => (heading + 1) % 4,
                (true, false) => heading,
                (true, true) => (heading + 3) % 4,
            };
            if next != heading {
                // The plane's sides are below 2^31.
                corners.push([(corner % width) as i32, (corner / width) as i32]);
                self.turns += 1;
                self.crossings += u64::from(!right && left);
            }
            heading = next;
            if corner == start && heading == 0 {
                return corners;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns twice the area, positive if the loop runs clockwise on the screen (shoelace formula).
    fn twice_area(corners: &Loop) -> i32 {
        let next = corners.iter().cycle().skip(1);
        corners.iter().zip(next).map(|([ax, ay], [bx, by])| ax * by - bx * ay).sum()
    }

    #[test]
    fn a_ring_has_two_loops() {
        let mask = [1, 1, 1, 1, 0, 1, 1, 1, 1];
        let loops = trace(&mask, 3);
        assert_eq!(loops[0], [[3, 0], [3, 3], [0, 3], [0, 0]]);
        assert_eq!(loops[1], [[2, 2], [2, 1], [1, 1], [1, 2]]);
        assert_eq!(loops.len(), 2);
    }

    #[test]
    fn pixels_that_touch_at_a_corner_are_apart() {
        assert_eq!(trace(&[1, 0, 0, 1], 2).len(), 2);
        assert_eq!(trace(&[0, 1, 1, 0], 2).len(), 2);
        assert_eq!(trace(&[0; 6], 3), Vec::<Loop>::new());
        assert_eq!(trace(&[], 0), Vec::<Loop>::new());
    }

    /// Counts cells with 1 or 3 pixels, with 2 side by side, and with 2 on a diagonal.
    fn cells(mask: &[u8], width: usize) -> [u64; 3] {
        let mut counts = [0; 3];
        let pixel = |x: usize, y: usize| {
            u32::from(
                x > 0 && x <= width && y > 0 && y * width <= mask.len() && mask[(y - 1) * width + x - 1] != 0,
            )
        };
        for (y, x) in (0..=mask.len() / width).flat_map(|y| (0..=width).map(move |x| (y, x))) {
            let [a, b, c, d] = [pixel(x, y), pixel(x + 1, y), pixel(x, y + 1), pixel(x + 1, y + 1)];
            match a + b + c + d {
                1 | 3 => counts[0] += 1,
                2 => counts[if a == d { 2 } else { 1 }] += 1,
                _ => {}
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn cells_on_loops_are_those_of_the_mask(
            width in 1..14_usize,
            bits in prop::collection::vec(any::<bool>(), 1..180),
        ) {
            let mut mask: Vec<u8> = bits.into_iter().map(u8::from).collect();
            mask.resize(mask.len().next_multiple_of(width), 0);
            let mut plane = vec![0; (width + 2) * (mask.len() / width + 2)];
            for (row, to) in mask.chunks(width).zip(plane.chunks_mut(width + 2).skip(1)) {
                to[1..=width].copy_from_slice(row);
            }
            let traced = trace_bordered(&mut plane, width + 2);
            prop_assert_eq!([traced.corners, traced.sides, traced.diagonals], cells(&mask, width));
        }

        #[test]
        fn loops_are_closed_turn_at_each_corner_and_hold_the_area(
            width in 1..14_usize,
            bits in prop::collection::vec(any::<bool>(), 1..180),
        ) {
            let mut mask: Vec<u8> = bits.into_iter().map(u8::from).collect();
            mask.resize(mask.len().next_multiple_of(width), 0);
            let loops = trace(&mask, width);
            let pixels: i32 = mask.iter().map(|pixel| i32::from(*pixel)).sum();
            prop_assert_eq!(loops.iter().map(twice_area).sum::<i32>(), 2 * pixels);
            for corners in &loops {
                prop_assert!(corners.len() >= 4 && corners.len() % 2 == 0);
                for (place, [bx, by]) in corners.iter().enumerate() {
                    let [ax, ay] = corners[(place + corners.len() - 1) % corners.len()];
                    let [cx, _] = corners[(place + 1) % corners.len()];
                    // Horizontal and vertical edges alternate.
                    prop_assert!((ax == *bx) != (ay == *by) && (cx == *bx) == (ay == *by));
                }
            }
            // The loops pass each edge between object and background once.
            let object = |x: i32, y: i32| {
                let height = (mask.len() / width) as i32;
                (0..width as i32).contains(&x) && (0..height).contains(&y)
                    && mask[y as usize * width + x as usize] != 0
            };
            let range = || -1..=mask.len() as i32;
            let edges: usize = range().map(|y| range().filter(|&x| object(x, y) != object(x + 1, y)).count()
                + range().filter(|&x| object(x, y) != object(x, y + 1)).count()).sum();
            let length: i32 = loops.iter().map(|corners| {
                let next = corners.iter().cycle().skip(1);
                corners.iter().zip(next).map(|(a, b)| (a[0] - b[0]).abs() + (a[1] - b[1]).abs()).sum::<i32>()
            }).sum();
            prop_assert_eq!(length as usize, edges);
        }
    }
}
