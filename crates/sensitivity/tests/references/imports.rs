//! Studies of other programs: the authors' Dakota inputs, SALib's parameter files, and corrupt files.

use crate::data;
use crate::mutations::{mutated, mutations};
use pleach_sensitivity::dakota;
use pleach_sensitivity::import::{Imported, ImportedMethod, ImportedRange, ImportedSampler};
use pleach_sensitivity::problem;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn folder(test: &str, name: &str) -> Option<PathBuf> {
    Some(data::data(test)?.join("sensitivity").join(name))
}

fn inputs(test: &str) -> Option<BTreeMap<String, String>> {
    let folder = folder(test, "rtf_dakota")?;
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a text"))
    };
    Some(std::fs::read_dir(folder).expect("a folder").map(read).collect())
}

/// Returns names and bounds of real parameters, in order.
fn reals(imported: &Imported) -> Vec<(&str, f64, f64)> {
    let real = |parameter: &ImportedRange| match parameter {
        ImportedRange::Reals { low, high } => (*low, *high),
        other => panic!("no reals: {other:?}"),
    };
    imported
        .parameters
        .iter()
        .map(|parameter| {
            let (low, high) = real(&parameter.range);
            (parameter.name.as_str(), low, high)
        })
        .collect()
}

/// Parameters of the authors' segmentation, with the bounds of their studies.
pub(crate) const NSCALE: [(&str, f64, f64); 15] = [
    ("blue", 210.0, 240.0),
    ("green", 210.0, 240.0),
    ("red", 210.0, 240.0),
    ("T1", 2.5, 7.5),
    ("T2", 2.5, 7.5),
    ("G1", 5.0, 80.0),
    ("G2", 2.0, 40.0),
    ("minSize", 2.0, 40.0),
    ("maxSize", 900.0, 1500.0),
    ("minSizePl", 5.0, 80.0),
    ("minSizeSeg", 2.0, 80.0),
    ("maxSizeSeg", 900.0, 1500.0),
    ("fillHoles", 4.0, 8.0),
    ("recon", 4.0, 8.0),
    ("water", 4.0, 8.0),
];

const YI: [(&str, f64, f64); 7] = [
    ("otsuRatio", 0.3, 1.5),
    ("curvatureWeight", 0.0, 1.0),
    ("sizeThld", 1.0, 20.0),
    ("sizeUpperThld", 50.0, 400.0),
    ("msKernel", 5.0, 30.0),
    ("levelsetNumberOfIteration", 5.0, 150.0),
    ("dummy", 0.0, 1.0),
];

