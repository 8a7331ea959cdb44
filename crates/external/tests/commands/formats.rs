//! Regions that pass through files of commands.

use crate::Package;
use pleach_regions::{DataRegion, DenseArray, LabelMap, Raster, Table};

/// Runs `cp` from the input to the output, both of this type and format.
fn copied(region: &DataRegion, format: &str) -> Result<Vec<DataRegion>, String> {
    let element = region.element();
    let entry = format!(
        "command = [\"cp\", \"{{in}}\", \"{{out}}\"]\n\
         inputs = [{{ name = \"in\", type = \"{element}\"{format} }}]\n\
         outputs = [{{ name = \"out\", type = \"{element}\"{format} }}]"
    );
    Package::of("", &entry).run(&[region], &[])
}

fn images() -> [DataRegion; 4] {
    let pixels: Vec<u8> = (0..=255).collect();
    let mask = pixels.iter().map(|value| if value % 3 == 0 { 255 } else { 0 }).collect();
    let labels = (0..256_u32).map(|value| value * 257).collect();
    [
        DataRegion::Bgr8(Raster::new(17, 5, 3, pixels[..255].to_vec()).unwrap()),
        DataRegion::Gray8(Raster::new(32, 8, 1, pixels.clone()).unwrap()),
        DataRegion::Mask(Raster::new(32, 8, 1, mask).unwrap()),
        DataRegion::Labels(LabelMap::new(8, 32, labels).unwrap()),
    ]
}

#[test]
fn images_come_back_in_each_format() {
    for region in images() {
        for format in ["", ", format = \"png\"", ", format = \"tiff\"", ", format = \"npy\""] {
            assert_eq!(copied(&region, format).unwrap(), std::slice::from_ref(&region), "{format}");
        }
    }
}

#[test]
fn arrays_come_back_bit_by_bit() {
    let array = |values| DenseArray::new(&[3, 2], 1, values).unwrap();
    for array in [
        array(vec![0_u8, 1, 2, 3, 4, 255].into()),
        array(vec![0_u16, 1, 2, 3, 4, 65_535].into()),
        array(vec![0_i32, -1, i32::MIN, i32::MAX, 4, 5].into()),
        array(vec![0_f32, -0.0, f32::NAN, f32::INFINITY, 1e-45, 0.1].into()),
        array(
            vec![0_f64, -0.0, f64::from_bits(0x7ff8_0000_dead_beef), f64::NEG_INFINITY, 5e-324, 0.1].into(),
        ),
    ] {
        let region = DataRegion::Array(array);
        let back = copied(&region, "").unwrap();
        assert_eq!((back[0].shape(), back[0].content()), (region.shape(), region.content()));
    }
}

#[test]
fn tables_and_scalars_come_back() {
    let table = Table::new([("dice", 0.1 + 0.2), ("a, \"b\"", -0.0), ("c", f64::INFINITY), ("d", 5e-324)]);
    for region in [DataRegion::Table(table), DataRegion::Scalar(0.1 + 0.2)] {
        assert_eq!(copied(&region, "").unwrap(), [region]);
    }
}

#[test]
fn labels_beyond_16_bits_need_npy() {
    let region = DataRegion::Labels(LabelMap::new(1, 1, vec![70_000]).unwrap());
    let error = copied(&region, "").unwrap_err();
    assert!(error.starts_with("input in: label 70000; up to 65535 is allowed in png"), "{error}");
    assert_eq!(copied(&region, ", format = \"npy\"").unwrap(), [region]);
}

/// Copies a gray image to an output of this type and format.
fn as_output(output: &str) -> String {
    let entry = format!(
        "command = [\"cp\", \"{{in}}\", \"{{out}}\"]\n\
         inputs = [{{ name = \"in\", type = \"gray8\" }}]\noutputs = [{{ name = \"out\", {output} }}]"
    );
    let gray = DataRegion::Gray8(Raster::filled(2, 1, 1, 7).unwrap());
    Package::of("", &entry).run(&[&gray], &[]).unwrap_err()
}

#[test]
fn wrong_files_are_named_with_their_ports() {
    let prefix = "invalid answer of the process: output out: out.";
    let channels = as_output("type = \"bgr8\"");
    let wanted = format!("{prefix}png: channels: 1, of 8 bits; 3 channels of 8 bits is allowed for bgr8");
    assert_eq!(channels, wanted);
    let values = as_output("type = \"mask\"");
    assert_eq!(values, format!("{prefix}png: value 7; 0 and 255 are allowed in a mask"));
    assert!(
        as_output("type = \"gray8\", format = \"npy\"").starts_with(&format!("{prefix}npy: no npy file"))
    );
    assert!(as_output("type = \"gray8\", format = \"tiff\"").starts_with(&format!("{prefix}tiff: ")));
    assert!(as_output("type = \"table\"").starts_with(&format!("{prefix}csv: ")));

    let scripts = [
        (": > $1", "csv: an empty file; a line of names and a line of as many numbers are allowed"),
        ("printf 'a,b\\n1,two\\n' > $1", "csv: column \"b\": \"two\"; a number is allowed"),
        ("mkdir $1", "csv: no regular file; a csv file is required"),
        ("", "csv: missing; a csv file is required"),
    ];
    for (script, wanted) in scripts {
        let package = Package::new(script, &["{out}"], "outputs = [{ name = \"out\", type = \"table\" }]");
        assert_eq!(package.run(&[], &[]).unwrap_err(), format!("{prefix}{wanted}"));
    }
}

#[test]
fn image_of_another_size_is_refused() {
    let rest = "inputs = [{ name = \"tile\", type = \"gray8\" }, { name = \"small\", type = \"gray8\" }]\n\
                outputs = [{ name = \"out\", type = \"gray8\" }]";
    let package = Package::new("cp $2 $3", &["{tile}", "{small}", "{out}"], rest);
    let gray = |width| DataRegion::Gray8(Raster::filled(width, 2, 1, 7).unwrap());
    let error = package.run(&[&gray(3), &gray(2)], &[]).unwrap_err();
    let wanted = "output out: out.png: 2 x 2 px; the size of the inputs, 3 x 2 px, is allowed";
    assert!(error.ends_with(wanted), "{error}");
    assert_eq!(package.run(&[&gray(3), &gray(3)], &[]), Ok(vec![gray(3)]));
}
