//! Tiles and masks in files: every kind of pixel read, every kind of file written, and every kind of broken file.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgb, Rgba};
use pleach_pathology::image_io::{self, ImageFileError, MAX_SIDE_PX};
use pleach_regions::{DataRegion, DenseArray, ElementType, LabelMap, Raster, Table, TypedValues};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Saves an image as `format` under a name without an extension.
fn save(folder: &TempDir, image: impl Into<DynamicImage>, format: ImageFormat) -> PathBuf {
    let path = folder.path().join("tile");
    image.into().save_with_format(&path, format).unwrap();
    path
}

fn bytes(region: &DataRegion) -> &[u8] {
    region.raster(region.element()).unwrap().data()
}

fn read(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let (colors, mask) = (image_io::read_bgr(path).unwrap(), image_io::read_mask(path).unwrap());
    assert_eq!((colors.element(), mask.element()), (ElementType::Bgr8, ElementType::Mask));
    (bytes(&colors).to_vec(), bytes(&mask).to_vec())
}

#[test]
fn every_pixel_type_is_read() {
    let folder = folder();
    for format in [ImageFormat::Png, ImageFormat::Tiff] {
        let save = |image: DynamicImage| read(&save(&folder, image, format));
        let gray = ImageBuffer::from_raw(2, 1, vec![0_u8, 7]).map(|b: ImageBuffer<Luma<u8>, _>| b).unwrap();
        assert_eq!(save(gray.into()), (vec![0, 0, 0, 7, 7, 7], vec![0, 255]));
        let color: ImageBuffer<Rgb<u8>, _> = ImageBuffer::from_raw(2, 1, vec![1_u8, 2, 3, 0, 0, 0]).unwrap();
        assert_eq!(save(color.into()), (vec![3, 2, 1, 0, 0, 0], vec![255, 0]));
        let alpha: ImageBuffer<Rgba<u8>, _> =
            ImageBuffer::from_raw(2, 1, vec![1_u8, 2, 3, 0, 0, 0, 0, 255]).unwrap();
        assert_eq!(save(alpha.into()), (vec![3, 2, 1, 0, 0, 0], vec![255, 0]));
        // Labels 1 and 300 are objects, though 1 of 16 bits scales to 0 in 8 bits.
        let labels: ImageBuffer<Luma<u16>, _> =
            ImageBuffer::from_raw(4, 1, vec![0_u16, 1, 300, 65_535]).unwrap();
        let scaled = vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 255, 255, 255];
        assert_eq!(save(labels.into()), (scaled, vec![0, 255, 255, 255]));
        let deep: ImageBuffer<Rgb<u16>, _> = ImageBuffer::from_raw(1, 1, vec![257_u16, 514, 771]).unwrap();
        assert_eq!(save(deep.into()), (vec![3, 2, 1], vec![255]));
    }
    let faint: ImageBuffer<LumaA<u8>, _> = ImageBuffer::from_raw(2, 1, vec![9_u8, 0, 0, 255]).unwrap();
    assert_eq!(read(&save(&folder, faint, ImageFormat::Png)), (vec![9, 9, 9, 0, 0, 0], vec![255, 0]));
    let deep: ImageBuffer<Rgba<u16>, _> = ImageBuffer::from_raw(1, 1, vec![0_u16, 0, 0, 65_535]).unwrap();
    assert_eq!(read(&save(&folder, deep, ImageFormat::Png)), (vec![0; 3], vec![0]));
    let plain: ImageBuffer<Rgb<u8>, _> = ImageBuffer::from_pixel(16, 8, Rgb([200, 100, 50]));
    let (colors, _) = read(&save(&folder, plain, ImageFormat::Jpeg));
    assert!(
        colors.chunks(3).all(|p| p[0].abs_diff(50) < 4 && p[1].abs_diff(100) < 4 && p[2].abs_diff(200) < 4)
    );
}

#[test]
fn a_jpeg_that_is_cut_short_is_refused_wherever_it_is_cut() {
    let folder = folder();
    let noise = |x: u32, y: u32| Rgb([(x * 37 + y * 11) as u8, (x * y) as u8, (x ^ y) as u8]);
    let path = save(&folder, ImageBuffer::from_fn(64, 64, noise), ImageFormat::Jpeg);
    let whole = fs::read(&path).unwrap();
    assert!(image_io::read_bgr(&path).is_ok());
    for part in 1..20 {
        fs::write(&path, &whole[..whole.len() * part / 20]).unwrap();
        let error = image_io::read_bgr(&path).unwrap_err().to_string();
        assert!(error.contains("corrupt or truncated"), "{error}");
    }
    // Bytes after the end of an image are ignored.
    fs::write(&path, [&whole[..], &[0; 9]].concat()).unwrap();
    assert!(image_io::read_bgr(&path).is_ok());
}

