//! The JSON Schema of study files, judged by the package `jsonschema`, against the parser.

use crate::copy;
use crate::pleach::pleach;
use crate::results::text;
use crate::study::{STUDY, Study};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Validates TOML files against a schema. Prints a line for each file: its name, and `valid` or the first mistake.
const VALIDATE: &str = "
import json, sys, tomllib
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for name in sys.argv[2:]:
    mistakes = list(validator.iter_errors(tomllib.load(open(name, 'rb'))))
    print(name, 'valid' if not mistakes else mistakes[0].message)
";

/// Returns the verdict on each file. `None` if the package is missing.
fn verdicts(test: &str, files: &[PathBuf]) -> Option<Vec<String>> {
    let python = super::environment(test)?.join("bin/python");
    if !Command::new(&python)
        .args(["-c", "import jsonschema, tomllib"])
        .output()
        .is_ok_and(|of| of.status.success())
    {
        super::skipped(test, "the environment has no jsonschema, or Python is older than 3.11");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let schema = folder.path().join("schema.json");
    std::fs::write(&schema, pleach(folder.path(), &["schema"]).done()).expect("written");
    let output =
        Command::new(python).args(["-c", VALIDATE]).arg(&schema).args(files).output().expect("python runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let verdicts: Vec<String> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, verdict)| verdict.to_owned()).collect();
    assert_eq!(verdicts.len(), files.len(), "{text}");
    Some(verdicts)
}

/// Returns the study files of the repository, without its build folder.
fn studies(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            studies(&entry, found);
        } else if name.ends_with(".toml") {
            let text = std::fs::read_to_string(&entry).expect("UTF-8");
            // Bursts name a study file in a section of the same name.
            if text.contains("[study]\n") && text.contains("[response]\n") {
                found.push(entry);
            }
        }
    }
}

#[test]
fn studies_of_the_repository_are_valid() {
    let mut files = Vec::new();
    for folder in ["examples", "src/command/workflow/new", "tests/fixtures"] {
        studies(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    assert!(files.len() >= 10, "{files:?}");
    let Some(verdicts) = verdicts("studies_of_the_repository_are_valid", &files) else { return };
    for (file, verdict) in files.iter().zip(verdicts) {
        assert_eq!(verdict, "valid", "{}", file.display());
    }
}

/// A part of a study, its replacement, and whether schema and parser accept it.
type Edit = (&'static str, &'static str, bool);

/// Edits of the usual study.
const TILE_EDITS: &[Edit] = &[
    ("seed = 500", "seed = 500\ndurability = \"outputs\"", true),
    ("seed = 500", "durability = \"some\"", false),
    ("seed = 500", "seed = -1", false),
    ("seed = 500", "seeds = 1", false),
    ("name = \"nuclei-moat\"", "name = \"a/b\"", false),
    ("normalize = true", "annotations_outside = 0.1", true),
    ("normalize = true", "annotations_outside = 1.1", false),
    ("normalize = true", "normalise = 1", false),
    ("levels = 20", "levels = 20\nbase = \"sobol\"\ncandidates = 4", true),
    ("levels = 20", "levels = 1", false),
    ("levels = 20", "samples = 20", false),
    ("levels = 20", "until = { ci_width = 0.1, max_evaluations = 64 }", true),
    ("levels = 20", "until = { ci_width = 0.1 }", false),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"vbd\"\nsamples = 4\nsecond_order = true",
        true,
    ),
    ("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"vbd\"", false),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"pawn\"\nsamples = 10\nsampler = \"halton\"",
        true,
    ),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"pawn\"\nsamples = 10\nsampler = \"morris\"",
        false,
    ),
    ("metric = \"dice\"", "metric = [\"dice\", \"jaccard\"]\nboth_empty = \"leave-out\"", true),
    ("metric = \"dice\"", "metric = []", false),
    (
        "metric = \"dice\"",
        "metric = \"dice\"\n[parameters.G1]\nrange = [5, 80]\nstep = 5\ndefault = 10",
        true,
    ),
    (
        "metric = \"dice\"",
        "metric = \"dice\"\n[parameters.T1]\ndistribution = \"log-uniform\"\nrange = [2, 8]",
        true,
    ),
    ("metric = \"dice\"", "metric = \"dice\"\n[parameters.G1]\nstep = 5", false),
    ("seed = 500", "seed = 500\nretain = [\"segmentation.mask\"]", true),
    ("seed = 500", "seed = 500\nretain = \"segmentation.mask\"", false),
    ("normalize = true", "normalize = { target = \"tiles/tissue_01.png\", fit = \"tile\" }", true),
    ("normalize = true", "normalize = { target = 1 }", false),
    ("normalize = true", "normalize = { image = \"tiles/tissue_01.png\" }", false),
    ("metric = \"dice\"", "metric = \"dice\"\nweights = \"equal\"", true),
    ("metric = \"dice\"", "metric = \"dice\"\nweights = \"area\"", false),
];

