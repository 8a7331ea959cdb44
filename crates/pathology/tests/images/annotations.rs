//! Annotations of slides and tiles: forms of GeoJSON, selection by class, regions of interest, and windows that add up to
//! the whole slide.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_pathology::image_io::{AnnotationSet, MAX_SLIDE_GEOJSON_BYTES, is_annotations, read_annotations};
use pleach_pathology::objects::{PixelObjects, View, compare_counted, compare_owned};
use pleach_pathology::registry;
use pleach_regions::{DataRegion, LabelMap, PixelRectangle, Raster};
use pleach_workflow::AnnotationRules;
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

fn rules(classes: &[&str], regions: &[&str]) -> AnnotationRules {
    AnnotationRules { classes: names(classes), regions: names(regions), ..AnnotationRules::default() }
}

fn read(text: impl AsRef<[u8]>, rules: &AnnotationRules) -> Result<AnnotationSet, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.geojson");
    std::fs::write(&path, text).unwrap();
    let read = read_annotations(&path, rules, MAX_SLIDE_GEOJSON_BYTES);
    read.map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
}

fn ring([left, top, right, bottom]: [i32; 4]) -> String {
    format!("[[{left}, {top}], [{right}, {top}], [{right}, {bottom}], [{left}, {bottom}], [{left}, {top}]]")
}

