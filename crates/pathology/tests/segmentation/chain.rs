//! Operations through the trait: rejected inputs, and edge cases of the chain t1–t7.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use crate::operations::run;
use pleach_pathology::registry;
use pleach_regions::{DataRegion, ElementType, Raster};
use pleach_workflow::{Value, ValueType};
use proptest::prelude::*;

fn bgr(width: u32, height: u32, color: [u8; 3]) -> DataRegion {
    DataRegion::Bgr8(Raster::new(width, height, 3, color.repeat((width * height) as usize)).unwrap())
}

fn mask(width: u32, values: &[u8]) -> DataRegion {
    DataRegion::Mask(Raster::new(width, values.len() as u32 / width, 1, values.to_vec()).unwrap())
}

fn bytes(region: &DataRegion) -> &[u8] {
    region.raster(region.element()).unwrap().data()
}

/// Default parameters in the order B G R T1 T2, RC, G1 FH, minSize maxSize, G2, minSizePl W, minSizeSeg maxSizeSeg.
const DEFAULTS: [f64; 15] =
    [220.0, 220.0, 220.0, 5.0, 4.0, 8.0, 80.0, 4.0, 11.0, 1000.0, 45.0, 30.0, 8.0, 21.0, 1000.0];

/// Returns every output of the seven tasks. The last is the mask.
fn chain(image: &DataRegion, p: &[f64; 15]) -> Vec<DataRegion> {
    let t1 = run("nuclei.background", &[image], &p[..5]).unwrap();
    let t2 = run("nuclei.reconstruct", &[image], &p[5..6]).unwrap();
    let t3 = run("nuclei.candidates", &[&t2[0], &t2[1]], &p[6..8]).unwrap();
    let t4 = run("nuclei.candidate-area", &[&t3[1]], &p[8..10]).unwrap();
    let t5 = run("nuclei.nuclei", &[&t3[0], &t4[0], &t1[0], &t1[1]], &p[10..11]).unwrap();
    let t6 = run("nuclei.separate", &[&t5[0], image], &p[11..13]).unwrap();
    let t7 = run("nuclei.final-area", &[&t6[0]], &[p[13], p[14], p[7]]).unwrap();
    [t1, t2, t3, t4, t5, t6, t7].into_iter().flatten().collect()
}

const SIZES: [(u32, u32); 6] = [(1, 1), (1, 40), (40, 1), (2, 2), (3, 50), (33, 31)];

#[test]
fn images_of_one_color_have_no_nuclei() {
    // White, black, stained, pure channels.
    for color in [[255; 3], [0; 3], [120, 40, 90], [255, 0, 0], [0, 255, 0], [0, 0, 255]] {
        for (width, height) in SIZES {
            let image = bgr(width, height, color);
            let outputs = chain(&image, &DEFAULTS);
            assert!(
                bytes(outputs.last().unwrap()).iter().all(|value| *value == 0),
                "{color:?} {width}x{height}"
            );
            let normalized = run("nuclei.normalize", &[&image], &[]).unwrap();
            assert_eq!(bytes(&normalized[0]).len(), bytes(&image).len());
        }
    }
}

#[test]
fn nine_tenths_of_background_are_background() {
    let nuclei_of = |bright: usize| {
        let mut image = vec![[255, 255, 255]; bright];
        image.resize(100, [90, 30, 60]);
        let image = DataRegion::Bgr8(Raster::new(10, 10, 3, image.concat()).unwrap());
        let t1 = run("nuclei.background", &[&image], &DEFAULTS[..5]).unwrap();
        let diff = DataRegion::Gray8(Raster::filled(10, 10, 1, 200).unwrap());
        let nuclei = run("nuclei.nuclei", &[&diff, &mask(10, &[255; 100]), &t1[0], &t1[1]], &[45.0]).unwrap();
        let found = bytes(&nuclei[0]).iter().filter(|value| **value != 0).count();
        (t1[1].table().unwrap().get("background").unwrap(), found)
    };
    // The opening removes only the 4 corners of the image, which no remaining pixel restores.
    assert_eq!(nuclei_of(89), (0.0, 96));
    assert_eq!(nuclei_of(90), (1.0, 0));
}

