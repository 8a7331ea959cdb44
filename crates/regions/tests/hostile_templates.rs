//! Untrusted region templates: written templates are read back, invalid ones are rejected with a reason, and
//! reading never panics or allocates out of proportion.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use pleach_pages::{RecyclingAllocator, metered};
use pleach_regions::{
    ElementType, Interval, RegionEntry, RegionKey, RegionTemplate, Resolution, SpatialBounds,
    TEMPLATE_FORMAT, TemplateError,
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

/// Maximum bytes allocated per byte read: a name exists twice while it is checked, a region's entry takes 200
/// bytes for at least 100, and a growing vector has room for as much again.
const BYTES_A_BYTE: u64 = 16;

/// Constant allowance: messages and the initial capacity of vectors and maps.
const SMALL_BYTES: u64 = 16 << 10;

fn microns(microns_per_px: f64) -> Resolution {
    Resolution::from_microns_per_px(microns_per_px).unwrap()
}

fn entry(element: ElementType, bounds: SpatialBounds, version: u64) -> RegionEntry {
    RegionEntry { key: RegionKey([7; 16]), element, bounds, version }
}

/// A slide with a tile's mask and a thumbnail whose last pixels exceed the slide.
fn slide() -> RegionTemplate {
    let bounds = SpatialBounds::of_image(2220, 2967, Some(microns(0.499)));
    let tile = SpatialBounds::of_image(512, 512, Some(microns(0.499))).translated(&[1024, 2048]).unwrap();
    let thumbnail = bounds.covering_at(microns(7.984)).unwrap();
    assert_eq!(thumbnail, SpatialBounds::of_image(139, 186, Some(microns(7.984))));
    let mut slide = RegionTemplate::new("slide 7.svs", "patient-3", bounds)
        .unwrap()
        .with_version(2, 1_700_000_000_000_000_000)
        .with_time(Interval::new(0, 40).unwrap())
        .with_region_of_interest(tile)
        .unwrap();
    slide.insert("mask", entry(ElementType::Mask, tile, 1)).unwrap();
    slide.insert("thumbnail", entry(ElementType::Bgr8, thumbnail, 1)).unwrap();
    slide
}

/// Returns the slide as JSON with one value replaced or added.
fn with(pointer: &str, value: Value) -> String {
    let mut json = serde_json::to_value(slide()).unwrap();
    match json.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => json[&pointer[1..]] = value,
    }
    json.to_string()
}

fn refusal(json: &str) -> String {
    serde_json::from_str::<RegionTemplate>(json).unwrap_err().to_string()
}

/// Asserts the invariants of every template.
fn check(template: &RegionTemplate) {
    let within = |bounds: &SpatialBounds| {
        let all = bounds.resolution().filter(|resolution| template.resolution() != Some(*resolution));
        let all = all.map_or(*template.bounds(), |at| template.bounds().covering_at(at).unwrap());
        all.contains(bounds).unwrap()
    };
    assert!(within(template.region_of_interest()));
    let names = [template.name(), template.id()].into_iter().chain(template.regions().map(|(name, _)| name));
    for name in names {
        assert!((1..=255).contains(&name.len()) && !name.contains("..") && !name.contains(['/', '\\', '\0']));
    }
    assert!(template.regions().all(|(_, region)| within(&region.bounds)));
    let json = serde_json::to_string(template).unwrap();
    assert_eq!(serde_json::from_str::<RegionTemplate>(&json).unwrap(), *template);
}

#[test]
fn template_returns_its_fields() {
    let slide = slide();
    check(&slide);
    assert_eq!((slide.name(), slide.id(), slide.version()), ("slide 7.svs", "patient-3", 2));
    assert_eq!(slide.timestamp_ns(), 1_700_000_000_000_000_000);
    assert_eq!(slide.resolution(), Some(microns(0.499)));
    assert_eq!(slide.time().map(Interval::length), Some(40));
    assert_eq!(slide.region_of_interest().pixels(), Ok(512 * 512));
    assert_eq!(slide.regions().map(|(name, _)| name).collect::<Vec<_>>(), ["mask", "thumbnail"]);
    assert_eq!(slide.region("mask").unwrap().element, ElementType::Mask);
    let whole = RegionTemplate::new("tile", "1", *slide.bounds()).unwrap();
    assert_eq!(whole.region_of_interest(), slide.bounds());
}

