//! Every statistic that SALib (or scipy, if SALib has none) computes, on the same samples and responses.
//!
//! `vectors/make.py` wrote the expected values, for Ishigami's, Sobol's G, Morris's 20-parameter,
//! Linkletter's and a linear function. Each file names the versions of its programs. Indices agree to 1e-9,
//! half-widths within the error of resampling.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::correlation::{Coefficient, pcc, pearson, prcc, spearman};
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::fast::{self, Curves};
use pleach_sensitivity::marginal::{probability, quantile};
use pleach_sensitivity::regression::{src, srrc};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::saltelli_blocks::RowBlocks;
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample};
use pleach_sensitivity::trajectory::Trajectories;
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_sensitivity::{delta, moat, pawn, rbd_fast};
use pleach_workflow::{BasePoints, Distribution, Domain, Parameter, Value, ValueType};
use serde_json::Value as Json;

const FUNCTIONS: [&str; 5] = ["ishigami", "sobol_g", "morris", "linkletter", "linear"];

/// The number of resamples of the vectors. Half-widths on both sides then vary by about 2 %.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 2000, seed: 5 };

fn read(function: &str) -> Json {
    let path = format!("{}/tests/vectors/{function}.json", env!("CARGO_MANIFEST_DIR"));
    let json: Json =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file of vectors")).expect("JSON");
    assert_eq!(json["versions"]["SALib"], "1.6.0");
    json
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn responses(json: &Json) -> Vec<Option<f64>> {
    numbers(json).into_iter().map(Some).collect()
}

fn parameters(json: &Json) -> Vec<Parameter> {
    let bounds = numbers(&json["bounds"]);
    let parameter = |name: &Json| Parameter {
        name: name.as_str().expect("a name").to_owned(),
        value_type: ValueType::Real,
        default: Value::from_f64(bounds[0], ValueType::Real).expect("finite"),
        domain: Domain::Continuous { low: bounds[0], high: bounds[1] },
    };
    json["names"].as_array().expect("a list").iter().map(parameter).collect()
}

#[track_caller]
fn equal(what: &str, found: &[f64], expected: &Json) {
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(&expected) {
        let error = (found - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-9, "{what}: {found}, {expected} expected");
    }
}

/// Compares half-widths, which are estimates on both sides. Some consist of rounding only.
#[track_caller]
fn alike(what: &str, found: &[f64], expected: &Json, tolerance: f64) {
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (found - expected).abs() <= tolerance * expected + 1e-9,
            "{what}: {found}, {expected} expected"
        );
    }
}

fn values<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Vec<f64> {
    estimates.map(|estimate| estimate.value.expect("defined")).collect()
}

fn confs<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Vec<f64> {
    estimates.map(|estimate| estimate.conf.expect("an interval")).collect()
}

fn blocks(json: &Json, samples: u32, second_order: bool) -> RowBlocks {
    let saltelli = Saltelli { samples, second_order, base: BasePoints::MonteCarlo, seed: 1 };
    sample(&parameters(json), &saltelli).expect("a design").row_blocks().expect("row blocks").clone()
}

