//! Traces outlines of masks: closed loops along the edges between object and background pixels.
//!
//! Pixels outside the mask count as background. Pixels that touch only at a corner are not connected.

/// Corners of a closed loop, in pixels, y downwards. An edge joins the last corner to the first. Loops around
/// objects run clockwise on the screen, loops around holes counterclockwise.
pub type Loop = Vec<[i32; 2]>;

/// Mask in raster order. 0 is background.
#[derive(Clone, Copy, Debug)]
struct Plane<'a> {
    mask: &'a [u8],
    width: i32,
    height: i32,
}

impl Plane<'_> {
    fn object(&self, x: i32, y: i32) -> bool {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        inside && self.mask[y as usize * self.width as usize + x as usize] != 0
    }
}

/// Headings right, down, left, up: each is a right turn from the previous one.
const STEPS: [[i32; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/// Returns the loops of a mask of `width` pixels, in raster order of their first edges.
pub fn trace(mask: &[u8], width: usize) -> Vec<Loop> {
    if width == 0 {
        return Vec::new();
    }
    let plane = Plane { mask, width: width as i32, height: (mask.len() / width) as i32 };
    // Every loop has an edge with an object below and background above. Tracing starts at such an edge and
    // marks all of them, so that each loop is traced once.
    let mut passed = vec![false; mask.len()];
    let mut loops = Vec::new();
    for y in 0..plane.height {
        for x in 0..plane.width {
            let begins = plane.object(x, y) && !plane.object(x, y - 1);
            if begins && !passed[y as usize * width + x as usize] {
                loops.push(follow(plane, [x, y], &mut passed));
            }
        }
    }
    loops
}

/// Traces the loop whose edge to the right of `start` has its object below. The walk keeps objects on its
/// right side.
fn follow(plane: Plane<'_>, start: [i32; 2], passed: &mut [bool]) -> Loop {
    let mut corners = Vec::new();
    let ([mut x, mut y], mut heading) = (start, 0);
    loop {
        if heading == 0 {
            passed[y as usize * plane.width as usize + x as usize] = true;
        }
        let [dx, dy] = STEPS[heading];
        (x, y) = (x + dx, y + dy);
        // The pixels ahead on the right and on the left side.
        let (right, left) = match heading {
            0 => ([x, y], [x, y - 1]),
            1 => ([x - 1, y], [x, y]),
            2 => ([x - 1, y - 1], [x - 1, y]),
            _ => ([x, y - 1], [x - 1, y - 1]),
        };
        let object = |[x, y]: [i32; 2]| plane.object(x, y);
        let next = match (object(right), object(left)) {
            (false, _) => (heading + 1) % 4,
            (true, false) => heading,
            (true, true) => (heading + 3) % 4,
        };
        if next != heading {
            corners.push([x, y]);
        }
        heading = next;
        if [x, y] == start && heading == 0 {
            return corners;
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

    proptest! {
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