#[test]
fn an_image_that_is_all_object_stays_whole() {
    for (width, height) in SIZES {
        let whole = mask(width, &vec![255; (width * height) as usize]);
        let image = bgr(width, height, [120, 40, 90]);
        for connectivity in [4.0, 8.0] {
            let separated = run("nuclei.separate", &[&whole, &image], &[0.0, connectivity]).unwrap();
            assert_eq!(separated[0], whole);
        }
        let kept = run("nuclei.final-area", &[&whole], &[0.0, 1e9, 4.0]).unwrap();
        assert_eq!(kept[0], whole);
    }
}

#[test]
fn an_image_without_objects_stays_empty() {
    for (width, height) in SIZES {
        let empty = mask(width, &vec![0; (width * height) as usize]);
        let separated =
            run("nuclei.separate", &[&empty, &bgr(width, height, [1, 2, 3])], &[30.0, 8.0]).unwrap();
        assert_eq!(separated[0], empty);
        assert_eq!(run("nuclei.candidate-area", &[&empty], &[0.0, 9.0]).unwrap()[0], empty);
    }
}

/// Two touching discs are separated. A single disc stays whole.
#[test]
fn touching_nuclei_are_separated() {
    let (width, height) = (60_u32, 40_u32);
    let disc = |x: u32, y: u32, cx: u32| x.abs_diff(cx).pow(2) + y.abs_diff(20).pow(2) <= 121;
    let object = |i: u32| disc(i % width, i / width, 19) || disc(i % width, i / width, 40);
    let values: Vec<u8> = (0..width * height).map(|i| if object(i) { 255 } else { 0 }).collect();
    let separated =
        run("nuclei.separate", &[&mask(width, &values), &bgr(width, height, [80; 3])], &[30.0, 8.0]);
    let separated = separated.unwrap();
    let parts = pleach_pathology::kernels::components::Components::of_objects(
        bytes(&separated[0]),
        width as usize,
        pleach_pathology::kernels::Connectivity::Four,
    );
    let areas = parts.areas();
    assert_eq!(areas.len(), 2, "{areas:?}");
    assert!(areas.iter().all(|area| *area > 350), "{areas:?}");
}

