//! Laws of partitions: the owner of a pixel and of an object, the reach of halos, and results independent of
//! the partition.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

#[path = "support/objects.rs"]
mod objects;

use objects::{image_cut, longest_px, objects, owned};
use pleach_pages::{RecyclingAllocator, metered};
use pleach_regions::{Centroid, Interval, Partition, Raster, SpatialBounds};
use proptest::prelude::*;
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

/// A small region of 1 to 3 axes at any position, with its tiles and halos.
fn cut() -> impl Strategy<Value = Partition> {
    let axis = (-20..20_i64, 1..9_u64, 1..7_u64, 0..5_u64);
    prop::collection::vec(axis, 1..4).prop_map(|axes| {
        let intervals: Vec<_> =
            axes.iter().map(|axis| Interval::new(axis.0, axis.0 + axis.1 as i64).unwrap()).collect();
        let (tile, halo): (Vec<_>, Vec<_>) = axes.iter().map(|axis| (axis.2, axis.3)).unzip();
        Partition::new(SpatialBounds::new(&intervals, None).unwrap(), &tile, &halo).unwrap()
    })
}

/// Lists every position inside.
fn listed(bounds: &SpatialBounds) -> Vec<Vec<i64>> {
    bounds.axes().iter().fold(vec![Vec::new()], |positions, axis| {
        let further = |position: &Vec<i64>| {
            let position = position.clone();
            (axis.start()..axis.end()).map(move |at| [&position[..], &[at]].concat())
        };
        positions.iter().flat_map(further).collect()
    })
}

fn image() -> impl Strategy<Value = Raster> {
    (1..24_u32, 1..24_u32, 1..4_u8).prop_flat_map(|(width_px, height_px, channels)| {
        let length = width_px as usize * height_px as usize * usize::from(channels);
        prop::collection::vec(any::<u8>(), length)
            .prop_map(move |data| Raster::new(width_px, height_px, channels, data).expect("of that shape"))
    })
}

/// A mask of rectangles and single pixels that touch and overlap.
fn mask() -> impl Strategy<Value = Raster> {
    let blob = (0..40_u32, 0..40_u32, 1..6_u32, 1..6_u32);
    (2..40_u32, 2..40_u32, prop::collection::vec(blob, 0..20)).prop_map(|(width_px, height_px, blobs)| {
        let mut mask = Raster::filled(width_px, height_px, 1, 0).expect("of that shape");
        for (x, y, width, height) in blobs {
            for (at_x, at_y) in (y..y + height).flat_map(|at_y| (x..x + width).map(move |at_x| (at_x, at_y)))
            {
                if at_x < width_px && at_y < height_px {
                    mask.data_mut()[(at_y * width_px + at_x) as usize] = 255;
                }
            }
        }
        mask
    })
}

