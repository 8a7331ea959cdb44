//! Regions across units, against the region of the whole specimen.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use pleach_regions::{
    AnnotatedObjects, DataRegion, DenseArray, ElementType, LabelMap, Points, Polygons, Raster, Table,
    UnitBox, UnitError, UnitLayout,
};
use proptest::prelude::*;

/// A specimen of these sides in units of these sides.
#[derive(Clone, Debug)]
struct Specimen {
    sides: [u32; 3],
    unit: [u32; 3],
    halo: [u32; 3],
    axes: usize,
    seed: u64,
}

impl Specimen {
    fn cells(&self) -> Vec<[u32; 3]> {
        let count = [0, 1, 2].map(|axis: usize| self.sides[axis].div_ceil(self.unit[axis]));
        let cells = (0..count[2])
            .flat_map(move |z| (0..count[1]).flat_map(move |y| (0..count[0]).map(move |x| [x, y, z])));
        cells.collect()
    }

    fn unit(&self, cell: [u32; 3]) -> UnitBox {
        let start = [0, 1, 2].map(|axis| cell[axis] * self.unit[axis]);
        UnitBox { start, length: [0, 1, 2].map(|axis| self.unit[axis].min(self.sides[axis] - start[axis])) }
    }

    /// The window of a unit, computed pixel by pixel.
    fn window(&self, own: &UnitBox) -> UnitBox {
        let start = [0, 1, 2].map(|axis| own.start[axis].saturating_sub(self.halo[axis]));
        let end = [0, 1, 2].map(|axis| (own.end(axis) + self.halo[axis]).min(self.sides[axis]));
        UnitBox { start, length: [0, 1, 2].map(|axis| end[axis] - start[axis]) }
    }

