//! Study files: results of valid files, and messages for invalid ones.

#[path = "../support/example.rs"]
mod example;
#[path = "../support/folder.rs"]
mod folder;
mod inputs;
mod mistakes;
#[path = "../support/registry.rs"]
mod registry;
mod schema;

use folder::Folder;
use pleach_workflow::{BasePoints, Distribution, Domain, Method, Parameter, ReferenceSource, Study, Value};

fn parameter<'a>(study: &'a Study, name: &str) -> &'a Parameter {
    study.workflow.parameters.iter().find(|parameter| parameter.name == name).expect("a parameter of nuclei")
}

fn integers(values: impl IntoIterator<Item = i64>) -> Domain {
    Domain::Levels { values: values.into_iter().map(Value::Integer).collect() }
}

#[test]
fn the_example_of_the_design_loads() {
    let folder = Folder::with(&["tiles/a.png"]);
    let study = folder.example(&[]).expect("an example that works");
    assert_eq!((study.name.as_str(), study.seed), ("nuclei-moat", 500));
    assert_eq!(study.method, Method::Moat { trajectories: 10, levels: 20, base: None, candidates: None });
    assert_eq!((study.metric_name(), study.metric), ("dice", 0));
    assert_eq!(study.reference, ReferenceSource::Defaults);
    assert_eq!(study.switched_off, [""; 0]);
    assert_eq!(study.workflow.stages.len(), 3);
    assert_eq!(study.workflow.parameters.len(), 15);
    assert_eq!(parameter(&study, "G1").domain, integers((5..=80).step_by(5)));
    assert_eq!(parameter(&study, "FillHoles").domain, integers([4, 8]));
    // A parameter that the study does not name keeps the workflow's domain.
    assert_eq!(parameter(&study, "B").domain, integers([210, 220, 230, 240]));
}

#[test]
fn omitted_keys_have_defaults() {
    let folder = Folder::with(&["tiles/a.png"]);
    let edits = [
        ("seed = 500\n", ""),
        ("normalize = true\n", ""),
        ("reference = \"defaults\"\n", ""),
        ("sampler = \"morris\"\n", ""),
        ("trajectories = 10\n", ""),
        ("levels = 20\n", ""),
        ("[parameters.G1]\nrange = [5, 80]\nstep = 5\n[parameters.FillHoles]\nvalues = [4, 8]\n", ""),
    ];
    let study = folder.example(&edits).expect("a short study");
    assert_eq!(study.seed, 0);
    assert_eq!(study.method, Method::Moat { trajectories: 10, levels: 20, base: None, candidates: None });
    assert_eq!(study.reference, ReferenceSource::Defaults);
    assert_eq!(study.workflow.stages.len(), 3);
}

#[test]
fn parameters_take_the_domain_the_study_gives_them() {
    let folder = Folder::with(&["tiles/a.png"]);
    let domain = |keys: &str| {
        let study = folder.example(&[("range = [5, 80]\nstep = 5", keys)]).expect("a domain");
        let g1 = parameter(&study, "G1");
        (g1.domain.clone(), g1.default)
    };
    // The workflow's step applies only to the workflow's range.
    assert_eq!(domain("range = [5, 9]"), (integers(5..=9), Value::Integer(80)));
    assert_eq!(domain("values = [20, 10]"), (integers([20, 10]), Value::Integer(80)));
    assert_eq!(domain("fixed = 60.0"), (Domain::Fixed { value: Value::Integer(60) }, Value::Integer(60)));
    assert_eq!(domain("default = 70"), (integers((5..=80).step_by(5)), Value::Integer(70)));
    assert_eq!(domain("fixed = 60\ndefault = 60").1, Value::Integer(60));
    assert_eq!(domain("").1, Value::Integer(80));
    let study =
        folder.example(&[("[parameters.G1]\nrange = [5, 80]\nstep = 5", "[parameters.T1]\nrange = [2, 8]")]);
    let real = study.expect("a domain of reals");
    assert_eq!(parameter(&real, "T1").domain, Domain::Continuous { low: 2.0, high: 8.0 });
}

#[test]
fn normalization_can_be_left_out() {
    let folder = Folder::with(&["tiles/a.png"]);
    let study = folder.example(&[("normalize = true", "normalize = false")]).expect("a shorter workflow");
    assert_eq!(study.switched_off, ["normalize"]);
    let stages: Vec<&str> = study.workflow.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(stages, ["segmentation", "comparison"]);
}

