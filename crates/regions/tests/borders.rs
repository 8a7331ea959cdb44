//! Real segmentations cut into tiles: nuclei on borders are counted once. The masks are those that the reference
//! application made of a slide's tile.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

#[path = "../../../tests/support/data.rs"]
mod data;
#[path = "support/objects.rs"]
mod objects;

use objects::{image_cut, longest_px, objects, owned};
use pleach_regions::Raster;

/// A mask of the reference application; none, and a word on stderr, where the test data is not.
fn mask(test: &str, name: &str) -> Option<Raster> {
    let path = data::data(test)?.join("reference/nscale/masks").join(name);
    let image = image::open(path).unwrap().into_luma8();
    Some(Raster::new(image.width(), image.height(), 1, image.into_raw()).unwrap())
}

/// Numbers of objects are those that the data's index states. Without a halo there are more: it is needed, and that of the
/// rule is enough.
#[test]
fn nuclei_on_borders_are_counted_once() {
    for (set, nuclei, tile_px) in [("default", 1403, 512), ("r04", 1583, 700)] {
        let name = format!("CMU-1_x150_y800_2048__{set}.png");
        let Some(mask) = mask("nuclei_on_borders_are_counted_once", &name) else { return };
        let mut whole = objects(&mask.view(), [0, 0]);
        assert_eq!(whole.len(), nuclei, "{name}");
        whole.sort_unstable();
        let partition = image_cut(2048, 2048, tile_px, longest_px(&whole) - 1);
        assert!(owned(&partition, &mask) == whole, "{name} in tiles of {tile_px} px");
        assert!(owned(&image_cut(2048, 2048, tile_px, 0), &mask).len() > nuclei);
    }
}

#[test]
fn a_segmentation_is_put_together_as_it_was() {
    let name = "CMU-1_x150_y800_2048__default.png";
    let Some(mask) = mask("a_segmentation_is_put_together_as_it_was", name) else { return };
    let partition = image_cut(2048, 2048, 600, 64);
    let mut assembly = partition.assembly(1).unwrap();
    for tile in partition.tiles() {
        assembly.put(tile.index, &partition.window_of(tile.index, &mask).unwrap()).unwrap();
    }
    assert!(assembly.finish().unwrap() == mask);
}
