//! Invalid slide studies and unreadable slides are refused before anything runs.

use crate::data::data;
use crate::pyramid::{AT_20, write_image};
use crate::study::Study;
use crate::{refused, refused_as};

/// A study of one slide of 300 × 200 px, scanned at 20x.
fn of_slide() -> Study {
    let study = Study::of_tissue(64);
    study.write("slides/blank.txt", "");
    let pixel = |n: usize| if n % 300 < 200 { [180, 90, 160] } else { [244; 3] };
    let pixels: Vec<u8> = (0..300 * 200).flat_map(pixel).collect();
    write_image(&study.path("slides/a.svs"), &pixels, 300, AT_20);
    study
}

/// Replaces the tiles of the study by these lines.
fn with(study: &Study, lines: &str) {
    study.edit(&[("tiles = [\"tiles/*.png\"]", lines)]);
}

/// Asserts that the study of slides with these additional lines is refused with `expected` after the file's name.
#[track_caller]
fn edited(study: &Study, lines: &str, expected: &str) {
    with(study, &format!("slides = [\"slides/*.svs\"]\n{lines}"));
    let expected = format!("study.toml: input.{expected}");
    refused(study.folder(), &["run", "study.toml", "--out", "out"], &expected);
    refused(study.folder(), &["plan", "study.toml"], &expected);
}

#[test]
fn invalid_slide_fields_are_refused() {
    let study = of_slide();
    let edited = |lines: &str, expected: &str| edited(&study, lines, expected);
    edited("tile = 0", "tile: 0 is not allowed; allowed: 64 to 16384");
    edited("tile = 99999", "tile: 99999 is not allowed; allowed: 64 to 16384");
    edited("tile = 512.0", "tile: 512.0 has the wrong type; allowed: a whole number");
    edited("tile = 128\nhalo = 128", "halo: 128 is not allowed; allowed: 0 to 127");
    edited("tile = 128\nhalo = -1", "halo: -1 is not allowed; allowed: 0 to 127");
    edited("halo = 2049", "halo: 2049 is not allowed; allowed: 0 to 2048");
    let positive = "allowed: more than 0, up to the slide's own";
    edited("magnification = nan", &format!("magnification: nan is not allowed; {positive}"));
    edited("magnification = -inf", &format!("magnification: -inf is not allowed; {positive}"));
    edited("magnification = 0", &format!("magnification: 0 is not allowed; {positive}"));
    edited(
        "magnification = \"20x\"",
        "magnification: the text \"20x\" has the wrong type; allowed: a number",
    );
    edited(
        "magnification = 40",
        "magnification: slides/a.svs: magnification 40 of a slide scanned at 20; 0.1 to 20 is allowed",
    );
    edited("skip_background = 1", "skip_background: 1 has the wrong type; allowed: true or false");
    edited("tissue = { leas = 0.1 }", "tissue.leas: unknown; known are min_fraction, saturation");
    edited(
        "tissue = { min_fraction = 2 }",
        "tissue.min_fraction: 2 is not allowed; allowed: 0 to 1, a share of the tile",
    );
    edited(
        "tissue = { min_fraction = nan }",
        "tissue.min_fraction: nan is not allowed; allowed: 0 to 1, a share of the tile",
    );
    edited("tissue = { saturation = 256 }", "tissue.saturation: 256 is not allowed; allowed: 0 to 255");
    edited(
        "skip_background = false\ntissue = { min_fraction = 0.5 }",
        "tissue: a rule is not allowed; allowed: none with skip_background = false",
    );
    edited(
        "tissue = { saturation = 255 }",
        "slides: no tile of the slide of study nuclei-moat shows tissue; skip_background = false takes all",
    );
    edited("tiles = [\"tiles/*.png\"]", "slides: the study has tiles as well; give tiles or slides");
}

