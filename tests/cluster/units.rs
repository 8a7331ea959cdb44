//! Stages that read regions of other tiles: results do not depend on the partition, in one process and on two workers, of
//! which one is killed.

use crate::cluster::{Cluster, expected};
use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::sharing::metrics;
use crate::study::Study;
use crate::watched::get;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Width and height of the slide, pixels: 3 × 2 tiles of 64 px, those at the right and at the bottom smaller.
const SIZE_PX: [usize; 2] = [150, 110];

/// Tiles of 64 px.
const TILES: usize = 6;

/// Bytes of gray and of four smoothings of a slide of 512 × 512 px, 4 bytes a pixel.
const ARRAYS_BYTES: f64 = 512.0 * 512.0 * 4.0 * 5.0;

/// A slide with the descriptors of the example.
pub(crate) fn study() -> Study {
    let study = Study::of_tissue(192);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    let pixel = |n: usize| tissue.get_pixel((n % SIZE_PX[0]) as u32, (n / SIZE_PX[0]) as u32).0;
    let pixels: Vec<u8> = (0..SIZE_PX[0] * SIZE_PX[1]).flat_map(pixel).collect();
    write_image(&study.path("s.svs"), &pixels, SIZE_PX[0], AT_20);
    for name in ["workflow", "gray", "smooth", "spots", "count", "links"] {
        study.write(&format!("{name}.json"), example(&format!("{name}.json")));
    }
    study
}

fn example(name: &str) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/spots");
    fs::read_to_string(example.join(name)).expect("a file of the example")
}

/// Writes the study file of the example, with tiles of `tile` pixels.
pub(crate) fn edit(study: &Study, tile: usize, edits: &[(&str, &str)]) {
    let text = example("study.toml").replace("tile = 512", &format!("tile = {tile}"));
    let edited = edits.iter().fold(text, |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    });
    study.write("study.toml", edited);
}

/// Runs the study in one process. Returns the record.
fn run(study: &Study, out: &str, options: &[&str]) -> Value {
    pleach(study.folder(), &[&["run", "study.toml", "--out", out, "--quiet"], options].concat()).done();
    record(&study.path(out))
}

fn record(out: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(out.join("run.json")).expect("a record")).expect("JSON")
}

/// Evaluation and response of each run, and the indices.
fn responses(study: &Study, out: &str) -> (Vec<(String, String)>, String) {
    let text = fs::read_to_string(study.path(out).join("responses.csv")).expect("a table");
    let rows = text.lines().skip(1).map(|row| {
        let (evaluation, rest) = row.split_once(',').expect("columns");
        (evaluation.to_owned(), rest.split_once(',').expect("columns").1.to_owned())
    });
    (rows.collect(), fs::read_to_string(study.path(out).join("indices.csv")).expect("a table"))
}

fn executed(record: &Value) -> u64 {
    record["tasks_executed"].as_u64().expect("a number")
}

#[test]
fn results_do_not_depend_on_the_partition() {
    let study = study();
    edit(&study, 512, &[]);
    run(&study, "whole", &[]);
    let (whole, indices) = responses(&study, "whole");
    assert!(whole.windows(2).any(|pair| pair[0].1 != pair[1].1), "{whole:?}");
    edit(&study, 64, &[]);
    let mut tasks = Vec::new();
    for options in [
        &["--strategy", "none"][..],
        &["--strategy", "stage"],
        &["--strategy", "rtma", "--workers", "2"],
        &["--strategy", "trtma", "--reuse", "dataflow", "--workers", "2"],
        &["--strategy", "ranges", "--reuse", "value", "--workers", "2", "--cache", "cache"],
    ] {
        let out = format!("tiles-{}", tasks.len());
        let record = run(&study, &out, options);
        let (tiles, of_tiles) = responses(&study, &out);
        // Each tile has the response of its slide, which counts once.
        assert_eq!(tiles.len(), TILES * whole.len(), "{options:?}");
        for run in &whole {
            assert_eq!(tiles.iter().filter(|tile| *tile == run).count(), TILES, "{options:?} {run:?}");
        }
        assert_eq!(of_tiles, indices, "{options:?}");
        tasks.push(executed(&record));
    }
    // Evaluations with one radius share smoothing, and no strategy but the first repeats it.
    assert!(tasks[1..].iter().all(|executed| *executed < tasks[0]), "{tasks:?}");
    // Without sharing: 2 tasks of each run until the spots join, average and cut, find and cut, and 2 of each slide.
    let evaluations = whole.len() as u64;
    assert_eq!(tasks[0], evaluations * (TILES as u64 * (1 + 3 + 3) + 2));
    let again = run(&study, "again", &["--reuse", "value", "--cache", "cache"]);
    assert!(executed(&again) <= tasks[4], "{again}");
    assert_eq!(responses(&study, "again"), responses(&study, "tiles-4"));
    // Without the halo, spots at the borders of tiles differ.
    study.write("smooth.json", example("smooth.json").replace("{ \"halo\": 4 }", "\"own\""));
    run(&study, "own", &[]);
    assert_ne!(responses(&study, "own").1, indices);
}

