//! OME-Zarr: codecs, orders of axes, shards and missing chunks; invalid images are refused with file and field.

use crate::{expected, read, value};
use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_regions::{DenseArray, TypedValues};
use pleach_volumes::{BlockRange, MovingSpots, OmeZarrWriter, PlaneIndex, VolumeFile};
use pleach_workflow::VolumeInfo;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// An image as a test writes it. Axes: t, c, z, y, x.
#[derive(Clone, Debug)]
struct Written {
    shape: [u32; 5],
    chunk: [u32; 5],
    /// Order of axes in encoded chunks.
    order: [usize; 5],
    codecs: Vec<&'static str>,
    is_big_endian: bool,
    /// Inner chunks along each axis, if chunks are shards, and whether the index comes first.
    shards: Option<([u32; 5], bool)>,
    is_v2_key: bool,
}

const PLAIN: Written = Written {
    shape: [2, 2, 3, 5, 6],
    chunk: [1, 1, 2, 3, 4],
    order: [0, 1, 2, 3, 4],
    codecs: Vec::new(),
    is_big_endian: false,
    shards: None,
    is_v2_key: false,
};

/// Calls `each` with every index below `shape`, the last axis fastest.
fn indices(shape: [u32; 5], mut each: impl FnMut([u32; 5])) {
    for number in 0..shape.iter().product::<u32>() {
        let (mut index, mut rest) = ([0; 5], number);
        for axis in (0..5).rev() {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        each(index);
    }
}

impl Written {
    /// Writes the image, and returns the path of its metadata.
    fn write(&self, folder: &Path) -> PathBuf {
        let array = folder.join("full");
        let cells = [0, 1, 2, 3, 4].map(|axis| self.shape[axis].div_ceil(self.chunk[axis]));
        indices(cells, |cell| {
            let origin = [0, 1, 2, 3, 4].map(|axis| cell[axis] * self.chunk[axis]);
            let bytes = match self.shards {
                None => self.encoded(origin, self.chunk),
                Some((inner, is_first)) => self.shard(origin, inner, is_first),
            };
            let key = cell.map(|at| at.to_string());
            let key = if self.is_v2_key { key.join(".") } else { format!("c/{}", key.join("/")) };
            let file = array.join(key);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        });
        fs::write(array.join("zarr.json"), self.array().to_string()).unwrap();
        let file = folder.join("zarr.json");
        fs::write(&file, group().to_string()).unwrap();
        file
    }

    /// Encodes a chunk.
    fn encoded(&self, origin: [u32; 5], shape: [u32; 5]) -> Vec<u8> {
        let mut bytes = Vec::new();
        indices(self.order.map(|axis| shape[axis]), |encoded| {
            let mut at = [0; 5];
            for (place, axis) in self.order.into_iter().enumerate() {
                at[axis] = origin[axis] + encoded[place];
            }
            let [t, c, z, y, x] = at;
            let value = value([x, y, z, t, c]);
            bytes.extend(if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        });
        self.codecs.iter().fold(bytes, |bytes, codec| match *codec {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&bytes).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::bulk::compress(&bytes, 1).unwrap(),
            _ => with_sum(bytes),
        })
    }

    fn shard(&self, origin: [u32; 5], inner: [u32; 5], is_first: bool) -> Vec<u8> {
        let cells = [0, 1, 2, 3, 4].map(|axis| self.chunk[axis] / inner[axis]);
        let count: u64 = cells.iter().map(|side| u64::from(*side)).product();
        let (mut parts, mut index) = (Vec::new(), Vec::new());
        let base = if is_first { count * 16 + 4 } else { 0 };
        indices(cells, |cell| {
            let at = [0, 1, 2, 3, 4].map(|axis| origin[axis] + cell[axis] * inner[axis]);
            let is_outside = (0..5).any(|axis| at[axis] >= self.shape[axis]);
            if is_outside {
                index.extend([u64::MAX; 2]);
                return;
            }
            let bytes = self.encoded(at, inner);
            index.extend([base + parts.len() as u64, bytes.len() as u64]);
            parts.extend(bytes);
        });
        let index = with_sum(index.iter().flat_map(|number| number.to_le_bytes()).collect());
        if is_first { [index, parts].concat() } else { [parts, index].concat() }
    }

    fn array(&self) -> Value {
        let mut codecs = Vec::new();
        if self.order != PLAIN.order {
            codecs.push(json!({ "name": "transpose", "configuration": { "order": self.order } }));
        }
        let endian = if self.is_big_endian { "big" } else { "little" };
        codecs.push(json!({ "name": "bytes", "configuration": { "endian": endian } }));
        codecs.extend(self.codecs.iter().map(|name| json!({ "name": name, "configuration": {} })));
        let codecs = match self.shards {
            None => json!(codecs),
            Some((inner, is_first)) => json!([{ "name": "sharding_indexed", "configuration": {
                "chunk_shape": inner, "codecs": codecs,
                "index_codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }, "crc32c"],
                "index_location": if is_first { "start" } else { "end" },
            } }]),
        };
        let keys = if self.is_v2_key { "v2" } else { "default" };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": "uint16",
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": self.chunk } },
            "chunk_key_encoding": { "name": keys }, "fill_value": 9, "codecs": codecs,
        })
    }
}

fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32c::crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn group() -> Value {
    let space = |name: &str, unit: &str| json!({ "name": name, "type": "space", "unit": unit });
    json!({ "zarr_format": 3, "node_type": "group", "attributes": { "ome": {
        "version": "0.5",
        "multiscales": [{
            "axes": [
                { "name": "t", "type": "time", "unit": "minute" }, { "name": "c", "type": "channel" },
                space("z", "nanometer"), space("y", "micrometer"), space("x", "micrometer"),
            ],
            "datasets": [{ "path": "full", "coordinateTransformations": [
                { "type": "scale", "scale": [0.5, 1.0, 2000.0, 0.25, 0.125] },
                { "type": "translation", "translation": [0.0, 0.0, 7.0, 7.0, 7.0] },
            ] }],
            "coordinateTransformations": [{ "type": "scale", "scale": [2.0, 1.0, 1.0, 2.0, 2.0] }],
        }],
        "omero": { "channels": [{ "label": "DAPI" }, { "label": "GFP" }] },
    } } })
}

/// Images of all codecs.
fn images() -> impl Strategy<Value = Written> {
    let axis = || (1..4_u32, 1..4_u32, 1..3_u32);
    let axes = (axis(), axis(), axis(), axis(), axis());
    let codecs = prop::sample::subsequence(vec!["gzip", "zstd", "crc32c"], 0..3).prop_shuffle();
    let order = Just([0_usize, 1, 2, 3, 4]).prop_shuffle();
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (axes, order, codecs, flags).prop_map(|((t, c, z, y, x), order, codecs, (big, sharded, first, v2))| {
        let axes = [t, c, z, y, x];
        let inner = axes.map(|(inner, ..)| inner);
        let chunk = if sharded { axes.map(|(inner, times, _)| inner * times) } else { inner };
        let shape = [0, 1, 2, 3, 4].map(|axis| chunk[axis] * axes[axis].2 - (chunk[axis] - 1) / 2);
        let shards = sharded.then_some((inner, first));
        Written { shape, chunk, order, codecs, is_big_endian: big, shards, is_v2_key: v2 }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn blocks_are_read_by_all_codecs(written in images(), corner in prop::array::uniform4(0.0..1.0_f64), far in prop::array::uniform3(0.0..1.0_f64)) {
        let folder = tempfile::tempdir().unwrap();
        let path = written.write(folder.path());
        let [t, channels, z, y, x] = written.shape;
        let start = [x, y, z, t].iter().zip(corner).map(|(side, share)| (f64::from(*side) * share) as u32).collect::<Vec<_>>();
        let start: [u32; 4] = start.try_into().unwrap();
        let length = [0, 1, 2].map(|axis| 1 + (f64::from([x, y, z][axis] - start[axis] - 1) * far[axis]) as u32);
        // The channels of an image in any order.
        let channels: Vec<u32> = (0..channels).rev().collect();
        prop_assert_eq!(read(&path, start, length, &channels), Ok(expected(start, length, &channels, 3)), "{:?}", written);
    }
}

#[test]
fn metadata_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = PLAIN.write(folder.path());
    let file = VolumeFile::open(&path).unwrap();
    let info = file.info();
    assert_eq!((info.sides, info.has_z, info.channels), ([6, 5, 3, 2], true, 2));
    assert_eq!((info.pixel_um, info.step_seconds), ([Some(0.25), Some(0.5), Some(2.0)], Some(60.0)));
    let text = "6 x 5 x 3 px of u16, 2 times every 60 s, 2 channels (DAPI, GFP), pixels of 0.25 x 0.5 x 2 µm";
    assert_eq!(info.to_string(), text);
}

#[test]
fn missing_chunk_has_the_fill_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = PLAIN.write(folder.path());
    fs::remove_file(folder.path().join("full/c/1/0/0/1/0")).unwrap();
    let array = read(&path, [3, 2, 0, 1], [2, 2, 1], &[0]).unwrap();
    let values = [value([3, 2, 0, 1, 0]), value([4, 2, 0, 1, 0]), 9, value([4, 3, 0, 1, 0])];
    assert_eq!(array, DenseArray::new(&[2, 2, 1], 1, TypedValues::U16(values.to_vec())).unwrap());
}

