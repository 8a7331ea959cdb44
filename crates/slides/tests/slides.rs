//! Slides as users see them: pixels, magnifications, and messages for files that are no slides.

#[path = "../../../tests/support/data.rs"]
mod data;
#[path = "../../../tests/support/mirax.rs"]
mod mirax;
#[path = "../../../tests/support/pyramid.rs"]
mod pyramid;

use data::data;
use mirax::write_mirax;
use pleach_regions::{PixelRectangle, Raster};
use pleach_slides::{Scale, Slide, Tissue, files_of};
use proptest::prelude::*;
use pyramid::{AT_20, Pyramid, write_image};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn part(x_px: u32, y_px: u32, width_px: u32, height_px: u32) -> PixelRectangle {
    PixelRectangle { x_px, y_px, width_px, height_px }
}

fn all(scale: &Scale) -> PixelRectangle {
    part(0, 0, scale.width_px, scale.height_px)
}

fn refused(path: &Path) -> String {
    let error = Slide::open(path).expect_err("refused");
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()) && !text.contains('\n'), "{text}");
    text[path.display().to_string().len()..].to_owned()
}

/// Reads the pixels of an image file, B, G, R.
fn image(path: &Path) -> Raster {
    let mut image = image::open(path).expect("an image").into_rgb8();
    image.pixels_mut().for_each(|pixel| pixel.0.reverse());
    Raster::new(image.width(), image.height(), 3, image.into_raw()).expect("a raster")
}

#[test]
fn slide_metadata_is_read() {
    let Some(data) = data("slide_metadata_is_read") else { return };
    let svs = Slide::open(&data.join("wsi/CMU-1-Small-Region.svs")).unwrap();
    assert_eq!((svs.format(), svs.magnification()), ("aperio", Some(20.0)));
    assert_eq!(svs.resolution().unwrap().microns_per_px(), 0.499);
    let scale = svs.scale(None).unwrap();
    assert_eq!((scale.width_px, scale.height_px, scale.level), (2220, 2967, 0));
    assert_eq!(svs.scale(Some(20.0)).unwrap(), scale);
    let half = svs.scale(Some(10.0)).unwrap();
    assert_eq!((half.width_px, half.height_px, half.level_px_a_px), (1110, 1483, 2.0));

    let ndpi = Slide::open(&data.join("wsi/test3-DAPI-2.ndpi")).unwrap();
    assert_eq!((ndpi.format(), ndpi.objective_power(), ndpi.levels().len()), ("hamamatsu", Some(40.0), 7));
    for (magnification, level, width) in [(40.0, 0, 3968), (20.0, 1, 1984), (5.0, 3, 496)] {
        let scale = ndpi.scale(Some(magnification)).unwrap();
        assert_eq!((scale.level, scale.level_px_a_px, scale.width_px), (level, 1.0, width));
    }
    // A magnification between two levels uses the finer one.
    let between = ndpi.scale(Some(15.0)).unwrap();
    assert_eq!((between.level, between.width_px), (1, 1488));

    let tiff = Slide::open(&data.join("wsi/CMU-1_pyramid_deflate.tiff")).unwrap();
    assert_eq!((tiff.format(), tiff.magnification()), ("generic-tiff", None));
}

#[test]
fn magnifications_that_a_slide_does_not_have_are_refused() {
    let Some(data) = data("magnifications_that_a_slide_does_not_have_are_refused") else { return };
    let svs = Slide::open(&data.join("wsi/CMU-1-Small-Region.svs")).unwrap();
    for (magnification, said) in
        [(40.0, "40"), (0.0, "0"), (-20.0, "-20"), (f64::NAN, "NaN"), (1e-3, "0.001")]
    {
        let text = svs.scale(Some(magnification)).unwrap_err().to_string();
        let expected =
            format!("magnification {said} of a slide scanned at 20; 0.009009009009009009 to 20 is");
        assert!(text.contains(&expected), "{text}");
    }
    let tiff = Slide::open(&data.join("wsi/CMU-1_pyramid_deflate.tiff")).unwrap();
    let text = tiff.scale(Some(20.0)).unwrap_err().to_string();
    assert!(text.contains("of a slide without magnification and microns per pixel"), "{text}");
}

