//! Every possible mistake in a study file: a one-line message each, with file, field, value and allowed values.

use crate::folder::Folder;

/// Inserts a mistake in the example, next to one tile, and expects this message.
#[track_caller]
fn refused(edits: &[(&str, &str)], message: &str) {
    refused_beside(&["tiles/a.png"], edits, message);
}

#[track_caller]
fn refused_beside(files: &[&str], edits: &[(&str, &str)], message: &str) {
    let folder = Folder::with(files);
    let said = folder.example(edits).expect_err("a mistake").to_string();
    assert_eq!(said.lines().count(), 1);
    assert_eq!(folder.shown(&said), format!("DIR/study.toml{message}"));
}

const G1: &str = "range = [5, 80]\nstep = 5";
const TILES: &str = "tiles = [\"tiles/*.png\"]";

#[test]
fn invalid_study_sections_are_refused() {
    let name = "name = \"nuclei-moat\"";
    refused(
        &[(name, "name = \"a/b\"")],
        r#": study.name: "a/b" is not allowed; allowed: a name for a folder, without slashes or a leading dot"#,
    );
    refused(
        &[(name, "name = \"\"")],
        r#": study.name: "" is not allowed; allowed: a name for a folder, without slashes or a leading dot"#,
    );
    refused(
        &[(name, "name = \"..\"")],
        r#": study.name: ".." is not allowed; allowed: a name for a folder, without slashes or a leading dot"#,
    );
    refused(
        &[(name, "name = \"two\\nlines\"")],
        r#": study.name: "two lines" is not allowed; allowed: a name for a folder, without slashes or a leading dot"#,
    );
    refused(&[(name, "name = 7")], ": study.name: 7 has the wrong type; allowed: a text");
    refused(&[(name, "")], ": study.name: missing; a text is needed");
    refused(&[("seed = 500", "seed = -1")], ": study.seed: -1 is not allowed; allowed: 0 or more");
    refused(&[("seed = 500", "seed = 1.5")], ": study.seed: 1.5 has the wrong type; allowed: a whole number");
    refused(
        &[("seed = 500", "sed = 500")],
        ": study.sed: unknown; known are name, workflow, seed, durability, retain",
    );
    refused(
        &[("workflow = \"nuclei\"", "workflow = \"nuklei\"")],
        r#": study.workflow: "nuklei" is not allowed; allowed: a workflow file, or built in: nuclei"#,
    );
    refused(
        &[("workflow = \"nuclei\"", "workflow = \"tiles\"")],
        r#": study.workflow: "tiles" is not allowed; allowed: a workflow file, or built in: nuclei"#,
    );
    refused(
        &[("[response]", "[respons]")],
        ": respons: unknown; known are study, input, method, phase, response, parameters",
    );
    refused(&[("[response]\nmetric = \"dice\"\n", "")], ": response: missing; this section is needed");
    refused(
        &[("[study]\n", "study = 1\n[input]\n"), ("seed = 500\n[input]\n", "")],
        ": study: 1 has the wrong type; allowed: a section",
    );
}

