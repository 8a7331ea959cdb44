//! `pleach region show|export`: files of a storage tier, exported for readers of other programs.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use crate::data::data;
use crate::pleach::{Answer, pleach};
use pleach_regions::{
    AnnotatedObjects, CompressionEffort, DataRegion, DenseArray, Interval, LabelMap, Points, Polygons,
    RaggedArray, Raster, RegionKey, Resolution, SpatialBounds, Table,
};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tiff::decoder::{Decoder, DecodingResult};

/// Stores a region in a folder tier. Returns its file.
fn stored(folder: &Path, region: &DataRegion) -> String {
    let place = folder.join("tier");
    fs::create_dir_all(&place).unwrap();
    let settings = FolderSettings::new(FolderKind::Lustre, 1 << 30);
    let tier = FolderTier::open(Arc::new(OsFileSystem), &place, settings).unwrap();
    let mut key = [0; 16];
    key.copy_from_slice(&region.digest().0[..16]);
    tier.insert(RegionKey(key), &Arc::new(region.clone())).unwrap();
    tier.path(RegionKey(key)).display().to_string()
}

fn shown(folder: &Path, file: &str) -> Value {
    serde_json::from_str(&pleach(folder, &["region", "show", file, "--json"]).done()).unwrap()
}

fn export(folder: &Path, file: &str, out: &str) -> Answer {
    pleach(folder, &["region", "export", file, "--out", out])
}

fn refused(answer: &Answer, text: &str) {
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.contains(text), "{text:?} in {:?}", answer.stderr);
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
}