#[test]
fn invalid_images_are_refused_with_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let (root, array) = (folder.path().join("zarr.json"), folder.path().join("full/zarr.json"));
    let error = |path: &Path| {
        read(path, [0; 4], [6, 5, 3], &[0]).unwrap_err().replace(folder.path().to_str().unwrap(), "IMAGE")
    };
    let refused = |file: &Path, pointer: &str, value: Value, message: &str| {
        let path = PLAIN.write(folder.path());
        let mut json: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        fs::write(file, json.to_string()).unwrap();
        assert_eq!(error(&path), message);
    };
    let ome = "IMAGE/zarr.json: attributes.ome";
    refused(
        &root,
        "/attributes",
        json!({}),
        &format!("{ome}: missing; the metadata of OME-Zarr 0.5 is needed"),
    );
    refused(
        &root,
        "/attributes/ome/version",
        json!("0.4"),
        &format!("{ome}.version: \"0.4\" is not allowed; allowed: \"0.5\""),
    );
    let axes = "t, c, z, y and x, each once";
    refused(
        &root,
        "/attributes/ome/multiscales/0/axes/0/name",
        json!("q"),
        &format!("{ome}.multiscales[0].axes: \"q\" is not allowed; allowed: {axes}"),
    );
    refused(
        &root,
        "/attributes/ome/multiscales/0/datasets/0/path",
        json!("../full"),
        &format!(
            "{ome}.multiscales[0].datasets[0].path: \"../full\" is not allowed; allowed: a path below the group"
        ),
    );
    let of = |field: &str| format!("IMAGE/full/zarr.json: {field}");
    refused(
        &array,
        "/data_type",
        json!("int64"),
        &of("data_type: \"int64\" is not allowed; allowed: uint8, uint16, float32"),
    );
    let blosc = json!(["bytes", { "name": "blosc", "configuration": { "cname": "lz4" } }]);
    refused(
        &array,
        "/codecs",
        blosc,
        &of(
            "codecs: \"blosc\" is not allowed; allowed: bytes, transpose, gzip, zstd, crc32c, sharding_indexed",
        ),
    );
    refused(
        &array,
        "/chunk_grid/name",
        json!("rectilinear"),
        &of("chunk_grid: \"rectilinear\" is not allowed; allowed: \"regular\""),
    );
    refused(
        &array,
        "/fill_value",
        json!(-1),
        &of("fill_value: -1 is not allowed; allowed: a number of type u16"),
    );
    refused(&array, "/shape", json!([2, 2, 3, 0, 6]), &of("shape: 0 is not allowed; allowed: 1 to 2^32 - 1"));
    let path = PLAIN.write(folder.path());
    fs::write(folder.path().join("full/c/0/0/0/1/1"), [0; 47]).unwrap();
    assert_eq!(error(&path), of("chunk c/0/0/0/1/1: 47 bytes; 48 are allowed (a truncated file has fewer)"));
    let summed = Written { codecs: vec!["crc32c"], ..PLAIN }.write(folder.path());
    let chunk = folder.path().join("full/c/0/0/0/0/0");
    let mut bytes = fs::read(&chunk).unwrap();
    bytes[3] ^= 1;
    fs::write(&chunk, &bytes).unwrap();
    assert_eq!(error(&summed), of("chunk c/0/0/0/0/0: crc32c: the checksum is wrong"));
    let zipped = Written { codecs: vec!["gzip"], ..PLAIN }.write(folder.path());
    let bytes = fs::read(&chunk).unwrap();
    fs::write(&chunk, &bytes[..bytes.len() - 9]).unwrap();
    assert!(error(&zipped).starts_with(&of("chunk c/0/0/0/0/0: gzip: ")));
    let shards = Some(([1, 1, 1, 3, 2], false));
    let sharded = Written { shards, ..PLAIN }.write(folder.path());
    let bytes = fs::read(&chunk).unwrap();
    fs::write(&chunk, &bytes[..5]).unwrap();
    assert_eq!(
        error(&sharded),
        of("chunk c/0/0/0/0/0: 5 bytes; 68 are allowed (a truncated file has fewer)")
    );
    let shards = Some(([1, 1, 1, 3, 2], true));
    let sharded = Written { shards, ..PLAIN }.write(folder.path());
    let bytes = fs::read(&chunk).unwrap();
    fs::write(&chunk, &bytes[..bytes.len() - 1]).unwrap();
    let inner = "chunk c/0/0/0/0/0: a shard of 115 bytes has no inner chunk at 104, 12 bytes long";
    assert_eq!(error(&sharded), of(inner));
    fs::remove_file(&array).unwrap();
    assert_eq!(error(&path), of("failed to read: No such file or directory (os error 2)"));
    assert_eq!(
        read(&PLAIN.write(folder.path()), [0; 4], [7, 5, 3], &[0]).unwrap_err().rsplit(": ").next(),
        Some("a block beyond the image, or of more than 268435456 values")
    );
}