#[test]
fn region_is_replaced_by_later_versions_only() {
    let mut slide = slide();
    let held = *slide.region("mask").unwrap();
    for version in [0, 1] {
        let older = RegionEntry { version, ..held };
        let error = slide.insert("mask", older).unwrap_err();
        assert_eq!(error, TemplateError::Version { name: "mask".to_owned(), found: version, stored: 1 });
        assert_eq!(slide.region("mask"), Some(&held));
    }
    let later = RegionEntry { version: 2, key: RegionKey([8; 16]), ..held };
    assert_eq!(slide.insert("mask", later), Ok(Some(held)));
    assert_eq!(slide.remove("mask"), Some(later));
    assert_eq!((slide.region("mask"), slide.regions().len()), (None, 1));
}

#[test]
fn region_beyond_the_template_is_refused() {
    let mut slide = slide();
    let beyond = SpatialBounds::of_image(2221, 1, Some(microns(0.499)));
    let error = slide.insert("mask 2", entry(ElementType::Mask, beyond, 1)).unwrap_err();
    let expected = "region template: bounds of \"mask 2\": x 0..2221, y 0..1, 0.499 microns per pixel; \
        bounds within x 0..2220, y 0..2967, 0.499 microns per pixel are allowed";
    assert_eq!(error.to_string(), expected);
    let coarse = SpatialBounds::of_image(140, 186, Some(microns(7.984)));
    assert!(matches!(
        slide.insert("wide", entry(ElementType::Bgr8, coarse, 1)),
        Err(TemplateError::Outside { .. })
    ));
    for bounds in
        [SpatialBounds::of_image(1, 1, None), SpatialBounds::new(&[Interval::default()], None).unwrap()]
    {
        assert!(matches!(
            slide.insert("other", entry(ElementType::Mask, bounds, 1)),
            Err(TemplateError::Bounds { .. })
        ));
    }
    assert!(slide.clone().with_region_of_interest(beyond).is_err());
    assert_eq!(slide.regions().len(), 2);
}

#[test]
fn hostile_names_are_refused_wherever_they_are() {
    let long = "n".repeat(256);
    for name in ["", "..", "a/../b", "/etc/passwd", "a\\b", "a\0b", "a\u{1b}[2J", &long] {
        for (place, field) in [("/name", "name"), ("/id", "id"), ("/regions/1/name", "data region")] {
            let message = refusal(&with(place, json!(name)));
            let shown = if name.len() > 40 { "n".repeat(40) } else { name.to_owned() };
            assert!(message.starts_with(&format!("region template: {field} {shown:?}")), "{message}");
            assert!(message.contains("; 1 to 255 bytes"), "{message}");
        }
        let bounds = SpatialBounds::of_image(1, 1, None);
        assert!(
            RegionTemplate::new(name, "1", bounds).is_err()
                && RegionTemplate::new("n", name, bounds).is_err()
        );
    }
}

#[test]
fn hostile_templates_are_refused_with_a_reason() {
    let entry = || serde_json::to_value(slide()).unwrap()["regions"][0].clone();
    for (place, value, reason) in [
        ("/regions", json!([entry(), entry()]), "two data regions are named \"mask\""),
        ("/regions/0/element", json!("voxels"), "unknown variant `voxels`, expected one of"),
        ("/regions/0/key", json!([1, 2, 3]), "invalid length 3"),
        ("/regions/0/version", json!(-1), "invalid value: integer `-1`"),
        ("/regions/0/bounds/x", json!([0, 2221]), "bounds of \"mask\": x 0..2221"),
        ("/regions/0/bounds/y", json!(null), "1 axes; 2 are allowed"),
        ("/regions/0/bounds/microns_per_px", json!(null), "no stated resolution instead of 0.499"),
        ("/regions/0/bounds/microns_per_px", json!(-0.5), "-0.5 microns per pixel; 0.000001 to"),
        // A coarse pixel as wide as a continent, and a box whose edges exceed 64 bits at the other
        // resolution.
        ("/regions/0/bounds/microns_per_px", json!(1e12), "1000000000000 microns per pixel; 0.000001 to"),
        (
            "/bounds/x",
            json!([i64::MIN, i64::MAX]),
            "bounds of \"thumbnail\": bounds: a coordinate scaled is beyond 64",
        ),
        ("/bounds/x", json!([5, 4]), "start 5 is beyond end 4"),
        ("/bounds/x", json!([0, 1e30]), "invalid type: floating point"),
        ("/bounds/z", json!([0, 9]), "bounds of \"region of interest\": bounds: 2 axes; 3 are allowed"),
        ("/bounds/y", json!(null), "bounds of \"region of interest\": bounds: 2 axes; 1 are allowed"),
        ("/region_of_interest/y", json!([0, 2968]), "bounds of \"region of interest\""),
        ("/time_ns", json!([3, 2]), "start 3 is beyond end 2"),
        ("/format", json!(0), "format 0; 1 to"),
    ] {
        let json = if place == "/bounds/x" && reason.contains("thumbnail") {
            // Makes the thumbnail finer than the slide, so that its edges have larger coordinates.
            with(place, value).replace("7.984", "0.001")
        } else {
            with(place, value)
        };
        let message = refusal(&json);
        assert!(message.contains(reason), "{place}: {message}");
    }
    let gap = with("/bounds", json!({ "x": [0, 9], "z": [0, 9] }));
    assert!(refusal(&gap).contains("and z only with y"));
}

