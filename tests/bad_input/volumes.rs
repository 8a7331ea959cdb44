//! OME-TIFF images that lack a plane or the size of pixels are refused before anything runs.

use crate::pleach::pleach;
use crate::refused;
use std::fs::{self, File};
use std::path::Path;
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

/// Sides along x, y and z, and times. There is one channel.
const SIDES: [u32; 4] = [16, 12, 3, 2];

/// Attributes of the OME-XML for the size of pixels.
const PIXEL_SIZE: &str = "PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.5\" PhysicalSizeZ=\"2\"";

/// Writes an OME-TIFF with these attributes, this list of planes, and this number of planes, z fastest.
fn write_image(path: &Path, attributes: &str, data: &str, planes: u32) {
    let [x, y, z, t] = SIDES;
    let xml = format!(
        "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" \
         Type=\"uint16\" DimensionOrder=\"XYZTC\" SizeX=\"{x}\" SizeY=\"{y}\" SizeZ=\"{z}\" SizeT=\"{t}\" SizeC=\"1\" \
         {attributes}>{data}</Pixels></Image></OME>"
    );
    let mut encoder = TiffEncoder::new(File::create(path).expect("a file made")).expect("a header written");
    for plane in 0..planes {
        let mut image = encoder.new_image::<colortype::Gray16>(x, y).expect("a directory");
        if plane == 0 {
            image.encoder().write_tag(Tag::ImageDescription, xml.as_str()).expect("a field written");
        }
        image.write_data(&vec![plane as u16; (x * y) as usize]).expect("a plane written");
    }
}

#[test]
fn image_without_a_plane_or_the_size_of_pixels_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/volume");
    for name in ["workflow", "reals", "smooth", "spots", "count", "links"].map(|name| format!("{name}.json"))
    {
        fs::copy(example.join(&name), folder.join(&name)).expect("copied");
    }
    let study = fs::read_to_string(example.join("study.toml")).expect("the study of the example");
    assert_eq!(study.matches("*.ome.zarr\"]").count(), 1, "{study}");
    fs::write(folder.join("study.toml"), study.replace("*.ome.zarr\"]", "s.ome.tif\"]")).expect("written");
    let path = folder.join("s.ome.tif");
    let plan = ["plan", "study.toml"];
    let refused = |args: &[&str], expected: &str| {
        refused(folder, args, &format!("study.toml: input.images: s.ome.tif: {expected}"));
    };

    write_image(&path, PIXEL_SIZE, "", 6);
    let planned = pleach(folder, &plan).done();
    let noted = "image s: 16 x 12 x 3 px of u16, 2 times, pixels of 0.5 x 0.5 x 2 µm; 2 blocks\n";
    assert!(planned.starts_with(noted), "{planned}");
    write_image(&path, PIXEL_SIZE, "", 5);
    let missing = "plane of channel 0, z 2, time 1 is missing: the file has 5 planes";
    refused(&plan, missing);
    refused(&["run", "study.toml", "--out", "out"], missing);
    // The list of planes omits the second time, though its planes are in the file.
    write_image(&path, PIXEL_SIZE, "<TiffData IFD=\"0\" PlaneCount=\"3\"/>", 6);
    refused(&plan, "plane of channel 0, z 0, time 1 is missing: the file has 6 planes");

    let unknown = "the size of pixels is unknown; region calibration of workflow volume needs its micrometers in the metadata";
    write_image(&path, "", "", 6);
    refused(&plan, unknown);
    refused(&["run", "study.toml", "--out", "out"], unknown);
    // Along z, a z-stack needs it too.
    write_image(&path, "PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.5\"", "", 6);
    refused(&plan, unknown);
}