#[test]
fn red_blood_cells_need_a_seed_and_more_red_than_blue() {
    // R/G of 6 beside 4.5 beside 3, then 4.5 alone, and 6 with more blue than red.
    let row = [[10, 10, 60], [10, 10, 45], [10, 10, 30], [0; 3], [10, 10, 45], [0; 3], [61, 10, 60]];
    let image = DataRegion::Bgr8(Raster::new(7, 1, 3, row.concat()).unwrap());
    let t1 = run("nuclei.background", &[&image], &DEFAULTS[..5]).unwrap();
    assert_eq!(bytes(&t1[0]), [255, 255, 0, 0, 0, 0, 0]);
    // T1 below T2 is valid: seeds count only within the mask.
    let t1 = run("nuclei.background", &[&image], &[220.0, 220.0, 220.0, 4.0, 5.0]).unwrap();
    assert_eq!(bytes(&t1[0]), [255, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn masks_are_compared() {
    let compare = |a: &[u8], b: &[u8]| {
        let metrics = run("compare.masks", &[&mask(2, a), &mask(2, b)], &[]).unwrap();
        metrics[0].table().unwrap().columns().map(|(_, value)| value).collect::<Vec<f64>>()
    };
    assert_eq!(compare(&[255, 255, 0, 0], &[255, 0, 255, 255]), [0.4, 0.25, 3.0, 0.0]);
    // The last column distinguishes agreement by convention from actual agreement.
    assert_eq!(compare(&[0; 4], &[0; 4]), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(compare(&[1; 600], &[255; 600]), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(compare(&[255; 600], &[0; 600]), [0.0, 0.0, 600.0, 0.0]);
}

#[test]
fn every_operation_is_found_and_estimates_something() {
    let registry = registry();
    assert_eq!(registry.names().len(), 35);
    for name in registry.names() {
        let operation = registry.get(name, 1).unwrap();
        assert!(operation.cost_seconds(1 << 24) > 0.0 && operation.cost_seconds(1 << 24) < 10.0, "{name}");
        assert!(operation.memory_bytes(1 << 24) < 1 << 30, "{name}");
    }
}

fn refusal(name: &str, inputs: &[&DataRegion], arguments: &[Value]) -> String {
    registry().get(name, 1).unwrap().run(inputs, arguments).unwrap_err().to_string()
}

#[test]
fn undeclared_inputs_and_arguments_are_refused() {
    let (image, small) = (bgr(4, 4, [1, 2, 3]), mask(2, &[0; 4]));
    let int = Value::Integer;
    assert_eq!(refusal("nuclei.reconstruct", &[], &[int(8)]), "0 inputs given, 1 declared");
    assert_eq!(refusal("nuclei.reconstruct", &[&image], &[]), "0 arguments given, 1 declared");
    assert_eq!(refusal("nuclei.reconstruct", &[&image], &[int(6)]), "MorphRecon = 6; one of 4 8 is allowed");
    assert_eq!(refusal("nuclei.reconstruct", &[&small], &[int(8)]), "data region holds mask; bgr8 is needed");
    let sizes = "inputs are 2 x 2 px and 4 x 4 px; inputs must have equal sizes";
    assert_eq!(refusal("nuclei.separate", &[&small, &image], &[int(30), int(8)]), sizes);
    let gray = DataRegion::Gray8(Raster::filled(2, 2, 1, 0).unwrap());
    let g1 = "G1 = 300; an integer from 0 to 255 is allowed";
    assert_eq!(refusal("nuclei.candidates", &[&gray, &gray], &[int(300), int(4)]), g1);
    assert!(refusal("nuclei.candidate-area", &[&small], &[int(-1), int(9)]).starts_with("minSize = -1; "));
    // A real for a declared integer, and an integer for a declared real.
    let half = Value::from_f64(80.0, ValueType::Real).unwrap();
    assert!(refusal("nuclei.candidates", &[&gray, &gray], &[half, int(4)]).starts_with("G1 = 80; "));
    let ratios = [int(220), int(220), int(220), int(5), int(4)];
    assert!(refusal("nuclei.background", &[&image], &ratios).starts_with("T1 = 5; "));
    // A region whose raster does not have the channels of its type.
    let odd = DataRegion::Bgr8(Raster::filled(4, 4, 1, 0).unwrap());
    assert_eq!(refusal("nuclei.normalize", &[&odd], &[]), "4 x 4 px of 3 channels do not fit 16 bytes");
}

proptest! {
    /// For any valid parameters, nonsense combinations included, and any small image: masks hold 0 and 255 only, each
    /// task keeps within its inputs, and a second run gives the same result.
    #[test]
    fn chain_outputs_are_valid_and_deterministic(
        (width, pixels) in (1..30_usize, 1..30_usize)
            .prop_flat_map(|(w, h)| (Just(w), prop::collection::vec(prop::sample::select(vec![[250_u8, 250, 250], [90, 30, 60], [140, 90, 150], [20, 20, 120], [0, 0, 0]]), w * h))),
        levels in prop::array::uniform5(0..=255_u8),
        ratios in prop::array::uniform2(0.0..10.0_f64),
        areas in prop::array::uniform5(0..60_u32),
        eight in prop::array::uniform3(any::<bool>()),
    ) {
        let image = DataRegion::Bgr8(Raster::new(width as u32, (pixels.len() / width) as u32, 3, pixels.concat()).unwrap());
        let [b, g, r, g1, g2] = levels.map(f64::from);
        // Low thresholds let more pixels through.
        let (g1, g2) = ((g1 / 4.0).floor(), (g2 / 8.0).floor());
        let [a1, a2, a3, a4, a5] = areas.map(f64::from);
        let [rc, fh, w] = eight.map(|eight| if eight { 8.0 } else { 4.0 });
        let parameters = [b, g, r, ratios[0], ratios[1], rc, g1, fh, a1, a2 * 20.0, g2, a3, w, a4, a5 * 20.0];
        let outputs = chain(&image, &parameters);
        for region in outputs.iter().filter(|region| region.element() == ElementType::Mask) {
            prop_assert!(bytes(region).iter().all(|value| matches!(value, 0 | 255)));
        }
        let [rc, recon] = [bytes(&outputs[2]), bytes(&outputs[3])];
        prop_assert!(rc.iter().zip(recon).all(|(rc, recon)| recon <= rc));
        let [bw1, kept] = [bytes(&outputs[5]), bytes(&outputs[6])];
        prop_assert!(bw1.iter().zip(kept).all(|(bw1, kept)| kept <= bw1));
        prop_assert_eq!(chain(&image, &parameters), outputs);
        let normalized = run("nuclei.normalize", &[&image], &[]).unwrap();
        prop_assert_eq!(run("nuclei.normalize", &[&image], &[]).unwrap(), normalized);
    }
}
