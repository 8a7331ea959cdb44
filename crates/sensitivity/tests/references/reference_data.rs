//! Public reference data: SALib's Ishigami design, and the MOAT run of the authors of region templates.

use crate::data;
use crate::imports::NSCALE;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::moat::{CONFIDENCE_Z, MoatIndices, elementary_effects, indices};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::saltelli::{self, Saltelli};
use pleach_sensitivity::table;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};
use std::io::Read;
use std::path::PathBuf;

/// Returns the folder `name` of the test data. Returns `None` after logging that `test` is skipped.
fn folder(test: &str, name: &str) -> Option<PathBuf> {
    Some(data::data(test)?.join("sensitivity").join(name))
}

fn real(name: &str, low: f64, high: f64) -> Parameter {
    let default = Value::from_f64(low, ValueType::Real).expect("finite");
    Parameter {
        name: name.into(),
        value_type: ValueType::Real,
        default,
        domain: Domain::Continuous { low, high },
    }
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns parameters, parameter sets as printed, and responses of SALib's example.
fn ishigami(folder: &std::path::Path) -> (Vec<Parameter>, Vec<Vec<Value>>, Vec<Option<f64>>) {
    let pi = std::f64::consts::PI;
    let parameters: Vec<Parameter> = ["x1", "x2", "x3"].iter().map(|name| real(name, -pi, pi)).collect();
    let inputs = read(folder.join("ishigami_morris_model_input.txt"));
    let table = format!("x1,x2,x3\n{}", inputs.trim().replace(' ', ","));
    let rows = table::parse(&table, &parameters).expect("a table");
    let outputs = read(folder.join("ishigami_morris_model_output.txt"));
    let responses = outputs.lines().map(|line| Some(line.trim().parse().expect("a number"))).collect();
    (parameters, rows, responses)
}

fn largest_error(found: &MoatIndices, expected: &serde_json::Value) -> f64 {
    let mut largest: f64 = 0.0;
    for (place, parameter) in found.parameters.iter().enumerate() {
        let sigma = parameter.sigma.expect("100 trajectories");
        for (key, value) in [("mu", parameter.mu), ("mu_star", parameter.mu_star), ("sigma", sigma)] {
            let expected = expected[key][place].as_f64().expect("a number");
            largest = largest.max((value - expected).abs());
        }
    }
    largest
}

#[test]
fn ishigami_indices_equal_salib() {
    let Some(folder) = folder("ishigami_indices_equal_salib", "salib") else { return };
    let (parameters, rows, responses) = ishigami(&folder);
    let expected = serde_json::from_str(&read(folder.join("ishigami_morris_expected.json"))).unwrap();

    let trajectories = Trajectories::recover(&parameters, &rows, Some(10)).unwrap();
    assert_eq!(trajectories.complete().len(), 100);
    let found = indices(&trajectories, "ishigami", &responses, 1).unwrap();
    let error = largest_error(&found, &expected);
    println!("largest difference from SALib: {error:e}");
    assert!(error < 1e-9, "{error:e}");

    // Without the levels, steps are taken as printed with 9 digits, which changes the ninth digit of the
    // indices.
    let trajectories = Trajectories::recover(&parameters, &rows, None).unwrap();
    let printed = largest_error(&indices(&trajectories, "ishigami", &responses, 1).unwrap(), &expected);
    println!("largest difference with steps as printed: {printed:e}");
    assert!(error < printed && printed < 1e-7, "{printed:e}");
}

/// The deviation of a resampled mean has a closed form. 1000 resamples estimate it to 2.2 %.
#[test]
fn bootstrap_half_widths_equal_their_closed_form() {
    let Some(folder) = folder("bootstrap_half_widths_equal_their_closed_form", "salib") else { return };
    let (parameters, rows, responses) = ishigami(&folder);
    let trajectories = Trajectories::recover(&parameters, &rows, Some(10)).unwrap();
    let effects = elementary_effects(&trajectories, &responses).unwrap().effects;
    let exact = |values: Vec<f64>| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        CONFIDENCE_Z * (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count / count).sqrt()
    };
    let mut first = None;
    for seed in 0..5 {
        let found = indices(&trajectories, "ishigami", &responses, seed).unwrap();
        for (place, parameter) in found.parameters.iter().enumerate() {
            // Effects of x2 are ±1.47, so the spread of its μ* is only rounding.
            let agree = |found: f64, exact: f64| (found - exact).abs() <= 0.08 * exact + 1e-12;
            let mu = exact(effects.iter().map(|row| row[place]).collect());
            let mu_star = exact(effects.iter().map(|row| row[place].abs()).collect());
            assert!(agree(parameter.mu_conf.unwrap(), mu), "{parameter:?}: {mu}");
            assert!(agree(parameter.mu_star_conf.unwrap(), mu_star), "{parameter:?}: {mu_star}");
        }
        assert_eq!(found, indices(&trajectories, "ishigami", &responses, seed).unwrap());
        assert_ne!(first.replace(found.clone()), Some(found));
    }
}

