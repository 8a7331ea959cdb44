//! Input files of Dakota and SALib users.

use crate::Outside;
use crate::data::data;
use crate::results::text;

/// An input of the authors, its method and number of varying parameters, and the evaluations of its design.
const INPUTS: [(&str, &str, usize); 15] = [
    ("dakota_nscale.in", "moat of 10", 99),
    ("dakota_nscale_dace_random.in", "correlation of 15", 600),
    ("dakota_nscale_grid.in", "correlation of 7", 128),
    ("dakota_nscale_ps_moat.in", "moat of 15", 96),
    ("dakota_nscale_ps_moat_prunned.in", "moat of 10", 99),
    ("dakota_nscale_uq_sampling.in", "correlation of 15", 996),
    ("stampede_dakota_nscale_dace_random_prunned.in", "correlation of 8", 400),
    ("stampede_dakota_nscale_ps_moat.in", "moat of 15", 80),
    ("stampede_dakota_nscale_vbd.in", "vbd of 8", 2000),
    ("yi_dace.in", "correlation of 6", 400),
    ("yi_ps_moat.in", "moat of 7", 80),
    ("yi_ps_moat15.in", "moat of 7", 120),
    ("yi_vbd.in", "vbd of 5", 350),
    ("yi_vbd100.in", "vbd of 5", 700),
    ("yi_vbd200.in", "vbd of 5", 1400),
];

#[test]
fn the_authors_inputs_become_studies() {
    let Some(data) = data("the_authors_inputs_become_studies") else { return };
    let outside = Outside::ishigami();
    for (input, what, rows) in INPUTS {
        let content = text(&data.join("sensitivity/rtf_dakota").join(input));
        outside.write("study.in", content);
        outside.done("workflow import study.in --out study.toml");
        let printed = outside.done("workflow import study.in");
        assert_eq!(printed.trim_end(), outside.read("study.toml").trim_end(), "{input}");
        let (kind, varying) = what.split_once(" of ").unwrap();
        let said = outside.done("sample study.toml --out x.csv");
        let expected =
            format!("x.csv: {rows} evaluations of {varying} varying parameters for method {kind}, seed ");
        assert!(said.starts_with(&expected), "{input}: {said}");
        // The input file itself gives the same sample as the study.
        outside.done("sample study.in --out same.csv");
        assert_eq!(outside.read("x.csv"), outside.read("same.csv"), "{input}");
    }
    let no_input = text(&data.join("sensitivity/rtf_dakota/yi_parCopied.in"));
    outside.write("study.in", no_input);
    outside.refused(
        "workflow import study.in",
        "study.in: line 1: \"otsuRatio\" is not a block of a Dakota input;",
    );
}

/// The authors' own run of 457 evaluations has 28 complete trajectories.
#[test]
fn the_authors_run_has_indices() {
    let Some(data) = data("the_authors_run_has_indices") else { return };
    let outside = Outside::ishigami();
    let input = text(&data.join("sensitivity/rtf_dakota/stampede_dakota_nscale_ps_moat.in"));
    // The run uses longer names for three parameters.
    let names = [
        ("'fillHoles'", "'fillHolesConnectivity'"),
        ("'recon'", "'reconConnectivity'"),
        ("'water'", "'watershedConnectivity'"),
    ];
    let input = names.iter().fold(input, |text, (short, long)| text.replace(short, long));
    outside.write("moat.in", input);
    let log = text(&data.join("sensitivity/rtf_moat/moat_600_evaluations.csv"));
    outside.write("log.csv", log);
    outside.done("workflow import moat.in --out moat.toml");
    let found = outside.json("analyze moat.toml --samples log.csv --out found");
    let indices = found.pointer("/responses/0/indices").unwrap();
    assert_eq!((&indices["trajectories_used"], &indices["trajectories_dropped"]), (&28.into(), &1.into()));
    let parameters = indices["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), 15);
    for parameter in parameters {
        for index in ["mu", "mu_star", "sigma", "mu_star_conf", "effect"] {
            assert!(parameter[index].as_f64().is_some_and(f64::is_finite), "{parameter}");
        }
    }
    let printed = outside.done("analyze moat.toml --samples log.csv");
    println!("{printed}");
    let ranked: Vec<&str> =
        printed.lines().skip(2).take(5).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ranked, ["G2", "G1", "reconConnectivity", "minSize", "minSizeSeg"]);
}

/// SALib's files, unchanged: parameters, Morris samples and responses, each as text without column names.
#[test]
fn files_of_salib_are_read() {
    let Some(data) = data("files_of_salib_are_read") else { return };
    let outside = Outside::ishigami();
    for name in ["Ishigami.txt", "ishigami_morris_model_input.txt", "ishigami_morris_model_output.txt"] {
        outside.write(name, text(&data.join("sensitivity/salib").join(name)));
    }
    let found = outside.json(
        "analyze Ishigami.txt --method morris --levels 10 --samples ishigami_morris_model_input.txt --responses \
         ishigami_morris_model_output.txt",
    );
    let expected: serde_json::Value =
        serde_json::from_str(&text(&data.join("sensitivity/salib/ishigami_morris_expected.json"))).unwrap();
    for parameter in 0..3 {
        for index in ["mu", "mu_star", "sigma"] {
            let (found, expected) =
                (crate::number(&found, parameter, index), expected[index][parameter].as_f64().unwrap());
            // The files print bounds with eleven digits.
            assert!(
                (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
                "{index}: {found}, {expected}"
            );
        }
    }
}

#[test]
fn problems_of_salib_become_studies() {
    let outside = Outside::ishigami();
    outside.done("workflow import problem.json --out study.toml");
    outside.done("sample study.toml --method vbd --samples 4 --out one.csv");
    outside.done("sample problem.json --method vbd --samples 4 --out other.csv");
    assert_eq!(outside.read("one.csv"), outside.read("other.csv"));
}
