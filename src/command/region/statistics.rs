//! Statistics of a data region, by its element type.
//!
//! NaN values are counted separately. They do not enter minimum, maximum or mean.

use pleach_regions::{
    AnnotatedObjects, DataRegion, Outline, Points, Polygons, Position, RaggedArray, TypedValues,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// Returns the names and values of the statistics, in the order of display.
pub(super) fn of(region: &DataRegion) -> Vec<(&'static str, Value)> {
    match region {
        DataRegion::Bgr8(raster) | DataRegion::Gray8(raster) => {
            numbers(raster.data().iter().map(|v| f64::from(*v)))
        }
        DataRegion::Mask(mask) => {
            let set = mask.data().iter().filter(|value| **value != 0).count();
            vec![("set pixels", json!(set)), ("set share", share(set, mask.data().len()))]
        }
        DataRegion::Labels(map) => labels(map.labels()),
        DataRegion::Table(table) => {
            let columns: Map<String, Value> =
                table.columns().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            vec![("columns", Value::Object(columns))]
        }
        DataRegion::Array(array) => values(array.values()),
        DataRegion::Ragged(ragged) => rows(ragged),
        DataRegion::Points(points) => of_points(points),
        DataRegion::Polygons(polygons) => of_polygons(polygons),
        DataRegion::Objects(objects) => of_objects(objects),
        DataRegion::Scalar(value) => vec![("value", json!(value))],
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share to look at")]
fn share(part: usize, all: usize) -> Value {
    json!(part as f64 / all.max(1) as f64)
}

fn values(values: &TypedValues) -> Vec<(&'static str, Value)> {
    numbers((0..values.len()).filter_map(|place| values.get_f64(place)))
}

#[expect(clippy::cast_precision_loss, reason = "a mean to look at")]
fn numbers(numbers: impl Iterator<Item = f64>) -> Vec<(&'static str, Value)> {
    let (mut low, mut high, mut sum, mut count, mut others) =
        (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0_u64, 0_u64);
    for number in numbers {
        if number.is_nan() {
            others += 1;
            continue;
        }
        (low, high) = (low.min(number), high.max(number));
        sum += number;
        count += 1;
    }
    let mut statistics = Vec::new();
    if count > 0 {
        statistics.extend([
            ("minimum", json!(low)),
            ("maximum", json!(high)),
            ("mean", json!(sum / count as f64)),
        ]);
    }
    if others > 0 {
        statistics.push(("not a number", json!(others)));
    }
    statistics
}

fn labels(labels: &[u32]) -> Vec<(&'static str, Value)> {
    let mut areas: HashMap<u32, u64> = HashMap::new();
    for run in labels.chunk_by(|one, next| one == next) {
        *areas.entry(run[0]).or_default() += run.len() as u64;
    }
    let background = areas.remove(&0).unwrap_or(0);
    let mut statistics =
        vec![("objects", json!(areas.len())), ("background", share(background as usize, labels.len()))];
    if let (Some(largest), Some(least), Some(most)) =
        (areas.keys().max(), areas.values().min(), areas.values().max())
    {
        statistics.push(("highest label", json!(largest)));
        statistics.push(("areas in px", json!([least, most])));
    }
    statistics
}

fn rows(ragged: &RaggedArray) -> Vec<(&'static str, Value)> {
    let lengths = || (0..ragged.len()).filter_map(|row| ragged.row(row)).map(|row| row.len());
    let mut statistics = vec![("rows", json!(ragged.len()))];
    if let (Some(shortest), Some(longest)) = (lengths().min(), lengths().max()) {
        statistics.push(("row lengths", json!([shortest, longest])));
    }
    statistics.extend(values(ragged.values()));
    statistics
}

fn of_points(points: &Points) -> Vec<(&'static str, Value)> {
    let mut statistics = vec![("points", json!(points.len()))];
    if !points.is_empty() {
        let along = |axis: usize| points.iter().map(move |point| point[axis]);
        let axes = 0..usize::from(points.axes());
        let low: Vec<f64> = axes.clone().map(|axis| along(axis).fold(f64::INFINITY, f64::min)).collect();
        let high: Vec<f64> = axes.map(|axis| along(axis).fold(f64::NEG_INFINITY, f64::max)).collect();
        statistics.extend([("lowest", json!(low)), ("highest", json!(high))]);
    }
    statistics
}

/// Returns the corners of the bounding box of positions. `None` without positions.
fn extent<'a>(positions: impl Iterator<Item = &'a Position>) -> Option<[Position; 2]> {
    positions.fold(None, |extent, [x, y]| {
        let [low, high] = extent.unwrap_or([[*x, *y]; 2]);
        Some([[low[0].min(*x), low[1].min(*y)], [high[0].max(*x), high[1].max(*y)]])
    })
}

fn of_polygons(polygons: &Polygons) -> Vec<(&'static str, Value)> {
    let rings: usize = polygons.iter().map(|rings| rings.len()).sum();
    let mut statistics = vec![
        ("polygons", json!(polygons.len())),
        ("rings", json!(rings)),
        ("positions", json!(polygons.positions().len())),
    ];
    if let Some([low, high]) = extent(polygons.positions().iter()) {
        statistics.extend([("lowest", json!(low)), ("highest", json!(high))]);
    }
    statistics
}

fn of_objects(objects: &AnnotatedObjects) -> Vec<(&'static str, Value)> {
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut boxes = 0;
    for object in objects.iter() {
        *classes.entry(object.class).or_default() += 1;
        boxes += usize::from(matches!(object.outline, Outline::Box { .. }));
    }
    let mut statistics =
        vec![("objects", json!(objects.len())), ("boxes", json!(boxes)), ("classes", json!(classes))];
    let columns = objects.columns().len();
    let of_column = |column: usize| {
        let numbers_of = objects.numbers().chunks_exact(columns).map(move |numbers| numbers[column]);
        numbers(numbers_of).into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
    };
    if columns > 0 {
        let all: Map<String, Value> = (objects.columns().iter().enumerate())
            .map(|(column, name)| (name.clone(), Value::Object(of_column(column))))
            .collect();
        statistics.push(("numbers", Value::Object(all)));
    }
    statistics
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DenseArray, LabelMap};

    fn shown(region: &DataRegion) -> Value {
        of(region).into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
    }

    #[test]
    fn statistics_are_as_counted_by_hand() {
        let labels = LabelMap::new(4, 2, vec![0, 0, 5, 5, 0, 9, 5, 0]).unwrap();
        let expected = json!({ "objects": 2, "background": 0.5, "highest label": 9, "areas in px": [1, 3] });
        assert_eq!(shown(&DataRegion::Labels(labels)), expected);
        let array = DenseArray::new(&[4], 1, vec![1.0_f64, f64::NAN, -2.0, 4.0].into()).unwrap();
        let expected = json!({ "minimum": -2.0, "maximum": 4.0, "mean": 1.0, "not a number": 1 });
        assert_eq!(shown(&DataRegion::Array(array)), expected);
        let ragged = RaggedArray::new(vec![0, 3], vec![1_u8, 2, 3].into()).unwrap();
        let expected =
            json!({ "rows": 2, "row lengths": [0, 3], "minimum": 1.0, "maximum": 3.0, "mean": 2.0 });
        assert_eq!(shown(&DataRegion::Ragged(ragged)), expected);
        let points = Points::new(2, vec![3.0, -1.0, 0.5, 4.0]).unwrap();
        let expected = json!({ "points": 2, "lowest": [0.5, -1.0], "highest": [3.0, 4.0] });
        assert_eq!(shown(&DataRegion::Points(points)), expected);
        let mut objects = AnnotatedObjects::new(["area"]).unwrap();
        objects.push_box([0.0; 2], [1.0; 2], "nucleus", &[1.0]).unwrap();
        objects.push_polygon(&[[[0.0; 2], [1.0, 0.0], [1.0; 2]]], "nucleus", &[0.5]).unwrap();
        let area = json!({ "minimum": 0.5, "maximum": 1.0, "mean": 0.75 });
        let expected =
            json!({ "objects": 2, "boxes": 1, "classes": { "nucleus": 2 }, "numbers": { "area": area } });
        assert_eq!(shown(&DataRegion::Objects(Box::new(objects))), expected);
    }
}