/// Pixels equal those of another decoder, on a lossless file.
#[test]
fn pixels_are_those_of_the_file() {
    let Some(data) = data("pixels_are_those_of_the_file") else { return };
    let path = data.join("wsi/CMU-1_pyramid_deflate.tiff");
    let slide = Slide::open(&path).unwrap();
    let scale = slide.scale(None).unwrap();
    let expected = image(&path);
    assert_eq!(slide.read(&scale, all(&scale)).unwrap(), expected);
    let cut = slide.read(&scale, part(250, 511, 300, 2)).unwrap();
    let row = |y: usize| &expected.data()[(y * 1024 + 250) * 3..][..900];
    assert_eq!(cut.data(), [row(511), row(512)].concat());
}

/// A slide written from an image has the same pixels, at the edges of the pieces too.
#[test]
fn a_slide_of_an_image_is_that_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.tiff");
    let pixels: Vec<u8> = (0..150 * 130 * 3_u32).map(|n| (n.wrapping_mul(40_503) >> 7) as u8).collect();
    write_image(&path, &pixels, 150, "");
    let slide = Slide::open(&path).unwrap();
    let scale = slide.scale(None).unwrap();
    assert_eq!((scale.width_px, scale.height_px), (150, 130));
    let read = slide.read(&scale, all(&scale)).unwrap();
    assert!(read.data().chunks(3).zip(pixels.chunks(3)).all(|(bgr, rgb)| bgr == [rgb[2], rgb[1], rgb[0]]));
    let corner = slide.read(&scale, part(149, 129, 1, 1)).unwrap();
    assert_eq!(corner.data(), &read.data()[read.data().len() - 3..]);
}

/// Resampling by 2 equals the file's second level, which is the mean of 2 × 2 pixels of the first.
#[test]
fn resampling_is_the_mean() {
    let Some(data) = data("resampling_is_the_mean") else { return };
    let slide = Slide::open(&data.join("wsi/CMU-1_pyramid_deflate.tiff")).unwrap();
    let first = slide.read(&slide.scale(None).unwrap(), part(0, 0, 1024, 1024)).unwrap();
    let of_first = Scale { level: 0, level_px_a_px: 2.0, width_px: 512, height_px: 512 };
    let halved = slide.read(&of_first, all(&of_first)).unwrap();
    let value = |x: usize, y: usize, channel: usize| u32::from(first.data()[(y * 1024 + x) * 3 + channel]);
    for (place, found) in halved.data().iter().enumerate() {
        let (x, y, channel) = (place / 3 % 512 * 2, place / 3 / 512 * 2, place % 3);
        let sum = value(x, y, channel)
            + value(x + 1, y, channel)
            + value(x, y + 1, channel)
            + value(x + 1, y + 1, channel);
        assert_eq!(u32::from(*found), (sum + 2) / 4);
    }
    let overview = slide.overview(512).unwrap();
    let differ = overview.data().iter().zip(halved.data()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(differ <= Some(1), "the level of the file was rounded by its maker: {differ:?}");
}

/// Writes a pyramid of three levels, 700 × 500 px, whose tiles differ in color and pattern.
fn patterned(folder: &TempDir) -> PathBuf {
    let image = |seed: u32| -> Vec<u8> {
        (0..64 * 64 * 3_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 13) as u8)
            .collect()
    };
    let images: Vec<Vec<u8>> = (0..5).map(image).collect();
    let path = folder.path().join("patterned.tiff");
    let image_of = |level: usize, column: u32, row: u32| (level + column as usize + 2 * row as usize) % 5;
    Pyramid {
        size_px: [700, 500],
        levels: 3,
        tile_px: 64,
        images: &images,
        image_of: &image_of,
        description: "",
    }
    .write(&path);
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Tiles agree where they overlap, at the magnification of a level and between levels.
    #[test]
    fn a_part_is_cut_out_of_the_whole(
        scale in prop::sample::select(vec![(0, 1.0), (0, 1.7), (0, 3.0), (1, 1.0), (1, 1.25), (2, 1.9)]),
        (x, y) in (0.0..1.0_f64, 0.0..1.0_f64),
        (width, height) in (1u32..90, 1u32..90),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let slide = Slide::open(&patterned(&folder)).unwrap();
        let level = slide.levels()[scale.0];
        let side = |level_px: u32| (f64::from(level_px) / scale.1).floor() as u32;
        let (width_px, height_px) = (side(level.width_px), side(level.height_px));
        let scale = Scale { level: scale.0, level_px_a_px: scale.1, width_px, height_px };
        let whole = slide.read(&scale, all(&scale)).unwrap();
        let start = |share: f64, side: u32| (share * f64::from(side)) as u32;
        let (x, y) = (start(x, width_px), start(y, height_px));
        let cut = part(x, y, width.min(width_px - x), height.min(height_px - y));
        let found = slide.read(&scale, cut).unwrap();
        for (row, pixels) in found.data().chunks_exact(cut.width_px as usize * 3).enumerate() {
            let start = ((y as usize + row) * width_px as usize + x as usize) * 3;
            prop_assert_eq!(pixels, &whole.data()[start..start + pixels.len()]);
        }
    }
}

