//! `pleach segment` and `pleach tissue` with invalid input.

use crate::study::Study;
use crate::{KNOWN, refused, refused_as};
use std::fs;

const TILE: &str = "tiles/tissue_01.png";

#[test]
fn segment_refuses_unreadable_tiles() {
    let study = Study::of_tissue(64);
    let segment = |tile| ["segment", tile, "--out", "mask.png"];
    refused(
        study.folder(),
        &segment("none.png"),
        "none.png: cannot be read: No such file or directory (os error 2)",
    );
    refused(study.folder(), &segment("tiles"), "tiles: is a folder; a PNG, JPEG or TIFF file is allowed");
    let text = "study.toml: unknown image format; PNG, JPEG and TIFF are allowed";
    refused(study.folder(), &segment("study.toml"), text);
    study.write("empty.png", "");
    refused(
        study.folder(),
        &segment("empty.png"),
        "empty.png: the file is empty; a PNG, JPEG or TIFF image is allowed",
    );
    let bytes = fs::read(study.path(TILE)).expect("a tile");
    study.write("cut.png", &bytes[..bytes.len() / 2]);
    refused_as(study.folder(), &segment("cut.png"), "cut.png: corrupt or truncated image: ");
}

#[test]
fn segment_refuses_invalid_settings() {
    let study = Study::of_tissue(64);
    let refused = |setting: &str, expected: &str| {
        let expected = format!("--set {setting}: {expected}");
        refused(study.folder(), &["segment", TILE, "--out", "mask.png", "--set", setting], &expected);
        refused(
            study.folder(),
            &["segment", TILE, "--out", "mask.png", "--json", "--set", "G2=20", "--set", setting],
            &expected,
        );
    };
    refused("G1", "NAME=VALUE is allowed, as in G1=60");
    refused("G1=", "\"\" is not an integer");
    refused("G1=sixty", "\"sixty\" is not an integer");
    refused("G1=60.5", "\"60.5\" is not an integer");
    refused("G1=99999999999999999999", "\"99999999999999999999\" is not an integer");
    refused("T1=nan", "\"nan\" is not a finite number");
    refused("G1=256", "an integer from 0 to 255 is allowed");
    refused("G1=-1", "an integer from 0 to 255 is allowed");
    refused("FillHoles=6", "one of 4 8 is allowed");
    refused("minSize=-5", "an integer from 0 to 2147483647 is allowed");
    refused("G3=1", &format!("parameter \"G3\" is unknown; known are {KNOWN}"));
}

#[test]
fn segment_refuses_invalid_mask_paths() {
    let study = Study::of_tissue(64);
    let segment = |out| ["segment", TILE, "--out", out];
    refused(
        study.folder(),
        &segment("none/mask.png"),
        "--out none/mask.png: folder none not found; an existing folder is needed",
    );
    let below = format!("{TILE}/mask.png");
    refused(
        study.folder(),
        &segment(&below),
        &format!("--out {below}: folder {TILE} not found; an existing folder is needed"),
    );
    refused(study.folder(), &segment("tiles"), "--out tiles: is a folder; the name of a PNG file is allowed");
    refused(
        study.folder(),
        &segment(TILE),
        &format!("--out {TILE}: is the tile itself; another file is allowed"),
    );
}

#[test]
fn tissue_refuses_invalid_sizes_and_folders() {
    let study = Study::of_tissue(64);
    let sized = |size| ["tissue", "--out", "new", "--size", size];
    refused(study.folder(), &sized("63"), "--size 63: tissue tile: 63 px; 64 to 8192 px are allowed");
    refused(study.folder(), &sized("8193"), "--size 8193: tissue tile: 8193 px; 64 to 8192 px are allowed");
    refused(study.folder(), &sized("0"), "--size 0: tissue tile: 0 px; 64 to 8192 px are allowed");
    let into = |out| ["tissue", "--size", "64", "--out", out];
    refused(study.folder(), &into("study.toml"), "--out study.toml: File exists (os error 17)");
    refused(study.folder(), &into("study.toml/new"), "--out study.toml/new: Not a directory (os error 20)");
}
