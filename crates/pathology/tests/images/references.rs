//! References in files: label maps, masks and polygons, and each kind of rejected file.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, Rgb32FImage};
use pleach_pathology::image_io::{
    ImageFileError, MAX_GEOJSON_BYTES, TileInfo, read_labels, read_polygons, write_labels,
};
use pleach_pathology::objects::PixelObjects;
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AnnotationRules, Annotations};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn labels(path: &Path) -> Vec<u32> {
    match read_labels(path).unwrap() {
        DataRegion::Labels(map) => map.labels().to_vec(),
        other => panic!("{} was read", other.element()),
    }
}

fn save(folder: &TempDir, image: impl Into<DynamicImage>, format: ImageFormat) -> PathBuf {
    let path = folder.path().join("X_labels.png");
    image.into().save_with_format(&path, format).unwrap();
    path
}

type Gray<S> = ImageBuffer<Luma<S>, Vec<S>>;
type Color = ImageBuffer<Rgb<u8>, Vec<u8>>;

#[test]
fn numbers_are_objects() {
    let folder = folder();
    let deep = Gray::from_raw(4, 1, vec![0_u16, 300, 1, 65_535]).unwrap();
    assert_eq!(labels(&save(&folder, deep, ImageFormat::Png)), [0, 300, 1, 65_535]);
    let gray = Gray::from_raw(4, 1, vec![0_u8, 7, 255, 7]).unwrap();
    assert_eq!(labels(&save(&folder, gray, ImageFormat::Tiff)), [0, 7, 255, 7]);
    let path = folder.path().join("written.png");
    write_labels(&path, 2, &[0, 9, 8, 0]).unwrap();
    assert_eq!(labels(&path), [0, 9, 8, 0]);
}

#[test]
fn one_value_is_a_mask_and_its_components_are_objects() {
    let folder = folder();
    // The pixels of the second object touch at a corner.
    let values = [9, 0, 9, 0, 0, 0, 0, 9, 0, 0, 0, 9];
    let numbered = [1, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 2];
    let gray = Gray::from_raw(4, 3, values.to_vec()).unwrap();
    assert_eq!(labels(&save(&folder, gray, ImageFormat::Png)), numbered);
    let deep = Gray::from_raw(4, 3, values.map(|value| u16::from(value) * 999).to_vec()).unwrap();
    assert_eq!(labels(&save(&folder, deep, ImageFormat::Png)), numbered);
    let colored = values.iter().flat_map(|value| [0, *value, 0]).collect();
    let color: Color = ImageBuffer::from_raw(4, 3, colored).unwrap();
    assert_eq!(labels(&save(&folder, color, ImageFormat::Png)), numbered);
    let nothing = Gray::from_raw(2, 2, vec![0_u8; 4]).unwrap();
    assert_eq!(labels(&save(&folder, nothing, ImageFormat::Png)), [0; 4]);
}

#[test]
fn non_label_images_are_refused() {
    let folder = folder();
    let said = |path: &Path| {
        let error = read_labels(path).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1);
        error.replace(&path.display().to_string(), "FILE")
    };
    let colors: Color = ImageBuffer::from_raw(2, 1, vec![1, 0, 0, 0, 1, 0]).unwrap();
    assert_eq!(
        said(&save(&folder, colors, ImageFormat::Png)),
        "FILE: labels in several colors; a gray image (0 is background, any other value one object) or one \
         color on black is allowed"
    );
    let deep = save(&folder, Rgb32FImage::new(2, 2), ImageFormat::Tiff);
    assert_eq!(
        said(&deep),
        "FILE: Rgb32F pixels are not supported; gray and color of 8 or 16 bits per channel are allowed"
    );
    fs::write(&deep, "Dear diary").unwrap();
    assert_eq!(said(&deep), "FILE: unknown image format; PNG, JPEG and TIFF are allowed");
}

/// Checks a reference whose annotations are all objects.
fn check_reference(path: &Path, tile: &Path, size: TileInfo) -> Result<Option<Annotations>, ImageFileError> {
    let found = pleach_pathology::image_io::check_reference(path, tile, size, &AnnotationRules::default())?;
    Ok(found.map(|(_, annotations)| annotations))
}

fn read_reference(path: &Path, size: TileInfo, wanted: ElementType) -> Result<DataRegion, ImageFileError> {
    pleach_pathology::image_io::read_reference(path, size, wanted, &AnnotationRules::default())
}

const SIZE: TileInfo = TileInfo { width_px: 8, height_px: 6 };

/// Writes a GeoJSON file with these features, in QuPath's format.
fn geojson(folder: &TempDir, features: &str) -> PathBuf {
    let path = folder.path().join("X.geojson");
    fs::write(&path, format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#)).unwrap();
    path
}

fn feature(kind: &str, coordinates: &str) -> String {
    format!(
        r#"{{"type": "Feature", "id": "0b", "geometry": {{"type": "{kind}", "coordinates": {coordinates}}},
             "properties": {{"objectType": "annotation", "classification": {{"name": "Nucleus"}}}}}}"#
    )
}