#[test]
fn numbers_of_8_and_32_bits_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (data_type, bytes, expected) in [
        ("uint8", vec![3, 1, 4, 1], TypedValues::U8(vec![3, 1, 4, 1])),
        (
            "float32",
            [0.5_f32, f32::NAN, -1.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect(),
            TypedValues::F32(vec![0.5, f32::NAN, -1.0, 2.0]),
        ),
    ] {
        let path = PLAIN.write(folder.path());
        let mut array = PLAIN.array();
        (array["data_type"], array["shape"], array["fill_value"]) =
            (json!(data_type), json!([1, 1, 1, 2, 2]), json!(0));
        array["chunk_grid"]["configuration"]["chunk_shape"] = json!([1, 1, 1, 2, 2]);
        fs::write(folder.path().join("full/zarr.json"), array.to_string()).unwrap();
        fs::write(folder.path().join("full/c/0/0/0/0/0"), bytes).unwrap();
        let read = read(&path, [0; 4], [2, 2, 1], &[0]).unwrap();
        assert_eq!(format!("{:?}", read.values()), format!("{expected:?}"), "{data_type}");
    }
}

#[test]
fn written_image_is_read_and_published_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.zarr");
    let sides = [50, 48, 16, 3];
    let spots = MovingSpots::new(5, sides);
    assert_eq!(spots.count(), 2 * 2 * 2);
    let info = VolumeInfo {
        sides,
        has_z: true,
        channels: 1,
        channel_names: vec!["spots".to_owned()],
        number: pleach_regions::NumberType::U16,
        pixel_um: [Some(0.5), Some(0.5), Some(2.0)],
        step_seconds: Some(30.0),
    };
    let writer = OmeZarrWriter::create(&path, info.clone()).unwrap();
    for t in 0..3 {
        (0..16).for_each(|z| writer.write(PlaneIndex { z, t }, &spots.plane(z, t)).unwrap());
    }
    assert!(!path.exists());
    writer.finish().unwrap();
    let metadata = path.join("zarr.json");
    let mut file = VolumeFile::open(&metadata).unwrap();
    assert_eq!(*file.info(), info);
    let block = file.read(&metadata, &BlockRange { start: [0, 0, 5, 2], length: [50, 48, 1] }, &[0]).unwrap();
    assert_eq!(block.samples::<u16>().unwrap(), spots.plane(5, 2));
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["s.ome.zarr"]);
    assert!(OmeZarrWriter::create(&path, info.clone()).is_err());
    // An abandoned image leaves nothing.
    drop(OmeZarrWriter::create(&folder.path().join("b.zarr"), info).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