#[test]
fn invalid_tiles_are_refused() {
    refused(&[(TILES, "tiles = [\"tiles/b.png\"]")], ": input.tiles: DIR/tiles/b.png: no such file");
    refused(&[(TILES, "tiles = [\"tiles/*.tif\"]")], r#": input.tiles: no file matches "tiles/*.tif""#);
    refused(
        &[(TILES, "tiles = [\"tiles/*.png\", \"more/*.png\"]")],
        r#": input.tiles: no file matches "more/*.png""#,
    );
    refused(
        &[(TILES, "tiles = [\"tiles\"]")],
        r#": input.tiles: DIR/tiles: a folder; files or a pattern such as "tiles/*.png" are allowed"#,
    );
    refused(
        &[(TILES, "tiles = [\"tiles/[a.png\"]")],
        r#": input.tiles: "tiles/[a.png": invalid range pattern at character 7"#,
    );
    refused(
        &[(TILES, "tiles = []")],
        ": input.tiles: an empty list is not allowed; allowed: at least one file or pattern",
    );
    refused(
        &[(TILES, "tiles = \"tiles/*.png\"")],
        r#": input.tiles: the text "tiles/*.png" has the wrong type; allowed: a list of texts"#,
    );
    refused(&[(TILES, "tiles = [1]")], ": input.tiles: 1 has the wrong type; allowed: a list of texts");
    refused(&[(TILES, "")], ": input.tiles: missing; a list of texts is needed");
    refused(
        &[("normalize = true", "normalize = \"no\"")],
        r#": input.normalize: the text "no" has the wrong type; allowed: true or false"#,
    );
    refused(
        &[("normalize = true", "normalized = true")],
        ": input.normalized: unknown; known are tiles, slides, magnification, tile, halo, skip_background, tissue, images, partition, channels, reference, annotations_outside, annotations, normalize",
    );
    refused_beside(&["tiles/a_labels.png"], &[], r#": input.tiles: no file matches "tiles/*.png""#);
}

#[test]
fn invalid_selections_of_annotations_are_refused() {
    let files = ["tiles/a.png", "truth/a.geojson"];
    let defaults = "reference = \"defaults\"";
    let with = |lines: &str, message: &str| {
        let reference = format!("reference = \"truth\"\n[input.annotations]\n{lines}");
        refused_beside(&files, &[("normalize = true\n", ""), (defaults, &reference)], message);
    };
    with(
        "classes = []",
        ": input.annotations.classes: an empty list is not allowed; allowed: one or more names, or no such key",
    );
    with(
        "classes = \"a\"",
        ": input.annotations.classes: the text \"a\" has the wrong type; allowed: a list of texts",
    );
    with(
        "regions = [\"\"]",
        ": input.annotations.regions: an empty name is not allowed; allowed: names as in the annotation files",
    );
    with(
        "classes = [\"A\"]\nregions = [\"A\"]",
        ": input.annotations.regions: \"A\" is not allowed; allowed: names that are not among classes",
    );
    let units = "allowed: \"px\" (pixels) or \"um\" (micrometers)";
    with("unit = \"mm\"", &format!(": input.annotations.unit: \"mm\" is not allowed; {units}"));
    with(
        "unit = \"um\"",
        ": input.annotations.unit: \"um\" is not allowed; allowed: \"um\" with mpp, the micrometers per pixel, which tiles do not state",
    );
    with("mpp = 0.25", ": input.annotations.mpp: 0.25 is not allowed; allowed: none without unit = \"um\"");
    with(
        "unit = \"um\"\nmpp = 0",
        ": input.annotations.mpp: 0 is not allowed; allowed: micrometers per pixel, above 0 and up to 1000",
    );
    // The operations of these tests have no variants.
    with(
        "regions = [\"ROI\"]",
        ": input.annotations: regions is not allowed; allowed: none: nothing that measures in workflow nuclei can leave pixels out",
    );
    let weights = |weights: &str, message: &str| {
        let edited = format!("metric = \"dice\"\nweights = {weights}\n");
        refused(&[("metric = \"dice\"\n", &edited)], message);
    };
    weights("1", ": response.weights: 1 has the wrong type; allowed: a text");
    weights(
        "\"area\"",
        ": response.weights: \"area\" is not allowed; allowed: \"equal\", \"tissue\", \"annotated\"",
    );
    weights(
        "\"tissue\"",
        ": response.weights: \"tissue\" is not allowed; allowed: \"equal\", \"annotated\" for tiles; \"tissue\" needs slides",
    );
    weights(
        "\"annotated\"",
        ": response.weights: \"annotated\" is not allowed; allowed: \"equal\", \"tissue\" with reference = \"defaults\"; \"annotated\" needs a folder of references",
    );
}

#[test]
fn invalid_references_are_refused() {
    let defaults = "reference = \"defaults\"";
    refused(
        &[(defaults, "reference = \"truth\"")],
        r#": input.reference: DIR/truth: no such folder; a folder of masks or "defaults" is allowed"#,
    );
    refused(
        &[(defaults, "reference = \"tiles/a.png\"")],
        r#": input.reference: DIR/tiles/a.png: no such folder; a folder of masks or "defaults" is allowed"#,
    );
    let files = ["tiles/a.png", "tiles/b.png", "truth/a.png", "truth/b.tif"];
    refused_beside(
        &files,
        &[(defaults, "reference = \"truth\"")],
        ": input.reference: DIR/truth has none of b_labels.png, b.geojson and b.png for tile DIR/tiles/b.png",
    );
    // A mask belongs to one tile.
    let files = ["tiles/a.png", "more/a.png", "truth/a.png"];
    refused_beside(
        &files,
        &[
            ("tiles = [\"tiles/*.png\"]", "tiles = [\"tiles/*.png\", \"more/*.png\"]"),
            (defaults, "reference = \"truth\""),
        ],
        ": input.reference: DIR/truth/a.png is the reference of two tiles named a; tile names must be unique",
    );
    // A tile is not its own reference.
    refused(
        &[(defaults, "reference = \"tiles\"")],
        ": input.reference: DIR/tiles has none of a_labels.png, a.geojson and a.png for tile DIR/tiles/a.png",
    );
    refused(&[(defaults, "reference = true")], ": input.reference: true has the wrong type; allowed: a text");
}

#[test]
fn invalid_methods_are_refused() {
    refused(
        &[("kind = \"moat\"", "kind = \"morris\"")],
        r#": method.kind: "morris" is not allowed; allowed: "moat", "vbd", "correlation", "regression", "pawn", "delta", "fast", "rbd-fast" or "table""#,
    );
    refused(&[("kind = \"moat\"\n", "")], ": method.kind: missing; a text is needed");
    refused(
        &[("sampler = \"morris\"", "sampler = \"sobol\"")],
        r#": method.sampler: "sobol" is not allowed; allowed: "morris" for kind "moat""#,
    );
    refused(
        &[("trajectories = 10", "trajectories = 0")],
        ": method.trajectories: 0 is not allowed; allowed: 1 to 10000",
    );
    refused(
        &[("trajectories = 10", "trajectories = -3")],
        ": method.trajectories: -3 is not allowed; allowed: 1 to 10000",
    );
    refused(
        &[("trajectories = 10", "trajectories = 10001")],
        ": method.trajectories: 10001 is not allowed; allowed: 1 to 10000",
    );
    refused(
        &[("trajectories = 10", "trajectories = \"ten\"")],
        r#": method.trajectories: the text "ten" has the wrong type; allowed: a whole number"#,
    );
    refused(
        &[("trajectories = 10", "trajectories = 10\ncandidates = 9")],
        ": method.candidates: 9 is not allowed; allowed: 10 to 2000",
    );
    refused(
        &[("trajectories = 10", "trajectories = 10\nbase = \"grid\"")],
        r#": method.base: "grid" is not allowed; allowed: "sobol", "mc", "lhs", "halton", "hammersley""#,
    );
    refused(
        &[("trajectories = 10", "samples = 10")],
        ": method.samples: unknown; known are kind, sampler, trajectories, levels, base, candidates, until",
    );
    refused(&[("levels = 20", "levels = 1")], ": method.levels: 1 is not allowed; allowed: 2 to 100000");
    refused(
        &[("levels = 20", "levels = nan")],
        ": method.levels: nan has the wrong type; allowed: a whole number",
    );
    refused(
        &[("sampler = \"morris\"\nkind = \"moat\"", "kind = \"table\"\nfile = \"s.csv\"")],
        ": method.trajectories: unknown; known are kind, file, until",
    );
    let moat = "sampler = \"morris\"\nkind = \"moat\"\ntrajectories = 10\nlevels = 20";
    refused(&[(moat, "kind = \"table\"")], ": method.file: missing; a text is needed");
    for (fields, said) in [
        ("", ".samples: missing; a whole number is needed"),
        ("samples = 0", ".samples: 0 is not allowed; allowed: 1 to 10000000"),
        ("samples = -1", ".samples: -1 is not allowed; allowed: 1 to 10000000"),
        ("samples = 10000001", ".samples: 10000001 is not allowed; allowed: 1 to 10000000"),
        ("samples = 1.5", ".samples: 1.5 has the wrong type; allowed: a whole number"),
        (
            "samples = 4\nsecond_order = \"yes\"",
            ".second_order: the text \"yes\" has the wrong type; allowed: true or false",
        ),
        (
            "samples = 4\nbase = \"LHS\"",
            ".base: \"LHS\" is not allowed; allowed: \"sobol\", \"mc\", \"lhs\", \"halton\", \"hammersley\"",
        ),
        ("samples = 4\nbase = 2", ".base: 2 has the wrong type; allowed: a text"),
        (
            "samples = 4\nsampler = \"morris\"",
            ".sampler: \"morris\" is not allowed; allowed: \"saltelli\" for kind \"vbd\"",
        ),
        (
            "samples = 4\nlevels = 20",
            ".levels: unknown; known are kind, sampler, samples, second_order, base, until",
        ),
    ] {
        refused(&[(moat, &format!("kind = \"vbd\"\n{fields}"))], &format!(": method{said}"));
    }
    refused(
        &[("metric = \"dice\"", "metric = \"f1\"")],
        r#": response.metric: "f1" is not allowed; allowed: "dice", "jaccard", "pixel-difference", "object-dice", "object-jaccard", "object-pair-dice", "object-recall", "nuclei", "mean-area""#,
    );
    refused(
        &[("metric = \"dice\"", "metric = 1979-05-27")],
        ": response.metric: 1979-05-27 has the wrong type; allowed: a text",
    );
}

#[test]
fn invalid_distributions_are_refused() {
    let section = |fields: &str| format!("[parameters.T1]\n{fields}\n[parameters.G1]");
    for (fields, said) in [
        (
            "distribution = \"norm\"",
            ".distribution: \"norm\" is not allowed; allowed: \"uniform\", \"log-uniform\", \"normal\", \"truncated-normal\", \"triangular\", \"log-normal\"",
        ),
        ("distribution = \"normal\"\nmean = 5", ".std: missing; a number is needed"),
        ("distribution = \"normal\"\nmean = 5\nstd = 0", ".std: deviation 0 is not above 0"),
        (
            "distribution = \"normal\"\nmean = 5\nstd = 1\nrange = [1, 2]",
            ".range: this key is not allowed; allowed: none with distribution \"normal\"",
        ),
        (
            "distribution = \"log-uniform\"\nrange = [0, 2]",
            ".range: log-scaled range starts at 0; the first number must be above 0",
        ),
        ("distribution = \"log-uniform\"", ".range: missing; [smallest, largest] is needed"),
        ("distribution = \"triangular\"\nrange = [1, 2]\nmode = 3", ".mode: mode 3 is not within [1, 2]"),
        (
            "distribution = \"normal\"\nmean = 5\nstd = 1\nvalues = [1, 2]",
            ".distribution: \"normal\" is not allowed; allowed: no values, fixed or step beside it",
        ),
        (
            "range = [1, 2]\nmean = 1",
            ".mean: this number is not allowed; allowed: one with a distribution that has it",
        ),
    ] {
        refused(&[("[parameters.G1]", &section(fields))], &format!(": parameters.T1{said}"));
    }
    refused(
        &[(G1, "distribution = \"normal\"\nmean = 50\nstd = 5")],
        ": parameters.G1.distribution: distribution for an integer parameter; a range or values are allowed",
    );
}

#[test]
fn invalid_parameters_are_refused() {
    refused(
        &[("[parameters.G1]", "[parameters.G3]")],
        ": parameters.G3: unknown; known are B, G, R, T1, T2, MorphRecon, G1, FillHoles, minSize, maxSize, G2, minSizePl, Watershed, minSizeSeg, maxSizeSeg",
    );
    refused(
        &[("[parameters.G1]", "[parameters]\nG1 = 80\n[parameters.G2]")],
        ": parameters.G1: 80 has the wrong type; allowed: a section",
    );
    refused(
        &[(G1, "rang = [5, 80]")],
        ": parameters.G1.rang: unknown; known are range, step, values, fixed, distribution, mean, std, mode, default",
    );
    refused(&[(G1, "range = [nan, 80]")], ": parameters.G1.range: NaN is not a finite number");
    refused(&[(G1, "range = [5, inf]")], ": parameters.G1.range: inf is not a finite number");
    refused(
        &[(G1, "range = [80, 5]")],
        ": parameters.G1.range: range [80, 5] is empty; the first number must be below the second",
    );
    refused(
        &[(G1, "range = [5, 5]")],
        ": parameters.G1.range: range [5, 5] is empty; the first number must be below the second",
    );
    refused(
        &[(G1, "range = [5]")],
        ": parameters.G1.range: a list of 1 number is not allowed; allowed: [smallest, largest]",
    );
    refused(&[(G1, "range = 5")], ": parameters.G1.range: 5 has the wrong type; allowed: a list of numbers");
    refused(
        &[(G1, "range = [5, \"80\"]")],
        r#": parameters.G1.range: the text "80" has the wrong type; allowed: a list of numbers"#,
    );
    refused(
        &[(G1, "range = [5.5, 80]")],
        ": parameters.G1.range: 5.5 is not an integer; the parameter allows integers",
    );
    refused(
        &[(G1, "range = [5, 80]\nstep = 7")],
        ": parameters.G1.step: step 7 does not divide the range from 5 to 80; a positive divisor of 75 is allowed",
    );
    refused(
        &[(G1, "range = [5, 80]\nstep = -5")],
        ": parameters.G1.step: step -5 does not divide the range from 5 to 80; a positive divisor of 75 is allowed",
    );
    refused(&[(G1, "range = [5, 80]\nstep = nan")], ": parameters.G1.step: NaN is not a finite number");
    refused(
        &[(G1, "range = [5, 80]\nstep = 2.5")],
        ": parameters.G1.step: 2.5 is not an integer; the parameter allows integers",
    );
    refused(&[(G1, "step = 5")], ": parameters.G1.step: a step needs a range");
    refused(&[(G1, "values = [5, 80]\nstep = 5")], ": parameters.G1.step: a step needs a range");
    refused(
        &[(G1, "values = []")],
        ": parameters.G1.values: the list of values is empty; at least one is needed",
    );
    refused(&[(G1, "values = [5, 5]")], ": parameters.G1.values: value 5 is listed twice");
    refused(
        &[(G1, "values = [5, 80]\nfixed = 5")],
        ": parameters.G1: give exactly one of range, values and fixed",
    );
    refused(
        &[(G1, "fixed = 60\ndefault = 80")],
        ": parameters.G1.default: 80 is not allowed; allowed: 60, the fixed value, or no default",
    );
    refused(&[(G1, "fixed = nan")], ": parameters.G1.fixed: NaN is not a finite number");
    refused(
        &[(G1, "fixed = \"80\"")],
        r#": parameters.G1.fixed: the text "80" has the wrong type; allowed: a number"#,
    );
    refused(
        &[(G1, "fixed = 80.5")],
        ": parameters.G1.fixed: 80.5 is not an integer; the parameter allows integers",
    );
    refused(
        &[(G1, "default = 80.5")],
        ": parameters.G1.default: 80.5 is not an integer; the parameter allows integers",
    );
    refused(
        &[("[parameters.G1]\nrange = [5, 80]\nstep = 5", "[parameters.T1]\nrange = [2, 3]\nstep = 0.3")],
        ": parameters.T1.step: step 0.3 does not divide the range from 2 to 3; a positive divisor of 1 is allowed",
    );
}

#[test]
fn non_toml_text_is_refused_with_line_and_column() {
    let allowed =
        "sections in [brackets] and lines such as key = 1, key = \"text\" or key = [1, 2] are allowed";
    let refused = |edits: &[(&str, &str)], place: &str, message: &str| {
        refused(edits, &format!("{place}: no TOML: {message}; {allowed}"));
    };
    let unquoted = "string values must be quoted, expected literal string";
    refused(&[("seed = 500", "seed = ")], ":4:8", unquoted);
    refused(&[("seed = 500", "seed = 500\nseed = 501")], ":5:1", "duplicate key");
    refused(&[("levels = 20", "levels 20")], ":13:8", "key with no value, expected `=`");
    refused(&[("metric = \"dice\"", "metric = \"dice")], ":15:15", r#"invalid basic string, expected `"`"#);
    refused(&[("[input]", "[study]")], ":5:2", "duplicate key");
    let large = "invalid type: integer `99999999999999999999` is beyond 64 bits";
    refused(&[("seed = 500", "seed = 99999999999999999999")], ":4:8", large);
}

#[test]
fn unreadable_files_are_refused_by_name() {
    let folder = Folder::with(&[]);
    let message = |file: &str| folder.shown(&folder.load(file).expect_err("no study").to_string());
    assert_eq!(
        message("study.toml"),
        "DIR/study.toml: failed to read: No such file or directory (os error 2)"
    );
    folder.write("study.toml", [0xff, 0xfe]);
    assert_eq!(
        message("study.toml"),
        "DIR/study.toml: failed to read: line 1, column 1: byte 0xff is not UTF-8; text in UTF-8 is allowed"
    );
    folder.write("study.toml", "");
    assert_eq!(message("study.toml"), "DIR/study.toml: study: missing; this section is needed");
}