const SQUARE: &str = "[[[1, 1], [4, 1], [4, 4], [1, 4], [1, 1]]]";

#[test]
fn polygons_are_rasterized() {
    let folder = folder();
    let holed = "[[[[4.5, 0.2], [8, 0.2], [8, 5], [4.5, 5]], [[5, 1, 9], [7, 1, 9], [7, 3, 9], [5, 3, 9]]],
                  [[[0, 5], [20, 5], [20, 6], [0, 6]]]]";
    let path = geojson(&folder, &[feature("Polygon", SQUARE), feature("MultiPolygon", holed)].join(","));
    assert_eq!(read_polygons(&path).unwrap().len(), 2);
    check_reference(&path, Path::new("tile.png"), SIZE).unwrap();
    let drawn = [
        [0, 0, 0, 0, 2, 2, 2, 2],
        [0, 1, 1, 1, 2, 0, 0, 2],
        [0, 1, 1, 1, 2, 0, 0, 2],
        [0, 1, 1, 1, 2, 2, 2, 2],
        [0, 0, 0, 0, 2, 2, 2, 2],
        [2, 2, 2, 2, 2, 2, 2, 2],
    ]
    .concat();
    let DataRegion::Labels(map) = read_reference(&path, SIZE, ElementType::Labels).unwrap() else {
        panic!("a label map is wanted")
    };
    assert_eq!(map.labels(), drawn);
    let mask = read_reference(&path, SIZE, ElementType::Mask).unwrap();
    let expected: Vec<u8> = drawn.iter().map(|label| if *label == 0 { 0 } else { 255 }).collect();
    assert_eq!(mask.raster(ElementType::Mask).unwrap().data(), expected);
    assert_eq!(PixelObjects::of_labels(map.labels(), 8).areas_px(), [24, 9]);
}

#[test]
fn annotations_are_counted_inside_and_outside_the_tile() {
    let folder = folder();
    let square = |[left, top, right, bottom]: [f64; 4]| {
        let ring = format!("[[[{left}, {top}], [{right}, {top}], [{right}, {bottom}], [{left}, {bottom}]]]");
        feature("Polygon", &ring)
    };
    let found = |squares: &[[f64; 4]]| {
        let features: Vec<String> = squares.iter().copied().map(square).collect();
        let path = geojson(&folder, &features.join(","));
        let found = check_reference(&path, Path::new("tile.png"), SIZE).unwrap().unwrap();
        [found.objects, found.outside, found.partly_outside, found.unusable]
    };
    let whole = [1.0, 1.0, 4.0, 4.0];
    assert_eq!(found(&[whole, [4.0, 4.0, 8.0, 6.0]]), [2, 0, 0, 0]);
    // A rounded border reaches the center of no other pixel.
    assert_eq!(found(&[[-0.4, 0.0, 8.4, 6.3]]), [1, 0, 0, 0]);
    assert_eq!(found(&[whole, [8.0, 0.0, 12.0, 4.0], [-9.0, -9.0, -1.0, -1.0]]), [3, 2, 0, 0]);
    assert_eq!(found(&[whole, [7.0, 0.0, 12.0, 4.0]]), [2, 0, 1, 0]);
    // The first covers no center of a pixel, the second is covered by a later polygon.
    assert_eq!(found(&[whole, [2.0, 2.0, 2.4, 2.4]]), [2, 0, 0, 1]);
    assert_eq!(found(&[whole, [0.0, 0.0, 8.0, 6.0]]), [2, 0, 0, 1]);
    // The only pixels of the polygon in the tile are covered, so it is unusable.
    assert_eq!(found(&[[7.0, 0.0, 12.0, 1.0], [6.0, 0.0, 8.0, 2.0]]), [2, 0, 0, 1]);
    let image = save(&folder, Gray::from_raw(8, 6, vec![0_u8; 48]).unwrap(), ImageFormat::Png);
    assert_eq!(check_reference(&image, Path::new("tile.png"), SIZE).unwrap(), None);
}