/// Uses SALib's own Saltelli design of 256 base samples, as SALib wrote it.
#[test]
fn ishigami_sobol_indices_equal_salib() {
    let Some(folder) = folder("ishigami_sobol_indices_equal_salib", "salib") else { return };
    let file = std::fs::File::open(folder.join("ishigami_saltelli_N256.csv.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let y = text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().ok());
    let y: Vec<Option<f64>> = y.collect();
    assert!(y.len() == 2048 && y.iter().all(Option::is_some));
    let expected: serde_json::Value =
        serde_json::from_str(&read(folder.join("ishigami_sobol_expected.json"))).unwrap();

    let pi = std::f64::consts::PI;
    let parameters: Vec<Parameter> = ["x1", "x2", "x3"].iter().map(|name| real(name, -pi, pi)).collect();
    let saltelli = Saltelli { samples: 256, second_order: true, base: BasePoints::Sobol, seed: 1 };
    let design = saltelli::sample(&parameters, &saltelli).unwrap();
    let response = [Response { name: "ishigami", values: &y }];
    let bootstrap = Bootstrap { resamples: 100, seed: 1 };
    let blocks = design.row_blocks().unwrap();
    let found = vbd::indices(blocks, &response, Estimator::default(), bootstrap).unwrap().remove(0);
    let equal = |found: Estimate, expected: &serde_json::Value| {
        let error = (found.value.unwrap() - expected.as_f64().unwrap()).abs();
        assert!(error < 1e-9, "{found:?} {expected}");
    };
    for (place, parameter) in found.parameters.iter().enumerate() {
        equal(parameter.first, &expected["S1"][place]);
        equal(parameter.total, &expected["ST"][place]);
    }
    for (pair, (one, other)) in found.pairs.unwrap().iter().zip([(0, 1), (0, 2), (1, 2)]) {
        equal(pair.second, &expected["S2"][one][other]);
    }
}

/// The 15 parameters of `rtf_dakota/dakota_nscale_ps_moat.in`, as the reals that Dakota passes to the model.
fn authors_parameters() -> Vec<Parameter> {
    // The run has longer names of three parameters than the input file.
    let name = |name| match name {
        "fillHoles" => "fillHolesConnectivity",
        "recon" => "reconConnectivity",
        "water" => "watershedConnectivity",
        name => name,
    };
    NSCALE.map(|(short, low, high)| real(name(short), low, high)).to_vec()
}

#[test]
fn the_authors_run_gives_its_complete_trajectories() {
    let Some(folder) = folder("the_authors_run_gives_its_complete_trajectories", "rtf_moat") else { return };
    let parameters = authors_parameters();
    let text = read(folder.join("moat_600_evaluations.csv"));
    let (sets, responses): (Vec<String>, Vec<String>) = text
        .lines()
        .map(|line| line.rsplit_once(',').unwrap())
        .map(|(set, response)| (set.to_owned(), response.to_owned()))
        .unzip();
    let rows = table::parse(&sets.join("\n"), &parameters).unwrap();
    let responses: Vec<Option<f64>> = responses[1..].iter().map(|text| Some(text.parse().unwrap())).collect();
    assert_eq!(rows.len(), 457);

    // 20 partitions are 22 levels in PSUADE: values are multiples of 1/21, and every step is 11/21.
    let trajectories = Trajectories::recover(&parameters, &rows, Some(22)).unwrap();
    assert_eq!(trajectories.complete().len(), 28);
    assert!(trajectories.has_unfinished());
    let steps = trajectories.complete().iter().flat_map(|trajectory| &trajectory.steps);
    assert!(steps.clone().all(|step| step.fraction.abs() == 11.0 / 21.0));
    assert_eq!(steps.count(), 28 * 15);

    let found = indices(&trajectories, "difference", &responses, 1).unwrap();
    assert_eq!((found.trajectories_used, found.trajectories_dropped), (28, 1));
    let mut ranked = found.parameters.clone();
    ranked.sort_by(|a, b| b.mu_star.total_cmp(&a.mu_star));
    let names: Vec<&str> = ranked.iter().map(|entry| entry.name.as_str()).collect();
    // The ranking by μ* agrees with the thesis's Table 2.2: the two thresholds first, the background colors
    // last.
    assert_eq!(names[..5], ["G2", "G1", "reconConnectivity", "minSize", "minSizeSeg"]);
    assert_eq!(names[12..], ["blue", "red", "green"]);
    // The signed `effect` ranks differently: G1 and G2 raise the difference as often as they lower it.
    let effect = |name: &str| found.parameters.iter().find(|entry| entry.name == name).unwrap().effect.abs();
    assert!(effect("reconConnectivity") > effect("G1") && effect("minSize") > effect("G2"));
    for entry in &ranked {
        println!(
            "{:22} mu {:12.4e} mu* {:11.4e} ± {:10.3e} sigma {:10.3e} effect {:7.4}",
            entry.name,
            entry.mu,
            entry.mu_star,
            entry.mu_star_conf.unwrap(),
            entry.sigma.unwrap(),
            entry.effect
        );
    }
}
