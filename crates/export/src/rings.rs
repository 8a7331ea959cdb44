//! Polygons of objects of pixels: rings along pixel edges, valid for programs that check geometry (OGC simple features).
//!
//! A polygon is one 4-connected part of an object with its holes, so that its interior is connected. Where two pixels of a part
//! touch at a corner only, the traced loop passes the corner twice. It is cut there into rings, because a ring must not touch
//! itself. An object of 8-connected pixels may have several polygons.

use pleach_pathology::outline::{self, Loop};

/// Polygon: the outer ring first, then its holes. Rings are corners in pixels, not closed. Outer rings are clockwise with y
/// downwards, holes counterclockwise.
pub(crate) type PixelPolygon = Vec<Loop>;

/// Returns the polygons of an object. `runs` are its pixels: the x and y of the first pixel, and the length, in raster order.
#[must_use]
pub(crate) fn polygons(runs: &[([u32; 2], u32)]) -> Vec<PixelPolygon> {
    let (Some(([_, top], _)), Some(([_, bottom], _))) = (runs.first(), runs.last()) else {
        return Vec::new();
    };
    let left = runs.iter().map(|([x, _], _)| *x).min().unwrap_or(0);
    let right = runs.iter().map(|([x, _], length)| x + length).max().unwrap_or(0);
    let width = (right - left) as usize;
    let mut mask = vec![0; width * (bottom - top + 1) as usize];
    for ([x, y], length) in runs {
        let start = (y - top) as usize * width + (x - left) as usize;
        mask[start..start + *length as usize].fill(1);
    }
    let rings = outline::trace(&mask, width).into_iter().flat_map(simple_rings);
    let (outer, holes): (Vec<Loop>, Vec<Loop>) = rings.partition(|ring| twice_area(ring) > 0);
    let mut polygons: Vec<PixelPolygon> = outer.into_iter().map(|ring| vec![ring]).collect();
    for hole in holes {
        let within = polygons.iter().enumerate().filter(|(_, polygon)| contains(&polygon[0], beside(&hole)));
        // Rings around the pixel are nested, and the innermost is that of its part.
        let part = within.min_by_key(|(_, polygon)| twice_area(&polygon[0])).map(|(part, _)| part);
        if let Some(part) = part {
            polygons[part].push(hole);
        }
    }
    let (left, top) = (left.cast_signed(), top.cast_signed());
    polygons.iter_mut().flatten().flatten().for_each(|[x, y]| {
        *x += left;
        *y += top;
    });
    polygons
}

/// Cuts a loop at the corners that it passes twice.
fn simple_rings(corners: Loop) -> Vec<Loop> {
    let mut rings = Vec::new();
    let mut open: Loop = Vec::with_capacity(corners.len());
    let mut sorted = corners.clone();
    sorted.sort_unstable();
    if sorted.windows(2).all(|pair| pair[0] != pair[1]) {
        return vec![corners];
    }
    for corner in corners {
        if let Some(start) = open.iter().position(|before| *before == corner) {
            rings.push(without_straight(open.split_off(start)));
        }
        open.push(corner);
    }
    rings.push(without_straight(open));
    rings
}

/// Removes corners between two edges of one direction. Cutting a loop makes none, since it turns at each corner, but the ring that
/// remains may go straight through the cut.
fn without_straight(ring: Loop) -> Loop {
    let count = ring.len();
    let turns = |place: usize| {
        let ([ax, ay], [bx, by], [cx, cy]) =
            (ring[(place + count - 1) % count], ring[place], ring[(place + 1) % count]);
        (bx - ax) * (cy - by) != (by - ay) * (cx - bx)
    };
    (0..count).filter(|place| turns(*place)).map(|place| ring[place]).collect()
}

/// Returns twice the area of a ring: positive for an outer ring (shoelace formula).
#[must_use]
pub(crate) fn twice_area(ring: &[[i32; 2]]) -> i64 {
    let next = ring.iter().cycle().skip(1);
    let parts = ring
        .iter()
        .zip(next)
        .map(|([ax, ay], [bx, by])| i64::from(*ax) * i64::from(*by) - i64::from(*bx) * i64::from(*ay));
    parts.sum()
}