#[test]
fn nucleus_geometry_of_a_cell_is_read() {
    let folder = folder();
    let cell = feature("Polygon", "[[[0, 0], [8, 0], [8, 6], [0, 6], [0, 0]]]");
    let nucleus =
        format!(r#""nucleusGeometry": {{"type": "Polygon", "coordinates": {SQUARE}}}, "type": "Feature""#);
    let path = geojson(&folder, &cell.replacen(r#""type": "Feature""#, &nucleus, 1));
    let DataRegion::Labels(map) = read_reference(&path, SIZE, ElementType::Labels).unwrap() else {
        panic!("a label map is wanted")
    };
    assert_eq!(PixelObjects::of_labels(map.labels(), 8).areas_px(), [9]);
}

#[test]
fn no_nuclei_are_legal() {
    let folder = folder();
    let path = geojson(&folder, "");
    check_reference(&path, Path::new("tile.png"), SIZE).unwrap();
    let mask = read_reference(&path, SIZE, ElementType::Mask).unwrap();
    assert!(mask.raster(ElementType::Mask).unwrap().data().iter().all(|value| *value == 0));
}

#[test]
fn files_without_polygons_are_refused() {
    let folder = folder();
    let said = |path: &Path| {
        let error = check_reference(path, Path::new("tile.png"), SIZE).unwrap_err().to_string();
        assert_eq!(error, read_reference(path, SIZE, ElementType::Labels).unwrap_err().to_string());
        assert_eq!(error.lines().count(), 1);
        error.replace(&path.display().to_string(), "FILE")
    };
    let wanted = "; GeoJSON with features of type Polygon or MultiPolygon is allowed";
    let of_features = |features: &str| said(&geojson(&folder, features));
    let good = feature("Polygon", SQUARE);

    let circle = of_features(&[good.as_str(), &feature("Circle", "[1, 1]")].join(","));
    assert!(
        circle.starts_with("FILE: features[1].geometry.type: unknown variant `Circle`, expected "),
        "{circle}"
    );
    assert!(circle.ends_with(wanted), "{circle}");
    for (coordinates, what) in [
        ("[[[1, 1], [2], [3, 3]]]", "invalid length 1, expected a position: a list of two numbers"),
        ("[[[1, 1], [2, \"x\"], [3, 3]]]", "invalid type: string \"x\", expected f64"),
        ("[[1, 1], [2, 2], [3, 3]]", "expected a position: a list of two numbers"),
        ("7", "invalid type: integer `7`"),
        ("[[[1, 1], [1e999, 2], [3, 3]]]", "number out of range"),
    ] {
        let error = of_features(&feature("Polygon", coordinates));
        assert!(error.starts_with("FILE: features[0].geometry") && error.contains(what), "{error}");
    }
    let missing = of_features(r#"{"type": "Feature"}"#);
    assert!(missing.starts_with("FILE: features[0]: missing field `geometry`"), "{missing}");

    let path = folder.path().join("X.geojson");
    for (text, what) in [
        ("", "FILE: EOF while parsing a value"),
        ("Dear diary", "FILE: expected value"),
        ("7", "FILE: invalid type: integer `7`, expected a GeoJSON object or a list of features"),
        ("{}", "FILE: missing field `type`"),
        (r#"{"type": "FeatureCollection"}"#, "FILE: missing field `features`"),
        (r#"{"type": "Feature"}"#, "FILE: missing field `geometry`"),
        (r#"[{"type": "FeatureCollection", "features": []}]"#, "FILE: [0]: a FeatureCollection in a list"),
        (r#"{"type": "FeatureCollection", "features": []} x"#, "FILE: trailing characters"),
        (r#"{"type": "FeatureCollection", "features": [{"#, "FILE: features[0]"),
    ] {
        fs::write(&path, text).unwrap();
        let error = said(&path);
        assert!(error.starts_with(what) && error.ends_with(wanted), "{error}");
    }

    assert_eq!(
        of_features(&[good.as_str(), &feature("Polygon", "[[[1, 1], [2, 2], [2, 2], [1, 1]]]")].join(",")),
        "FILE: features[1]: a ring of 2 different positions encloses nothing; 3 or more are allowed"
    );
    assert_eq!(
        of_features(&feature("Polygon", "[[[1, 1], [2, -1e8], [3, 3]]]")),
        "FILE: features[0]: position -100000000 is beyond 10000000 px; positions are pixels from the top left corner \
         of the tile or slide"
    );
    // Preparation refuses the file. A window of a slide may well have no object.
    let outside = geojson(&folder, &feature("Polygon", "[[[100, 1], [200, 1], [200, 3]]]"));
    let error = check_reference(&outside, Path::new("tile.png"), SIZE).unwrap_err().to_string();
    assert_eq!(
        error.replace(&outside.display().to_string(), "FILE"),
        "FILE: none of its 1 features covers a pixel of the tile of 8 x 6 px; positions are pixels from the tile's \
         top left corner; annotations = { unit = \"um\", mpp = 0.25 } reads micrometers"
    );
    fs::remove_file(&path).unwrap();
    assert!(said(&path).starts_with("FILE: cannot be read: "));
    // Sparse: no data is written or read.
    let large = fs::File::create(&path).unwrap();
    large.set_len(MAX_GEOJSON_BYTES + 1).unwrap();
    assert_eq!(said(&path), "FILE: too much GeoJSON; 64 MiB of text are allowed");
}

#[test]
fn reference_of_another_size_is_refused() {
    let folder = folder();
    let path = save(&folder, Gray::from_raw(2, 1, vec![0_u8, 1]).unwrap(), ImageFormat::Png);
    let error = check_reference(&path, Path::new("tile.png"), SIZE).unwrap_err().to_string();
    let ending =
        "X_labels.png: 2 x 1 px, but its tile tile.png has 8 x 6 px; a reference mask has its tile's size";
    assert!(error.ends_with(ending), "{error}");
}
