//! Everything that can be wrong with a study file: one line each, with file, field, value and what is allowed.

use crate::folder::Folder;

/// Makes a mistake in the example, beside one tile, and expects to be told about it in these words.
#[track_caller]
fn refused(edits: &[(&str, &str)], message: &str) {
    refused_beside(&["tiles/a.png"], edits, message);
}

#[track_caller]
fn refused_beside(files: &[&str], edits: &[(&str, &str)], message: &str) {
    let folder = Folder::with(files);
    let _ = message;
    match folder.example(edits) {
        Ok(_) => println!("!!! LOADED {edits:?}"),
        Err(e) => println!("{}", folder.shown(&e.to_string())),
    }
}

const G1: &str = "range = [5, 80]\nstep = 5";
const TILES: &str = "tiles = [\"tiles/*.png\"]";

#[test]
fn the_study_itself() {
    let name = "name = \"nuclei-moat\"";
    refused(&[(name, "name = \"a/b\"")], "?");
    refused(&[(name, "name = \"\"")], "?");
    refused(&[(name, "name = \"..\"")], "?");
    refused(&[(name, "name = \"two\\nlines\"")], "?");
    refused(&[(name, "name = 7")], "?");
    refused(&[(name, "")], "?");
    refused(&[("seed = 500", "seed = -1")], "?");
    refused(&[("seed = 500", "seed = 1.5")], "?");
    refused(&[("seed = 500", "sed = 500")], "?");
    refused(&[("workflow = \"nuclei\"", "workflow = \"nuklei\"")], "?");
    refused(&[("workflow = \"nuclei\"", "workflow = \"tiles\"")], "?");
    refused(&[("[response]", "[respons]")], "?");
    refused(&[("[response]\nmetric = \"dice\"\n", "")], "?");
    refused(&[("[study]\n", "study = 1\n[input]\n"), ("seed = 500\n[input]\n", "")], "?");
}

#[test]
fn tiles() {
    refused(&[(TILES, "tiles = [\"tiles/b.png\"]")], "?");
    refused(&[(TILES, "tiles = [\"tiles/*.tif\"]")], "?");
    refused(&[(TILES, "tiles = [\"tiles/*.png\", \"more/*.png\"]")], "?");
    refused(&[(TILES, "tiles = [\"tiles\"]")], "?");
    refused(&[(TILES, "tiles = [\"tiles/[a.png\"]")], "?");
    refused(&[(TILES, "tiles = []")], "?");
    refused(&[(TILES, "tiles = \"tiles/*.png\"")], "?");
    refused(&[(TILES, "tiles = [1]")], "?");
    refused(&[(TILES, "")], "?");
    refused(&[("normalize = true", "normalize = \"no\"")], "?");
    refused(&[("normalize = true", "normalise = true")], "?");
    refused_beside(&["tiles/a_labels.png"], &[], "?");
}

#[test]
fn references() {
    let defaults = "reference = \"defaults\"";
    refused(&[(defaults, "reference = \"truth\"")], "?");
    refused(&[(defaults, "reference = \"tiles/a.png\"")], "?");
    let files = ["tiles/a.png", "tiles/b.png", "truth/a.png", "truth/b.tif"];
    refused_beside(&files, &[(defaults, "reference = \"truth\"")], "?");
    // A tile is not its own reference.
    refused(&[(defaults, "reference = \"tiles\"")], "?");
    refused(&[(defaults, "reference = true")], "?");
}

#[test]
fn methods() {
    refused(&[("kind = \"moat\"", "kind = \"morris\"")], "?");
    refused(&[("kind = \"moat\"\n", "")], "?");
    refused(&[("sampler = \"morris\"", "sampler = \"sobol\"")], "?");
    refused(&[("trajectories = 10", "trajectories = 0")], "?");
    refused(&[("trajectories = 10", "trajectories = -3")], "?");
    refused(&[("trajectories = 10", "trajectories = 10001")], "?");
    refused(&[("trajectories = 10", "trajectories = \"ten\"")], "?");
    refused(&[("trajectories = 10", "samples = 10")], "?");
    refused(&[("levels = 20", "levels = 1")], "?");
    refused(&[("levels = 20", "levels = nan")], "?");
    refused(&[("sampler = \"morris\"\nkind = \"moat\"", "kind = \"table\"\nfile = \"s.csv\"")], "?");
    let table = ("sampler = \"morris\"\nkind = \"moat\"\ntrajectories = 10\nlevels = 20", "kind = \"table\"");
    refused(&[table], "?");
    refused(&[("metric = \"dice\"", "metric = \"f1\"")], "?");
    refused(&[("metric = \"dice\"", "metric = 1979-05-27")], "?");
}

#[test]
fn parameters() {
    refused(&[("[parameters.G1]", "[parameters.G3]")], "?");
    refused(&[("[parameters.G1]", "[parameters]\nG1 = 80\n[parameters.G2]")], "?");
    refused(&[(G1, "rang = [5, 80]")], "?");
    refused(&[(G1, "range = [nan, 80]")], "?");
    refused(&[(G1, "range = [5, inf]")], "?");
    refused(&[(G1, "range = [80, 5]")], "?");
    refused(&[(G1, "range = [5, 5]")], "?");
    refused(&[(G1, "range = [5]")], "?");
    refused(&[(G1, "range = 5")], "?");
    refused(&[(G1, "range = [5, \"80\"]")], "?");
    refused(&[(G1, "range = [5.5, 80]")], "?");
    refused(&[(G1, "range = [5, 80]\nstep = 7")], "?");
    refused(&[(G1, "range = [5, 80]\nstep = -5")], "?");
    refused(&[(G1, "range = [5, 80]\nstep = nan")], "?");
    refused(&[(G1, "range = [5, 80]\nstep = 2.5")], "?");
    refused(&[(G1, "step = 5")], "?");
    refused(&[(G1, "values = [5, 80]\nstep = 5")], "?");
    refused(&[(G1, "values = []")], "?");
    refused(&[(G1, "values = [5, 5]")], "?");
    refused(&[(G1, "values = [5, 80]\nfixed = 5")], "?");
    refused(&[(G1, "fixed = nan")], "?");
    refused(&[(G1, "fixed = \"80\"")], "?");
    refused(&[(G1, "fixed = 80.5")], "?");
    refused(&[(G1, "default = 80.5")], "?");
    refused(
        &[("[parameters.G1]\nrange = [5, 80]\nstep = 5", "[parameters.T1]\nrange = [2, 3]\nstep = 0.3")],
        "?",
    );
}

#[test]
fn text_that_is_no_toml() {
    refused(&[("seed = 500", "seed = ")], "?");
    refused(&[("seed = 500", "seed = 500\nseed = 501")], "?");
    refused(&[("levels = 20", "levels 20")], "?");
    refused(&[("metric = \"dice\"", "metric = \"dice")], "?");
    refused(&[("[input]", "[study]")], "?");
    refused(&[("seed = 500", "seed = 99999999999999999999")], "?");
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::with(&[]);
    let message = |file: &str| folder.shown(&folder.load(file).expect_err("no study").to_string());
    assert_eq!(
        message("study.toml"),
        "DIR/study.toml: failed to read: No such file or directory (os error 2)"
    );
    folder.write("study.toml", [0xff, 0xfe]);
    assert_eq!(message("study.toml"), "DIR/study.toml: failed to read: stream did not contain valid UTF-8");
    folder.write("study.toml", "");
    assert_eq!(message("study.toml"), "DIR/study.toml: study: missing; this section is needed");
}