/// Returns the middle of a pixel of the object beside the first edge of a hole, in half pixels. Loops keep objects on their right.
fn beside(hole: &[[i32; 2]]) -> [i32; 2] {
    let ([ax, ay], [bx, by]) = (hole[0], hole[1]);
    let [dx, dy] = [(bx - ax).signum(), (by - ay).signum()];
    // Half a pixel along the edge, and half a pixel to its right: (dx, dy) turned clockwise on the screen is (-dy, dx).
    [2 * ax + dx - dy, 2 * ay + dy + dx]
}

/// Returns whether a ring contains a point in half pixels, of odd coordinates, by the even-odd rule.
fn contains(ring: &[[i32; 2]], [x, y]: [i32; 2]) -> bool {
    let next = ring.iter().cycle().skip(1);
    let crossings = ring.iter().zip(next).filter(|([ax, ay], [bx, by])| {
        ax == bx && 2 * ax > x && (2 * ay.min(by) < y) && (y < 2 * ay.max(by))
    });
    crossings.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_pathology::objects::PixelObjects;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn of(mask: &[u8], width: usize) -> Vec<Vec<PixelPolygon>> {
        let objects = PixelObjects::of_mask(mask, width);
        (0..objects.count()).map(|object| polygons(&objects.pixels(object).collect::<Vec<_>>())).collect()
    }

    #[test]
    fn ring_around_a_corner_hole_is_cut() {
        // The hole at (1, 1) and the outside meet at the corner (2, 2): one loop passes it twice.
        let mask = [1, 1, 1, 1, 0, 1, 1, 1, 0];
        let of = of(&mask, 3);
        assert_eq!(
            of,
            [[vec![
                vec![[3, 0], [3, 2], [2, 2], [2, 3], [0, 3], [0, 0]],
                vec![[2, 2], [2, 1], [1, 1], [1, 2]],
            ]]]
        );
    }

    #[test]
    fn island_in_a_hole_is_a_polygon_of_its_own() {
        // 8-connected through the corner (2, 2): a ring with an island in its hole.
        let mut mask = [1_u8; 25];
        for pixel in [6, 7, 8, 11, 13, 16, 17, 18] {
            mask[pixel] = 0;
        }
        mask[6] = 1;
        let of = of(&mask, 5);
        assert_eq!(of.len(), 1);
        let areas: Vec<Vec<i64>> =
            of[0].iter().map(|polygon| polygon.iter().map(|ring| twice_area(ring) / 2).collect()).collect();
        assert_eq!(areas, [vec![25, -8], vec![1]]);
    }

    proptest! {
        #[test]
        fn polygons_are_simple_and_hold_the_pixels(
            width in 1..12_usize,
            bits in prop::collection::vec(any::<bool>(), 1..140),
        ) {
            let mut mask: Vec<u8> = bits.into_iter().map(u8::from).collect();
            mask.resize(mask.len().next_multiple_of(width), 0);
            let objects = PixelObjects::of_mask(&mask, width);
            for object in 0..objects.count() {
                let runs: Vec<_> = objects.pixels(object).collect();
                let own = polygons(&runs);
                let inside: HashSet<[i32; 2]> = runs
                    .iter()
                    .flat_map(|([x, y], length)| (*x..x + length).map(|x| [x as i32, *y as i32]))
                    .collect();
                let area: i64 = own.iter().flatten().map(|ring| twice_area(ring)).sum();
                prop_assert_eq!(area, 2 * inside.len() as i64);
                for polygon in &own {
                    prop_assert!(twice_area(&polygon[0]) > 0);
                    prop_assert!(polygon[1..].iter().all(|hole| twice_area(hole) < 0));
                    for ring in polygon {
                        let distinct: HashSet<_> = ring.iter().collect();
                        prop_assert_eq!(distinct.len(), ring.len());
                        prop_assert!(ring.len() >= 4);
                    }
                }
                // Each pixel is in exactly one polygon, outside its holes.
                for y in 0..(mask.len() / width) as i32 {
                    for x in 0..width as i32 {
                        let middle = [2 * x + 1, 2 * y + 1];
                        let holds = |polygon: &&PixelPolygon| {
                            contains(&polygon[0], middle)
                                && !polygon[1..].iter().any(|hole| contains(hole, middle))
                        };
                        let count = own.iter().filter(holds).count();
                        prop_assert_eq!(count, usize::from(inside.contains(&[x, y])));
                    }
                }
            }
        }
    }
}
