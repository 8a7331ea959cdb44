//! The whole chain t1 to t7 through its operations, each task's outputs against the slow implementations.

use crate::images::{Image, image};
use crate::tasks::{Outputs, Parameters, chain};
use pleach_pathology::kernels::Connectivity;
use pleach_pathology::registry;
use pleach_regions::{DataRegion, Raster};
use pleach_workflow::{Registry, Value, ValueType};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

/// Half of the sets are from the grid that studies sample, the others from all values that small images can
/// distinguish.
fn parameters() -> impl Strategy<Value = Parameters> {
    let connectivity =
        || prop::bool::ANY.prop_map(|four| if four { Connectivity::Four } else { Connectivity::Eight });
    // Multiples of `step` from `low` to `high`.
    let grid = |low: u32, high: u32, step: u32| (low / step..=high / step).prop_map(move |n| n * step);
    let byte = |value: u32| value as u8;
    let sampled = (
        prop::array::uniform3(grid(210, 240, 10).prop_map(byte)),
        prop::array::uniform2(grid(5, 15, 1).prop_map(|n| f64::from(n) / 2.0)),
        (grid(5, 80, 5).prop_map(byte), grid(2, 40, 2).prop_map(byte)),
        (grid(2, 40, 2), grid(900, 1500, 50)),
        grid(5, 80, 5),
        (grid(2, 40, 2), grid(900, 1500, 50)),
    );
    // Half of the minimum areas keep everything except tiny objects.
    let least = || prop_oneof![0..6_u32, 0..80_u32];
    let areas = || (least(), prop_oneof![0..200_u32, 1000..3000_u32]);
    // A quarter of the thresholds classify almost all pixels as bright. Background would be rare otherwise.
    let bright = prop_oneof![3 => prop::array::uniform3(any::<u8>()), 1 => prop::array::uniform3(0..60_u8)];
    let any = (
        bright,
        prop::array::uniform2(0.0..10.0_f64),
        (any::<u8>().prop_map(|g| g / 4), any::<u8>().prop_map(|g| g / 8)),
        areas(),
        least(),
        areas(),
    );
    let rest = (connectivity(), connectivity(), connectivity());
    (prop_oneof![sampled, any], rest).prop_map(|(levels, (morph_recon, fill_holes, watershed))| {
        let (bright, ratios, (g1, g2), candidate_area, min_size_pl, final_area) = levels;
        Parameters {
            bright,
            ratios,
            morph_recon,
            g1,
            fill_holes,
            candidate_area: candidate_area.into(),
            g2,
            min_size_pl,
            watershed,
            final_area: final_area.into(),
        }
    })
}

/// The same chain through the operations.
struct Fast(Registry);

impl Fast {
    fn run(&self, name: &str, inputs: &[&DataRegion], arguments: &[f64]) -> Vec<DataRegion> {
        let operation = self.0.get(name, 1).unwrap();
        let typed = operation.arguments().iter().zip(arguments).map(|(argument, number)| {
            let value_type: ValueType = argument.accepts.value_type();
            Value::from_f64(*number, value_type).unwrap()
        });
        operation.run(inputs, &typed.collect::<Vec<Value>>()).unwrap()
    }

    fn chain(&self, image: &Image, p: &Parameters) -> Outputs {
        let rows = image.pixels.len() / image.width;
        let data = image.pixels.as_flattened().to_vec();
        let tile = DataRegion::Bgr8(Raster::new(image.width as u32, rows as u32, 3, data).unwrap());
        let number = |connectivity| if connectivity == Connectivity::Four { 4.0 } else { 8.0 };
        let [b, g, r] = p.bright.map(f64::from);
        let pair = |[low, high]: [u32; 2]| [f64::from(low), f64::from(high)];
        let ([min, max], fill_holes) = (pair(p.final_area), number(p.fill_holes));
        let t1 = self.run("nuclei.background", &[&tile], &[b, g, r, p.ratios[0], p.ratios[1]]);
        let t2 = self.run("nuclei.reconstruct", &[&tile], &[number(p.morph_recon)]);
        let t3 = self.run("nuclei.candidates", &[&t2[0], &t2[1]], &[f64::from(p.g1), fill_holes]);
        let t4 = self.run("nuclei.candidate-area", &[&t3[1]], &pair(p.candidate_area));
        let t5 = self.run("nuclei.nuclei", &[&t3[0], &t4[0], &t1[0], &t1[1]], &[f64::from(p.g2)]);
        let arguments = [f64::from(p.min_size_pl), number(p.watershed)];
        let t6 = self.run("nuclei.separate", &[&t5[0], &tile], &arguments);
        let t7 = self.run("nuclei.final-area", &[&t6[0]], &[min, max, fill_holes]);
        let bytes = |region: &DataRegion| region.raster(region.element()).unwrap().data().to_vec();
        Outputs {
            rbc: bytes(&t1[0]),
            is_background: t1[1].table().unwrap().get("background") == Some(1.0),
            rc: bytes(&t2[0]),
            recon: bytes(&t2[1]),
            diff: bytes(&t3[0]),
            bw1: bytes(&t3[1]),
            bw1_t: bytes(&t4[0]),
            seg_open: bytes(&t5[0]),
            seg_nonoverlap: bytes(&t6[0]),
            mask: bytes(&t7[0]),
        }
    }
}

/// 1,000 images with a parameter set each: the operations equal the slow chain. The end asserts that the images were
/// not trivial.
#[test]
fn every_task_equals_the_slow_chain() {
    let fast = Fast(registry());
    let [red, candidates, cut, nuclei, background] = std::array::from_fn(|_| Cell::new(0));
    let count = |counter: &Cell<u32>, found: bool| counter.set(counter.get() + u32::from(found));
    let any = |mask: &[u8]| mask.iter().any(|value| *value != 0);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1000) });
    let result = runner.run(&(image(), parameters()), |(image, parameters)| {
        let wanted = chain(&image.pixels, image.width, &parameters);
        let found = fast.chain(&image, &parameters);
        prop_assert_eq!(&found.rbc, &wanted.rbc, "t1, red blood cells");
        prop_assert_eq!(found.is_background, wanted.is_background, "t1, background");
        prop_assert_eq!(&found.rc, &wanted.rc, "t2, inverted red");
        prop_assert_eq!(&found.recon, &wanted.recon, "t2, reconstruction");
        prop_assert_eq!(&found.diff, &wanted.diff, "t3, difference");
        prop_assert_eq!(&found.bw1, &wanted.bw1, "t3, candidates");
        prop_assert_eq!(&found.bw1_t, &wanted.bw1_t, "t4");
        prop_assert_eq!(&found.seg_open, &wanted.seg_open, "t5");
        prop_assert_eq!(&found.seg_nonoverlap, &wanted.seg_nonoverlap, "t6");
        prop_assert_eq!(&found.mask, &wanted.mask, "t7");
        count(&red, any(&wanted.rbc));
        count(&candidates, any(&wanted.bw1_t));
        // Lines run inside t5's nuclei, and nuclei without a seed disappear.
        let lost = wanted.seg_nonoverlap.iter().zip(&wanted.seg_open).any(|(cut, open)| cut < open);
        count(&cut, lost && any(&wanted.seg_nonoverlap));
        count(&nuclei, any(&wanted.mask));
        count(&background, wanted.is_background);
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
    let seen = [&red, &candidates, &cut, &nuclei, &background].map(Cell::get);
    println!("with red blood cells, candidates, cuts, nuclei; background: {seen:?}");
    assert!(seen.iter().all(|count| *count >= 30), "too few are of interest: {seen:?}");
}
