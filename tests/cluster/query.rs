//! Spatial queries: the storage of workers answers them, equal to a scan over the exported result, and no region moves.

use crate::cluster::{self, Cluster};
use crate::pleach::{Answer, pleach};
use crate::sharing::metrics;
use crate::study::Study;
use crate::units::{self, moved_bytes};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Bytes of the mask of a tile.
const MASK_BYTES: u64 = 192 * 192;

/// An object: centroid and bounding box in millionths of a pixel, so that sums of other orders are equal.
type Object = [i64; 6];

fn millionths(numbers: [f64; 6]) -> Object {
    numbers.map(|number| (number * 1e6).round() as i64)
}

/// Reads the exported objects of a tile, in the order of their boxes.
fn exported(study: &Study, tile: &str) -> Vec<Object> {
    let table = fs::read_to_string(study.path(&format!("table/{tile}.csv"))).expect("a table");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        millionths([3, 4, 5, 6, 7, 8].map(|column| cells[column].parse().expect("a number")))
    };
    sorted(table.lines().skip(1).map(row).collect())
}

fn sorted(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_unstable();
    objects
}

/// Returns the objects of an answer, in its order.
fn objects(found: &Value) -> Vec<Object> {
    let objects = found["objects"].as_array().expect("a list");
    let object = |object: &Value| {
        let all = ["centroid", "low", "high"].map(|key| numbers(&object[key])).concat();
        millionths(all.try_into().expect("6 numbers"))
    };
    objects.iter().map(object).collect()
}

/// Queries an output of the segmentation of an evaluation on a tile.
fn query(
    cluster: &Cluster<'_>,
    id: &str,
    [output, evaluation, tile]: [&str; 3],
    selection: &[&str],
) -> Answer {
    let stage = ["query", id, "--stage", "segmentation", "--output", output, "--evaluation", evaluation];
    cluster.ask(&[&stage[..], &["--tile", tile, "--count", "2000", "--json"], selection].concat())
}

/// Writes the descriptors of the built-in workflow, whose segmentation also gives the outlines of its mask.
fn write_workflow_with_outlines(study: &Study) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pathology/descriptors/nuclei");
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = fs::read_to_string(&path).expect("a descriptor");
        let mut document: Value = serde_json::from_str(&text).expect("JSON");
        if name == "segmentation.json" {
            let mut add = |list: &str, entry: Value| {
                document[list].as_array_mut().expect("a list").push(entry);
            };
            add(
                "tasks",
                json!({
                    "task": "outlines", "description": "Outlines of the nuclei", "operation": "features.outlines",
                    "version": 1, "reads": ["mask"], "writes": ["outlines"]
                }),
            );
            add("outputs", json!({ "region": "outlines", "type": "polygons" }));
        }
        study.write(name, document.to_string());
    }
}

fn read(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

#[test]
fn queries_are_answered_by_the_workers_that_hold_the_regions() {
    let study = cluster::study(1, 192);
    write_workflow_with_outlines(&study);
    study.edit(&[
        ("workflow = \"nuclei\"", "workflow = \"workflow.json\""),
        ("seed = 500", "seed = 500\nretain = [\"segmentation.mask\", \"segmentation.outlines\"]"),
        ("trajectories = 2", "trajectories = 1"),
    ]);
    let run = ["run", "study.toml", "--out", "alone", "--quiet", "--reuse", "value", "--cache", "cache"];
    pleach(study.folder(), &run).done();
    let export = ["export", "study.toml", "--as", "csv", "--out", "table", "--quiet", "--cache", "cache"];
    pleach(study.folder(), &export).done();
    let mut cluster = Cluster::new(&study);
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--metrics", "127.0.0.1:0"]);
    }
    let id = cluster.submit(&[]);
    cluster.completed(&id);
    let moved = |cluster: &Cluster<'_>| -> f64 {
        ["w0", "w1"].iter().map(|worker| moved_bytes(&metrics(cluster, worker))).sum()
    };
    let before = moved(&cluster);
    let tiles = ["tissue_01", "tissue_02"];
    for tile in tiles {
        let rows = exported(&study, tile);
        assert!(rows.len() > 4, "{rows:?}");
        let all = read(&query(&cluster, &id, ["mask", "0", tile], &["--box", "0,0,192,192"]));
        assert_eq!(sorted(objects(&all)), rows);
        let [some, outlines] = ["mask", "outlines"]
            .map(|output| read(&query(&cluster, &id, [output, "0", tile], &["--box", "40,50,120,90"])));
        let [left, top, right, bottom] = [40, 50, 120, 90].map(|px| px * 1_000_000);
        let meets = |row: &&Object| row[2] <= right && row[4] >= left && row[3] <= bottom && row[5] >= top;
        let expected: Vec<Object> = rows.iter().filter(meets).copied().collect();
        assert!(!expected.is_empty() && expected.len() < rows.len(), "{expected:?}");
        assert_eq!(some["total"], expected.len());
        assert_eq!(sorted(objects(&some)), expected);
        // Outlines enclose the pixels of their objects, so boxes and centroids are equal.
        assert_eq!(sorted(objects(&outlines)), expected);
        let mut by_distance = rows.clone();
        by_distance.sort_by_key(|row| (row[0] - 80_000_000).pow(2) + (row[1] - 70_000_000).pow(2));
        let stage = ["query", &id, "--stage", "segmentation", "--output", "mask", "--evaluation", "0"];
        let nearest =
            [&stage[..], &["--tile", tile, "--nearest", "80,70", "--count", "3", "--json"]].concat();
        let near = read(&cluster.ask(&nearest));
        assert_eq!(objects(&near), by_distance[..3]);
        assert_eq!(near["region_bytes"], MASK_BYTES);
        let bytes = near["moved_bytes"].as_u64().expect("a number");
        assert!(
            bytes > 0 && bytes * 20 < MASK_BYTES,
            "{bytes} bytes for the nearest of a region of {MASK_BYTES}"
        );
    }
    assert_eq!(moved(&cluster), before, "no region has moved");
    // The task cache of a run in one process has the same objects.
    let alone = ["query", "study.toml", "--cache", "cache", "--stage", "segmentation", "--output", "mask"];
    let alone =
        [&alone[..], &["--evaluation", "0", "--tile", tiles[1], "--json", "--box", "0,0,192,192"]].concat();
    let answer = pleach(study.folder(), &alone);
    assert_eq!(sorted(objects(&read(&answer))), exported(&study, tiles[1]), "{answer:?}");
    let refused = query(&cluster, &id, ["mask", "99", tiles[0]], &["--box", "0,0,9,9"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("evaluation: 99; 0 to "), "{refused:?}");
    // Without one worker, each answer is the same or names the missing tile.
    let ask =
        |cluster: &Cluster<'_>, tile| query(cluster, &id, ["mask", "0", tile], &["--box", "0,0,192,192"]);
    cluster.kill_worker("w0");
    for tile in tiles {
        let answer = ask(&cluster, tile);
        if answer.code == 0 {
            assert_eq!(sorted(objects(&read(&answer))), exported(&study, tile));
        } else {
            is_missing(&answer, tile);
        }
    }
    cluster.kill_worker("w1");
    tiles.iter().for_each(|tile| is_missing(&ask(&cluster, tile), tile));
    cluster.nothing_is_left();
}

