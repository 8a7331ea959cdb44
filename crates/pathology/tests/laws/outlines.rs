//! Outlines of objects as a `polygons` region, against scans over all pixels: the enclosed area is the number of an object's
//! pixels, and the pixels whose center is inside are those of the object.

use crate::slow::components;
use pleach_pathology::kernels::Connectivity::Eight;
use pleach_pathology::objects::{Polygon, rasterize};
use pleach_pathology::registry;
use pleach_regions::{DataRegion, LabelMap, Polygons, Position, Raster};
use proptest::prelude::*;

fn outlines(objects: &DataRegion) -> Polygons {
    let registry = registry();
    let operation = registry.get("features.outlines", 1).unwrap();
    match operation.run(&[objects], &[]).unwrap().remove(0) {
        DataRegion::Polygons(polygons) => *polygons,
        other => panic!("{}", other.element()),
    }
}

fn mask(width: usize, pixels: &[u8]) -> DataRegion {
    let height = pixels.len() / width;
    DataRegion::Mask(Raster::new(width as u32, height as u32, 1, pixels.to_vec()).unwrap())
}

/// Returns the area within rings by the shoelace formula. Rings of holes run in the other direction.
fn area(rings: &[&[Position]]) -> f64 {
    let ring = |ring: &&[Position]| {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum::<f64>() / 2.0
    };
    rings.iter().map(ring).sum()
}

/// Returns whether a ray to the right crosses the rings an odd number of times.
fn hold(rings: &[&[Position]], [x, y]: Position) -> bool {
    let crossed = |ring: &&[Position]| {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).filter(|(a, b)| a[0] > x && (a[1] > y) != (b[1] > y)).count()
    };
    rings.iter().map(crossed).sum::<usize>() % 2 == 1
}

/// Compares polygons with the pixels of each object.
fn check(found: &Polygons, objects: &[Vec<usize>], width: usize, pixels: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), objects.len());
    let center = |pixel: usize| [(pixel % width) as f64 + 0.5, (pixel / width) as f64 + 0.5];
    for (rings, object) in found.iter().zip(objects) {
        let rings: Vec<&[Position]> = rings.collect();
        prop_assert_eq!(area(&rings), object.len() as f64);
        // Edges follow those of pixels.
        for ring in &rings {
            let next = ring.iter().cycle().skip(1);
            prop_assert!(ring.iter().zip(next).all(|(a, b)| (a[0] == b[0]) != (a[1] == b[1])), "{ring:?}");
        }
        let covered: Vec<usize> = (0..pixels).filter(|pixel| hold(&rings, center(*pixel))).collect();
        prop_assert_eq!(&covered, object);
    }
    let polygon =
        |rings: pleach_regions::Rings<'_>| Polygon { rings: rings.map(<[Position]>::to_vec).collect() };
    let polygons: Vec<Polygon> = found.iter().map(polygon).collect();
    let drawn = rasterize(&polygons, width as u32, (pixels / width) as u32).unwrap();
    let mut labels = vec![0_u32; pixels];
    for (label, object) in (1..).zip(objects) {
        object.iter().for_each(|pixel| labels[*pixel] = label);
    }
    prop_assert_eq!(drawn.labels(), labels);
    Ok(())
}

proptest! {
    #[test]
    fn outlines_of_a_mask_enclose_its_connected_pixels(
        (width, bits) in (1..14_usize)
            .prop_flat_map(|width| (Just(width), (1..14_usize).prop_flat_map(move |rows| prop::collection::vec(any::<bool>(), width * rows)))),
    ) {
        let pixels: Vec<u8> = bits.iter().map(|bit| if *bit { 255 } else { 0 }).collect();
        let mut objects = components(&pixels, width, Eight);
        objects.iter_mut().for_each(|object| object.sort_unstable());
        check(&outlines(&mask(width, &pixels)), &objects, width, pixels.len())?;
    }

    #[test]
    fn outlines_of_labels_enclose_their_pixels(
        (width, labels) in (1..14_usize)
            .prop_flat_map(|width| (Just(width), (1..14_usize).prop_flat_map(move |rows| prop::collection::vec(0..6_u32, width * rows)))),
    ) {
        // In the order of their first pixels, connected or not.
        let mut order: Vec<u32> = Vec::new();
        labels.iter().filter(|label| **label != 0).for_each(|label| if !order.contains(label) { order.push(*label) });
        let of = |label: &u32| (0..labels.len()).filter(|pixel| labels[*pixel] == *label).collect();
        let objects: Vec<Vec<usize>> = order.iter().map(of).collect();
        let map = LabelMap::new(width as u32, (labels.len() / width) as u32, labels.clone()).unwrap();
        check(&outlines(&DataRegion::Labels(map)), &objects, width, labels.len())?;
    }
}

#[test]
fn holes_and_parts_that_touch_at_corners_are_rings() {
    let rings = |pixels: &[u8]| -> Vec<usize> {
        outlines(&mask(3, pixels)).iter().map(|rings| rings.len()).collect()
    };
    assert_eq!(rings(&[255, 255, 255, 255, 0, 255, 255, 255, 255]), [2]);
    assert_eq!(rings(&[255, 0, 0, 0, 255, 0, 0, 0, 255]), [3]);
    assert_eq!(rings(&[255, 0, 255, 0, 0, 0, 255, 0, 255]), [1; 4]);
    assert_eq!(rings(&[0; 6]), [0; 0]);
    let whole = outlines(&mask(3, &[255; 6]));
    assert_eq!(whole.positions(), [[3.0, 0.0], [3.0, 2.0], [0.0, 2.0], [0.0, 0.0]]);
}