#[test]
fn a_real_label_map_is_shown_and_exported() {
    let Some(data) = data("a_real_label_map_is_shown_and_exported") else { return };
    let image = image::open(data.join("annotated/gbm40/gbm40_01_labels.png")).unwrap().into_luma16();
    let labels: Vec<u32> = image.as_raw().iter().map(|label| u32::from(*label)).collect();
    let objects = labels.iter().filter(|label| **label > 0).collect::<std::collections::BTreeSet<_>>().len();
    let region = DataRegion::Labels(LabelMap::new(512, 512, labels.clone()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (folder, file) = (folder.path(), stored(folder.path(), &region));

    let document = shown(folder, &file);
    assert_eq!((&document["type"], &document["shape"]), (&json!("labels"), &json!([512, 512])));
    assert_eq!(document["digest"], region.digest().to_string());
    assert_eq!((&document["coding"], &document["bounds"]), (&json!("runs"), &Value::Null));
    assert_eq!(document["memory_bytes"], 1 << 20);
    assert_eq!(document["file_bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(document["statistics"]["objects"], objects);
    let text = pleach(folder, &["region", "show", &file]).done();
    assert!(text.contains("labels, shape 512 x 512") && text.contains(&format!("objects      {objects}\n")));

    export(folder, &file, "labels.png").done();
    assert_eq!(image::open(folder.join("labels.png")).unwrap().into_luma16(), image);
    export(folder, &file, "labels.tif").done();
    assert_eq!(image::open(folder.join("labels.tif")).unwrap().into_luma16(), image);
    export(folder, &file, "labels.geojson").done();
    let collection: Value =
        serde_json::from_slice(&fs::read(folder.join("labels.geojson")).unwrap()).unwrap();
    let features = collection["features"].as_array().unwrap();
    assert_eq!(features.len(), objects);
    let area: u64 = features.iter().filter_map(|feature| feature["properties"]["area_px"].as_u64()).sum();
    assert_eq!(area, labels.iter().filter(|label| **label > 0).count() as u64);
    export(folder, &file, "labels.npy").done();
    let (kind, shape, numbers) = npy(&folder.join("labels.npy"));
    assert_eq!((kind.as_str(), shape.as_str()), ("<u4", "(512, 512)"));
    let expected: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    assert!(numbers == expected);
    refused(
        &export(folder, &file, "labels.csv"),
        "--out labels.csv: a region of type labels cannot be written as CSV;",
    );
}

/// Type, shape and numbers of an NPY file. If NumPy is installed, it must read the same values.
fn npy(file: &Path) -> (String, String, Vec<u8>) {
    let bytes = fs::read(file).unwrap();
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(end % 64, 0);
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    let between = |before: &str, after: &str| {
        let (_, rest) = header.split_once(before).unwrap();
        rest.split_once(after).unwrap().0.to_owned()
    };
    let (kind, shape) = (between("'descr': '", "'"), between("'shape': ", ", }"));
    let script = "import sys, numpy; a = numpy.load(sys.argv[1]); print(a.dtype.str, a.shape)";
    let python = Command::new("python3").args(["-c", script]).arg(file).output();
    if let Ok(output) = python
        && output.status.success()
    {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("{kind} {shape}"));
    }
    (kind, shape, bytes[end..].to_vec())
}

#[test]
fn images_are_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let colors = Raster::new(3, 2, 3, (0..18).collect()).unwrap();
    let file = stored(folder, &DataRegion::Bgr8(colors));
    for name in ["a.png", "a.tiff"] {
        export(folder, &file, name).done();
        let image = image::open(folder.join(name)).unwrap().into_rgb8();
        assert_eq!((image.dimensions(), image.get_pixel(0, 0).0), ((3, 2), [2, 1, 0]), "{name}");
    }
    let mask = Raster::new(3, 2, 1, vec![255, 0, 0, 0, 255, 255]).unwrap();
    let file = stored(folder, &DataRegion::Mask(mask.clone()));
    for name in ["m.png", "m.tif"] {
        export(folder, &file, name).done();
        assert_eq!(image::open(folder.join(name)).unwrap().into_luma8().as_raw(), mask.data(), "{name}");
    }
    // Pixels that touch at a corner form one object.
    export(folder, &file, "m.geojson").done();
    let collection: Value = serde_json::from_slice(&fs::read(folder.join("m.geojson")).unwrap()).unwrap();
    assert_eq!(collection["features"][0]["geometry"]["type"], "MultiPolygon");
    assert_eq!(collection["features"].as_array().unwrap().len(), 1);
    assert_eq!(shown(folder, &file)["statistics"], json!({ "set_pixels": 3, "set_share": 0.5 }));
}

#[test]
fn values_beyond_png_are_exported_to_tiff_and_npy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let labels = LabelMap::new(2, 2, vec![0, 70_000, 1, u32::MAX]).unwrap();
    let file = stored(folder, &DataRegion::Labels(labels));
    refused(&export(folder, &file, "l.png"), "label 4294967295 exceeds the 16 bits of PNG; TIFF has 32");
    assert!(!folder.join("l.png").exists());
    export(folder, &file, "l.tiff").done();
    let read = |name: &str| {
        let mut decoder = Decoder::new(fs::File::open(folder.join(name)).unwrap()).unwrap();
        (decoder.dimensions().unwrap(), decoder.read_image().unwrap())
    };
    let (size, DecodingResult::U32(found)) = read("l.tiff") else { panic!("labels of 32 bits") };
    assert_eq!((size, found), ((2, 2), vec![0, 70_000, 1, u32::MAX]));

    let array = DenseArray::new(&[3, 2], 1, vec![0.5_f32, f32::NAN, -1.5, 4.0, 5.0, 1e30].into()).unwrap();
    let file = stored(folder, &DataRegion::Array(array));
    export(folder, &file, "d.tiff").done();
    let (size, DecodingResult::F32(found)) = read("d.tiff") else { panic!("real numbers") };
    assert_eq!((size, found[5], found[1].is_nan()), ((3, 2), 1e30, true));
    export(folder, &file, "d.npy").done();
    let (kind, shape, numbers) = npy(&folder.join("d.npy"));
    assert_eq!((kind.as_str(), shape.as_str(), &numbers[..4]), ("<f4", "(2, 3)", &0.5_f32.to_le_bytes()[..]));
    assert_eq!(shown(folder, &file)["statistics"]["not_a_number"], 1);

    let volume = DenseArray::new(&[2, 2, 2], 2, vec![7_i32; 16].into()).unwrap();
    let file = stored(folder, &DataRegion::Array(volume));
    export(folder, &file, "v.npy").done();
    assert_eq!(npy(&folder.join("v.npy")).1, "(2, 2, 2, 2)");
    refused(&export(folder, &file, "v.tiff"), "3 axes; an image has 2, NPY allows any number");
}

#[test]
fn outlines_and_numbers_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |region: &DataRegion, name: &str| {
        export(folder, &stored(folder, region), name).done();
        fs::read_to_string(folder.join(name)).unwrap()
    };
    let points = DataRegion::Points(Points::new(2, vec![1.5, 2.0, 3.0, -4.0]).unwrap());
    assert_eq!(text(&points, "p.csv"), "x,y\n1.5,2\n3,-4\n");
    assert_eq!(text(&DataRegion::Table(Table::new([("dice", 0.25)])), "t.csv"), "dice\n0.25\n");
    let ragged = RaggedArray::new(vec![2, 3], vec![1_u16, 2, 3].into()).unwrap();
    assert_eq!(text(&DataRegion::Ragged(ragged), "r.csv"), "row,place,value\n0,0,1\n0,1,2\n1,0,3\n");
    assert_eq!(text(&DataRegion::Scalar(-0.5), "s.csv"), "value\n-0.5\n");
    let square = vec![[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]];
    let hole = vec![[1.0, 1.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]];
    let polygons = DataRegion::Polygons(Box::new(Polygons::new([[square, hole]]).unwrap()));
    let collection: Value = serde_json::from_str(&text(&polygons, "q.geojson")).unwrap();
    let rings = collection["features"][0]["geometry"]["coordinates"].as_array().unwrap();
    assert_eq!((rings.len(), rings[0].as_array().unwrap().len()), (2, 5));
    let mut objects = AnnotatedObjects::new(["area"]).unwrap();
    objects.push_box([0.0; 2], [2.0, 3.0], "lymphocyte", &[6.0]).unwrap();
    let objects = DataRegion::Objects(Box::new(objects));
    let collection: Value = serde_json::from_str(&text(&objects, "o.geojson")).unwrap();
    let expected = json!({ "classification": { "name": "lymphocyte" }, "measurements": { "area": 6.0 } });
    assert_eq!(collection["features"][0]["properties"], expected);
    let statistics = shown(folder, &stored(folder, &objects))["statistics"].take();
    assert_eq!((&statistics["classes"], &statistics["boxes"]), (&json!({ "lymphocyte": 1 }), &json!(1)));
}

