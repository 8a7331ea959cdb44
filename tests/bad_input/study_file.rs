//! Invalid study files: `run` and `plan` report the same error.

use crate::study::Study;
use crate::{KNOWN, refused, refused_as};

/// Asserts that the study with these edits is refused with `expected` after the file's name.
#[track_caller]
fn edited(study: &Study, edits: &[(&str, &str)], expected: &str) {
    study.edit(edits);
    let expected = format!("study.toml: {expected}");
    refused(study.folder(), &["run", "study.toml", "--out", "out"], &expected);
    refused(study.folder(), &["run", "study.toml", "--out", "out", "--json"], &expected);
    refused(study.folder(), &["plan", "study.toml"], &expected);
}

/// Asserts that the study with this parameter section is refused.
#[track_caller]
fn parameter(study: &Study, section: &str, expected: &str) {
    let metric = "metric = \"dice\"\n";
    edited(study, &[(metric, &format!("{metric}[parameters.{section}\n"))], expected);
}

#[test]
fn invalid_study_fields_are_refused() {
    let study = Study::of_tissue(64);
    let edited = |old: &str, new: &str, expected: &str| edited(&study, &[(old, new)], expected);
    edited(
        "seed = 500",
        "seed = \"500\"",
        "study.seed: the text \"500\" has the wrong type; allowed: a whole number",
    );
    edited("seed = 500", "seed = -1", "study.seed: -1 is not allowed; allowed: 0 or more");
    edited(
        "seed = 500",
        "sead = 500",
        "study.sead: unknown; known are name, workflow, seed, durability, retain",
    );
    let durable = "study.durability: \"disk\" is not allowed; allowed: \"none\", \"outputs\", \"all\"";
    edited("seed = 500", "durability = \"disk\"", durable);
    edited("name = \"nuclei-moat\"\n", "", "study.name: missing; a text is needed");
    edited("\"nuclei-moat\"", "7", "study.name: 7 has the wrong type; allowed: a text");
    let name =
        "study.name: \"../x\" is not allowed; allowed: a name for a folder, without slashes or a leading dot";
    edited("\"nuclei-moat\"", "\"../x\"", name);
    let workflow = "study.workflow: \"nucleii\" is not allowed; allowed: a workflow file, or built in: nuclei, levelset, \
                    nuclei-features, noop";
    edited("workflow = \"nuclei\"", "workflow = \"nucleii\"", workflow);
    edited(
        "normalize = true",
        "normalize = 1",
        "input.normalize: 1 has the wrong type; allowed: true or false",
    );
    let input = "input.normalized: unknown; known are tiles, slides, magnification, tile, halo, skip_background, tissue, \
                 images, partition, channels, reference, annotations_outside, annotations, normalize";
    edited("normalize = true", "normalized = true", input);
    edited(
        "[response]\n",
        "[responses]\n",
        "responses: unknown; known are study, input, method, phase, response, parameters",
    );
    edited("[response]\nmetric = \"dice\"\n", "", "response: missing; this section is needed");
}

#[test]
fn invalid_methods_and_metrics_are_refused() {
    let study = Study::of_tissue(64);
    let edited = |old: &str, new: &str, expected: &str| edited(&study, &[(old, new)], expected);
    edited(
        "\"moat\"",
        "\"pcc\"",
        "method.kind: \"pcc\" is not allowed; allowed: \"moat\", \"vbd\", \"correlation\", \"regression\", \"pawn\", \"delta\", \"fast\", \"rbd-fast\" or \"table\"",
    );
    edited("kind = \"moat\"\n", "", "method.kind: missing; a text is needed");
    let sampler = "method.sampler: \"lhs\" is not allowed; allowed: \"morris\" for kind \"moat\"";
    edited("kind = \"moat\"", "kind = \"moat\"\nsampler = \"lhs\"", sampler);
    edited("levels = 20", "levels = 1", "method.levels: 1 is not allowed; allowed: 2 to 100000");
    edited("levels = 20", "levels = nan", "method.levels: nan has the wrong type; allowed: a whole number");
    edited(
        "trajectories = 2",
        "trajectories = 0",
        "method.trajectories: 0 is not allowed; allowed: 1 to 10000",
    );
    edited(
        "trajectories = 2",
        "trajectories = 2.5",
        "method.trajectories: 2.5 has the wrong type; allowed: a whole number",
    );
    let table = "method.levels: unknown; known are kind, file, until";
    edited("kind = \"moat\"\ntrajectories = 2\n", "kind = \"table\"\nfile = \"x.csv\"\n", table);
    let metric = "response.metric: \"f1\" is not allowed; allowed: \"dice\", \"jaccard\", \"pixel-difference\", \"object-dice\", \
         \"object-jaccard\", \"object-pair-dice\", \"object-recall\", \"nuclei\", \"mean-area\"";
    edited("\"dice\"", "\"f1\"", metric);
    edited("metric = \"dice\"", "metric = 1", "response.metric: 1 has the wrong type; allowed: a text");
}

