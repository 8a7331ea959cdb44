//! Slides in several files: workers read them on any host, and a missing file fails only the tiles that need it.

use crate::cluster::{self, Cluster, expected};
use crate::mirax::write_mirax;
use crate::pyramid::{AT_20, write_image};
use crate::skipped;
use crate::study::Study;
use std::fs;
use std::path::Path;

/// A study of nine tiles of a MIRAX slide, and of the same image in one file.
fn study() -> Study {
    let study = cluster::study(2, 192);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    write_mirax(&study.path("tiles/s.mrxs"), tissue.as_raw(), 192, 64, 20);
    write_image(&study.path("tiles/t.svs"), tissue.as_raw(), 192, AT_20);
    let slides = "slides = [\"tiles/s.mrxs\", \"tiles/t.svs\"]\nmagnification = 20\ntile = 64\nhalo = 16";
    study.edit(&[("tiles = [\"tiles/*.png\"]", slides), ("\"dice\"", "\"nuclei\"")]);
    study
}

#[test]
fn multi_file_slides_are_read_locally_and_after_transfer() {
    let study = study();
    let expected = expected(&study);
    assert!(expected.contains(",s/128_64,") && expected.contains(",t/128_64,"), "{expected}");
    let cluster = Cluster::of(&study, 2);
    assert_eq!(cluster.submit_and_wait(&[]), expected);
    let sent = |of: &Path| fs::read_dir(of).map_or(0, Iterator::count);
    assert_eq!(sent(&cluster.state.join("inputs")), 0);
    let Some(id) = cluster.submit_from_elsewhere() else {
        let test = "multi_file_slides_are_read_locally_and_after_transfer";
        return skipped(test, "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&id), expected);
    // Seven entries: two slide files, four companions of the MIRAX slide (text, index, two with pixels), and their common
    // folder.
    assert_eq!(sent(&cluster.state.join("inputs")), 7);
    for worker in ["w0", "w1"] {
        let inputs = cluster.path(&format!("{worker}-ssd/inputs"));
        assert!([0, 1, 6, 7].contains(&sent(&inputs)), "all of a slide, or nothing: {}", sent(&inputs));
    }
    cluster.nothing_is_left();
}

/// Nine tiles of a slide with annotations. The upper two rows count, and a part of the third.
fn annotated_study() -> Study {
    let study = cluster::study(2, 192);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    write_image(&study.path("tiles/t.svs"), tissue.as_raw(), 192, AT_20);
    let square = |[left, top, right, bottom]: [u32; 4], class: &str| {
        format!(
            r#"{{"type": "Feature", "properties": {{"classification": {{"name": "{class}"}}}}, "geometry": {{"type": "Polygon",
                "coordinates": [[[{left}, {top}], [{right}, {top}], [{right}, {bottom}], [{left}, {bottom}]]]}}}}"#
        )
    };
    let nucleus = |number: u32| {
        let (x, y) = (11 * (number % 17), 11 * (number / 17));
        square([x, y, x + 8, y + 8], "Nucleus")
    };
    let mut features: Vec<String> = (0..200).map(nucleus).collect();
    features.push(square([0, 0, 192, 150], "ROI"));
    study.write("tiles/t.geojson", format!("[{}]", features.join(",")));
    let slides =
        "slides = [\"tiles/t.svs\"]\nmagnification = 20\ntile = 64\nhalo = 16\nskip_background = false";
    let reference = "\"tiles\"\n[input.annotations]\nclasses = [\"Nucleus\"]\nregions = [\"ROI\"]";
    let metrics = ("\"dice\"", "[\"dice\", \"object-dice\"]\nweights = \"annotated\"");
    study.edit(&[("tiles = [\"tiles/*.png\"]", slides), ("\"defaults\"", reference), metrics]);
    study
}

#[test]
fn annotations_of_slides_are_read_locally_and_after_transfer() {
    let study = annotated_study();
    let expected = expected(&study);
    assert!(expected.contains(",t/128_64,") && expected.contains(",t/0_128,"), "{expected}");
    let cluster = Cluster::of(&study, 2);
    assert_eq!(cluster.submit_and_wait(&[]), expected);
    let Some(id) = cluster.submit_from_elsewhere() else {
        let test = "annotations_of_slides_are_read_locally_and_after_transfer";
        return skipped(test, "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&id), expected);
    cluster.nothing_is_left();
}

/// Change of a file.
type Spoil = fn(&Path);

#[test]
fn a_companion_that_is_missing_or_has_changed_fails_the_tiles_of_its_slide() {
    let wrong: [(&str, Spoil, &str); 2] = [
        (
            "is missing",
            |path| fs::remove_file(path).expect("removed"),
            "not in the input store of the \
                                                                        manager",
        ),
        (
            "has changed",
            |path| fs::write(path, "x").expect("written"),
            "the transfer was incomplete, the file may have changed",
        ),
    ];
    for (what, spoil, cause) in wrong {
        let study = study();
        let expected = expected(&study);
        let mut cluster = Cluster::new(&study);
        let id = cluster.submit(&[]);
        spoil(&study.path("tiles/s/Data0001.dat"));
        cluster.start_workers(0..2);
        let responses = cluster.completed(&id);
        // Headings and tiles of the other slide.
        let others = |table: &str| -> Vec<String> {
            table.lines().filter(|line| !line.contains(",s/")).map(str::to_owned).collect()
        };
        assert!(others(&expected).len() > 1);
        assert_eq!(others(&responses), others(&expected), "{what}");
        let failed = fs::read_to_string(cluster.path(&format!("out-{id}/failed.csv"))).expect("a table");
        assert!(failed.lines().count() > 1, "{what}: {failed}");
        for line in failed.lines().skip(1) {
            let names_it = line.contains("tiles/s/Data0001.dat: ") && line.contains(cause);
            assert!(line.contains("s/") && names_it, "{what}: {line}");
        }
    }
}
