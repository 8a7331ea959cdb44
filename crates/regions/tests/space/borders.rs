//! Real segmentations partitioned into tiles: nuclei on borders are counted once. The reference application
//! made the masks from a tile of a slide.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use crate::data;
use crate::objects::{image_cut, longest_px, objects, owned};
use pleach_regions::Raster;

/// Returns a mask of the reference application. Returns `None`, and logs to stderr, without the test data.
fn mask(test: &str, name: &str) -> Option<Raster> {
    let path = data::data(test)?.join("reference/nscale/masks").join(name);
    let image = image::open(path).unwrap().into_luma8();
    Some(Raster::new(image.width(), image.height(), 1, image.into_raw()).unwrap())
}

/// Object counts equal those in the data's index. Without a halo they are larger, so the halo is needed, and
/// the rule's halo suffices.
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
