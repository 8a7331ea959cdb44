//! OME-TIFF: orders of planes, missing planes, truncated files and types.

use crate::{expected, read, value};
use pleach_volumes::VolumeFile;
use std::fs::{self, File};
use std::path::Path;
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

/// Sides along x, y, z and time, and channels.
const SIDES: [u32; 5] = [6, 5, 3, 2, 2];

/// The OME-XML of an image of these sides.
fn xml(order: &str, data: &str) -> String {
    let [x, y, z, t, c] = SIDES;
    format!(
        "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" \
         Type=\"uint16\" DimensionOrder=\"{order}\" SizeX=\"{x}\" SizeY=\"{y}\" SizeZ=\"{z}\" SizeT=\"{t}\" SizeC=\"{c}\" \
         PhysicalSizeX=\"0.25\" PhysicalSizeY=\"250\" PhysicalSizeYUnit=\"nm\" TimeIncrement=\"500\" TimeIncrementUnit=\"ms\">\
         <Channel ID=\"C:0\" Name=\"DAPI\" SamplesPerPixel=\"1\"/><Channel ID=\"C:1\" Name=\"GFP\"/>{data}</Pixels></Image></OME>"
    )
}

/// Writes planes of these z, times and channels, two rows a strip.
fn write(path: &Path, xml: &str, planes: &[[u32; 3]]) {
    let mut encoder = TiffEncoder::new(File::create(path).unwrap()).unwrap();
    for (place, &[z, t, c]) in planes.iter().enumerate() {
        let mut image = encoder.new_image::<colortype::Gray16>(SIDES[0], SIDES[1]).unwrap();
        image.rows_per_strip(2).unwrap();
        if place == 0 {
            image.encoder().write_tag(Tag::ImageDescription, xml).unwrap();
        }
        let values: Vec<u16> =
            (0..SIDES[0] * SIDES[1]).map(|at| value([at % SIDES[0], at / SIDES[0], z, t, c])).collect();
        image.write_data(&values).unwrap();
    }
}

/// Planes in an order of the dimensions, the first one fastest: 0 is z, 1 time, 2 channel.
fn planes(order: [usize; 3]) -> Vec<[u32; 3]> {
    let side = |dimension: usize| SIDES[2 + dimension];
    let mut planes = Vec::new();
    for third in 0..side(order[2]) {
        for second in 0..side(order[1]) {
            for first in 0..side(order[0]) {
                let mut plane = [0; 3];
                (plane[order[0]], plane[order[1]], plane[order[2]]) = (first, second, third);
                planes.push(plane);
            }
        }
    }
    planes
}

#[test]
fn planes_are_found_in_all_orders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.tif");
    for (order, dimensions) in
        [("XYZTC", [0, 1, 2]), ("XYZCT", [0, 2, 1]), ("XYCZT", [2, 0, 1]), ("XYTCZ", [1, 2, 0])]
    {
        for data in ["", "<TiffData/>", "<TiffData IFD=\"0\" PlaneCount=\"12\"/>"] {
            write(&path, &xml(order, data), &planes(dimensions));
            let (start, length, channels) = ([1, 1, 1, 1], [4, 3, 2], [1, 0]);
            let block = read(&path, start, length, &channels);
            assert_eq!(block, Ok(expected(start, length, &channels, 3)), "{order} {data}");
        }
    }
    let info = VolumeFile::open(&path).unwrap().info().clone();
    assert_eq!((info.pixel_um, info.step_seconds), ([Some(0.25), Some(0.25), None], Some(0.5)));
    assert_eq!(info.channel_names, ["DAPI", "GFP"]);
}

#[test]
fn stated_directories_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.tif");
    // Directories in reverse.
    let mut reversed = planes([0, 1, 2]);
    let data: String = (0..12)
        .map(|place| {
            let [z, t, c] = reversed[place];
            format!("<TiffData IFD=\"{}\" FirstZ=\"{z}\" FirstT=\"{t}\" FirstC=\"{c}\"/>", 11 - place)
        })
        .collect();
    reversed.reverse();
    write(&path, &xml("XYZTC", &data), &reversed);
    for t in 0..2 {
        let (start, length) = ([0, 0, 0, t], [6, 5, 3]);
        assert_eq!(read(&path, start, length, &[0, 1]), Ok(expected(start, length, &[0, 1], 3)));
    }
}

#[test]
fn invalid_files_are_refused_with_plane_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.tif");
    let all = planes([0, 1, 2]);
    let error = |t: u32, channel: u32| {
        let error = read(&path, [0, 0, 0, t], [6, 5, 3], &[channel]).unwrap_err();
        error.replace(path.to_str().unwrap(), "FILE")
    };
    write(&path, &xml("XYZTC", ""), &all[..10]);
    assert_eq!(error(1, 1), "FILE: plane of channel 1, z 1, time 1 is missing: the file has 10 planes");
    write(&path, &xml("XYZTC", "<TiffData IFD=\"0\" PlaneCount=\"3\"/>"), &all);
    assert_eq!(error(1, 0), "FILE: plane of channel 0, z 0, time 1 is missing: the file has 12 planes");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..100]).unwrap();
    assert!(error(0, 0).starts_with("FILE: "), "{}", error(0, 0));
    let described = |from: &str, to: &str, message: &str| {
        let text = xml("XYZTC", "");
        assert!(text.contains(from), "{from}");
        write(&path, &text.replace(from, to), &all);
        assert_eq!(error(0, 0), format!("FILE: {message}"));
    };
    described("uint16", "int16", "Pixels.Type: int16 is not allowed; allowed: uint8, uint16, float");
    described(
        "uint16",
        "uint8",
        "type of a plane: Gray(16) is not allowed; allowed: one u8 a pixel, as the OME-XML states",
    );
    described(
        "XYZTC",
        "XYZZC",
        "Pixels.DimensionOrder: XYZZC is not allowed; allowed: XYZCT and the other orders of Z, C and T",
    );
    described(
        "SamplesPerPixel=\"1\"",
        "SamplesPerPixel=\"3\"",
        "Channel 0.SamplesPerPixel: 3 is not allowed; allowed: 1",
    );
    described(
        "SizeX=\"6\"",
        "SizeX=\"7\"",
        "size of the plane of channel 0, z 0, time 0: 6 x 5 is not allowed; allowed: 7 x 5, as the OME-XML states",
    );
    described("SizeZ=\"3\"", "SizeZ=\"0\"", "Pixels.SizeZ: 0 is not allowed; allowed: 1 to 2^32 - 1");
    described("<OME", "<ome", "ImageDescription: missing; the OME-XML of an OME-TIFF is needed");
    let other = "<TiffData><UUID FileName=\"a.tif\">1</UUID></TiffData><TiffData><UUID FileName=\"b.tif\">2</UUID></TiffData>";
    described(
        "</Pixels>",
        &format!("{other}</Pixels>"),
        "TiffData.UUID.FileName: b.tif is not allowed; allowed: all planes in one file",
    );
    // The directory of a plane follows its pixels.
    write(&path, &xml("XYZTC", ""), &all);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    assert_eq!(error(1, 1), "FILE: plane of channel 1, z 2, time 1 is missing: the file has 11 planes");
    fs::write(&path, "no image").unwrap();
    assert!(error(0, 0).starts_with("FILE: no valid TIFF: "), "{}", error(0, 0));
}