#[test]
fn a_metric_brings_the_stages_it_needs() {
    let folder = Folder::with(&["tiles/a.png"]);
    for (name, place) in [("object-dice", 0), ("nuclei", 4)] {
        let study =
            folder.example(&[("metric = \"dice\"", &format!("metric = \"{name}\""))]).expect("a metric");
        assert_eq!((study.metric_name(), study.metric), (name, place));
        let stages: Vec<&str> = study.workflow.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(stages, ["normalization", "segmentation", "object-comparison"]);
    }
}

#[test]
fn a_workflow_may_be_a_file_beside_the_study() {
    let folder = Folder::with(&["tiles/a.png"]);
    for name in [
        "workflow.json",
        "normalization.json",
        "segmentation.json",
        "comparison.json",
        "object-comparison.json",
    ] {
        let text = std::fs::read(registry::shipped().with_file_name(name)).expect("a shipped descriptor");
        folder.write(&format!("mine/{name}"), text);
    }
    let edit = ("workflow = \"nuclei\"", "workflow = \"mine/workflow.json\"");
    assert_eq!(folder.example(&[edit]).expect("a workflow of one's own").workflow.name, "nuclei");
    // A mistake in the workflow is reported for its file, not for the study.
    folder.write("mine/comparison.json", "{}");
    let message = folder.example(&[edit]).expect_err("no stage").to_string();
    assert_eq!(folder.shown(&message), "DIR/mine/comparison.json: missing key `stage` at line 1 column 2");
}

#[test]
fn a_parameter_may_have_a_distribution() {
    let folder = Folder::with(&["tiles/a.png"]);
    let domain = |fields: &str| {
        let section = format!("[parameters.T1]\n{fields}\n[parameters.G1]");
        let study = folder.example(&[("[parameters.G1]", &section)]).expect("a distribution");
        let t1 = study.workflow.parameters.iter().find(|parameter| parameter.name == "T1");
        t1.expect("a parameter of the example").domain.clone()
    };
    let of = |distribution| Domain::Distributed { distribution };
    assert_eq!(
        domain("distribution = \"normal\"\nmean = 5\nstd = 0.5"),
        of(Distribution::Normal { mean: 5.0, deviation: 0.5 })
    );
    assert_eq!(
        domain("distribution = \"truncated-normal\"\nmean = 5\nstd = 2\nrange = [2.5, 7.5]"),
        of(Distribution::TruncatedNormal { mean: 5.0, deviation: 2.0, low: 2.5, high: 7.5 })
    );
    assert_eq!(
        domain("distribution = \"log-uniform\"\nrange = [1, 10]"),
        of(Distribution::LogUniform { low: 1.0, high: 10.0 })
    );
    assert_eq!(
        domain("distribution = \"triangular\"\nrange = [1, 10]\nmode = 2"),
        of(Distribution::Triangular { low: 1.0, mode: 2.0, high: 10.0 })
    );
    assert_eq!(
        domain("distribution = \"uniform\"\nrange = [1, 10]"),
        Domain::Continuous { low: 1.0, high: 10.0 }
    );
}

#[test]
fn vbd_section_sets_samples_and_base_points() {
    let folder = Folder::with(&["tiles/a.png"]);
    let moat = "sampler = \"morris\"\nkind = \"moat\"\ntrajectories = 10\nlevels = 20";
    let method = |fields: &str| {
        let vbd = format!("kind = \"vbd\"\n{fields}");
        folder.example(&[(moat, &vbd)]).expect("a decomposition").method
    };
    assert_eq!(
        method("samples = 64"),
        Method::Vbd { samples: 64, second_order: false, base: BasePoints::Sobol }
    );
    assert_eq!(
        method("sampler = \"saltelli\"\nsamples = 1\nsecond_order = true\nbase = \"mc\""),
        Method::Vbd { samples: 1, second_order: true, base: BasePoints::MonteCarlo }
    );
    for base in BasePoints::ALL {
        let named = method(&format!("samples = 8\nbase = \"{}\"", base.name()));
        assert_eq!(named, Method::Vbd { samples: 8, second_order: false, base });
    }
    assert_eq!(method("samples = 64\nsecond_order = false\nbase = \"sobol\""), method("samples = 64"));
}

#[test]
fn any_parameter_sets_may_come_from_a_table() {
    let folder = Folder::with(&["tiles/a.png"]);
    let method = "sampler = \"morris\"\nkind = \"moat\"\ntrajectories = 10\nlevels = 20";
    let study =
        folder.example(&[(method, "kind = \"table\"\nfile = \"sets/samples.csv\"")]).expect("a table");
    assert_eq!(study.method, Method::Table { file: folder.path().join("sets/samples.csv") });
}