fn polygon(sides: [i32; 4]) -> String {
    format!(r#"{{"type": "Polygon", "coordinates": [{}]}}"#, ring(sides))
}

fn feature(geometry: &str, properties: &str) -> String {
    format!(
        r#"{{"type": "Feature", "id": 7, "geometry": {geometry}, "properties": {{"objectType": "annotation"{properties}}}}}"#
    )
}

fn collection(features: &[String]) -> String {
    let features = features.join(",\n");
    format!(
        r#"{{"crs": {{"properties": {{"name": "EPSG:3857"}}}}, "type": "FeatureCollection", "features": [{features}]}}"#
    )
}

const SQUARE: [i32; 4] = [1, 1, 4, 4];
const OTHER: [i32; 4] = [5, 1, 8, 3];

/// Label map of 8 × 6 pixels.
fn labels(set: &AnnotationSet) -> Vec<u32> {
    set.labels(Path::new("x"), &View::whole(8, 6)).unwrap().labels().to_vec()
}

fn areas(set: &AnnotationSet) -> Vec<u64> {
    PixelObjects::of_labels(&labels(set), 8).areas_px().to_vec()
}

#[test]
fn forms_of_documents_are_read() {
    let two = [feature(&polygon(SQUARE), ""), feature(&polygon(OTHER), "")];
    let multi =
        format!(r#"{{"type": "MultiPolygon", "coordinates": [[{}], [{}]]}}"#, ring(SQUARE), ring(OTHER));
    let members = format!(
        r#"{{"type": "GeometryCollection", "geometries": [{}, {{"type": "Point", "coordinates": [1, 2]}}, {}]}}"#,
        polygon(SQUARE),
        polygon(OTHER)
    );
    let swapped = format!(r#"{{"coordinates": [{}], "type": "Polygon"}}"#, ring(SQUARE));
    let closed_by_null = two[1].replace(r#""id": 7"#, r#""nucleusGeometry": null, "id": null"#);
    let everything = AnnotationRules::default();
    for (text, expected) in [
        (collection(&two), vec![9, 6]),
        (format!("[{}]", two.join(",")), vec![9, 6]),
        (format!("[{}, {}]", two[0], closed_by_null), vec![9, 6]),
        (two[0].clone(), vec![9]),
        (polygon(SQUARE), vec![9]),
        (swapped, vec![9]),
        (multi.clone(), vec![15]),
        (feature(&multi, ""), vec![15]),
        (members.clone(), vec![9, 6]),
        (feature(&members, ""), vec![15]),
        (format!("[{members}]"), vec![15]),
        (format!("[{}, {}]", polygon(SQUARE), polygon(OTHER)), vec![9, 6]),
        ("[]".to_owned(), vec![]),
    ] {
        assert_eq!(areas(&read(&text, &everything).unwrap()), expected, "{text}");
        // Compressed, in two parts, as `cat a.gz b.gz` writes.
        let mut packed = Vec::new();
        for part in [&text.as_bytes()[..1], &text.as_bytes()[1..]] {
            let mut encoder = GzEncoder::new(packed, Compression::fast());
            encoder.write_all(part).unwrap();
            packed = encoder.finish().unwrap();
        }
        assert_eq!(areas(&read(&packed, &everything).unwrap()), expected, "{text}");
    }
}

#[test]
fn points_lines_and_empty_geometries_are_counted() {
    let without_area = [
        r#"{"type": "Point", "coordinates": [3.5, 2]}"#,
        r#"{"type": "MultiPoint", "coordinates": [[3.5, 2], [1, 1]]}"#,
        r#"{"type": "LineString", "coordinates": [[3, 2], [5, 5]]}"#,
        r#"{"type": "MultiLineString", "coordinates": [[[3, 2], [5, 5]]]}"#,
        r#"{"type": "Polygon", "coordinates": []}"#,
        r#"{"type": "GeometryCollection", "geometries": []}"#,
        "null",
    ];
    let mut features: Vec<String> = without_area.iter().map(|geometry| feature(geometry, "")).collect();
    features.push(feature(&polygon(SQUARE), ""));
    let set = read(collection(&features), &AnnotationRules::default()).unwrap();
    let found = set.count(&View::whole(8, 6), None);
    assert_eq!((found.objects, found.without_area, areas(&set)), (1, 7, vec![9]));
}

#[test]
fn a_copy_without_an_extension_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    for (name, bytes, expected) in [
        ("a.geojson", &b"x"[..], true),
        ("a.GeoJSON.gz", b"x", true),
        ("a.gz", b"\x1f\x8b", false),
        ("0a1b", b"{}", true),
        ("0a1c", b"\n[]", true),
        ("0a1d", b"\x1f\x8b", true),
        ("0a1e", b"\x89PNG", false),
        ("0a1f", b"", false),
    ] {
        assert_eq!(is_annotations(&write(name, bytes)), expected, "{name}");
    }
}

/// Classes as the versions of QuPath write them.
const CLASSES: [&str; 6] = [
    r#", "classification": {"name": "Tumor", "colorRGB": -3670016}"#,
    r#", "classification": {"name": "Tumor: Positive", "color": [200, 0, 0]}"#,
    r#", "classification": {"names": ["Tumor", "Negative"]}"#,
    r#", "classification": "Stroma", "name": "ROI""#,
    r#", "classification": null, "name": null"#,
    r#", "classification": {"name": "ROI"}, "isLocked": true"#,
];

fn of_classes() -> String {
    let left = |number: usize| number as i32;
    let annotation =
        |(number, class): (usize, &&str)| feature(&polygon([left(number), 0, left(number) + 1, 2]), class);
    collection(&CLASSES.iter().enumerate().map(annotation).collect::<Vec<_>>())
}

#[test]
fn classes_and_regions_select_annotations() {
    let select = |classes: &[&str], regions: &[&str]| {
        let set = read(of_classes(), &rules(classes, regions)).unwrap();
        let found = set.count(&View::whole(8, 6), None);
        (set.objects.len(), set.regions.len(), found.other_classes)
    };
    assert_eq!(select(&[], &[]), (6, 0, 0));
    assert_eq!(select(&["Tumor"], &[]), (3, 0, 3));
    assert_eq!(select(&["Tumor: Positive"], &[]), (1, 0, 5));
    assert_eq!(select(&["Positive", "Stroma"], &[]), (2, 0, 4));
    assert_eq!(select(&[], &["ROI"]), (4, 2, 0));
    assert_eq!(select(&["Tumor"], &["ROI"]), (3, 2, 1));
    assert_eq!(select(&["Necrosis"], &[]), (0, 0, 6));
    let set = read(of_classes(), &rules(&["Tumor", "Necrosis"], &["ROI"])).unwrap();
    let counts: Vec<(&str, usize)> = set.classes.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(
        counts,
        [("", 1), ("ROI", 1), ("Stroma", 1), ("Tumor", 1), ("Tumor: Negative", 1), ("Tumor: Positive", 1)]
    );
    let selected: Vec<(&str, usize)> = set.selected.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(selected, [("Necrosis", 0), ("ROI", 2), ("Tumor", 3)]);
}

#[test]
fn crossing_outlines_and_stray_holes_are_counted_and_defined() {
    let bow = r#"{"type": "Polygon", "coordinates": [[[0, 0], [4, 4], [4, 0], [0, 4]]]}"#;
    let of_rings = |rings: &[[i32; 4]]| {
        let rings: Vec<String> = rings.iter().map(|sides| ring(*sides)).collect();
        format!(r#"{{"type": "Polygon", "coordinates": [{}]}}"#, rings.join(","))
    };
    let check = |geometry: &str| {
        let set = read(geometry, &AnnotationRules::default()).unwrap();
        let found = set.count(&View::whole(8, 6), None);
        ([found.self_crossing, found.stray_holes], areas(&set).iter().sum::<u64>())
    };
    // The even-odd rule fills both wings.
    assert_eq!(check(bow).0, [1, 0]);
    assert_eq!(check(&of_rings(&[SQUARE])), ([0, 0], 9));
    assert_eq!(check(&of_rings(&[[0, 0, 6, 6], [1, 1, 3, 3]])), ([0, 0], 32));
    // A hole that shares a side is within.
    assert_eq!(check(&of_rings(&[[0, 0, 6, 6], [0, 0, 3, 3]])), ([0, 0], 27));
    // By the even-odd rule, the hole outside would add 4 pixels, and that across the border 2.
    assert_eq!(check(&of_rings(&[[0, 0, 4, 4], [5, 1, 7, 3]])), ([0, 1], 16));
    assert_eq!(check(&of_rings(&[[0, 0, 4, 4], [3, 1, 5, 3]])), ([0, 1], 14));
    // Touches itself at a corner.
    let touching =
        r#"{"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [4, 0], [4, 4], [2, 2], [0, 4]]]}"#;
    assert_eq!(check(touching).0, [0, 0]);
}

#[test]
fn annotations_of_a_slide_are_counted_by_place() {
    let squares = [[0, 0, 4, 4], [30, 0, 40, 4], [-8, 2, 2, 4], [4, 4, 5, 5], [6, 6, 12, 12], [6, 6, 12, 12]];
    let features: Vec<String> = squares.iter().map(|sides| feature(&polygon(*sides), "")).collect();
    let set = read(collection(&features), &AnnotationRules::default()).unwrap();
    // The slide has 8 × 6 pixels of 2 positions each.
    let view = View { positions_a_px: 2.0, ..View::whole(8, 6) };
    let found = set.count(&view, None);
    // The fourth covers no center of a pixel. A slide does not count objects that others cover.
    assert_eq!([found.objects, found.outside, found.partly_outside, found.unusable], [6, 1, 1, 1]);
}

/// Polygons by three to six corners, in positions.
type Corners = Vec<[i32; 2]>;

fn shapes(count: usize) -> impl Strategy<Value = Vec<Corners>> {
    let corners = prop::collection::vec([0..14_i32, 0..14_i32], 3..6);
    let shape = ([0..90_i32, 0..70_i32], corners)
        .prop_map(|([x, y], corners)| corners.into_iter().map(|[dx, dy]| [x + dx, y + dy]).collect());
    prop::collection::vec(shape, 0..count)
}

fn document(shapes: &[Corners], class: &str) -> Vec<String> {
    let of = |corners: &Corners| {
        let distinct: std::collections::BTreeSet<_> = corners.iter().collect();
        // Three corners at least, each once.
        (distinct.len() == corners.len()).then(|| {
            let positions: Vec<String> = corners.iter().map(|[x, y]| format!("[{x}.25, {y}.5]")).collect();
            let geometry = format!(r#"{{"type": "Polygon", "coordinates": [[{}]]}}"#, positions.join(", "));
            feature(&geometry, &format!(r#", "classification": {{"name": "{class}"}}"#))
        })
    };
    shapes.iter().filter_map(of).collect()
}

/// Part of a label map.
fn crop(map: &LabelMap, width_px: u32, part: PixelRectangle) -> Vec<u32> {
    let row = |y: u32| {
        let start = (y * width_px + part.x_px) as usize;
        &map.labels()[start..start + part.width_px as usize]
    };
    (part.y_px..part.y_px + part.height_px).flat_map(row).copied().collect()
}

/// Cores of a grid and their windows, clipped to the image.
fn grid([width, height]: [u32; 2], tile: u32, halo: u32) -> Vec<(PixelRectangle, PixelRectangle)> {
    let sides = |start: u32, all: u32| {
        let end = (start + tile).min(all);
        let (low, high) = (start.saturating_sub(halo), (end + halo).min(all));
        ([start - low, end - start], [low, high - low])
    };
    let starts = |all: u32| (0..all).step_by(tile as usize);
    starts(height)
        .flat_map(|top| starts(width).map(move |left| (sides(left, width), sides(top, height))))
        .map(|((core_x, x), (core_y, y))| {
            let of = |x: [u32; 2], y: [u32; 2]| PixelRectangle {
                x_px: x[0],
                y_px: y[0],
                width_px: x[1],
                height_px: y[1],
            };
            (of(core_x, core_y), of(x, y))
        })
        .collect()
}

proptest! {
    /// At any magnification, with any tiles: the labels of a window are a part of the slide's, and the objects, areas and
    /// pairs that count in the tiles add up to those of the slide.
    #[test]
    fn objects_of_a_slide_over_all_tiles_are_those_of_the_whole(
        (found, reference, regions) in (shapes(14), shapes(14), shapes(6)),
        tile in 5..40_u32,
        positions_a_px in prop::sample::select(vec![1.0, 2.0, 1.7]),
        has_regions: bool,
    ) {
        let select = rules(&[], if has_regions { &["ROI"] } else { &[] });
        let of_regions = if has_regions { document(&regions, "ROI") } else { Vec::new() };
        let set = read(collection(&[document(&reference, "nucleus"), of_regions].concat()), &select).unwrap();
        let found = read(collection(&document(&found, "nucleus")), &AnnotationRules::default()).unwrap();
        let size = [110_u32, 88].map(|side| (f64::from(side) / positions_a_px) as u32);
        let view = |window| View { positions_a_px, window };
        let whole = view(PixelRectangle { x_px: 0, y_px: 0, width_px: size[0], height_px: size[1] });
        let draw = |set: &AnnotationSet, view: &View| set.labels(Path::new("x"), view).unwrap();
        let (all_found, all) = (draw(&found, &whole), draw(&set, &whole));
        let objects = |map: &LabelMap, width: u32| PixelObjects::of_labels(map.labels(), width as usize);
        let counted_all = set.counted(&whole, whole.window);
        let (one, other) = (objects(&all_found, size[0]), objects(&all, size[0]));
        let expected = if has_regions {
            compare_counted(&one, &other, &counted_all)
        } else {
            compare_owned(&one, &other, whole.window)
        };
        // Both objects of a pair are complete in the window: twice the longest object, less 1 px.
        let (mut sums, mut pixels) = ([0.0; 6], 0);
        for (core, window) in grid(size, tile, 31) {
            let part = view(window);
            let (own_found, own) = (draw(&found, &part), draw(&set, &part));
            prop_assert_eq!(own.labels(), crop(&all, size[0], window));
            let counted = set.counted(&part, core);
            pixels += counted.iter().filter(|value| **value != 0).count();
            let in_core = PixelRectangle { x_px: window.x_px + core.x_px, y_px: window.y_px + core.y_px, ..core };
            prop_assert_eq!(set.regions.cover_any(&view(in_core)), counted.contains(&255));
            let (one, other) = (objects(&own_found, window.width_px), objects(&own, window.width_px));
            let compared = if has_regions {
                compare_counted(&one, &other, &counted)
            } else {
                compare_owned(&one, &other, core)
            };
            let numbers = [
                compared.objects as f64, compared.area, compared.reference_objects as f64, compared.reference_area,
                compared.shared_area(), compared.pairs,
            ];
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        prop_assert_eq!(pixels, counted_all.iter().filter(|value| **value != 0).count());
        let numbers = [
            expected.objects as f64, expected.area, expected.reference_objects as f64, expected.reference_area,
            expected.shared_area(), expected.pairs,
        ];
        prop_assert_eq!(sums, numbers);
    }

    /// A slow counterpart: the metrics of a tile with regions are those of images without all that does not count.
    #[test]
    fn pixels_outside_of_regions_do_not_count(
        pixels in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 12 * 9),
    ) {
        let mask = |of: &dyn Fn(&(bool, bool, bool)) -> bool| {
            let pixels = pixels.iter().map(|pixel| if of(pixel) { 255 } else { 0 }).collect();
            DataRegion::Mask(Raster::new(12, 9, 1, pixels).unwrap())
        };
        let run = |name: &str, inputs: &[&DataRegion]| registry().get(name, 1).unwrap().run(inputs, &[]).unwrap();
        let counted = mask(&|pixel| pixel.2);
        let found = run("compare.counted-masks", &[&mask(&|pixel| pixel.0), &mask(&|pixel| pixel.1), &counted]);
        let only = [mask(&|pixel| pixel.0 && pixel.2), mask(&|pixel| pixel.1 && pixel.2)];
        prop_assert_eq!(found, run("compare.masks", &[&only[0], &only[1]]));
        // Where everything counts, the objects are those of the whole image.
        let all = mask(&|_| true);
        let (one, other) = (mask(&|pixel| pixel.0), mask(&|pixel| pixel.1));
        let found = run("compare.counted-objects", &[&one, &other, &all]);
        prop_assert_eq!(found, run("compare.objects", &[&one, &other]));
        let nothing = mask(&|_| false);
        let found = run("compare.counted-objects", &[&one, &other, &nothing]);
        let table = found[0].table().unwrap();
        prop_assert_eq!((table.get("nuclei"), table.get("objects-both-empty")), (Some(0.0), Some(1.0)));
    }
}
