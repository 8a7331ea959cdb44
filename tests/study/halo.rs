//! Tiles against the whole slide: nuclei at borders differ without a halo, and none differs with a wide one.

use crate::pleach::pleach;
use crate::study::Study;
use crate::tables::{Row, rows};
use std::fs;

/// Mask and nuclei of the slide in tiles of a side and a halo, pixels. Nuclei are sorted and have no number.
fn segmented(study: &Study, tile: u32, halo: u32) -> (Vec<u8>, Vec<Row>) {
    let out = format!("{tile}-{halo}");
    let options =
        format!("apply study.toml slides --tile {tile} --halo {halo} --as masks,csv --out {out} --quiet");
    pleach(study.folder(), &options.split(' ').collect::<Vec<_>>()).done();
    let mut nuclei = rows(&study.path(&out).join("s.csv"));
    nuclei.iter_mut().for_each(|nucleus| drop(nucleus.remove("label")));
    nuclei.sort();
    (fs::read(study.path(&out).join("s_mask.tif")).expect("a mask"), nuclei)
}

#[test]
fn nuclei_of_tiles_with_a_wide_halo_are_those_of_the_whole_slide() {
    let study = Study::of_tissue(64);
    study.write("slides/none.txt", "");
    let slide = ["tissue", "--slide", "1024x1024", "--lossless", "--out", "slides/s.tif", "--seed", "7"];
    pleach(study.folder(), &slide).done();
    study.edit(&[("tiles = [\"tiles/*.png\"]", "slides = [\"slides/*.tif\"]\nskip_background = false")]);
    let (whole_mask, whole) = segmented(&study, 1024, 0);
    let (mask, nuclei) = segmented(&study, 256, 128);
    assert!(mask == whole_mask, "the masks are equal, pixel by pixel");
    assert_eq!(nuclei, whole);
    // Reconstruction and watershed see the window of a tile only.
    let (mask, nuclei) = segmented(&study, 256, 0);
    let differing = whole.iter().filter(|nucleus| !nuclei.contains(nucleus)).count();
    println!("{differing} of {} nuclei differ without a halo", whole.len());
    assert!(mask != whole_mask && differing > 0, "{differing}");
    assert!(differing * 2 < whole.len(), "{differing} of {} nuclei", whole.len());
}
