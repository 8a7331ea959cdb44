//! Images of every kind, as a tile of a single run and of a study: the command reads them or refuses them in one line.

use crate::images_made::{Case, Expected, cases};
use crate::pleach::pleach;
use crate::study::Study;
use crate::{refused, refused_with};
use std::fs::{self, File};
use tiff::encoder::{TiffEncoder, colortype};

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

#[test]
fn float_tiles_and_references_are_refused() {
    let study = Study::of_tissue(64);
    let folders = ["floats", "truth"].map(|name| study.path(name));
    for (folder, name) in folders.iter().zip(["a.tif", "tissue_01.png"]) {
        fs::create_dir(folder).expect("a folder made");
        // The content of the reference is TIFF too: names do not matter.
        let file = File::create(folder.join(name)).expect("a file made");
        let mut encoder = TiffEncoder::new(file).expect("a header written");
        encoder.write_image::<colortype::Gray32Float>(64, 64, &[0.5; 64 * 64]).expect("pixels written");
    }
    let kind = "palette or other 32-bit pixels are not supported; gray and color of 8 or 16 bits per channel are allowed";
    let tile = [("tiles/*.png", "floats/a.tif")];
    let reference = [("tiles/*.png", "tiles/tissue_01.png"), ("\"defaults\"", "\"truth\"")];
    for (edits, name) in [(&tile[..], "floats/a.tif"), (&reference[..], "truth/tissue_01.png")] {
        study.edit(edits);
        let expected = format!("{name}: {kind}");
        refused(study.folder(), &["plan", "study.toml"], &expected);
        refused(study.folder(), &["run", "study.toml", "--out", "out"], &expected);
    }
}
