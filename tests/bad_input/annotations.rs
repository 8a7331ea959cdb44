//! Annotations in micrometers without the size of pixels, and positions that look like micrometers, are refused.

use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::refused;
use crate::study::Study;

/// Image description of a slide without the size of pixels.
const WITHOUT_MPP: &str = "Aperio Image Library v10\r\n|AppMag = 20";

const PLAN: [&str; 2] = ["plan", "study.toml"];
const RUN: [&str; 4] = ["run", "study.toml", "--out", "out"];

/// Slides of 300 × 200 px with and without the size of pixels, each with ten annotations: squares of 5 units within the first 150
/// × 100. As micrometers they are nuclei; as pixels of 0.5 µm they are too small.
fn annotated() -> Study {
    let study = Study::of_tissue(64);
    let square = |left: i32| {
        let right = left + 5;
        format!(
            r#"{{"type": "Feature", "properties": {{}}, "geometry": {{"type": "Polygon",
                "coordinates": [[[{left}, 20], [{right}, 20], [{right}, 25], [{left}, 25], [{left}, 20]]]}}}}"#
        )
    };
    let squares: Vec<String> = (0..10).map(|number| square(10 * number + 5)).collect();
    let squares = squares.join(",");
    let document = format!(r#"{{"type": "FeatureCollection", "features": [{squares}]}}"#);
    let pixels = [180, 90, 160].repeat(300 * 200);
    study.write("slides/none.txt", "");
    for (name, description) in [("scanned", AT_20), ("bare", WITHOUT_MPP)] {
        write_image(&study.path(&format!("slides/{name}.svs")), &pixels, 300, description);
        study.write(&format!("truth/{name}.geojson"), &document);
    }
    study.write("truth/tissue_01.geojson", &document);
    study
}

/// Writes a study of one slide with annotations. `rules` are those of the annotations.
fn edit(study: &Study, slide: &str, rules: &str) {
    let slides = format!("slides = [\"slides/{slide}.svs\"]\ntile = 128\nskip_background = false");
    let reference = format!("\"truth\"\nannotations = {{ {rules} }}");
    study.edit(&[("tiles = [\"tiles/*.png\"]", &slides), ("\"defaults\"", &reference)]);
}

#[test]
fn positions_that_look_like_micrometers_are_refused() {
    let study = annotated();
    edit(&study, "scanned", "");
    let expected = "truth/scanned.geojson: coordinates look like micrometers: all 10 objects are within 150 x 100 µm, the size of \
                    the slide of 300 x 200 px, and as pixels most are smaller than a nucleus; give annotations = { unit = \
                    \"um\" }, or unit = \"px\" for pixels";
    refused(study.folder(), &PLAN, expected);
    refused(study.folder(), &RUN, expected);
    for unit in ["unit = \"um\"", "unit = \"px\""] {
        edit(&study, "scanned", unit);
        pleach(study.folder(), &PLAN).done();
    }
}

#[test]
fn micrometers_without_the_size_of_pixels_are_refused() {
    let study = annotated();
    edit(&study, "bare", "unit = \"um\"");
    let expected = "slides/bare.svs: the slide states no micrometers per pixel, which annotations in micrometers need; \
                    input.annotations.mpp states them";
    refused(study.folder(), &PLAN, expected);
    refused(study.folder(), &RUN, expected);
    edit(&study, "bare", "unit = \"um\", mpp = 0.5");
    pleach(study.folder(), &PLAN).done();
    let rules = "\"truth\"\nannotations = { unit = \"um\" }";
    study.edit(&[("tiles/*.png", "tiles/tissue_01.png"), ("\"defaults\"", rules)]);
    let expected = "study.toml: input.annotations.unit: \"um\" is not allowed; allowed: \"um\" with mpp, the micrometers per \
                    pixel, which tiles do not state";
    refused(study.folder(), &PLAN, expected);
}
