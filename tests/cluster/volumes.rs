//! Images of more dimensions: spots in a z-stack over time, found across the borders of blocks and linked to the next time, in one
//! process and on two workers that read the image where it is.

use crate::cluster::Cluster;
use crate::pleach::pleach;
use crate::sharing::metrics;
use crate::study::Study;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Times of the image, and its spots at each of them: one for each 24 × 24 × 8 px.
const TIMES: u64 = 3;
const SPOTS: u64 = 3 * 2 * 2;

/// Blocks of 40 × 32 × 8 px.
const BLOCKS: u64 = 2 * 2 * 2 * TIMES;

/// Parameter sets. The first has the defaults, and smoothing of the second and third is that of one parameter set.
const SETS: &str = "radius,radiusZ,threshold,distance\n1,1,1000,3\n2,1,1000,3\n2,1,3000,3\n1,1,1000,0.5\n";

/// An image with the descriptors of the example, studied with given parameter sets.
fn study() -> Study {
    let study = Study::of_tissue(64);
    let image = ["tissue", "--volume", "72x48x16x3", "--out", "s.ome.zarr", "--seed", "5"];
    let written = pleach(study.folder(), &image).done();
    let text = "an image of 72 x 48 x 16 px of u16, 3 times every 30 s (spots), pixels of 0.5 x 0.5 x 2 µm, 12 spots in s.ome.zarr\n";
    assert_eq!(written, text);
    for name in ["workflow", "reals", "smooth", "spots", "count", "links"] {
        study.write(&format!("{name}.json"), example(&format!("{name}.json")));
    }
    study.write("sets.csv", SETS);
    study
}

fn example(name: &str) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/volume");
    fs::read_to_string(example.join(name)).expect("a file of the example")
}

/// Writes the study file of the example with another partition.
fn edit(study: &Study, partition: &str, edits: &[(&str, &str)]) {
    let partition = format!("partition = {{ {partition} }}");
    let usual = "partition = { x = 96, y = 72, z = 16, t = 1 }";
    let sets = [("kind = \"moat\"\ntrajectories = 4\nlevels = 4", "kind = \"table\"\nfile = \"sets.csv\"")];
    let edits = [(usual, partition.as_str())].into_iter().chain(sets).chain(edits.iter().copied());
    let edited = edits.fold(example("study.toml"), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    });
    study.write("study.toml", edited);
}

/// Runs the study in one process, each distinct task once. Returns the executed tasks.
fn run(study: &Study, out: &str) -> u64 {
    pleach(study.folder(), &["run", "study.toml", "--out", out, "--quiet", "--strategy", "stage"]).done();
    executed(&study.path(out))
}

fn executed(out: &Path) -> u64 {
    let text = fs::read_to_string(out.join("run.json")).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    record["tasks_executed"].as_u64().expect("a number")
}

/// Sets of a response: its value for each evaluation and block, of a column of the table.
fn column(responses: &str, name: &str) -> Vec<Vec<f64>> {
    let mut lines = responses.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let place =
        header.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name} in {header:?}"));
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let evaluation: usize = cells[0].parse().expect("an evaluation");
        rows.resize(rows.len().max(evaluation), Vec::new());
        rows[evaluation - 1].push(cells[place].parse().expect("a number"));
    }
    rows
}

fn responses(study: &Study, out: &str) -> String {
    fs::read_to_string(study.path(out).join("responses.csv")).expect("a table")
}

#[test]
fn spots_are_found_and_linked_on_two_workers() {
    let study = study();
    // Blocks of a whole stack at one time, so that each spot is linked.
    edit(&study, "", &[]);
    run(&study, "whole");
    let whole = responses(&study, "whole");
    let points = column(&whole, "points");
    assert_eq!(points[0], vec![(TIMES * SPOTS) as f64; TIMES as usize], "all spots of all times");
    assert!(points.iter().any(|of| *of != points[0]), "{points:?}");
    assert_eq!(column(&whole, "linked")[0], [SPOTS as f64, SPOTS as f64, 0.0]);
    // Micrometers of the metadata: of 0.5 x 0.5 x 2 µm per pixel, at most 2.5 px along x and y and one plane.
    let displacement = column(&whole, "displacement")[0][0];
    assert!((0.1..2.7).contains(&displacement), "{displacement}");
    assert_eq!(column(&whole, "speed")[0][0], displacement / 30.0);
    assert!(column(&whole, "linked")[3][0] < SPOTS as f64, "a distance of 0.5 µm");
    edit(&study, "x = 40, y = 32, z = 8", &[]);
    let alone = run(&study, "alone");
    let expected = responses(&study, "alone");
    let per_image = |rows: Vec<Vec<f64>>| rows.iter().map(|row| row[0]).collect::<Vec<f64>>();
    assert_eq!(
        per_image(column(&expected, "points")),
        per_image(points),
        "points do not depend on the partition"
    );
    // Of each block: numbers; average with join and cut for 2 smoothings; spots with join and cut for 3 sets; the spots of
    // the next time and links for 4 sets, and their table. Of the image: join and count for 3 sets.
    assert_eq!(alone, BLOCKS * (1 + 2 * 3 + 3 * 3 + 4 * 3) + 3 * 2);
    let mut cluster = Cluster::new(&study);
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--metrics", "127.0.0.1:0"]);
    }
    let id = cluster.submit(&["--strategy", "stage"]);
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(executed(&cluster.path(&format!("out-{id}"))), alone, "each shared task is executed once");
    let moved: f64 = ["w0", "w1"].iter().map(|worker| moved_bytes(&metrics(&cluster, worker))).sum();
    println!("{alone} tasks, {moved} bytes of regions moved between two workers");
    assert!(moved > 0.0, "halos are on another worker");
    cluster.nothing_is_left();
}

/// Bytes of regions received from other workers.
fn moved_bytes(metrics: &str) -> f64 {
    let received =
        metrics.lines().filter(|line| line.starts_with("pleach_transfer_bytes_total{direction=\"in\""));
    received.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

#[test]
fn images_that_a_study_cannot_read_are_refused() {
    let study = study();
    let refused = |edits: &[(&str, &str)], cause: &str| {
        edit(&study, "x = 40, y = 32, z = 8", edits);
        let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out"]);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        assert!(answer.stderr.contains(cause), "{}", answer.stderr);
        assert!(!study.path("out").exists());
    };
    refused(
        &[("*.ome.zarr", "tiles")],
        "study.toml: input.images: tiles: a folder without zarr.json; OME-Zarr folders",
    );
    let element =
        "s.ome.zarr/zarr.json: array-u16 images; region volume of workflow volume has type array-u8";
    let descriptor = example("workflow.json");
    study.write("workflow.json", descriptor.replace("array-u16", "array-u8"));
    study.write("reals.json", example("reals.json").replace("u16", "u8"));
    refused(&[], element);
    study.write("workflow.json", descriptor);
    study.write("reals.json", example("reals.json"));
    let chunk = study.path("s.ome.zarr/0/c/2/7/0/0");
    let bytes = fs::read(&chunk).expect("a chunk");
    fs::write(&chunk, &bytes[..bytes.len() / 2]).expect("written");
    refused(&[], "s.ome.zarr/0/zarr.json: chunk c/2/7/0/0: zstd: ");
    fs::write(&chunk, bytes).expect("written");
    fs::remove_file(study.path("s.ome.zarr/0/zarr.json")).expect("removed");
    refused(&[], "s.ome.zarr/0/zarr.json: failed to read: No such file");
}
