//! Images of more dimensions: spots in a z-stack over time, found across the borders of blocks and linked to the next time, in one
//! process and on two workers. They read an OME-Zarr folder where it is, and an OME-TIFF also after its transfer.

use crate::cluster::Cluster;
use crate::place::Place;
use crate::pleach::pleach;
use crate::sharing::metrics;
use crate::skipped;
use crate::study::Study;
use pleach_volumes::{BlockRange, VolumeFile};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

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
    tiff_gives_the_same(&study, &mut cluster, &expected, alone);
    cluster.nothing_is_left();
}

/// Studies the same pixels as an OME-TIFF, in one process and on workers that do not see the file.
fn tiff_gives_the_same(study: &Study, cluster: &mut Cluster<'_>, expected: &str, tasks: u64) {
    write_tiff(study);
    edit(study, "x = 40, y = 32, z = 8", &[("*.ome.zarr", "*.ome.tif")]);
    assert_eq!(run(study, "tiff"), tasks);
    assert_eq!(responses(study, "tiff"), expected);
    let sent = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
    assert_eq!(sent(&cluster.state.join("inputs")), 0, "an OME-Zarr folder is not transferred");
    let Some(id) = submit_from_elsewhere(study, cluster) else {
        return skipped("spots_are_found_and_linked_on_two_workers", "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(executed(&cluster.path(&format!("out-{id}"))), tasks);
    assert_eq!(sent(&cluster.state.join("inputs")), 1, "the client has sent the file to the manager");
    let of_workers = ["w0", "w1"].map(|name| sent(&cluster.path(&format!("{name}-ssd/inputs"))));
    assert!(of_workers.contains(&1) && of_workers.iter().all(|files| *files <= 1), "{of_workers:?}");
}

/// Writes the pixels of the OME-Zarr as an OME-TIFF with the same calibration.
fn write_tiff(study: &Study) {
    let path = study.path("s.ome.zarr/zarr.json");
    let mut image = VolumeFile::open(&path).expect("an image");
    let [x, y, z, t] = image.info().sides;
    let xml = format!(
        "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" \
         Type=\"uint16\" DimensionOrder=\"XYZTC\" SizeX=\"{x}\" SizeY=\"{y}\" SizeZ=\"{z}\" SizeT=\"{t}\" SizeC=\"1\" \
         PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.5\" PhysicalSizeZ=\"2\" TimeIncrement=\"30\"/></Image></OME>"
    );
    let file = File::create(study.path("s.ome.tif")).expect("a file");
    let mut encoder = TiffEncoder::new(file).expect("a TIFF");
    for plane in 0..z * t {
        let range = BlockRange { start: [0, 0, plane % z, plane / z], length: [x, y, 1] };
        let pixels = image.read(&path, &range, &[0]).expect("a plane");
        let mut page = encoder.new_image::<colortype::Gray16>(x, y).expect("a plane");
        if plane == 0 {
            page.encoder().write_tag(Tag::ImageDescription, xml.as_str()).expect("a description");
        }
        page.write_data(pixels.samples::<u16>().expect("numbers of 16 bits")).expect("a plane");
    }
}

/// Submits the study from a file system that only the client sees. Returns `None` if the system denies mounts.
fn submit_from_elsewhere(study: &Study, cluster: &mut Cluster<'_>) -> Option<String> {
    let folder = cluster.path("elsewhere");
    fs::create_dir_all(&folder).expect("a folder");
    // The marker shows that the mount succeeded.
    let script = r#"mount -t tmpfs tmpfs "$0" && cp *.json *.csv *.toml *.tif "$0" && : >mounted && cd "$0" && exec "$@""#;
    let folder = folder.display().to_string();
    let way = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, &folder];
    cluster.places.insert("client".to_owned(), Place::by(way));
    let answer = cluster.ask(&["submit", "study.toml", "--strategy", "stage"]);
    cluster.places.remove("client");
    study.path("mounted").exists().then(|| answer.done().trim().to_owned())
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