#[test]
fn written_images_round_trip() {
    let folder = folder();
    let path = folder.path().join("out.png");
    // Widths on both sides of a full byte. Any nonzero value is object.
    for width in [1_u32, 7, 8, 9, 64] {
        let values: Vec<u8> =
            (0..width * 5).map(|i| if i % 3 == 0 { 1 + (i % 200) as u8 } else { 0 }).collect();
        let mask = Raster::new(width, 5, 1, values.clone()).unwrap();
        image_io::write_mask(&path, &mask).unwrap();
        let wanted: Vec<u8> = values.iter().map(|value| if *value == 0 { 0 } else { 255 }).collect();
        assert_eq!(bytes(&image_io::read_mask(&path).unwrap()), wanted);
        assert_eq!(fs::read(&path).unwrap()[24..26], [1, 0], "one bit, gray");
        assert_eq!(image_io::probe(&path).unwrap(), image_io::TileInfo { width_px: width, height_px: 5 });
    }
    let gray = Raster::new(3, 1, 1, vec![0, 128, 255]).unwrap();
    image_io::write_gray(&path, &gray).unwrap();
    assert_eq!(bytes(&image_io::read_bgr(&path).unwrap()), [0, 0, 0, 128, 128, 128, 255, 255, 255]);
    let color = Raster::new(2, 1, 3, vec![1, 2, 3, 4, 5, 6]).unwrap();
    image_io::write_bgr(&path, &color).unwrap();
    assert_eq!(bytes(&image_io::read_bgr(&path).unwrap()), color.data());
    // No temporary file remains.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn bytes_of_a_file_are_those_of_the_file() {
    let folder = folder();
    let path = folder.path().join("image.png");
    let raster = |channels: u8| {
        let data = (0..5 * 3 * usize::from(channels)).map(|value| value as u8 * 5).collect();
        Raster::new(5, 3, channels, data).unwrap()
    };
    image_io::write_mask(&path, &raster(1)).unwrap();
    assert_eq!(image_io::png_bytes(&DataRegion::Mask(raster(1))).unwrap(), fs::read(&path).unwrap());
    image_io::write_gray(&path, &raster(1)).unwrap();
    assert_eq!(image_io::png_bytes(&DataRegion::Gray8(raster(1))).unwrap(), fs::read(&path).unwrap());
    image_io::write_bgr(&path, &raster(3)).unwrap();
    assert_eq!(image_io::png_bytes(&DataRegion::Bgr8(raster(3))).unwrap(), fs::read(&path).unwrap());

    for region in
        [DataRegion::Table(Table::default()), DataRegion::Bgr8(raster(1)), DataRegion::Mask(raster(3))]
    {
        assert!(matches!(image_io::png_bytes(&region), Err(ImageFileError::NotEncoded { .. })), "{region:?}");
    }
    assert!(!image_io::is_image(ElementType::Table));
}

#[test]
fn label_maps_and_arrays_are_images_too() {
    let labels = |labels: Vec<u32>| DataRegion::Labels(LabelMap::new(2, 1, labels).unwrap());
    let png = |region: &DataRegion| image::load_from_memory(&image_io::png_bytes(region).unwrap()).unwrap();
    assert_eq!(png(&labels(vec![7, 65_535])).into_luma16().as_raw(), &[7, 65_535]);
    let said = image_io::png_bytes(&labels(vec![0, 65_536])).unwrap_err().to_string();
    let beyond = "cannot be encoded as an image: label 65536 exceeds the 16 bits of PNG; TIFF has 32";
    assert_eq!(said, beyond);
    let array = |channels, values: TypedValues| {
        DataRegion::Array(DenseArray::new(&[2, 1], channels, values).unwrap())
    };
    assert_eq!(png(&array(1, vec![1_u16, 40_000].into())).into_luma16().as_raw(), &[1, 40_000]);
    assert_eq!(png(&array(3, vec![1_u8, 2, 3, 4, 5, 6].into())).into_rgb8().as_raw(), &[1, 2, 3, 4, 5, 6]);
    for region in [array(2, vec![0_u8; 4].into()), array(1, vec![0.5_f32; 2].into())] {
        assert!(matches!(image_io::png_bytes(&region), Err(ImageFileError::NotEncoded { .. })), "{region:?}");
    }
    let tiff = image_io::tiff_bytes(&array(3, vec![1_u16, 2, 3, 4, 5, 60_000].into())).unwrap();
    assert_eq!(image::load_from_memory(&tiff).unwrap().into_rgb16().as_raw(), &[1, 2, 3, 4, 5, 60_000]);
}

#[test]
fn a_jpeg_shows_nearly_the_same() {
    let color = [200, 120, 180];
    let image = Raster::new(20, 10, 3, color.repeat(200)).unwrap();
    let folder = folder();
    let path = folder.path().join("image");
    fs::write(&path, image_io::jpeg_bytes(&image, 85).unwrap()).unwrap();
    let info = image_io::probe(&path).unwrap();
    assert_eq!((info.width_px, info.height_px), (20, 10));
    let (read, _) = read(&path);
    assert!(read.iter().zip(image.data()).all(|(a, b)| a.abs_diff(*b) <= 3));
    let gray = Raster::filled(20, 10, 1, 0).unwrap();
    assert!(matches!(image_io::jpeg_bytes(&gray, 85), Err(ImageFileError::NotEncoded { .. })));
}

