//! Annotations of a generated slide, in pixels and in micrometers.

use super::*;
use pleach_pathology::image_io::{MAX_SLIDE_GEOJSON_BYTES, PyramidFormat, read_annotations};
use pleach_pathology::tissue::slide::{MICRONS_PER_PX, Parallel, SlideTissue, write_slide};
use pleach_workflow::AnnotationUnit;
use serde_json::Value as Json;

struct OneThread;

impl Parallel for OneThread {
    fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
        (0..count).map(of).collect()
    }
}

/// Multiplies all numbers of the positions in a document.
fn scale(json: &mut Json, by: f64) {
    match json {
        Json::Array(all) => all.iter_mut().for_each(|one| scale(one, by)),
        Json::Object(all) => {
            let wanted = |(key, _): &(&String, &mut Json)| {
                ["features", "geometry", "coordinates"].contains(&key.as_str())
            };
            all.iter_mut().filter(wanted).for_each(|(_, value)| scale(value, by));
        }
        Json::Number(number) => *json = Json::from(number.as_f64().unwrap() * by),
        _ => {}
    }
}

fn rules(unit: Option<AnnotationUnit>, mpp: Option<f64>) -> AnnotationRules {
    let mpp = mpp.map(|mpp| Real::try_from(mpp).unwrap());
    AnnotationRules { unit, mpp, ..AnnotationRules::default() }
}

#[test]
fn micrometers_are_converted_if_the_study_states_them_and_refused_otherwise() {
    let place = tempfile::tempdir().unwrap();
    let [slide, px, um] = ["s.tif", "px.geojson", "um.geojson"].map(|name| place.path().join(name));
    let tissue = SlideTissue::new(5, [1_024, 512]);
    write_slide(&tissue, (&slide, Some(&px)), PyramidFormat::Jpeg(70), &OneThread, |_| {}).unwrap();
    let mut document: Json = serde_json::from_slice(&std::fs::read(&px).unwrap()).unwrap();
    scale(&mut document, MICRONS_PER_PX);
    std::fs::write(&um, document.to_string()).unwrap();
    let tile = SlideTile {
        magnification: Real::try_from(20.0).ok(),
        core: [128, 0, 256, 256],
        window: [100, 0, 320, 256],
    };
    let read = |path: &Path, rules: &AnnotationRules| {
        let set = read_annotations(path, rules, MAX_SLIDE_GEOJSON_BYTES).unwrap();
        check_unit(path, &set, &slide, rules)?;
        let view = View { window: tile.window(), ..view_of_slide(&slide, tile.magnification, rules)? };
        Ok::<_, ReferenceError>(set.labels(path, &view).unwrap().labels().to_vec())
    };
    let expected = read(&px, &rules(None, None)).unwrap();
    assert!(expected.iter().filter(|label| **label > 0).count() > 1_000);
    // A quarter of a pixel is exact in binary, so the outlines are equal.
    let in_microns = Some(AnnotationUnit::Um);
    assert!(read(&um, &rules(in_microns, None)).unwrap() == expected);
    assert!(read(&um, &rules(in_microns, Some(0.25))).unwrap() == expected);
    assert!(read(&um, &rules(in_microns, Some(0.5))).unwrap() != expected);
    let error = read(&um, &rules(None, None)).unwrap_err().to_string();
    assert!(error.contains("um.geojson: coordinates look like micrometers: all "), "{error}");
    assert!(
        error.contains("within 256 x 128 µm") && error.contains("annotations = { unit = \"um\" }"),
        "{error}"
    );
    assert!(read(&um, &rules(Some(AnnotationUnit::Px), None)).is_ok());

    // Without a unit of resolution, a slide has no calibration: SHORT 1 ("none") in place of 3 ("centimeter") in tag 296.
    let bare = place.path().join("bare.tif");
    let mut bytes = std::fs::read(&slide).unwrap();
    let unit = [40, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    for start in 0..bytes.len() - unit.len() {
        if bytes[start..].starts_with(&unit) {
            bytes[start + unit.len() - 2] = 1;
        }
    }
    std::fs::write(&bare, bytes).unwrap();
    assert_eq!(Slide::open(&bare).unwrap().resolution(), None);
    let tile = SlideTile { magnification: None, ..tile.clone() };
    let error = view_of_slide(&bare, tile.magnification, &rules(in_microns, None)).unwrap_err().to_string();
    assert!(error.contains("bare.tif: the slide states no micrometers per pixel"), "{error}");
    let given = view_of_slide(&bare, tile.magnification, &rules(in_microns, Some(0.25))).unwrap();
    assert_eq!(given.positions_a_px, 0.25);
}