/// Edits of a study of a slide with annotations.
const SLIDE_EDITS: &[Edit] = &[
    ("[\"slides/s.tif\"]", "[\"slides/*.tif\"]\nhalo = 32", true),
    ("[\"slides/s.tif\"]", "\"slides/s.tif\"", false),
    ("[\"slides/s.tif\"]", "[\"slides/s.tif\"]\ntiles = [\"tiles/*.png\"]", false),
    ("normalize = true", "normalize = { fit = \"slide\", target = \"tiles/tissue_01.png\" }", true),
    ("normalize = true", "normalize = { fit = \"study\" }", false),
    ("normalize = true", "annotations = { classes = [\"Nucleus\"], unit = \"px\" }", true),
    ("normalize = true", "annotations = { unit = \"mm\" }", false),
    ("normalize = true", "annotations = { class = [\"Nucleus\"] }", false),
    ("normalize = true", "annotations = { mpp = 0 }", false),
    ("normalize = true", "annotations = { mpp = 0.25 }", false),
    ("metric = \"dice\"", "metric = \"dice\"\nweights = \"tissue\"", true),
    ("metric = \"dice\"", "metric = \"dice\"\nweights = \"annotated\"", true),
    ("metric = \"dice\"", "metric = \"dice\"\nweights = 1", false),
];

/// Edits of a study of an image of more dimensions.
const IMAGE_EDITS: &[Edit] = &[
    ("[\"v.ome.zarr\"]", "[\"*.ome.zarr\"]\nchannels = [0]", true),
    ("[\"v.ome.zarr\"]", "[]", false),
    ("[\"v.ome.zarr\"]", "[\"v.ome.zarr\"]\nslides = [\"slides/s.tif\"]", false),
    ("[\"v.ome.zarr\"]", "[\"v.ome.zarr\"]\nchannels = [-1]", false),
    ("t = 1 }", "t = 2 }", false),
    ("t = 1 }", "c = 1 }", false),
    ("seed = 7", "seed = 7\nretain = [\"spots.spots\"]", true),
    ("seed = 7", "seed = 7\nretain = [1]", false),
];

/// Replaces a part that the text has once.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old}");
    text.replace(old, new)
}

/// Returns studies of tiles, of a slide with annotations, and of an image of more dimensions, in this folder. Each has its edits.
fn edited_studies(study: &Study) -> [(&'static str, String, &'static [Edit]); 3] {
    study.write("slides/none.txt", "");
    let slide =
        ["tissue", "--slide", "512x512", "--out", "slides/s.tif", "--annotations", "slides/s.geojson"];
    pleach(study.folder(), &slide).done();
    pleach(study.folder(), &["tissue", "--volume", "16x16x4x1", "--out", "v.ome.zarr"]).done();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/volume");
    copy(&example, study.folder());
    let slides = "slides = [\"slides/s.tif\"]\ntile = 256";
    let slides = replaced(STUDY, "tiles = [\"tiles/*.png\"]", slides);
    let slides = replaced(&slides, "\"defaults\"", "\"slides\"");
    let images = replaced(&text(&example.join("study.toml")), "[\"*.ome.zarr\"]", "[\"v.ome.zarr\"]");
    [
        ("tiles", STUDY.to_owned(), TILE_EDITS),
        ("slides", slides, SLIDE_EDITS),
        ("images", images, IMAGE_EDITS),
    ]
}

#[test]
fn schema_and_parser_judge_alike() {
    let study = Study::of_tissue(64);
    let mut judged = Vec::new();
    for (kind, base, edits) in edited_studies(&study) {
        for (number, (old, new, accepted)) in edits.iter().enumerate() {
            let name = format!("{kind}-{number}.toml");
            study.write(&name, replaced(&base, old, new));
            let ended = pleach(study.folder(), &["plan", &name, "--json"]);
            assert_eq!(ended.code == 0, *accepted, "{kind}: {new}: {ended:?}");
            judged.push((study.path(&name), new, accepted));
        }
    }
    let files: Vec<PathBuf> = judged.iter().map(|(file, ..)| file.clone()).collect();
    let Some(verdicts) = verdicts("schema_and_parser_judge_alike", &files) else { return };
    for ((file, new, accepted), verdict) in judged.iter().zip(verdicts) {
        assert_eq!(verdict == "valid", **accepted, "{}: {new}: {verdict}", file.display());
    }
}