#[test]
fn failed_write_leaves_no_partial_file() {
    let folder = folder();
    let mask = Raster::filled(4, 4, 1, 255).unwrap();
    let missing = folder.path().join("missing/out.png");
    assert!(matches!(image_io::write_mask(&missing, &mask), Err(ImageFileError::Unwritable { .. })));
    // The last step fails: a nonempty folder has the name.
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("file"), "kept").unwrap();
    assert!(matches!(image_io::write_mask(&taken, &mask), Err(ImageFileError::Unwritable { .. })));
    let path = folder.path().join("out.png");
    fs::write(&path, "before").unwrap();
    let error = image_io::write_bgr(&path, &mask).unwrap_err();
    assert!(error.to_string().ends_with("out.png: 1 channels; 3 are allowed"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["out.png", "taken"]);
}

#[cfg(unix)]
#[test]
fn results_can_be_read_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("out.png");
    image_io::write_mask(&path, &Raster::filled(4, 4, 1, 255).unwrap()).unwrap();
    // The result has the mode of an ordinary new file.
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

fn refused(path: &Path) -> String {
    let message = image_io::read_bgr(path).unwrap_err().to_string();
    assert_eq!(image_io::read_mask(path).unwrap_err().to_string(), message);
    assert!(!message.contains('\n'), "{message}");
    message.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
}

#[test]
fn broken_files_are_refused_with_the_cause() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(refused(&path("missing.png")), "cannot be read: No such file or directory (os error 2)");
    assert_eq!(refused(folder.path()), "is a folder; a PNG, JPEG or TIFF file is allowed");
    fs::write(path("empty.png"), "").unwrap();
    assert_eq!(refused(&path("empty.png")), "the file is empty; a PNG, JPEG or TIFF image is allowed");
    let unknown = "unknown image format; PNG, JPEG and TIFF are allowed";
    fs::write(path("text.png"), "just some text, and quite a bit of it").unwrap();
    assert_eq!(refused(&path("text.png")), unknown);
    fs::write(path("animation.png"), b"GIF89a\x01\x00\x01\x00\x00\x00\x00;").unwrap();
    assert_eq!(refused(&path("animation.png")), unknown);

    let noise: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let tile: ImageBuffer<Rgb<u8>, _> = ImageBuffer::from_raw(500, 200, noise).unwrap();
    for format in [ImageFormat::Png, ImageFormat::Tiff] {
        let whole = fs::read(save(&folder, tile.clone(), format)).unwrap();
        // TIFF's directory is at the end, PNG's header at the start.
        for kept in [9, 20, 40, whole.len() / 2, whole.len() - 60] {
            let cut = path("cut.png");
            fs::write(&cut, &whole[..kept]).unwrap();
            let message = refused(&cut);
            assert!(message.starts_with("corrupt or truncated image: "), "{format:?} {kept}: {message}");
        }
    }
    let float: ImageBuffer<Rgb<f32>, _> = ImageBuffer::from_pixel(2, 2, Rgb([0.5, 0.5, 0.5]));
    let message = refused(&save(&folder, DynamicImage::ImageRgb32F(float), ImageFormat::Tiff));
    assert_eq!(
        message,
        "Rgb32F pixels are not supported; gray and color of 8 or 16 bits per channel are allowed"
    );
}

/// Writes a PNG header with these sides, followed by almost no data.
fn hostile(path: &Path, width: u32, height: u32) {
    image_io::write_mask(path, &Raster::filled(1, 1, 1, 255).unwrap()).unwrap();
    let mut png = fs::read(path).unwrap();
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let mut check = flate2::Crc::new();
    check.update(&png[12..29]);
    png[29..33].copy_from_slice(&check.sum().to_be_bytes());
    fs::write(path, png).unwrap();
}

#[test]
fn headers_cannot_ask_for_any_amount_of_memory() {
    let folder = folder();
    let path = folder.path().join("large.png");
    for (width, height) in
        [(MAX_SIDE_PX + 1, 1), (1, 2_000_000_000), (60_000, 60_000), (2_000_000_000, 2_000_000_000)]
    {
        hostile(&path, width, height);
        let probed = image_io::probe(&path).unwrap_err().to_string();
        let wanted = format!(
            "{width} x {height} px is too large; up to 65536 px per side and 2048 MiB decoded are allowed"
        );
        assert_eq!(refused(&path), wanted);
        assert!(probed.ends_with(&wanted));
    }
    // The size is larger than any tile but allowed. Only the pixels are missing.
    hostile(&path, 20_000, 20_000);
    assert_eq!(image_io::probe(&path).unwrap(), image_io::TileInfo { width_px: 20_000, height_px: 20_000 });
    assert!(refused(&path).starts_with("corrupt or truncated image: "));
}