/// An encoding shows its bounds. Corrupt, newer and missing files are refused with the cause.
#[test]
fn unreadable_regions_are_refused_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let region = DataRegion::Gray8(Raster::filled(4, 3, 1, 9).unwrap());
    let axes = [Interval::new(8, 12).unwrap(), Interval::new(-3, 0).unwrap()];
    let bounds = SpatialBounds::new(&axes, Some(Resolution::from_microns_per_px(0.25).unwrap())).unwrap();
    let (head, body) = region.encode_with(&region.digest(), CompressionEffort::None, Some(&bounds));
    let bytes = [&head.0[..], &body].concat();
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        fs::write(folder.join(name), bytes).unwrap();
    };
    with("whole", &|_| {});
    assert_eq!(shown(folder, "whole")["bounds"], json!(bounds));
    assert!(pleach(folder, &["region", "show", "whole"]).done().contains(&bounds.to_string()));

    with("newer", &|bytes| bytes[4] = 3);
    with("cut", &|bytes| bytes.truncate(60));
    with("flipped", &|bytes| *bytes.last_mut().unwrap() ^= 1);
    with("elsewhere", &|bytes| bytes[70] ^= 1);
    with("other", &|bytes| bytes[..4].copy_from_slice(b"\x89PNG"));
    fs::create_dir(folder.join("folder")).unwrap();
    fs::write(folder.join("out.png"), "as it was").unwrap();
    for (name, text) in [
        (
            "newer",
            "newer: decode a data region: encoding version 3; 1 and 2 are allowed; a later version of pleach \
             wrote it",
        ),
        ("cut", "cut: decode a data region: corrupt header fields"),
        ("flipped", "flipped: decode a data region: content does not match digest "),
        ("elsewhere", "elsewhere: decode a data region: corrupt header fields"),
        ("other", "other: decode a data region: "),
        ("folder", "folder: is a folder; the file of a data region is allowed"),
        ("missing", "missing: cannot be read: "),
    ] {
        refused(&pleach(folder, &["region", "show", name]), text);
        refused(&export(folder, name, "out.png"), text);
    }
    refused(&export(folder, "whole", "x.jpg"), "--out x.jpg: unknown file name extension; .png, .tiff, ");
    refused(&export(folder, "whole", "nowhere/x.png"), "--out nowhere/x.png: cannot be written: ");
    with("whole.png", &|_| {});
    refused(&export(folder, "whole.png", "whole.png"), "is the region file itself; another file is allowed");
    let mut left: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("out") || name.contains("part") || name.starts_with('x'))
        .collect();
    left.sort();
    assert_eq!(left, ["out.png"]);
    assert_eq!(fs::read_to_string(folder.join("out.png")).unwrap(), "as it was");
    assert!(fs::read(folder.join("whole.png")).unwrap() == bytes);
}