#[test]
fn workers_read_regions_of_each_others_tiles() {
    let study = study();
    edit(
        &study,
        64,
        &[
            ("metric = \"points\"", "metric = [\"points\", \"linked\"]"),
            ("trajectories = 4", "trajectories = 8"),
        ],
    );
    let expected = expected(&study);
    let alone = executed(&run(&study, "alone-stage", &["--strategy", "stage"]));
    let mut cluster = Cluster::new(&study);
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--metrics", "127.0.0.1:0"]);
    }
    let id = cluster.submit(&["--strategy", "stage"]);
    assert_eq!(cluster.completed(&id), expected);
    let on_two = executed(&record(&cluster.path(&format!("out-{id}"))));
    assert_eq!(on_two, alone, "each shared task is executed once");
    let moved: f64 = ["w0", "w1"].iter().map(|worker| moved_bytes(&metrics(&cluster, worker))).sum();
    assert!(moved > 0.0, "regions of neighbors are on another worker");
    let [memory, disk, shared] = granted_bytes(&cluster, ["memory", "disk", "shared"]);
    assert!(memory > 0.0 && disk == 0.0 && shared == 0.0, "1 GB holds all: {memory}, {disk}, {shared}");
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 200);
    cluster.kill_worker("w1");
    assert_eq!(cluster.completed(&id), expected);
    cluster.nothing_is_left();
}

/// Bytes of regions received from other workers.
pub(crate) fn moved_bytes(metrics: &str) -> f64 {
    sum(metrics, "pleach_transfer_bytes_total{direction=\"in\"")
}

/// Bytes of inputs of granted buckets, by the places of the copies.
pub(crate) fn granted_bytes<const PLACES: usize>(
    cluster: &Cluster<'_>,
    places: [&str; PLACES],
) -> [f64; PLACES] {
    let metrics = get(&format!("https://{}/metrics", cluster.http));
    places.map(|place| sum(&metrics, &format!("pleach_granted_input_bytes_total{{place=\"{place}\"}}")))
}

/// Sum of the samples whose lines start with this text.
fn sum(metrics: &str, start: &str) -> f64 {
    let samples = metrics.lines().filter(|line| line.starts_with(start));
    samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// A worker with 2 MB holds less than half of the arrays in memory, so neighbors read regions that are on its disk.
#[test]
fn halos_are_read_from_the_tiers_of_other_workers() {
    let study = study();
    let slide = ["tissue", "--slide", "512x512", "--lossless", "--out", "large.tif", "--seed", "3"];
    pleach(study.folder(), &slide).done();
    // Many thresholds of each smoothing: the study goes on while workers report where their regions are.
    let mut table = String::from("radius,threshold");
    (190..214).for_each(|threshold| (1..5).for_each(|radius| table += &format!("\n{radius},{threshold}")));
    study.write("sets.csv", table);
    let sets = ("kind = \"moat\"\ntrajectories = 4\nlevels = 4", "kind = \"table\"\nfile = \"sets.csv\"");
    edit(&study, 128, &[("*.svs", "*.tif"), sets]);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--metrics", "127.0.0.1:0", "--memory", "2MB"]);
    }
    let id = cluster.submit(&["--strategy", "stage"]);
    assert_eq!(cluster.completed(&id), expected);
    let metrics = ["w0", "w1"].map(|worker| metrics(&cluster, worker));
    for of_worker in &metrics {
        let (spilled, read) = (
            sum(of_worker, "pleach_tier_spills_total{tier=\"ram\"}"),
            sum(of_worker, "pleach_tier_hits_total{tier=\"ssd\"}"),
        );
        assert!(spilled > 0.0 && read > 0.0, "{spilled} regions spilled, {read} read from the disk");
    }
    // Each array moves once at most, and nine of ten do. Points and tables are small.
    let moved: f64 = metrics.iter().map(|of_worker| moved_bytes(of_worker)).sum();
    println!("{moved} bytes moved between two workers, {ARRAYS_BYTES} of arrays");
    assert!(moved > 0.0 && moved < 1.5 * ARRAYS_BYTES, "{moved} of {ARRAYS_BYTES}");
    // The manager knew of both when it granted the buckets.
    let [memory, disk, worker] = granted_bytes(&cluster, ["memory", "disk", "worker"]);
    println!(
        "granted buckets read {memory} bytes from memory, {disk} from the disk, {worker} from the other worker"
    );
    assert!(memory > 0.0 && disk > 0.0 && worker > 0.0, "{memory}, {disk}, {worker}");
    cluster.nothing_is_left();
}

#[test]
fn studies_without_the_needed_bounds_are_refused() {
    let study = study();
    let refused = |edits: &[(&str, &str)], cause: &str| {
        edit(&study, 64, edits);
        let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out"]);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        assert!(answer.stderr.contains(cause), "{}", answer.stderr);
        assert!(!study.path("out").exists());
    };
    let slides = "slides = [\"*.svs\"]\ntile = 64\nhalo = 0                    # stages state the halo that they need\n\
                  skip_background = false     # a tile that is left out has no region for its neighbors";
    refused(
        &[(slides, "tiles = [\"tiles/*.png\"]")],
        "stage smooth reads region gray with bounds \"halo x 4 y 4\"; single tiles have no neighbors: \"slides\" or \"images\" are needed",
    );
    let wide = example("smooth.json").replace("\"halo\": 4", "\"halo\": 65");
    study.write("smooth.json", wide);
    refused(
        &[],
        "stage smooth: bounds \"halo x 65 y 65\" reach beyond the neighbors of tile s/64_0, of 64 px along x",
    );
    study.write(
        "smooth.json",
        example("smooth.json").replace("{ \"halo\": 4 }", "{ \"offset\": { \"x\": 1 } }"),
    );
    refused(
        &[],
        "smooth.json#/inputs/0/bounds: region \"gray\": bounds \"offset x+1\" of a region of type array-f32; allowed for this type: own, halo, whole",
    );
}