/// A newer format is rejected by its number, with any other changes. Unknown fields are skipped.
#[test]
fn newer_templates_are_read_or_refused_by_their_format() {
    let newer = r#"{"format": 2, "name": {"de": "Schnitt"}, "bounds": "everywhere"}"#;
    let message = refusal(newer);
    let expected = format!(
        "region template: format 2; 1 to {TEMPLATE_FORMAT} are allowed, and a newer version of pleach"
    );
    assert!(message.starts_with(&expected), "{message}");
    assert!(serde_json::to_string(&slide()).unwrap().starts_with(r#"{"format":1,"#));
    let more = with("/stain", json!({ "kind": "H&E", "of": [1, 2, [3]] }));
    assert!(more.contains("H&E"));
    assert_eq!(serde_json::from_str::<RegionTemplate>(&more).unwrap(), slide());
    // All optional fields are absent.
    let short =
        r#"{"format":1,"name":"n","id":"1","version":0,"timestamp_ns":0,"bounds":{"x":[0,9]},"regions":[]}"#;
    let short: RegionTemplate = serde_json::from_str(short).unwrap();
    assert_eq!((short.bounds().dimensions(), short.resolution(), short.time()), (1, None, None));
}

/// Deep, long and repeated input is rejected at a cost proportional to its bytes.
#[test]
fn hostile_sizes_cost_what_they_bring() {
    let deep = format!("{{\"format\":1,\"stain\":{}", "[".repeat(100_000));
    let axes = with("/bounds", json!({ "x": vec![0; 100_000] }));
    let name = with("/name", json!("n".repeat(1 << 20)));
    let entry = serde_json::to_value(slide()).unwrap()["regions"][0].clone();
    let same = with("/regions", json!(vec![entry; 2_000]));
    for json in [deep, axes, name, same] {
        let (read, peak) =
            metered(|| serde_json::from_str::<RegionTemplate>(&json).map_err(|error| error.to_string()));
        assert!(read.unwrap_err().len() < 1000);
        assert!(peak <= BYTES_A_BYTE * json.len() as u64 + SMALL_BYTES, "{peak} bytes for {}", json.len());
    }
}

proptest! {
    /// Corrupt bytes are rejected, or read as a valid template.
    #[test]
    fn damaged_templates_are_refused_or_sound(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), end: prop::sample::Index, is_cut: bool,
    ) {
        let mut bytes = serde_json::to_vec(&slide()).unwrap();
        for (place, value) in places {
            let place = place.index(bytes.len());
            // Digits are replaced by digits, so that many inputs remain readable.
            bytes[place] = if bytes[place].is_ascii_digit() { b'0' + value % 10 } else { value };
        }
        if is_cut {
            bytes.truncate(end.index(bytes.len()));
        }
        let (read, peak) = metered(|| serde_json::from_slice::<RegionTemplate>(&bytes));
        prop_assert!(peak <= BYTES_A_BYTE * bytes.len() as u64 + SMALL_BYTES, "{} bytes", peak);
        if let Ok(template) = read {
            check(&template);
        }
    }

    /// A name is rejected or kept unchanged.
    #[test]
    fn names_are_refused_or_kept(name in "([a-z./\\\\ä\\x00]{0,6}|.{0,90})") {
        let bounds = SpatialBounds::of_image(9, 9, None);
        let allowed = !name.is_empty() && name.len() <= 255 && name != "." && !name.contains("..")
            && !name.chars().any(|at| at == '/' || at == '\\' || at.is_control());
        let made = RegionTemplate::new(&name, "1", bounds);
        prop_assert_eq!(made.is_ok(), allowed);
        if let Ok(template) = made {
            prop_assert_eq!(template.name(), &name);
            check(&template);
        }
    }
}