/// Asserts an answer that names the tile without a region.
fn is_missing(answer: &Answer, tile: &str) {
    assert_eq!((answer.code, &read(answer)["missing"][0]), (3, &Value::from(tile)), "{answer:?}");
    assert!(answer.stderr.contains("regions of 1 of 1 tiles are on no worker"), "{answer:?}");
    assert!(answer.stderr.contains(tile), "{answer:?}");
}

/// Evaluation with the most spots, and their number.
fn most_spots(responses: &str) -> (String, u64) {
    let row = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        (cells[0].to_owned(), cells[2].parse::<f64>().expect("a number") as u64)
    };
    responses.lines().skip(1).map(row).max_by_key(|(_, spots)| *spots).expect("an evaluation")
}

/// Places of objects in pixels and in micrometers, and their distances in nanometers.
fn places(found: &Value) -> Vec<(Vec<f64>, Vec<f64>, u64)> {
    let place = |object: &Value| {
        let nanometers = (object["distance_um"].as_f64().expect("a number") * 1e3).round() as u64;
        (numbers(&object["centroid"]), numbers(&object["centroid_um"]), nanometers)
    };
    let mut places: Vec<_> = found["objects"].as_array().expect("a list").iter().map(place).collect();
    places.sort_by(|a, b| a.partial_cmp(b).expect("finite"));
    places
}

#[test]
fn objects_of_a_slide_are_in_its_coordinates() {
    let study = units::study();
    let cluster = Cluster::of(&study, 2);
    let retain = ("seed = 7", "seed = 7\nretain = [\"spots.spots\"]");
    // In tiles of 64 px, whose spots are in regions of their own, and as a whole.
    let [(tiles, spots), (whole, _)] = [64, 512].map(|tile| {
        units::edit(&study, tile, &[retain, ("trajectories = 4", "trajectories = 1")]);
        let id = cluster.submit(&[]);
        let (evaluation, spots) = most_spots(&cluster.completed(&id));
        let stage = ["query", &id, "--stage", "spots", "--output", "spots", "--evaluation", &evaluation];
        let near = ["--nearest", "20,30", "--um", "--count", "2000", "--json"];
        let found = read(&cluster.ask(&[&stage[..], &near].concat()));
        assert_eq!(found["total"], spots, "the spots of the study's own response");
        // The workers hold the regions until then.
        cluster.ask(&["forget", &id]).done();
        cluster.nothing_is_left();
        (found, spots)
    });
    assert!(spots > 3, "{tiles}");
    assert_eq!((&tiles["regions"], &whole["regions"]), (&Value::from(6), &Value::from(1)));
    assert_eq!(places(&tiles), places(&whole));
    // 0.5 µm per pixel.
    let (centroid, um, _) = &places(&whole)[0];
    assert_eq!([centroid[0] / 2.0, centroid[1] / 2.0], um[..]);
}