#[test]
fn invalid_parameters_are_refused() {
    let study = Study::of_tissue(64);
    let parameter = |section: &str, expected: &str| parameter(&study, section, expected);
    parameter("G3]\nrange = [1, 2]", &format!("parameters.G3: unknown; known are {KNOWN}"));
    parameter(
        "G1]\nrang = [1, 2]",
        "parameters.G1.rang: unknown; known are range, step, values, fixed, distribution, mean, std, mode, default",
    );
    parameter(
        "G1]\nrange = \"5-80\"",
        "parameters.G1.range: the text \"5-80\" has the wrong type; allowed: a list of numbers",
    );
    parameter(
        "G1]\nrange = [5, \"80\"]",
        "parameters.G1.range: the text \"80\" has the wrong type; allowed: a list of numbers",
    );
    let three = "parameters.G1.range: a list of 3 numbers is not allowed; allowed: [smallest, largest]";
    parameter("G1]\nrange = [5, 80, 5]", three);
    parameter("G1]\nrange = [nan, 80]", "parameters.G1.range: NaN is not a finite number");
    parameter("T1]\nrange = [2, inf]", "parameters.T1.range: inf is not a finite number");
    let whole = "parameters.G1.range: 5.5 is not an integer; the parameter allows integers";
    parameter("G1]\nrange = [5.5, 80]", whole);
    for range in ["[80, 5]", "[7, 7]"] {
        let empty =
            format!("parameters.G1.range: range {range} is empty; the first number must be below the second");
        parameter(&format!("G1]\nrange = {range}"), &empty);
    }
    let step = "parameters.T1.step: step 0.3 does not divide the range from 2 to 3; a positive divisor of 1 is allowed";
    parameter("T1]\nrange = [2, 3]\nstep = 0.3", step);
    parameter("T1]\nstep = 0.3", "parameters.T1.step: a step needs a range");
    parameter(
        "G1]\nvalues = []",
        "parameters.G1.values: the list of values is empty; at least one is needed",
    );
    parameter("G1]\nvalues = [5, 5.0]", "parameters.G1.values: value 5 is listed twice");
    parameter("G1]\nvalues = [5, nan]", "parameters.G1.values: NaN is not a finite number");
    parameter(
        "G1]\nfixed = \"60\"",
        "parameters.G1.fixed: the text \"60\" has the wrong type; allowed: a number",
    );
    let kinds = "parameters.G1: give exactly one of range, values and fixed";
    parameter("G1]\nfixed = 60\nvalues = [60]", kinds);
}

#[test]
fn study_without_varying_parameter_is_refused() {
    let study = Study::of_tissue(64);
    let pins: String = KNOWN.split(", ").map(|name| format!("[parameters.{name}]\nfixed = 8\n")).collect();
    study.edit(&[("metric = \"dice\"\n", &format!("metric = \"dice\"\n{pins}"))]);
    refused_as(study.folder(), &["run", "study.toml", "--out", "out"], "study.toml: method: ");
    refused_as(study.folder(), &["plan", "study.toml"], "study.toml: method: ");
}

#[test]
fn parameter_values_outside_an_operation_are_refused() {
    let study = Study::of_tissue(64);
    for (section, expected) in [
        (
            "MorphRecon]\nvalues = [4, 6]",
            "MorphRecon.values: 6 is not allowed; allowed: one of 4 8 (operation nuclei.reconstruct)",
        ),
        (
            "G1]\nfixed = 300",
            "G1.fixed: 300 is not allowed; allowed: an integer from 0 to 255 (operation nuclei.candidates)",
        ),
        (
            "G1]\nrange = [5, 300]",
            "G1.range: 300 is not allowed; allowed: an integer from 0 to 255 (operation nuclei.candidates)",
        ),
        (
            "G1]\ndefault = 300",
            "G1.default: 300 is not allowed; allowed: an integer from 0 to 255 (operation nuclei.candidates)",
        ),
        (
            "FillHoles]\nfixed = 5",
            "FillHoles.fixed: 5 is not allowed; allowed: one of 4 8 (operation nuclei.candidates)",
        ),
        (
            "FillHoles]\nvalues = [4, 5, 6]",
            "FillHoles.values: 6 is not allowed; allowed: one of 4 8 (operation nuclei.candidates)",
        ),
        (
            "maxSize]\nvalues = [-1, 900]",
            "maxSize.values: -1 is not allowed; allowed: an integer from 0 to 2147483647 (operation \
             nuclei.candidate-area)",
        ),
    ] {
        study.edit(&[("metric = \"dice\"\n", &format!("metric = \"dice\"\n[parameters.{section}\n"))]);
        let expected = format!("study.toml: parameters.{expected}");
        for command in [&["run", "study.toml", "--out", "out"][..], &["plan", "study.toml"]] {
            refused(study.folder(), command, &expected);
        }
    }
}