/// The magnification is that of the scanner's objective. If the file states only a resolution, the convention
/// determines it.
#[test]
fn magnification_is_read_from_scanner_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let images = [vec![200; 64 * 64 * 3]];
    let open = |description| {
        let path = folder.path().join("scanned.svs");
        let image_of = |_: usize, _: u32, _: u32| 0;
        let pyramid = Pyramid {
            size_px: [640; 2],
            levels: 2,
            tile_px: 64,
            images: &images,
            image_of: &image_of,
            description,
        };
        pyramid.write(&path);
        Slide::open(&path).unwrap()
    };
    let scanned = open(AT_20);
    assert_eq!(
        (scanned.format(), scanned.objective_power(), scanned.magnification()),
        ("aperio", Some(20.0), Some(20.0))
    );
    assert_eq!(scanned.scale(Some(10.0)).unwrap().level, 1);
    let stated = open("Aperio Image Library v10\r\n|MPP = 0.2500");
    assert_eq!((stated.objective_power(), stated.magnification()), (None, Some(40.0)));
    assert!(open("Aperio Image Library v10\r\n|AppMag = nan|MPP = -1").magnification().is_none());
}

#[test]
fn threads_read_one_slide() {
    let folder = tempfile::tempdir().unwrap();
    let slide = Slide::open(&patterned(&folder)).unwrap();
    let scale = slide.scale(None).unwrap();
    let whole = slide.read(&scale, all(&scale)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(slide.read(&scale, all(&scale)).unwrap(), whole));
        }
    });
}

#[test]
fn a_gigapixel_slide_costs_what_is_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.tiff");
    let (glass, tissue) = (vec![244; 512 * 512 * 3], [180, 90, 160].repeat(512 * 512));
    // A disc of tissue in the middle of each level.
    let size = 120_000_u32;
    let image_of = |level: usize, column: u32, row: u32| {
        let center = |place: u32| f64::from((place * 512 + 256) << level) / f64::from(size) - 0.5;
        usize::from(center(column).hypot(center(row)) < 0.25)
    };
    let images = [glass, tissue];
    Pyramid {
        size_px: [size; 2],
        levels: 5,
        tile_px: 512,
        images: &images,
        image_of: &image_of,
        description: "",
    }
    .write(&path);
    assert!(path.metadata().unwrap().len() < 2_000_000);
    let slide = Slide::open(&path).unwrap();
    let scale = slide.scale(None).unwrap();
    assert_eq!((scale.width_px, scale.height_px), (size, size));
    let pixel = |x, y| slide.read(&scale, part(x, y, 1, 1)).unwrap().into_data();
    assert_eq!((pixel(10, size - 1), pixel(60_000, 60_000)), (vec![244; 3], vec![160, 90, 180]));
    let tissue = Tissue::of(&slide.overview(1000).unwrap(), None);
    let share = tissue.share([0.0, 1.0], [0.0, 1.0]);
    assert!((share - std::f64::consts::PI / 16.0).abs() < 0.02, "{share}");
}