#[test]
fn invalid_slide_lists_are_refused() {
    let study = of_slide();
    let listed = |lines: &str, expected: &str| {
        with(&study, lines);
        refused(study.folder(), &["plan", "study.toml"], &format!("study.toml: input.{expected}"));
    };
    listed("slides = []", "slides: an empty list is not allowed; allowed: at least one file or pattern");
    listed("slides = [\"slides/*.ndpi\"]", "slides: no file matches \"slides/*.ndpi\"");
    listed("slides = [\"gone.svs\"]", "slides: gone.svs: no such file");
    let folder = "slides: slides: a folder; files or a pattern such as \"slides/*.svs\" are allowed";
    listed("slides = [\"slides\"]", folder);
    let tiles = "tiles = [\"tiles/*.png\"]\nhalo = 8";
    listed(tiles, "halo: allowed only in a study of slides; \"slides\" is missing");
    let kind = "slides: slides/blank.txt: is no slide; SVS, NDPI, SCN, BIF, SVSLIDE, MIRAX, VMS, VMU and tiled pyramidal \
                TIFF are allowed";
    listed("slides = [\"slides/*\"]", kind);
    study.write("slides/a.mrxs", "");
    let lacking = "slides: slides/a.mrxs: invalid file list of the slide: slides/a/Slidedat.ini: No such file or \
                   directory (os error 2)";
    listed("slides = [\"slides/a.mrxs\"]", lacking);
    study.write(
        "slides/a/Slidedat.ini",
        "[DATAFILE]\nFILE_COUNT=1\nFILE_0=../b.dat\n[HIERARCHICAL]\nINDEXFILE=i",
    );
    let elsewhere = "slides: slides/a.mrxs: invalid file list of the slide: invalid file name \"../b.dat\"; files \
                     in the same folder are allowed";
    listed("slides = [\"slides/a.mrxs\"]", elsewhere);
}

#[test]
fn slide_study_needs_core_metrics_and_annotations_as_reference() {
    let study = of_slide();
    let slides = ("tiles = [\"tiles/*.png\"]", "slides = [\"slides/*.svs\"]");
    study.edit(&[slides, ("\"defaults\"", "\"tiles\"")]);
    let plan = ["plan", "study.toml"];
    let expected =
        "study.toml: input.reference: tiles has none of a.geojson and a.geojson.gz for slides/a.svs";
    refused(study.folder(), &plan, expected);
    study.edit(&[
        slides,
        ("\"nuclei\"", "\"noop\""),
        ("normalize = true\nreference = \"defaults\"\n", ""),
        ("\"dice\"", "\"n\""),
    ]);
    let expected = "study.toml: input.halo: 64 is not allowed; allowed: 0: nothing that measures in workflow noop can \
                    leave the halo out";
    refused(study.folder(), &plan, expected);
}

#[test]
fn unreadable_slides_are_refused() {
    let study = of_slide();
    let whole = std::fs::read(study.path("slides/a.svs")).expect("the slide");
    study.write("slides/a.svs", &whole[..whole.len() / 2]);
    let none = "study.toml: input.slides: slides/a.svs: unsupported or truncated slide; SVS, NDPI, SCN, BIF, \
                MIRAX and tiled pyramidal TIFF are allowed";
    with(&study, "slides = [\"slides/*.svs\"]");
    refused(study.folder(), &["run", "study.toml", "--out", "out"], none);
    // The directory of the slide is intact and its pixels are corrupt, so tissue cannot be detected.
    let mut damaged = whole;
    let end = damaged.len() - 1_000;
    damaged[16..end].fill(0xff);
    study.write("slides/a.svs", &damaged);
    let beginning = "study.toml: input.slides: slides/a.svs: ";
    let answer = crate::pleach(study.folder(), &["plan", "study.toml"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.contains(&format!("error: {beginning}")), "{answer:?}");
}

#[test]
fn unreadable_slides_of_the_test_data_are_refused() {
    let Some(data) = data("unreadable_slides_of_the_test_data_are_refused") else { return };
    let study = of_slide();
    for (name, said) in [
        ("unopenable.tiff", "corrupt or unsupported slide: "),
        ("OS-1-detail.ome.tif", "unsupported or truncated slide"),
    ] {
        let path = data.join("wsi").join(name).display().to_string();
        with(&study, &format!("slides = [{path:?}]"));
        let beginning = format!("study.toml: input.slides: {path}: {said}");
        refused_as(study.folder(), &["run", "study.toml", "--out", "out"], &beginning);
    }
}
