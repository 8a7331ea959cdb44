//! Encodes regions as GeoJSON (RFC 7946): one feature per polygon, object or point. Positions are pixels from
//! the region's top left corner, y downwards, as annotation tools read them.
//!
//! The outlines of label maps and masks follow the edges of pixels. The objects of a mask are its connected
//! components (8 neighbors). Rasterizing the outlines gives the same pixels again.

use super::rings::{PolygonRings, parts};
use pleach_pathology::kernels::Connectivity;
use pleach_pathology::kernels::components::Components;
use pleach_pathology::outline::trace;
use pleach_regions::{AnnotatedObjects, DataRegion, Outline, Points, Polygons, Position, Raster};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Encodes a region with outlines or positions.
pub(super) fn bytes(region: &DataRegion) -> Result<Vec<u8>, String> {
    let features = match region {
        DataRegion::Labels(map) => of_labels(map.labels(), map.width_px() as usize),
        DataRegion::Mask(mask) => of_labels(&components(mask), mask.width_px() as usize),
        DataRegion::Polygons(polygons) => of_polygons(polygons),
        DataRegion::Objects(objects) => of_objects(objects),
        DataRegion::Points(points) => of_points(points)?,
        other => return Err(format!("a region of type {} has no outlines", other.element())),
    };
    let collection = json!({ "type": "FeatureCollection", "features": features });
    let mut bytes = serde_json::to_vec(&collection).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn feature(geometry: Value, properties: Value) -> Value {
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}

/// Returns the geometry of rings: a polygon, a multipolygon, or null without rings.
fn geometry(rings: &[&[Position]]) -> Value {
    let mut parts: Vec<PolygonRings> = parts(rings);
    match parts.len() {
        0 => Value::Null,
        1 => json!({ "type": "Polygon", "coordinates": parts.remove(0) }),
        _ => json!({ "type": "MultiPolygon", "coordinates": parts }),
    }
}

/// Returns the number of each pixel's component, from 1. 0 is background.
fn components(mask: &Raster) -> Vec<u32> {
    let components = Components::of_objects(mask.data(), mask.width_px() as usize, Connectivity::Eight);
    let mut labels = vec![0; mask.data().len()];
    components.for_each_run(|pixels, component| labels[pixels].fill(component + 1));
    labels
}

/// Bounding box of an object, as its first and last column and row, and its number of pixels.
#[derive(Clone, Copy)]
struct Extent {
    low: [usize; 2],
    high: [usize; 2],
    area_px: u64,
}

fn extents(labels: &[u32], width: usize) -> BTreeMap<u32, Extent> {
    let mut extents: BTreeMap<u32, Extent> = BTreeMap::new();
    for (y, row) in labels.chunks_exact(width).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|one, next| one == next) {
            let (start, end) = (x, x + run.len() - 1);
            x = end + 1;
            if run[0] == 0 {
                continue;
            }
            let extent =
                extents.entry(run[0]).or_insert(Extent { low: [start, y], high: [end, y], area_px: 0 });
            extent.low[0] = extent.low[0].min(start);
            extent.high = [extent.high[0].max(end), y];
            extent.area_px += run.len() as u64;
        }
    }
    extents
}

/// Returns one feature per object, in order of their labels.
fn of_labels(labels: &[u32], width: usize) -> Vec<Value> {
    let outlined = |(label, extent): (u32, Extent)| {
        let ([left, top], [right, bottom]) = (extent.low, extent.high);
        // Traced within the bounding box: the cost follows the size of the object, not that of the image.
        let rows = (top..=bottom).flat_map(|y| &labels[y * width + left..=y * width + right]);
        let mask: Vec<u8> = rows.map(|found| u8::from(*found == label)).collect();
        let loops = trace(&mask, right - left + 1);
        let place = |[x, y]: [i32; 2]| [f64::from(x) + left as f64, f64::from(y) + top as f64];
        let rings: Vec<Vec<Position>> =
            loops.into_iter().map(|corners| corners.into_iter().map(place).collect()).collect();
        let rings: Vec<&[Position]> = rings.iter().map(Vec::as_slice).collect();
        feature(geometry(&rings), json!({ "label": label, "area_px": extent.area_px }))
    };
    extents(labels, width).into_iter().map(outlined).collect()
}

fn of_polygons(polygons: &Polygons) -> Vec<Value> {
    let outlined = polygons.iter().map(|rings| geometry(&rings.collect::<Vec<_>>()));
    outlined.map(|geometry| feature(geometry, json!({}))).collect()
}