#[test]
fn a_slide_without_a_small_level_has_no_overview() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("single.tiff");
    let images = [vec![244; 512 * 512 * 3]];
    Pyramid {
        size_px: [40_000; 2],
        levels: 1,
        tile_px: 512,
        images: &images,
        image_of: &|_, _, _| 0,
        description: "",
    }
    .write(&path);
    let slide = Slide::open(&path).unwrap();
    let text = slide.overview(1000).unwrap_err().to_string();
    assert!(
        text.ends_with("smallest level has 40000 x 40000 px; up to 1024 million are allowed for an overview"),
        "{text}"
    );
    assert_eq!(slide.read(&slide.scale(None).unwrap(), part(39_999, 0, 1, 1)).unwrap().data(), [244; 3]);
}

#[test]
fn non_slides_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let none =
        ": unsupported or truncated slide; SVS, NDPI, SCN, BIF, MIRAX and tiled pyramidal TIFF are allowed";
    assert_eq!(refused(&file("empty.svs", b"")), none);
    assert_eq!(refused(&file("text.svs", b"no slide")), none);
    assert_eq!(refused(folder.path()), ": not a regular file; a slide is allowed");
    assert!(refused(&folder.path().join("absent.svs")).starts_with(": cannot be read: "));
    // A header that claims pieces of 4 gigapixels each, without any in the file.
    let path = folder.path().join("pieces.tiff");
    let image_of = |_: usize, _: u32, _: u32| 0;
    Pyramid {
        size_px: [65_536; 2],
        levels: 1,
        tile_px: 65_536,
        images: &[vec![0; 3]],
        image_of: &image_of,
        description: "",
    }
    .write(&path);
    let text = refused(&path);
    assert!(
        text.ends_with("has blocks of 65536 x 65536 px; blocks of up to 16777216 px are allowed"),
        "{text}"
    );
}

#[test]
fn damaged_slides_are_refused() {
    let Some(data) = data("damaged_slides_are_refused") else { return };
    let wsi = data.join("wsi");
    let damaged = refused(&wsi.join("unopenable.tiff"));
    assert!(damaged.starts_with(": corrupt or unsupported slide: "), "{damaged}");
    assert!(refused(&wsi.join("OS-1-detail.ome.tif")).starts_with(": unsupported or truncated slide"));
    let whole = std::fs::read(wsi.join("CMU-1-Small-Region.svs")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("half.svs");
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    assert!(refused(&half).starts_with(": unsupported or truncated slide"));
}

/// A damaged file is rejected when opened, is readable, or fails when a region is read.
#[test]
fn damage_anywhere_is_an_error_or_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = patterned(&folder);
    let whole = std::fs::read(&path).unwrap();
    let (mut opened, mut refused, mut failed) = (0, 0, 0);
    let mut random = 12_345_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for round in 0..600 {
        let mut damaged = whole.clone();
        if round % 3 == 0 {
            damaged.truncate(next(whole.len()));
        } else {
            // Directories are at the end, so half of the damage affects the last 1,000 bytes.
            let from = if round % 2 == 0 { 0 } else { whole.len() - 1_000 };
            for _ in 0..=next(3) {
                damaged[from + next(whole.len() - from)] = next(256) as u8;
            }
        }
        let path = folder.path().join("damaged.tiff");
        std::fs::write(&path, &damaged).unwrap();
        let Ok(slide) = Slide::open(&path) else {
            refused += 1;
            continue;
        };
        opened += 1;
        let Ok(scale) = slide.scale(None) else { continue };
        let corner = part(0, 0, scale.width_px.min(200), scale.height_px.min(200));
        failed += usize::from(slide.read(&scale, corner).is_err());
    }
    assert!(opened > 50 && refused > 50 && failed > 20, "{opened} {refused} {failed}");
}

/// Returns the names of the files of a slide, relative to the folder.
fn names(folder: &TempDir, name: &str) -> Vec<String> {
    let files = files_of(&folder.path().join(name)).expect("files");
    let within =
        |file: &PathBuf| file.strip_prefix(folder.path()).expect("a file in it").display().to_string();
    files.iter().map(within).collect()
}

