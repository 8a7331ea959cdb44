//! Images of every kind, as a tile of a single run and of a study: the command reads them or refuses them in one line.

use crate::images_made::{Case, Expected, cases};
use crate::pleach::pleach;
use crate::refused_with;
use crate::study::Study;
use std::fs;

#[test]
fn image_of_any_kind_gives_a_mask_or_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for Case { name, bytes, expected } in cases() {
        fs::write(folder.path().join(name), bytes).expect("written");
        let args = ["segment", name, "--out", "mask.png"];
        match expected {
            Expected::Refused(message) => {
                let beginning = format!("{name}: {message}");
                refused_with(folder.path(), &args, |said| said.starts_with(&beginning), &beginning);
            }
            Expected::Pixels(bytes) | Expected::Near(bytes) => {
                let said = pleach(folder.path(), &args).done();
                let pixels = format!(" of {} pixels\n", bytes.len() / 3);
                assert!(said.ends_with(&pixels), "{name}: {said}");
                fs::remove_file(folder.path().join("mask.png")).expect("a mask");
            }
        }
    }
}

/// Planning reads headers only. It reports a corrupt header before anything runs. Runs report corruption after the header.
#[test]
fn study_with_one_bad_tile_reports_it_in_one_line() {
    let study = Study::of_tissue(64);
    for Case { name, bytes, expected } in cases() {
        let Expected::Refused(message) = expected else { continue };
        study.write(&format!("tiles/{name}"), bytes);
        study.edit(&[("\"tiles/*.png\"", &format!("\"tiles/tissue_01.png\", \"tiles/{name}\""))]);
        let out = format!("out-{name}");
        let answer = pleach(study.folder(), &["run", "study.toml", "--quiet", "--out", &out]);
        assert_eq!(answer.stderr.lines().count(), 1, "{name}: {answer:?}");
        let place = format!("tiles/{name}: {message}");
        assert!(answer.stderr.contains(&place), "{name}: {}\nbut wanted was:\n{place}", answer.stderr);
        let whole = study.path(&out).join("report.html").is_file();
        assert!(matches!((answer.code, whole), (2, false) | (3, true)), "{name}: {answer:?}");
    }
}