    fn value(&self, [x, y, z]: [u32; 3], channel: u16) -> u16 {
        let mixed =
            u64::from(x) * 7919 + u64::from(y) * 104_729 + u64::from(z) * 1_299_709 + u64::from(channel);
        ((mixed ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
    }

    fn pixels(&self, of: &UnitBox) -> impl Iterator<Item = [u32; 3]> + use<> {
        let of = *of;
        let rows = (of.start[2]..of.end(2)).flat_map(move |z| (of.start[1]..of.end(1)).map(move |y| (y, z)));
        rows.flat_map(move |(y, z)| (of.start[0]..of.end(0)).map(move |x| [x, y, z]))
    }

    fn array(&self, of: &UnitBox) -> DataRegion {
        let values = self.pixels(of).flat_map(|at| [self.value(at, 0), self.value(at, 1)]);
        let values: Vec<u16> = values.collect();
        DataRegion::Array(DenseArray::new(&of.length[..self.axes], 2, values.into()).unwrap())
    }

    fn image(&self, of: &UnitBox) -> DataRegion {
        let values = self.pixels(of).flat_map(|at| [0, 1, 2].map(|channel| self.value(at, channel) as u8));
        DataRegion::Bgr8(Raster::new(of.length[0], of.length[1], 3, values.collect()).unwrap())
    }

    /// One point in about four pixels, at the pixel's center, from the first corner of `of`.
    fn points(&self, of: &UnitBox) -> DataRegion {
        let placed = self.pixels(of).filter(|at| self.value(*at, 9).is_multiple_of(4));
        let moved =
            placed.flat_map(|at| (0..self.axes).map(move |axis| f64::from(at[axis] - of.start[axis])));
        let coordinates = moved.collect();
        DataRegion::Points(Points::new(self.axes as u8, coordinates).unwrap())
    }

    /// Joins a halo of all units, in any order, and returns the layout with it.
    fn joined(&self, own: &UnitBox, region: impl Fn(&UnitBox) -> DataRegion) -> (UnitLayout, DataRegion) {
        let units: Vec<UnitBox> = self.cells().into_iter().rev().map(|cell| self.unit(cell)).collect();
        let mut parts: Vec<Option<UnitBox>> = units.iter().copied().map(Some).collect();
        let mut regions: Vec<DataRegion> = units.iter().map(&region).collect();
        parts.push(None);
        regions.push(region(own));
        let layout = UnitLayout::new(self.axes, self.window(own), *own, parts).unwrap();
        let layout = UnitLayout::from_table(&layout.to_table()).unwrap();
        let joined = layout.join(&regions.iter().collect::<Vec<_>>()).unwrap();
        (layout, joined)
    }
}

fn specimens() -> impl Strategy<Value = Specimen> {
    let side = || 1..9_u32;
    let sides = (1..14_u32, 1..12_u32, 1..6_u32);
    (sides, (side(), side(), side()), (0..9_u32, 0..9_u32, 0..9_u32), any::<u64>(), 2..=3_usize).prop_map(
        |(sides, unit, halo, seed, axes)| {
            let flat = |[x, y, z]: [u32; 3], none| if axes == 2 { [x, y, none] } else { [x, y, z] };
            Specimen {
                sides: flat(sides.into(), 1),
                unit: flat(unit.into(), 1),
                halo: flat(halo.into(), 0),
                axes,
                seed,
            }
        },
    )
}

/// Region of a box.
type RegionOf<'a> = Box<dyn Fn(&UnitBox) -> DataRegion + 'a>;

proptest! {
    /// The joined region is the window of the whole, and its cut is the unit.
    #[test]
    fn joined_units_are_the_window_of_the_whole(specimen in specimens()) {
        for cell in specimen.cells() {
            let own = specimen.unit(cell);
            let window = specimen.window(&own);
            let mut kinds: Vec<RegionOf<'_>> =
                vec![Box::new(|of| specimen.array(of)), Box::new(|of| specimen.points(of))];
            if specimen.axes == 2 {
                kinds.push(Box::new(|of| specimen.image(of)));
            }
            for region in kinds {
                let (layout, joined) = specimen.joined(&own, &region);
                prop_assert_eq!(&joined, &region(&window));
                prop_assert_eq!(&layout.cut(&joined).unwrap(), &region(&own));
            }
        }
    }

    /// Each object belongs to one unit, whatever the windows.
    #[test]
    fn each_object_has_one_unit(specimen in specimens(), positions in prop::collection::vec((0.0..14.0_f64, 0.0..12.0_f64), 1..8)) {
        let specimen = Specimen { axes: 2, sides: [14, 12, 1], unit: [specimen.unit[0], specimen.unit[1], 1], halo: [specimen.halo[0], specimen.halo[1], 0], ..specimen };
        let mut owners = vec![0; positions.len()];
        for cell in specimen.cells() {
            let own = specimen.unit(cell);
            let window = specimen.window(&own);
            let layout = UnitLayout::new(2, window, own, vec![None]).unwrap();
            let (mut objects, mut rings) = (AnnotatedObjects::new(["number"]).unwrap(), Vec::new());
            for (number, (x, y)) in positions.iter().enumerate() {
                let [x, y] = [x - f64::from(window.start[0]), y - f64::from(window.start[1])];
                // A stage sees the objects of its window.
                let sees = |axis: usize, at: f64| {
                    let is_first = window.start[axis] == 0 || at >= -0.5;
                    is_first && (window.end(axis) == specimen.sides[axis] || at < f64::from(window.length[axis]) - 0.5)
                };
                if !sees(0, x) || !sees(1, y) {
                    continue;
                }
                objects.push_box([x, y], [x + 2.0, y + 1.0], "a", &[number as f64]).unwrap();
                rings.push([[[x, y], [x + 1.0, y], [x, y + 1.0]]]);
            }
            let DataRegion::Objects(owned) = layout.cut(&DataRegion::Objects(Box::new(objects))).unwrap() else { panic!() };
            owned.numbers().iter().for_each(|number| owners[*number as usize] += 1);
            let polygons = DataRegion::Polygons(Box::new(Polygons::new(rings).unwrap()));
            let DataRegion::Polygons(polygons) = layout.cut(&polygons).unwrap() else { panic!() };
            prop_assert_eq!(polygons.len(), owned.len());
        }
        prop_assert!(owners.iter().all(|count| *count == 1), "{:?}", owners);
    }
}

fn line(parts: &[Option<(u32, u32)>]) -> UnitLayout {
    let unit = |(start, side): (u32, u32)| UnitBox { start: [start, 0, 0], length: [side, 1, 1] };
    let whole = unit((0, 6));
    UnitLayout::new(2, whole, unit((0, 2)), parts.iter().map(|part| part.map(unit)).collect()).unwrap()
}

#[test]
fn absent_units_are_zero() {
    let layout = line(&[Some((0, 2)), None, Some((4, 2))]);
    let part = |value| DataRegion::Mask(Raster::filled(2, 1, 1, value).unwrap());
    let joined = layout.join(&[&part(255), &part(7), &part(255)]).unwrap();
    assert_eq!(joined, DataRegion::Mask(Raster::new(6, 1, 1, vec![255, 255, 0, 0, 255, 255]).unwrap()));
}

#[test]
fn labels_of_units_stay_different() {
    let layout = line(&[Some((0, 2)), Some((2, 2)), Some((4, 2))]);
    let part = |labels: [u32; 2]| DataRegion::Labels(LabelMap::new(2, 1, labels.to_vec()).unwrap());
    let joined = layout.join(&[&part([0, 2]), &part([1, 1]), &part([3, 0])]).unwrap();
    assert_eq!(joined, DataRegion::Labels(LabelMap::new(6, 1, vec![0, 2, 3, 3, 6, 0]).unwrap()));
    assert_eq!(layout.join(&[&part([0, u32::MAX]), &part([1, 0]), &part([0, 0])]), Err(UnitError::TooLarge));
}

#[test]
fn tables_are_added() {
    let layout = line(&[Some((0, 2)), None, Some((4, 2))]);
    let part = |objects: f64| DataRegion::Table(Table::new([("objects", objects), ("area", 2.0 * objects)]));
    let joined = layout.join(&[&part(3.0), &part(100.0), &part(4.0)]).unwrap();
    assert_eq!(joined, DataRegion::Table(Table::new([("objects", 7.0), ("area", 14.0), ("units", 2.0)])));
}

#[test]
fn unfit_regions_are_refused() {
    let layout = line(&[Some((0, 2)), Some((2, 2))]);
    let part = |width, channels| DataRegion::Gray8(Raster::filled(width, 1, channels, 1).unwrap());
    let refused = |parts: &[&DataRegion]| layout.join(parts).unwrap_err().to_string();
    assert_eq!(refused(&[&part(2, 1)]), "units: 1 regions; 2, one for each unit of the layout, are allowed");
    assert_eq!(
        refused(&[&part(2, 1), &part(3, 1)]),
        "units: a region of 3 x 1 px; 2 x 1 px, the size of its unit, are allowed"
    );
    assert_eq!(
        refused(&[&part(2, 1), &part(2, 2)]),
        "units: a region of 2 channels; 1, as in the other units, are allowed"
    );
    assert_eq!(
        refused(&[&part(2, 1), &DataRegion::Scalar(1.0)]),
        "units: a region of type scalar cannot be joined here; gray8 is allowed"
    );
    assert!(layout.cut(&part(5, 1)).is_err() && layout.only(&part(2, 1)).is_err());
    let absent = line(&[None]);
    let empty = absent.only(&DataRegion::Points(Points::new(2, vec![1.0, 2.0]).unwrap())).unwrap();
    assert_eq!(empty, DataRegion::Points(Points::new(2, Vec::new()).unwrap()));
    assert!(absent.only(&part(2, 1)).is_err());
    assert!(
        ElementType::ALL.iter().all(|element| element.has_bounds() || !element.name().starts_with("array"))
    );
}