#[test]
fn sobol_indices_equal_salib() {
    for function in FUNCTIONS {
        let json = read(function);
        let expected = &json["vbd"];
        let blocks = blocks(&json, expected["samples"].as_u64().unwrap() as u32, true);
        let values_of = responses(&expected["y"]);
        let response = Response { name: "y", values: &values_of };
        let found = vbd::indices(&blocks, &[response], Estimator::default(), BOOTSTRAP).unwrap().remove(0);
        let first: Vec<Estimate> = found.parameters.iter().map(|parameter| parameter.first).collect();
        let total: Vec<Estimate> = found.parameters.iter().map(|parameter| parameter.total).collect();
        let second: Vec<Estimate> = found.pairs.unwrap().iter().map(|pair| pair.second).collect();
        for (name, estimates) in [("S1", &first), ("ST", &total), ("S2", &second)] {
            let what = format!("{function} {name}");
            equal(&what, &values(estimates.iter()), &expected[name]);
            alike(&what, &confs(estimates.iter()), &expected[format!("{name}_conf")], 0.12);
        }

        // Without the rows for second order, responses are centered about another mean.
        let length = blocks.rows_per_sample();
        let plain: Vec<Option<f64>> = values_of
            .chunks(length)
            .flat_map(|block| block[..=blocks.names().len()].iter().chain(&block[length - 1..]).copied())
            .collect();
        let blocks = self::blocks(&json, blocks.samples() as u32, false);
        let response = Response { name: "y", values: &plain };
        let none = Bootstrap { resamples: 0, seed: 0 };
        let found = vbd::indices(&blocks, &[response], Estimator::Saltelli, none).unwrap().remove(0);
        assert_eq!(found.pairs, None);
        equal(function, &values(found.parameters.iter().map(|entry| &entry.first)), &expected["S1_plain"]);
        equal(function, &values(found.parameters.iter().map(|entry| &entry.total)), &expected["ST_plain"]);
        assert!(found.parameters.iter().all(|entry| entry.first.conf.is_none() && entry.total.low.is_none()));
    }
}

fn columns(json: &Json, sample: &Json) -> Columns {
    let names = json["names"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned());
    let columns = sample["x"].as_array().expect("a list").iter().map(numbers);
    Columns::new(names.collect(), columns.collect()).expect("columns")
}

fn coefficients(parameters: &[Coefficient]) -> Vec<f64> {
    values(parameters.iter().map(|entry| &entry.coefficient))
}

/// Returns the samples of all functions, including those with levels: name, JSON, and columns.
fn samples() -> Vec<(String, Json, Columns)> {
    let mut samples = Vec::new();
    for function in FUNCTIONS {
        let json = read(function);
        for key in ["given", "levels"] {
            if let Some(sample) = json.get(key) {
                samples.push((format!("{function} {key}"), sample.clone(), columns(&json, sample)));
            }
        }
    }
    assert_eq!(samples.len(), FUNCTIONS.len() + 1);
    samples
}

#[test]
fn correlations_and_regressions_equal_scipy() {
    let bootstrap = Bootstrap { resamples: 50, seed: 1 };
    for (what, expected, columns) in samples() {
        let y = responses(&expected["y"]);
        let response = [Response { name: "y", values: &y }];
        let found = pearson(&columns, &response, bootstrap).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &expected["pearson"]);
        let found = spearman(&columns, &response, bootstrap).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &expected["spearman"]);
        let found = prcc(&columns, &response, bootstrap).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &expected["prcc"]);
        let found = src(&columns, &response, bootstrap).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &expected["src"]["coefficients"]);
        let r_squared = found.r_squared.value.unwrap();
        assert!((r_squared - expected["src"]["r_squared"].as_f64().unwrap()).abs() < 1e-9, "{what}");
        let found = srrc(&columns, &response, bootstrap).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &expected["srrc"]["coefficients"]);
        assert!(
            (found.r_squared.value.unwrap() - expected["srrc"]["r_squared"].as_f64().unwrap()).abs() < 1e-9
        );

        let found = pcc(&columns, &response, bootstrap).unwrap().remove(0);
        if let Some(expected) = expected.get("pcc") {
            equal(&what, &coefficients(&found.parameters), expected);
        } else {
            // A plane leaves no residual. The partial coefficient of an irrelevant parameter is then
            // undefined.
            assert!(r_squared > 1.0 - 1e-12);
            let sizes: Vec<Option<f64>> =
                found.parameters.iter().map(|entry| entry.coefficient.value.map(f64::abs)).collect();
            assert!(sizes.iter().flatten().all(|size| (size - 1.0).abs() < 1e-9), "{what}: {sizes:?}");
            let undefined = if what.starts_with("linkletter") { 2 } else { 0 };
            assert_eq!(sizes.iter().filter(|size| size.is_none()).count(), undefined, "{what}");
        }
    }
}