proptest! {
    #[test]
    fn cores_tile_the_region_exactly(partition in cut()) {
        let mut owners: HashMap<Vec<i64>, u64> = HashMap::new();
        let mut count = 0;
        for (number, tile) in (0..).zip(partition.tiles()) {
            prop_assert_eq!(tile.index, number);
            prop_assert!(!tile.core.is_empty() && tile.window.contains(&tile.core).unwrap());
            for position in listed(&tile.core) {
                prop_assert_eq!(partition.tile_of_pixel(&position), Ok(Some(tile.index)));
                prop_assert_eq!(owners.insert(position, tile.index), None);
            }
            count += 1;
        }
        prop_assert_eq!(count, partition.count());
        let mut pixels = listed(partition.region());
        prop_assert_eq!(owners.len(), pixels.len());
        pixels.retain(|position| !owners.contains_key(position));
        prop_assert!(pixels.is_empty());
    }

    /// A window contains the region's pixels within the halo of a core pixel along each axis, found by
    /// comparing all pairs.
    #[test]
    fn halos_are_what_is_in_reach(partition in cut(), halo in prop::collection::vec(0..5_u64, 3)) {
        let dimensions = partition.region().dimensions();
        let tile = partition.tile(0).unwrap();
        let side: Vec<u64> = tile.core.axes().iter().map(|axis| axis.length()).collect();
        let partition = Partition::new(*partition.region(), &side, &halo[..dimensions]).unwrap();
        for tile in partition.tiles() {
            let core = listed(&tile.core);
            let near = |at: &Vec<i64>, of: &Vec<i64>| {
                at.iter().zip(of).zip(&halo).all(|((at, of), halo)| at.abs_diff(*of) <= *halo)
            };
            let reach = listed(partition.region()).into_iter().filter(|at| core.iter().any(|of| near(at, of)));
            prop_assert!(reach.eq(listed(&tile.window)));
        }
    }

    #[test]
    fn any_cut_is_put_together_as_it_was(
        image in image(), tile_px in (1..30_u64, 1..30_u64), halo_px in (0..9_u64, 0..9_u64), from in any::<prop::sample::Index>(),
    ) {
        let region = SpatialBounds::of_image(image.width_px(), image.height_px(), None).translated(&[-7, 1 << 40]).unwrap();
        let partition = Partition::new(region, &[tile_px.0, tile_px.1], &[halo_px.0, halo_px.1]).unwrap();
        let mut assembly = partition.assembly(image.channels()).unwrap();
        // Tiles arrive in any order, from copied as well as borrowed windows.
        let first = from.index(partition.count() as usize) as u64;
        for index in (first..partition.count()).chain(0..first) {
            let window = partition.window_of(index, &image).unwrap();
            if index % 2 == 0 {
                assembly.put(index, &window).unwrap();
            } else {
                assembly.put(index, &window.to_raster().view()).unwrap();
            }
        }
        prop_assert_eq!(assembly.finish().unwrap(), image);
    }

    /// The owner of a centroid is the one tile whose core contains it.
    #[test]
    fn every_centroid_has_one_owner(
        partition in (1..40_u32, 1..40_u32, 1..20_u64).prop_map(|(width, height, tile)| image_cut(width, height, tile, 3)),
        share in (0.0..=1.0, 0.0..=1.0), is_whole: bool,
    ) {
        let sides: Vec<f64> = partition.region().axes().iter().map(|axis| axis.length() as f64).collect();
        let place = |share: f64, side: f64| if is_whole { (share * side).floor() } else { share * side };
        let point = [place(share.0, sides[0]), place(share.1, sides[1])];
        let owner = partition.owner_of_point(point).unwrap();
        let holds = |axis: &Interval, at: f64, last: f64| {
            (axis.start() as f64 <= at && at < axis.end() as f64) || (at == last && axis.end() as f64 == last)
        };
        let holding: Vec<u64> = partition.tiles().filter(|tile| {
            let axes = tile.core.axes();
            holds(&axes[0], point[0], sides[0]) && holds(&axes[1], point[1], sides[1])
        }).map(|tile| tile.index).collect();
        prop_assert_eq!(holding, [owner]);
    }

    /// The owner of two pixels is that of their exact middle, computed in half pixels.
    #[test]
    fn owners_are_those_of_the_exact_middle(one in (0..40_i64, 0..40_i64), other in (0..40_i64, 0..40_i64), tile in 1..20_u64) {
        let partition = image_cut(40, 40, tile, 0);
        let owner = partition.owner(&Centroid::of([[one.0, one.1], [other.0, other.1]])).unwrap();
        let middle = [(one.0 + other.0 + 1) as f64 / 2.0, (one.1 + other.1 + 1) as f64 / 2.0];
        prop_assert_eq!(partition.owner_of_point(middle), Ok(owner));
    }

    /// With the halo of the rule, the tiles own each object exactly once, pixel by pixel, as without tiles.
    #[test]
    fn objects_do_not_depend_on_the_cut(mask in mask(), tile_px in 1..20_u64) {
        let mut whole = objects(&mask.view(), [0, 0]);
        whole.sort_unstable();
        let halo_px = longest_px(&whole) - 1;
        let partition = image_cut(mask.width_px(), mask.height_px(), tile_px, halo_px);
        prop_assert_eq!(owned(&partition, &mask), whole);
    }
}

/// Objects across every border and corner of 8-px tiles are counted once with the halo that they need, for
/// tiles of any size. Without a halo they are counted in four pieces.
#[test]
fn objects_on_borders_are_counted_once() {
    let mut mask = Raster::filled(48, 48, 1, 0).unwrap();
    for (x, y) in (0..48).flat_map(|y| (0..48).map(move |x| (x, y))) {
        // Squares of 4 px, each centered on a corner of four tiles.
        let is_near = |at: usize| (6..42).contains(&at) && (at + 2) % 8 < 4;
        mask.data_mut()[y * 48 + x] = if is_near(x) && is_near(y) { 255 } else { 0 };
    }
    assert_eq!(objects(&mask.view(), [0, 0]).len(), 25);
    for tile_px in [1, 3, 7, 8, 9, 16, 48, 100] {
        assert_eq!(owned(&image_cut(48, 48, tile_px, 3), &mask).len(), 25, "tiles of {tile_px} px");
    }
    assert_eq!(owned(&image_cut(48, 48, 8, 0), &mask).len(), 100);
}

/// The partition of 14.4 gigapixels, its tiles, and the owner query allocate nothing.
#[test]
fn a_whole_slide_allocates_nothing() {
    let region = SpatialBounds::of_image(120_000, 120_000, None);
    let (owned_px, peak) = metered(|| {
        let partition = Partition::new(region, &[4096, 4096], &[64, 64]).unwrap();
        let centroid = Centroid::of([[119_999, 4096]]);
        assert_eq!(partition.owner(&centroid), Ok(59));
        partition.tiles().map(|tile| tile.core.pixels().unwrap()).sum::<u64>()
    });
    assert_eq!(owned_px, 120_000 * 120_000);
    assert_eq!(peak, 0, "bytes");
}

/// Views of a large raster allocate nothing.
#[test]
fn windows_are_not_copied() {
    let image = Raster::filled(2220, 2967, 3, 7).unwrap();
    let partition = image_cut(2220, 2967, 512, 64);
    let (rows, peak) = metered(|| {
        let windows = (0..partition.count()).map(|index| partition.window_of(index, &image).unwrap());
        windows.map(|window| window.rows().len()).sum::<usize>()
    });
    // Window heights by row: 576, four of 640, and 471 px, in five columns.
    assert_eq!(rows, 5 * (576 + 4 * 640 + 471));
    assert_eq!(peak, 0, "bytes");
}