/// Returns one feature per object. The class and the numbers have the places that QuPath reads. NaN and
/// infinite numbers are left out.
fn of_objects(objects: &AnnotatedObjects) -> Vec<Value> {
    let features = objects.iter().map(|object| {
        let geometry = match object.outline {
            Outline::Polygon(rings) => geometry(&rings.collect::<Vec<_>>()),
            Outline::Box { low: [x0, y0], high: [x1, y1] } => {
                geometry(&[&[[x0, y0], [x1, y0], [x1, y1], [x0, y1]]])
            }
        };
        let numbers: Map<String, Value> = (objects.columns().iter().zip(object.numbers))
            .filter(|(_, number)| number.is_finite())
            .map(|(name, number)| (name.clone(), json!(number)))
            .collect();
        feature(geometry, json!({ "classification": { "name": object.class }, "measurements": numbers }))
    });
    features.collect()
}

fn of_points(points: &Points) -> Result<Vec<Value>, String> {
    if points.axes() < 2 {
        return Err("points with one coordinate cannot be written as GeoJSON; CSV (.csv), NPY (.npy) are \
                    allowed"
            .to_owned());
    }
    let point = |point: &[f64]| feature(json!({ "type": "Point", "coordinates": point }), json!({}));
    Ok(points.iter().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_pathology::image_io::read_polygons;
    use pleach_pathology::objects::rasterize;
    use pleach_regions::LabelMap;
    use proptest::prelude::*;

    fn document(region: &DataRegion) -> Value {
        serde_json::from_slice(&bytes(region).unwrap()).unwrap()
    }

    #[test]
    fn features_are_as_drawn_by_hand() {
        // An object with a hole, and an object of two pixels that touch at a corner.
        let labels = vec![7, 7, 7, 0, 7, 0, 7, 3, 7, 7, 7, 0, 0, 0, 3, 0];
        let document = document(&DataRegion::Labels(LabelMap::new(4, 4, labels).unwrap()));
        let [first, second] = [0, 1].map(|feature| &document["features"][feature]);
        assert_eq!(first["properties"], json!({ "label": 3, "area_px": 2 }));
        assert_eq!(first["geometry"]["type"], "MultiPolygon");
        assert_eq!(second["properties"], json!({ "label": 7, "area_px": 8 }));
        assert_eq!(second["geometry"]["type"], "Polygon");
        let rings = second["geometry"]["coordinates"].as_array().unwrap();
        assert_eq!(rings[0], json!([[3.0, 0.0], [3.0, 3.0], [0.0, 3.0], [0.0, 0.0], [3.0, 0.0]]));
        assert_eq!(rings[1], json!([[2.0, 2.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0], [2.0, 2.0]]));
    }

    #[test]
    fn objects_keep_their_class_and_numbers() {
        let mut objects = AnnotatedObjects::new(["area", "score"]).unwrap();
        objects.push_box([1.0, 2.0], [3.0, 4.0], "tumour", &[4.0, f64::NAN]).unwrap();
        let features = document(&DataRegion::Objects(Box::new(objects)))["features"].take();
        let properties = json!({ "classification": { "name": "tumour" }, "measurements": { "area": 4.0 } });
        assert_eq!(features[0]["properties"], properties);
        let corners = json!([[[1.0, 2.0], [3.0, 2.0], [3.0, 4.0], [1.0, 4.0], [1.0, 2.0]]]);
        assert_eq!(features[0]["geometry"]["coordinates"], corners);
        let points = document(&DataRegion::Points(Points::new(2, vec![0.5, 1.5]).unwrap()));
        assert_eq!(points["features"][0]["geometry"], json!({ "type": "Point", "coordinates": [0.5, 1.5] }));
        assert!(bytes(&DataRegion::Points(Points::new(1, vec![0.5]).unwrap())).is_err());
    }

    proptest! {
        /// Outlines read as annotations and rasterized give the original objects.
        #[test]
        fn outlines_are_the_pixels_again(width in 1..9_u32, labels in prop::collection::vec(0..4_u32, 1..60)) {
            let mut labels = labels;
            labels.resize(labels.len().next_multiple_of(width as usize), 0);
            let height = labels.len() as u32 / width;
            let region = DataRegion::Labels(LabelMap::new(width, height, labels.clone()).unwrap());
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("x.geojson");
            std::fs::write(&file, bytes(&region).unwrap()).unwrap();
            let again = rasterize(&read_polygons(&file).unwrap(), width, height).unwrap();
            // Features are numbered from 1 in order of the labels.
            let mut known: Vec<u32> = labels.iter().copied().filter(|label| *label > 0).collect();
            known.sort_unstable();
            known.dedup();
            let numbered: Vec<u32> =
                labels.iter().map(|label| known.binary_search(label).map_or(0, |place| place as u32 + 1)).collect();
            prop_assert_eq!(again.labels(), numbered);
        }
    }
}