#[test]
fn slide_in_several_files_is_read_and_lists_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.mrxs");
    let pixels: Vec<u8> = (0..192 * 128 * 3_u32).map(|n| (n.wrapping_mul(40_503) >> 7) as u8).collect();
    write_mirax(&path, &pixels, 192, 64, 20);
    let slide = Slide::open(&path).unwrap();
    assert_eq!((slide.format(), slide.magnification()), ("mirax", Some(20.0)));
    let scale = slide.scale(None).unwrap();
    assert_eq!((scale.width_px, scale.height_px), (192, 128));
    let read = slide.read(&scale, all(&scale)).unwrap();
    assert!(read.data().chunks(3).zip(pixels.chunks(3)).all(|(bgr, rgb)| bgr == [rgb[2], rgb[1], rgb[0]]));
    let expected = ["s.mrxs", "s/Data0000.dat", "s/Data0001.dat", "s/Index.dat", "s/Slidedat.ini"];
    std::fs::write(folder.path().join("s/notes.txt"), "not read").unwrap();
    assert_eq!(names(&folder, "s.mrxs"), expected);
    // Without any of these files the slide is unreadable: the list contains exactly the needed files.
    for name in &expected[1..] {
        let (file, away) = (folder.path().join(name), folder.path().join("away"));
        std::fs::rename(&file, &away).unwrap();
        let read = Slide::open(&path).and_then(|slide| slide.read(&scale, all(&scale)));
        assert!(read.is_err(), "{name}");
        std::fs::rename(&away, &file).unwrap();
    }
    assert!(Slide::open(&path).is_ok());
}

#[test]
fn files_named_in_slide_metadata_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    assert_eq!(names(&folder, "one.svs"), ["one.svs"], "whether it is there or not");
    let text = "[Virtual Microscope Specimen]\nNoLayers=1\nImageFile=b.jpg\nImageFile(1,0)=c.jpg\n#ImageFile(2,0)=d.jpg\n\
                MapFile=map.jpg\nMacroImage=\nOptimisationFile=o.opt\nImageFiles=9\n";
    write("s.vms", text);
    assert_eq!(names(&folder, "s.vms"), ["s.vms", "b.jpg", "c.jpg", "map.jpg"]);
    write("o.opt", "");
    assert_eq!(names(&folder, "s.vms"), ["s.vms", "b.jpg", "c.jpg", "map.jpg", "o.opt"]);
    write("s.vmu", "[Uncompressed Virtual Microscope Specimen]\nImageFile=a.ngr\n");
    assert_eq!(names(&folder, "s.vmu"), ["s.vmu", "a.ngr"]);

    let refused = |name: &str| files_of(&folder.path().join(name)).unwrap_err().to_string();
    let said = |name: &str, what: &str| {
        let text = refused(name);
        let expected = format!("/{name}: invalid file list of the slide: {what}");
        assert!(text.contains(&expected) && !text.contains('\n'), "{text}");
    };
    write("none.vms", "ImageFiles=9\n");
    said("none.vms", "no ImageFile");
    for name in ["../b.jpg", "/b.jpg", "a\\b", "..", "a\u{1}b"] {
        write("bad.vms", &format!("ImageFile={name}\n"));
        said("bad.vms", &format!("invalid file name {name:?}; files in the same folder are allowed"));
    }
    write("long.vms", &"#".repeat((1 << 20) + 1));
    assert!(refused("long.vms").ends_with("not a regular file of up to 1048576 bytes"));
    assert!(refused("gone.vms").ends_with("No such file or directory (os error 2)"));
    write("m.mrxs", "");
    assert!(refused("m.mrxs").ends_with("m/Slidedat.ini: No such file or directory (os error 2)"));
    std::fs::create_dir(folder.path().join("m")).unwrap();
    let hierarchical = "[HIERARCHICAL]\nINDEXFILE=Index.dat\n[DATAFILE]\n";
    for (text, what) in [
        ("", "Slidedat.ini has no FILE_COUNT in [DATAFILE]"),
        ("[DATAFILE]\nFILE_COUNT=1", "Slidedat.ini has no INDEXFILE in [HIERARCHICAL]"),
        (&format!("{hierarchical}FILE_COUNT=1"), "Slidedat.ini has no FILE_0 in [DATAFILE]"),
        (
            &format!("{hierarchical}FILE_COUNT=4000000000"),
            "invalid FILE_COUNT in Slidedat.ini; up to 10000 files are allowed",
        ),
        (&format!("{hierarchical}FILE_COUNT=1\nFILE_0=../d"), "invalid file name \"../d\""),
    ] {
        write("m/Slidedat.ini", text);
        said("m.mrxs", what);
    }
}
