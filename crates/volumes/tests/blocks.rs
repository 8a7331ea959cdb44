//! Operations on blocks of an image, with the bounds that they state, against the whole image and plain statements.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use pleach_regions::{DataRegion, DenseArray, Points, Table, UnitBox, UnitLayout};
use pleach_volumes::operations;
use pleach_workflow::{CALIBRATION_COLUMNS, Operation, Real, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn operation(name: &str) -> Arc<dyn Operation> {
    operations().into_iter().find(|operation| operation.name() == name).unwrap()
}

fn run(name: &str, inputs: &[&DataRegion], arguments: &[Value]) -> DataRegion {
    operation(name).run(inputs, arguments).unwrap().remove(0)
}

fn real(value: f64) -> Value {
    Value::Real(Real::try_from(value).unwrap())
}

/// A stack with few different values, so that neighbors are equal now and then.
fn stacks() -> impl Strategy<Value = ([u32; 3], Vec<f32>)> {
    (1..9_u32, 1..8_u32, 1..5_u32).prop_flat_map(|(x, y, z)| {
        let values =
            prop::collection::vec((0..7_u8).prop_map(|value| f32::from(value) * 0.3), (x * y * z) as usize);
        values.prop_map(move |values| ([x, y, z], values))
    })
}

fn array(sides: [u32; 3], values: Vec<f32>) -> DataRegion {
    DataRegion::Array(DenseArray::new(&sides, 1, values.into()).unwrap())
}

/// Runs an operation on each block of a stack with a halo, and joins the blocks.
fn by_blocks(
    (sides, whole): ([u32; 3], &DataRegion),
    block: [u32; 3],
    halo: [u32; 3],
    run: impl Fn(&DataRegion) -> DataRegion,
) -> DataRegion {
    let whole_box = UnitBox { start: [0; 3], length: sides };
    let cells = [0, 1, 2].map(|axis| sides[axis].div_ceil(block[axis]));
    let mut boxes = Vec::new();
    for z in 0..cells[2] {
        for y in 0..cells[1] {
            for x in 0..cells[0] {
                let start = [x * block[0], y * block[1], z * block[2]];
                let length = [0, 1, 2].map(|axis| block[axis].min(sides[axis] - start[axis]));
                boxes.push(UnitBox { start, length });
            }
        }
    }
    let of_block = |own: &UnitBox| {
        let start = [0, 1, 2].map(|axis| own.start[axis].saturating_sub(halo[axis]));
        let end = [0, 1, 2].map(|axis| (own.end(axis) + halo[axis]).min(sides[axis]));
        let window = UnitBox { start, length: [0, 1, 2].map(|axis| end[axis] - start[axis]) };
        let from_whole = UnitLayout::new(3, whole_box, window, vec![None]).unwrap();
        let within = UnitLayout::new(3, window, *own, vec![None]).unwrap();
        within.cut(&run(&from_whole.cut(whole).unwrap())).unwrap()
    };
    let parts: Vec<DataRegion> = boxes.iter().map(of_block).collect();
    let layout = UnitLayout::new(3, whole_box, whole_box, boxes.into_iter().map(Some).collect()).unwrap();
    layout.join(&parts.iter().collect::<Vec<_>>()).unwrap()
}

proptest! {
    #[test]
    fn smoothing_of_blocks_is_that_of_the_whole((sides, values) in stacks(), block in (1..5_u32, 1..5_u32, 1..4_u32), radius in 0..4_u32, radius_z in 0..3_u32) {
        let whole = array(sides, values);
        let smooth = |region: &DataRegion| {
            run("volume.smooth", &[region], &[Value::Integer(radius.into()), Value::Integer(radius_z.into())])
        };
        let by_blocks = by_blocks((sides, &whole), block.into(), [radius, radius, radius_z], smooth);
        prop_assert_eq!(by_blocks, smooth(&whole));
    }

    #[test]
    fn maxima_of_blocks_are_those_of_the_whole((sides, values) in stacks(), block in (1..5_u32, 1..5_u32, 1..4_u32), threshold in 0.0..2.0_f64) {
        let whole = array(sides, values.clone());
        let maxima = |region: &DataRegion| run("volume.maxima", &[region], &[real(threshold)]);
        let found = by_blocks((sides, &whole), block.into(), [1; 3], maxima);
        prop_assert_eq!(&found, &maxima(&whole));
        // A plain statement.
        let at = |[x, y, z]: [i64; 3]| {
            let is_inside = [x, y, z].iter().zip(sides).all(|(at, side)| (0..i64::from(side)).contains(at));
            is_inside.then(|| values[((z * i64::from(sides[1]) + y) * i64::from(sides[0]) + x) as usize])
        };
        let mut expected = Vec::new();
        for z in 0..i64::from(sides[2]) {
            for y in 0..i64::from(sides[1]) {
                for x in 0..i64::from(sides[0]) {
                    let own = at([x, y, z]).unwrap();
                    let offsets = (-1..=1).flat_map(|dz| (-1..=1).flat_map(move |dy| (-1..=1).map(move |dx| [dz, dy, dx])));
                    let beaten = offsets.into_iter().filter(|offset| *offset != [0; 3]).any(|[dz, dy, dx]| {
                        let is_before = [dz, dy, dx] < [0, 0, 0];
                        at([x + dx, y + dy, z + dz]).is_some_and(|other| other > own || (other == own && is_before))
                    });
                    if f64::from(own) >= threshold && !beaten {
                        expected.extend([x as f64, y as f64, z as f64]);
                    }
                }
            }
        }
        prop_assert_eq!(found, DataRegion::Points(Points::new(3, expected).unwrap()));
    }

    #[test]
    fn links_are_mutual_and_near(now in positions(), next in positions(), distance in 0.0..6.0_f64) {
        let region = |points: &[[f64; 2]]| DataRegion::Points(Points::new(2, points.concat()).unwrap());
        let linked = run("points.link", &[&region(&now), &region(&next)], &[real(distance)]);
        let squared = |a: &[f64; 2], b: &[f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
        let nearest = |to: &[f64; 2], of: &[[f64; 2]]| {
            (0..of.len()).min_by(|a, b| squared(to, &of[*a]).total_cmp(&squared(to, &of[*b])))
        };
        let lengths: Vec<f64> = now.iter().enumerate().filter_map(|(number, point)| {
            let successor = nearest(point, &next)?;
            let length = squared(point, &next[successor]).sqrt();
            (nearest(&next[successor], &now) == Some(number) && length <= distance).then_some(length)
        }).collect();
        let table = linked.table().unwrap();
        prop_assert_eq!(table.get("linked"), Some(lengths.len() as f64));
        prop_assert_eq!(table.get("vanished"), Some((now.len() - lengths.len()) as f64));
        prop_assert_eq!(table.get("appeared"), Some((next.len() - lengths.len()) as f64));
        let mean = if lengths.is_empty() { 0.0 } else { lengths.iter().sum::<f64>() / lengths.len() as f64 };
        prop_assert_eq!(table.get("displacement"), Some(mean));
    }
}

/// Points on a grid, so that distances are equal now and then.
fn positions() -> impl Strategy<Value = Vec<[f64; 2]>> {
    prop::collection::vec((0..6_u8, 0..6_u8).prop_map(|(x, y)| [f64::from(x), f64::from(y)]), 0..12)
}

#[test]
fn channels_are_read() {
    let array = |channels| {
        DataRegion::Array(DenseArray::new(&[3, 1], channels, vec![1_u16, 2, 3, 4, 5, 6].into()).unwrap())
    };
    let read = |channel| operation("volume.reals-of-u16").run(&[&array(2)], &[Value::Integer(channel)]);
    let expected = DataRegion::Array(DenseArray::new(&[3, 1], 1, vec![2.0_f32, 4.0, 6.0].into()).unwrap());
    assert_eq!(read(1).unwrap(), [expected]);
    assert_eq!(read(2).unwrap_err().to_string(), "volumes: channel 2; 0 to 1 are allowed");
    assert!(read(256).is_err());
}

#[test]
fn links_in_micrometers_weigh_axes() {
    let points = |coordinates: &[f64]| DataRegion::Points(Points::new(3, coordinates.to_vec()).unwrap());
    let calibration = |seconds| {
        let values = [0.5, 0.5, 2.0, seconds];
        DataRegion::Table(Table::new(CALIBRATION_COLUMNS.into_iter().zip(values)))
    };
    // The first point moves by 3 px along x, 1.5 µm, and 1 plane away, 2 µm, is another one.
    let (now, next) = (points(&[0.0, 0.0, 0.0]), points(&[3.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
    let linked = |seconds, distance: f64| {
        let table = run("points.link-um", &[&now, &next, &calibration(seconds)], &[real(distance)]);
        ["linked", "displacement", "speed"].map(|column| table.table().unwrap().get(column).unwrap())
    };
    assert_eq!(linked(30.0, 1.5), [1.0, 1.5, 0.05]);
    assert_eq!(linked(0.0, 1.5), [1.0, 1.5, 0.0]);
    assert_eq!(linked(30.0, 1.4), [0.0, 0.0, 0.0]);
    // In pixels, the nearest one is on the next plane.
    let table = run("points.link", &[&now, &next], &[real(9.0)]);
    assert_eq!(table.table().unwrap().get("displacement"), Some(1.0));
    let none = DataRegion::Table(Table::new([("x_um", 1.0)]));
    let error = operation("points.link-um").run(&[&now, &next, &none], &[real(1.0)]).unwrap_err();
    assert_eq!(error.to_string(), "volumes: a calibration without column y_um");
}