/// Returns the named entries of `all`, in this order.
fn these(all: &[(&'static str, f64, f64)], names: &str) -> Vec<(&'static str, f64, f64)> {
    names
        .split(' ')
        .map(|name| *all.iter().find(|(known, ..)| *known == name).expect("a known name"))
        .collect()
}

/// All 16 files give the expected method, sampler, samples and parameters. Their seed is always 500.
#[test]
fn the_authors_inputs_are_read() {
    let Some(inputs) = inputs("the_authors_inputs_are_read") else { return };
    assert_eq!(inputs.len(), 16);
    let moat = (ImportedMethod::Moat { partitions: Some(20) }, ImportedSampler::Morris);
    let random = (ImportedMethod::Sampling, ImportedSampler::MonteCarlo);
    let vbd = (ImportedMethod::Vbd, ImportedSampler::MonteCarlo);
    let lhs = (ImportedMethod::Sampling, ImportedSampler::LatinHypercube);
    let mut ten = these(&NSCALE, "T2 G1 G2 minSize maxSize minSizePl minSizeSeg maxSizeSeg recon water");
    ten[0].1 = 4.5;
    let eight = these(&NSCALE, "T2 G1 G2 minSize maxSize minSizePl minSizeSeg recon");
    let mut five = these(&YI, "otsuRatio curvatureWeight sizeThld msKernel levelsetNumberOfIteration");
    five[0].2 = 1.4;
    let expected = [
        ("dakota_nscale.in", moat, 96, ten.clone()),
        ("dakota_nscale_dace_random.in", random, 600, NSCALE.to_vec()),
        ("dakota_nscale_ps_moat.in", moat, 96, NSCALE.to_vec()),
        ("dakota_nscale_ps_moat_prunned.in", moat, 96, ten),
        ("dakota_nscale_uq_sampling.in", lhs, 996, NSCALE.to_vec()),
        ("stampede_dakota_nscale_dace_random_prunned.in", random, 400, eight.clone()),
        ("stampede_dakota_nscale_ps_moat.in", moat, 80, NSCALE.to_vec()),
        ("stampede_dakota_nscale_vbd.in", vbd, 200, eight),
        ("yi_dace.in", random, 400, YI[..6].to_vec()),
        ("yi_ps_moat.in", moat, 80, YI.to_vec()),
        ("yi_ps_moat15.in", moat, 120, YI.to_vec()),
        ("yi_vbd.in", vbd, 50, five.clone()),
        ("yi_vbd100.in", vbd, 100, five.clone()),
        ("yi_vbd200.in", vbd, 200, five),
    ];
    for (file, (method, sampler), samples, parameters) in expected {
        let found = dakota::parse(&inputs[file]).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!((found.method, found.sampler), (Some(method), Some(sampler)), "{file}");
        assert_eq!((found.samples, found.seed), (Some(samples), Some(500)), "{file}");
        assert_eq!(reals(&found), parameters, "{file}");
        assert!(found.parameters().unwrap().iter().all(|parameter| parameter.domain.varies()));
        // One file names 10 of its declared 15 parameters.
        let note = "line 16: continuous_design = 15, but its lists have 10 entries; the lists are used";
        let noted = file == "dakota_nscale_ps_moat_prunned.in";
        assert_eq!(found.notes, if noted { vec![note] } else { vec![] }, "{file}");
    }
    // Dakota's log gives the trajectories for 80 samples of 15 parameters and 96 of 10, and the levels for 20
    // partitions.
    let trajectories = |file: &str| dakota::parse(&inputs[file]).unwrap().trajectories();
    assert_eq!(trajectories("stampede_dakota_nscale_ps_moat.in"), Some(5));
    assert_eq!(trajectories("dakota_nscale.in"), Some(9));
    assert_eq!(dakota::parse(&inputs["yi_ps_moat.in"]).unwrap().levels(), Some(22));

    let grid = dakota::parse(&inputs["dakota_nscale_grid.in"]).unwrap();
    assert_eq!((grid.method, grid.sampler), (Some(ImportedMethod::Grid), Some(ImportedSampler::Factorial)));
    assert_eq!((grid.samples, grid.seed), (None, None));
    assert_eq!(reals(&grid), NSCALE);
    let partitions: Vec<u64> =
        grid.parameters.iter().map(|parameter| parameter.partitions.unwrap()).collect();
    assert_eq!(partitions, [0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    let varying = grid.parameters().unwrap().iter().filter(|parameter| parameter.domain.varies()).count();
    assert_eq!(varying, 7);

    // The last file is no Dakota input but a list of parameters: name, lower and upper bound, and a fourth
    // column.
    let copied = &inputs["yi_parCopied.in"];
    assert_eq!(
        dakota::parse(copied).unwrap_err().to_string(),
        "line 1: \"otsuRatio\" is not a block of a Dakota input; allowed are environment, strategy, method, \
         model, variables, interface, responses"
    );
    let copied = problem::parse_file(copied).unwrap();
    let values = [0.737_646, 0.555_087, 18.9186, 200.0, 23.1598, 123.503];
    let expected: Vec<_> = YI.iter().zip(values).map(|(&(name, ..), value)| (name, value, value)).collect();
    assert_eq!(reals(&copied), expected);
    assert!(copied.parameters().unwrap().iter().all(|parameter| !parameter.domain.varies()));
}

#[test]
fn parameter_files_of_salib_are_read() {
    let Some(folder) = folder("parameter_files_of_salib_are_read", "salib") else { return };
    let read =
        |name: &str| problem::parse_file(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap();
    // π with the digits of the file.
    let pi: f64 = "3.14159265359".parse().unwrap();
    assert_eq!(reals(&read("Ishigami.txt")), [("x1", -pi, pi), ("x2", -pi, pi), ("x3", -pi, pi)]);
    let names: Vec<String> = (1..9).map(|number| format!("x{number}")).collect();
    let expected: Vec<_> = names.iter().map(|name| (name.as_str(), 0.0, 1.0)).collect();
    assert_eq!(reals(&read("Sobol_G.txt")), expected);
}

/// The sections, parsed as TOML, hold the same numbers under the same names.
fn assert_sections_read_back(imported: &Imported) {
    let text = imported.parameter_sections();
    let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let sections = read["parameters"].as_table().expect("sections");
    assert_eq!(sections.len(), imported.parameters.len());
    let number = |value: &toml::Value| {
        value.as_float().or(value.as_integer().map(|whole| whole as f64)).expect("a number")
    };
    for parameter in &imported.parameters {
        let section = sections[&parameter.name].as_table().expect("a section");
        let numbers =
            |key: &str| -> Vec<f64> { section[key].as_array().expect("a list").iter().map(number).collect() };
        match &parameter.range {
            _ if parameter.rests() => assert_eq!(number(&section["fixed"]), parameter.default()),
            ImportedRange::Set { values, .. } => assert_eq!(&numbers("values"), values),
            ImportedRange::Distributed(distribution) => {
                assert_eq!(section["distribution"].as_str(), Some(distribution.name()));
            }
            range => assert_eq!(numbers("range"), <[f64; 2]>::from(range.bounds())),
        }
        let default = section.get("default").map(number);
        assert!(parameter.rests() || default == parameter.initial);
    }
}

#[test]
fn the_authors_inputs_become_sections_of_a_study() {
    let Some(inputs) = inputs("the_authors_inputs_become_sections_of_a_study") else { return };
    let read = |file: &str| dakota::parse(&inputs[file]).unwrap();
    for file in inputs.keys().filter(|file| *file != "yi_parCopied.in") {
        assert_sections_read_back(&read(file));
    }
    let text = read("dakota_nscale_grid.in").parameter_sections();
    assert!(text.starts_with("[parameters.blue]\nfixed = 210\n\n[parameters.green]"), "{text}");
    assert!(text.contains("\n[parameters.T2]\nrange = [2.5, 7.5]\n\n"), "{text}");
}

fn all(text: &str) {
    for said in [
        dakota::parse(text).map(drop).map_err(|error| error.to_string()),
        problem::parse(text).map(drop).map_err(|error| error.to_string()),
        problem::parse_file(text).map(drop).map_err(|error| error.to_string()),
    ] {
        if let Err(said) = said {
            assert_eq!(said.lines().count(), 1, "{said:?}");
            assert!(said.len() < 2000, "{} bytes are said", said.len());
        }
    }
    if let Ok(imported) = dakota::parse(text).or(problem::parse_file(text)) {
        let _ = (imported.parameters(), imported.groups(), imported.trajectories(), imported.levels());
        assert_sections_read_back(&imported);
    }
}

const SMALL: &str = "method,\n psuade_moat samples = 96 partitions = 20 seed = 5\nvariables\n continuous_design = 2\n \
                     lower_bounds 2*0.5\n upper_bounds 1 2 descriptors 'a' \"b\"\n discrete_design_set integer = 1\n \
                     elements_per_variable 2 elements 4 8\n normal_uncertain = 1 means 1 std_deviations 2\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_imported_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn corrupt_inputs_are_imported_without_panic(mutations in mutations()) {
        all(&String::from_utf8_lossy(&mutated(SMALL.as_bytes(), &mutations)));
    }

    #[test]
    fn shuffled_input_words_are_imported_without_panic(words in prop::collection::vec(prop::sample::select(vec![
        "method", "variables", "dace", "random", "lhs", "samples", "=", "5", "0", "-1", "1e999", "nan", "3*4", "*", "0*1", "99999999999*1",
        "'a'", "\"b", "#", "\n", "\r\n", "continuous_design", "discrete_design_set", "integer", "real", "elements",
        "lower_bounds", "upper_bounds", "descriptors", "partitions", "multidim_parameter_study", "seed", ",",
    ]), 0..40)) {
        all(&words.join(" "));
    }
}