#[test]
fn pawn_indices_equal_salib() {
    for (what, expected, columns) in samples() {
        let Some(pawn) = expected.get("pawn") else { continue };
        let y = responses(&expected["y"]);
        let bootstrap = Bootstrap { resamples: 50, seed: 1 };
        let response = [Response { name: "y", values: &y }];
        let found = pawn::indices(&columns, &response, pawn::SLICES, None, bootstrap).unwrap().remove(0);
        let of = |pick: fn(&pawn::PawnParameter) -> &Estimate| values(found.parameters.iter().map(pick));
        equal(&what, &of(|entry| &entry.median), &pawn["median"]);
        equal(&what, &of(|entry| &entry.mean), &pawn["mean"]);
        equal(&what, &of(|entry| &entry.minimum), &pawn["minimum"]);
        equal(&what, &of(|entry| &entry.maximum), &pawn["maximum"]);
        equal(&what, &of(|entry| &entry.deviation), &pawn["stdev"]);
        equal(&what, &of(|entry| &entry.cv), &pawn["CV"]);
    }
}

#[test]
fn delta_indices_equal_salib() {
    for (what, expected, columns) in samples() {
        let expected_delta = &expected["delta"];
        let y = responses(&expected["y"]);
        let intervals = expected_delta.get("delta").is_some();
        let bootstrap = Bootstrap { resamples: if intervals { 1000 } else { 0 }, seed: 1 };
        let response = [Response { name: "y", values: &y }];
        let found = delta::indices(&columns, &response, bootstrap).unwrap().remove(0);
        assert_eq!(found.classes as u64, expected_delta["classes"].as_u64().unwrap());
        let plain: Vec<f64> = found.parameters.iter().map(|entry| entry.plain.unwrap()).collect();
        equal(&what, &plain, &expected_delta["plain"]);
        equal(&what, &values(found.parameters.iter().map(|entry| &entry.first)), &expected_delta["S1"]);
        if intervals {
            let delta = || found.parameters.iter().map(|entry| &entry.delta);
            // The vectors use 300 resamples, this test 1000: means agree to a few hundredths of their
            // deviation, deviations to 5 %.
            let conf = numbers(&expected_delta["delta_conf"]);
            for (at, expected) in numbers(&expected_delta["delta"]).into_iter().enumerate() {
                assert!((values(delta())[at] - expected).abs() < 0.15 * conf[at], "{what}");
            }
            alike(&what, &confs(delta()), &expected_delta["delta_conf"], 0.2);
            alike(
                &what,
                &confs(found.parameters.iter().map(|entry| &entry.first)),
                &expected_delta["S1_conf"],
                0.2,
            );
        } else {
            assert!(found.parameters.iter().all(|entry| entry.delta == Estimate::ABSENT));
        }
    }
}

#[test]
fn rbd_fast_indices_equal_salib() {
    for (what, expected, columns) in samples() {
        let Some(rbd) = expected.get("rbd_fast") else { continue };
        let y = responses(&expected["y"]);
        let response = [Response { name: "y", values: &y }];
        let found = rbd_fast::indices(&columns, &response, rbd_fast::HARMONICS, BOOTSTRAP).unwrap().remove(0);
        equal(&what, &coefficients(&found.parameters), &rbd["S1"]);
        let half_widths = confs(found.parameters.iter().map(|entry| &entry.coefficient));
        alike(&what, &half_widths, &rbd["S1_conf"], 0.12);
    }
}

#[test]
fn fast_indices_equal_salib() {
    for function in FUNCTIONS {
        let json = read(function);
        let lengths = json["fast"].as_object().expect("curves of two lengths");
        assert_eq!(lengths.len(), 2);
        for expected in lengths.values() {
            let names = parameters(&json).into_iter().map(|parameter| parameter.name).collect();
            let samples = expected["samples"].as_u64().unwrap() as usize;
            let curves = Curves::new(names, samples, fast::HARMONICS).unwrap();
            let y = responses(&expected["y"]);
            let response = [Response { name: "y", values: &y }];
            let found = fast::indices(&curves, &response, BOOTSTRAP).unwrap().remove(0);
            let first = || found.parameters.iter().map(|entry| &entry.first);
            let total = || found.parameters.iter().map(|entry| &entry.total);
            equal(function, &values(first()), &expected["S1"]);
            equal(function, &values(total()), &expected["ST"]);
            alike(function, &confs(first()), &expected["S1_conf"], 0.12);
            alike(function, &confs(total()), &expected["ST_conf"], 0.12);
        }
    }
}