#[test]
fn non_study_files_are_refused() {
    let study = Study::of_tissue(64);
    study.write("broken.toml", "[study]\nname = \"x\"\nseed = \n");
    study.write("binary.toml", [0xff, 0xfe, 0x00]);
    study.write("twice.toml", "[study]\nname = \"x\"\nname = \"y\"\n");
    for command in ["run", "plan"] {
        let missing = "none.toml: failed to read: No such file or directory (os error 2)";
        refused(study.folder(), &[command, "none.toml"], missing);
        refused(study.folder(), &[command, "tiles"], "tiles: failed to read: Is a directory (os error 21)");
        let allowed =
            "sections in [brackets] and lines such as key = 1, key = \"text\" or key = [1, 2] are allowed";
        for (name, place) in [("broken.toml", "3:8"), ("twice.toml", "3:1")] {
            let beginning = format!("{name}:{place}: no TOML: ");
            let right = |said: &str| said.starts_with(&beginning) && said.ends_with(allowed);
            crate::refused_with(study.folder(), &[command, name], right, &beginning);
        }
        let binary =
            "binary.toml: failed to read: line 1, column 1: byte 0xff is not UTF-8; text in UTF-8 is allowed";
        refused(study.folder(), &[command, "binary.toml"], binary);
        refused_as(
            study.folder(),
            &[command, "tiles/tissue_01.png"],
            "tiles/tissue_01.png: failed to read: ",
        );
    }
    study.write("empty.toml", "");
    refused(study.folder(), &["run", "empty.toml"], "empty.toml: study: missing; this section is needed");
}

#[test]
fn invalid_references_are_refused() {
    let study = Study::of_tissue(64);
    let edited = |new: &str, expected: &str| edited(&study, &[("\"defaults\"", new)], expected);
    let missing = "input.reference: none: no such folder; a folder of masks or \"defaults\" is allowed";
    edited("\"none\"", missing);
    let file =
        "input.reference: tiles/tissue_01.png: no such folder; a folder of masks or \"defaults\" is allowed";
    edited("\"tiles/tissue_01.png\"", file);
    edited("true", "input.reference: true has the wrong type; allowed: a text");
    // The folder lacks the mask of one tile.
    let mask = std::fs::read(study.path("tiles/tissue_01_labels.png")).expect("a label map");
    study.write("masks/tissue_01.png", &mask);
    let lacking = "input.reference: masks has none of tissue_02_labels.png, tissue_02.geojson and tissue_02.png for tile tiles/tissue_02.png";
    edited("\"masks\"", lacking);

    let run = ["run", "study.toml", "--out", "out"];
    study.write("masks/tissue_02.png", "no image");
    let text = "masks/tissue_02.png: unknown image format; PNG, JPEG and TIFF are allowed";
    refused(study.folder(), &run, text);
    image::GrayImage::new(64, 63).save(study.path("masks/tissue_02.png")).expect("saved");
    let size = "masks/tissue_02.png: 64 x 63 px, but its tile tiles/tissue_02.png has 64 x 64 px; a reference mask has \
                its tile's size";
    refused(study.folder(), &run, size);
    refused(study.folder(), &["plan", "study.toml"], size);

    // Planning reads the polygons before anything runs.
    let feature = |kind: &str, at: u32| {
        format!(
            r#"{{"type": "Feature", "properties": {{}}, "geometry": {{"type": "{kind}",
                 "coordinates": [[[{at}, 0], [{at}, 9], [99, 9]]]}}}}"#
        )
    };
    for (features, beginning) in [
        (
            feature("Polygon", 5) + "," + &feature("Circle", 5),
            "masks/tissue_02.geojson: features[1].geometry",
        ),
        (
            feature("Polygon", 80),
            "masks/tissue_02.geojson: none of its 1 features covers a pixel of the tile of 64 x 64 px; ",
        ),
        ("?".to_owned(), "masks/tissue_02.geojson: features[0]: expected value"),
    ] {
        study.write(
            "masks/tissue_02.geojson",
            format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#),
        );
        refused_as(study.folder(), &run, beginning);
        refused_as(study.folder(), &["plan", "study.toml"], beginning);
    }
}