#[test]
fn a_tile_becomes_a_region_template() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pleach(folder, &["tissue", "--out", "tiles", "--size", "96", "--count", "1", "--seed", "3"]).done();
    let tile = fs::read_dir(folder.join("tiles")).unwrap().map(|entry| entry.unwrap().path());
    let tile = tile.into_iter().find(|path| path.is_file()).unwrap().display().to_string();
    let segment = ["segment", &tile, "--out", "mask.png", "--regions", "template"];
    pleach(folder, &segment).done();
    let template = shown(folder, "template");
    let names: Vec<&str> = template["regions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|region| region["name"].as_str().unwrap())
        .collect();
    let written =
        ["background", "bw1", "bw1_t", "diff", "mask", "rbc", "rc", "recon", "seg_nonoverlap", "seg_open"];
    assert!(written.iter().chain(&["tile"]).all(|name| names.contains(name)), "{names:?}");
    // Each region file agrees with its entry in the template, and the exported mask equals the written one.
    for name in &names {
        let file = format!("template/{name}.region");
        let document = shown(folder, &file);
        let listed =
            template["regions"].as_array().unwrap().iter().find(|region| region["name"] == **name).unwrap();
        assert_eq!(document["type"], listed["element"], "{name}");
        assert!(document["bounds"].is_object() || document["bounds"].is_string(), "{document}");
    }
    export(folder, "template/mask.region", "again.png").done();
    let pixels = |name: &str| image::open(folder.join(name)).unwrap().into_luma8();
    assert_eq!(pixels("again.png"), pixels("mask.png"));
    let listed = pleach(folder, &["region", "show", "template"]).done();
    assert!(listed.lines().count() > names.len(), "{listed}");
    // Existing folders are not overwritten, and other folders are refused as templates.
    refused(&pleach(folder, &segment), "--regions template: already exists; a new folder is allowed");
    let nowhere = ["segment", &tile, "--out", "mask.png", "--regions", "no/template"];
    refused(&pleach(folder, &nowhere), "--regions no/template: there is no folder no");
    refused(
        &pleach(folder, &["region", "show", "tiles"]),
        "tiles: is a folder; the file of a data region is allowed",
    );
    fs::write(folder.join("template/template.json"), "{\"format\": 9}").unwrap();
    refused(
        &pleach(folder, &["region", "show", "template"]),
        "template/template.json: region template: format 9",
    );
}