#[test]
fn elementary_effects_equal_salib() {
    for function in FUNCTIONS {
        let json = read(function);
        let expected = &json["moat"];
        let parameters = parameters(&json);
        let value = |level: &Json, parameter: &Parameter| {
            let (low, high) = parameter.domain.bounds();
            Value::from_f64(low + (high - low) * level.as_f64().unwrap() / 3.0, ValueType::Real).unwrap()
        };
        let row = |row: &Json| -> Vec<Value> {
            row.as_array().unwrap().iter().zip(&parameters).map(|(level, of)| value(level, of)).collect()
        };
        let rows: Vec<Vec<Value>> = expected["levels"].as_array().unwrap().iter().map(row).collect();
        let trajectories = Trajectories::recover(&parameters, &rows, Some(4)).unwrap();
        let found = moat::indices(&trajectories, "y", &responses(&expected["y"]), 1).unwrap();
        let of = |pick: fn(&moat::MoatParameter) -> f64| -> Vec<f64> {
            found.parameters.iter().map(pick).collect()
        };
        equal(function, &of(|entry| entry.mu), &expected["mu"]);
        equal(function, &of(|entry| entry.mu_star), &expected["mu_star"]);
        equal(function, &of(|entry| entry.sigma.unwrap()), &expected["sigma"]);
        alike(function, &of(|entry| entry.mu_star_conf.unwrap()), &expected["mu_star_conf"], 0.12);
    }
}

/// Quantiles equal SALib 1.6.0's `util.scale_samples` with `"dists": ["lognorm"]`, these bounds and these
/// probabilities.
#[test]
fn log_normal_quantiles_are_those_of_salib() {
    let probabilities = [1e-6, 0.001, 0.025, 0.25, 0.5, 0.75, 0.975, 0.999, 0.999_999];
    let expected: [([f64; 2], [f64; 9]); 3] = [
        (
            [0.0, 1.0],
            [
                0.008_622_119_793_471_49,
                0.045_491_385_247_653_525,
                0.140_863_494_093_217_44,
                0.509_416_283_863_277_5,
                1.0,
                1.963_031_084_158_257,
                7.099_071_384_231_335,
                21.982_183_979_582_828,
                115.980_759_250_337_75,
            ],
        ),
        (
            [2.5, 0.5],
            [
                1.131_209_987_893_476_5,
                2.598_368_756_846_612_3,
                4.572_307_531_280_189,
                8.695_060_666_058_86,
                12.182_493_960_703_473,
                17.068_674_366_115_34,
                32.459_137_555_216_62,
                57.117_820_059_802_15,
                131.198_593_267_832_05,
            ],
        ),
        (
            [-3.0, 0.1],
            [
                0.030_951_233_350_171_747,
                0.036_551_859_059_575_21,
                0.040_925_726_722_765_225,
                0.046_539_727_559_750_73,
                0.049_787_068_367_863_944,
                0.053_260_994_566_072_03,
                0.060_567_090_071_672_08,
                0.067_814_667_719_808_32,
                0.080_085_731_919_667_24,
            ],
        ),
    ];
    for ([mean, deviation], quantiles) in expected {
        let distribution = Distribution::LogNormal { mean, deviation };
        for (probability_below, expected) in probabilities.into_iter().zip(quantiles) {
            let found = quantile(&distribution, probability_below);
            assert!((found / expected - 1.0).abs() < 1e-12, "{distribution}: {found}, {expected} expected");
            assert!((probability(&distribution, found) - probability_below).abs() < 1e-12);
        }
    }
    let distribution = Distribution::LogNormal { mean: 0.0, deviation: 1.0 };
    assert!(quantile(&distribution, 0.0) > 0.0 && quantile(&distribution, 1.0).is_finite());
    assert_eq!([-1.0, 0.0].map(|value| probability(&distribution, value)), [0.0; 2]);
}
