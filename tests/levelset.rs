//! The built-in workflow `levelset`, and both segmentations in one study, on small generated tiles and on parts of annotated ones.

#[path = "support/data.rs"]
mod data;
#[path = "support/pleach.rs"]
mod pleach;
#[path = "support/results.rs"]
mod results;
#[path = "support/runs.rs"]
mod runs;
#[path = "support/study.rs"]
mod study;

use data::data;
use pleach::pleach;
use results::{json, text};
use runs::{number, responses, run};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use study::Study;

/// Tasks of a run: normalization, l1 to l6, comparison.
const TASKS: u64 = 8;

/// A study of `levelset` on two tiles, compared with their labels.
fn levelset(method: &str) -> Study {
    let study = Study::of_tissue(96);
    study.edit(&[
        ("workflow = \"nuclei\"", "workflow = \"levelset\""),
        ("reference = \"defaults\"", "reference = \"tiles\""),
        ("kind = \"moat\"\ntrajectories = 2\nlevels = 20", method),
    ]);
    study
}

/// Returns the columns of a table, by name.
fn columns(table: &str) -> impl Fn(&str) -> Vec<String> + use<> {
    let rows: Vec<Vec<String>> =
        table.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    move |name| {
        let column = rows[0].iter().position(|column| column == name);
        let column = column.unwrap_or_else(|| panic!("{name} in {:?}", rows[0]));
        rows[1..].iter().map(|row| row[column].clone()).collect()
    }
}

/// Parameters that tasks read, in the order of the tasks, with their defaults.
const READ: [(&str, &str); 6] = [
    ("otsuRatio", "1"),
    ("curvatureWeight", "0.8"),
    ("iterations", "100"),
    ("sizeThld", "3"),
    ("sizeUpperThld", "200"),
    ("msKernel", "20"),
];

/// Returns the number of distinct values of the first parameters of [`READ`], with the evaluation of the defaults.
fn distinct(samples: &str, first: usize) -> u64 {
    let column = columns(samples);
    let values: Vec<Vec<String>> = READ[..first].iter().map(|(name, _)| column(name)).collect();
    let sets = (0..values[0].len()).map(|row| values.iter().map(|column| column[row].clone()).collect());
    let defaults = READ[..first].iter().map(|(_, value)| (*value).to_owned()).collect();
    sets.chain([defaults]).collect::<HashSet<Vec<String>>>().len() as u64
}

/// Returns how often an operation ran.
fn operation_runs(record: &Value, name: &str) -> u64 {
    let operations = record["operations"].as_array().expect("operations");
    operations.iter().find(|operation| operation["name"] == name).map_or(0, |found| number(found, "/runs"))
}

#[test]
fn every_strategy_writes_equal_responses_and_dummy_runs_no_task() {
    let study = levelset("kind = \"moat\"\ntrajectories = 3\nlevels = 4");
    let none = run(&study, "none", &["--strategy", "none"]);
    let expected = responses(&study, "none");
    // The evaluation of the defaults is one more.
    let (tiles, runs) = (2, number(&none, "/runs") + 2);
    assert_eq!(number(&none, "/tasks_executed"), runs * TASKS);
    let samples = text(&study.path("none/samples.csv"));
    let dummies: HashSet<String> = columns(&samples)("dummy").into_iter().collect();
    assert!(dummies.len() > 1, "{dummies:?}");
    // Normalization runs once. Sets that differ in `dummy` only are one instance of the two other stages.
    let sets = distinct(&samples, READ.len());
    assert!(tiles * sets < runs, "some sets differ in dummy only");
    let stage_tasks = tiles * (1 + 7 * sets);
    for (strategy, reuse) in [
        ("stage", None),
        ("naive", Some("tree")),
        ("rtma", Some("tree")),
        ("trtma", Some("dataflow")),
        ("ranges", Some("dataflow")),
        ("ranges", Some("value")),
    ] {
        let out = format!("{strategy}-{}", reuse.unwrap_or("none"));
        let scope: Vec<&str> = reuse.iter().flat_map(|reuse| ["--reuse", *reuse]).collect();
        let record = run(&study, &out, &[&["--strategy", strategy, "--workers", "2"], &scope[..]].concat());
        assert_eq!(responses(&study, &out), expected, "{out}");
        let executed = number(&record, "/tasks_executed");
        println!("{out}: {executed} tasks of {}", runs * TASKS);
        match reuse {
            None => assert_eq!(executed, stage_tasks),
            Some(_) => assert!(executed < stage_tasks, "{out}: {executed}"),
        }
        if reuse == Some("dataflow") {
            // The most expensive task runs once for each set of the parameters up to it.
            assert_eq!(operation_runs(&record, "levelset.contour"), tiles * distinct(&samples, 3), "{out}");
        }
    }
    // Without a task, the parameter has no effect at all.
    let indices = text(&study.path("ranges-value/indices.csv"));
    let column = columns(&indices);
    let place = column("parameter").iter().position(|name| name == "dummy").expect("dummy is analyzed");
    assert_eq!(column("mu_star")[place].parse::<f64>().expect("a number"), 0.0, "{indices}");
}

/// Parts of annotated tiles instead of the generated ones: squares from this column and row, with this side.
fn annotated(test: &str, method: &str, tiles: &[&str], [x, y, side]: [u32; 3]) -> Option<Study> {
    let folder = data(test)?.join("annotated/gbm40");
    let study = levelset(method);
    fs::remove_dir_all(study.path("tiles")).expect("removed");
    fs::create_dir(study.path("tiles")).expect("a folder");
    for tile in tiles {
        for name in [format!("gbm40_{tile}.png"), format!("gbm40_{tile}_labels.png")] {
            let image = image::open(folder.join(&name)).expect("an image");
            image.crop_imm(x, y, side, side).save(study.path("tiles").join(&name)).expect("written");
        }
    }
    Some(study)
}

/// Parts of 96 px of two annotated tiles.
const SMALL: (&[&str], [u32; 3]) = (&["03", "08"], [200, 150, 96]);

fn is_long() -> bool {
    std::env::var_os("PLEACH_LONG_TESTS").is_some()
}

/// Alone, `otsuRatio` moves the prototype's Dice of whole tiles from 0.879 to 0.488, and `sizeThld` by 0.005 within its range. In
/// sets that differ in all parameters and on parts of tiles it may move more: a tenth of the former is allowed.
const MAX_SIZE_EFFECT: f64 = (0.879 - 0.488) / 10.0;

/// Four parts of 256 px and more trajectories with `PLEACH_LONG_TESTS`, else the order of the parameters only.
#[test]
fn otsu_ratio_ranks_first_and_min_size_is_near_dummy() {
    let test = "otsu_ratio_ranks_first_and_min_size_is_near_dummy";
    let ((tiles, part), trajectories) =
        if is_long() { ((&["03", "04", "08", "14"][..], [128, 128, 256]), 8) } else { (SMALL, 2) };
    let method = format!("kind = \"moat\"\ntrajectories = {trajectories}\nlevels = 4");
    let Some(study) = annotated(test, &method, tiles, part) else { return };
    run(&study, "moat", &[]);
    let indices = text(&study.path("moat/indices.csv"));
    let column = columns(&indices);
    let effects = column("mu_star").into_iter().map(|effect| effect.parse::<f64>().expect("a number"));
    let effects: Vec<(String, f64)> = column("parameter").into_iter().zip(effects).collect();
    println!("{effects:?}");
    let effect = |name: &str| effects.iter().find(|(other, _)| other == name).expect("a row").1;
    for (name, other) in effects.iter().filter(|(name, _)| name != "otsuRatio") {
        assert!(effect("otsuRatio") > *other, "{name}: {effects:?}");
    }
    assert!(effect("otsuRatio") > MAX_SIZE_EFFECT && effect("curvatureWeight") > 0.0, "{effects:?}");
    // No task reads `dummy`. The effect of `sizeThld` is small and not 0.
    assert_eq!(effect("dummy"), 0.0, "{effects:?}");
    assert!(effect("sizeThld") > 0.0 && effect("sizeThld") < MAX_SIZE_EFFECT, "{effects:?}");
}

/// All strategies with `PLEACH_LONG_TESTS`, else the one that shares most.
#[test]
fn reuse_on_annotated_tissue_runs_fewer_tasks_with_equal_responses() {
    let test = "reuse_on_annotated_tissue_runs_fewer_tasks_with_equal_responses";
    let (tiles, part) = SMALL;
    let Some(study) = annotated(test, "kind = \"moat\"\ntrajectories = 2\nlevels = 4", tiles, part) else {
        return;
    };
    let all = run(&study, "none", &["--strategy", "none"]);
    let expected = responses(&study, "none");
    assert!(columns(&expected)("dice").iter().collect::<HashSet<_>>().len() > 4, "{expected}");
    let executed = |strategy: &str, reuse: &str| {
        let out = format!("{strategy}-{reuse}");
        let options = ["--strategy", strategy, "--workers", "1", "--reuse", reuse];
        let record = run(&study, &out, if reuse.is_empty() { &options[..4] } else { &options[..] });
        assert_eq!(responses(&study, &out), expected, "{out}");
        let tasks = number(&record, "/tasks_executed");
        println!("{out}: {tasks} tasks of {}", number(&all, "/tasks_executed"));
        tasks
    };
    let samples = text(&study.path("none/samples.csv"));
    let stage = executed("stage", "");
    assert_eq!(stage, 2 * (1 + 7 * distinct(&samples, READ.len())));
    // Normalization and l1 run once a tile, l2 to l4 for each set of the parameters up to them, l5, l6 and the comparison for each
    // set.
    let sets: u64 = [1, 3, 4, 6, 6, 6].into_iter().map(|first| distinct(&samples, first)).sum();
    let strategies: &[&str] =
        if is_long() { &["naive", "sca", "rtma", "trtma", "ranges", "hrb"] } else { &["ranges"] };
    for strategy in strategies {
        let [tree, dataflow, value] = ["tree", "dataflow", "value"].map(|reuse| executed(strategy, reuse));
        assert!(2 * (2 + sets) <= dataflow, "{strategy}: {dataflow}");
        assert!(
            value <= dataflow && dataflow <= tree && tree < stage,
            "{strategy}: {value} {dataflow} {tree}"
        );
    }
}

#[test]
fn sets_that_differ_in_an_unread_parameter_are_one_computation() {
    let study = levelset("kind = \"table\"\nfile = \"sets.csv\"");
    let executed = |sets: &str, out: &str| {
        study.write("sets.csv", sets);
        number(&run(&study, out, &["--strategy", "stage"]), "/tasks_executed")
    };
    let one = executed("otsuRatio,dummy\n0.8,0.5\n", "one");
    assert_eq!(executed("otsuRatio,dummy\n0.8,0.1\n0.8,0.5\n0.8,0.9\n", "three"), one);
    let shown = pleach(study.folder(), &["workflow", "show", "levelset"]).done();
    assert!(shown.lines().any(|line| line.starts_with("dummy ")), "{shown}");
}

/// The example, its paths to the repository made absolute.
fn both(study: &Study) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join("examples/two-segmentations")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let content = fs::read_to_string(&path).expect("a file");
        study.write(name, content.replace("../../crates", &root.join("crates").display().to_string()));
    }
}

#[test]
fn two_segmentations_are_compared_with_one_reference() {
    let study = Study::of_tissue(96);
    both(&study);
    let text_of = |name: &str| text(&study.path(name));
    let fewer = text_of("study.toml").replace("trajectories = 4", "trajectories = 2");
    study.write("study.toml", fewer);
    let record = run(&study, "both", &[]);
    let column = columns(&responses(&study, "both"));
    let (nuclei, level_sets) = (column("nuclei: dice"), column("levelset: dice"));
    assert!(nuclei != level_sets && number(&record, "/failed") == 0);
    // A parameter of one segmentation does not move the other.
    let indices = text_of("both/indices.csv");
    let indices = columns(&indices);
    let rows: Vec<(String, String, String)> = indices("response")
        .into_iter()
        .zip(indices("parameter"))
        .zip(indices("mu_star"))
        .map(|((response, parameter), index)| (response, parameter, index))
        .collect();
    let index = |response: &str, parameter: &str| -> f64 {
        let row = rows.iter().find(|row| row.0 == response && row.1 == parameter).expect("a row");
        row.2.parse().expect("a number")
    };
    assert_eq!((index("levelset: dice", "G1"), index("nuclei: dice", "otsuRatio")), (0.0, 0.0));
    assert!(index("levelset: dice", "otsuRatio") > 0.0 && index("nuclei: dice", "G1") > 0.0);
    let report = text_of("both/report.html");
    assert!(report.contains("nuclei: Dice") && report.contains("levelset: Dice"));
    // Each application alone has the same responses.
    let table = |workflow: &str, metric: &str| {
        format!(
            "[study]\nname = \"one\"\nworkflow = \"{workflow}\"\nseed = 1\n[input]\ntiles = [\"tiles/*.png\"]\nreference = \
             \"tiles\"\n[method]\nkind = \"table\"\nfile = \"sets.csv\"\n[response]\nmetric = {metric}\n"
        )
    };
    let dice = |workflow: &str, metric: &str, sets: &str, name: &str| {
        study.write("sets.csv", sets);
        study.write("study.toml", table(workflow, metric));
        let out = format!("alone-{workflow}-{}", &name[..3]);
        run(&study, &out, &[]);
        columns(&responses(&study, &out))(name)
    };
    let together = "[\"nuclei: dice\", \"levelset: dice\"]";
    let sets = "otsuRatio,G1\n0.8,60\n";
    assert_eq!(
        dice("workflow.json", together, sets, "nuclei: dice"),
        dice("nuclei", "\"dice\"", "G1\n60\n", "dice")
    );
    let alone = dice("levelset", "\"dice\"", "otsuRatio\n0.8\n", "dice");
    assert_eq!(dice("workflow.json", together, sets, "levelset: dice"), alone);
}

/// The example's segmentations are those of the program, apart from names.
#[test]
fn example_has_the_tasks_of_the_built_in_workflows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["nuclei", "levelset"] {
        let tasks = |path: String| -> Value {
            let mut document = json(&root.join(path));
            document["tasks"].take()
        };
        let built_in = tasks(format!("crates/pathology/descriptors/{name}/segmentation.json"));
        let example = tasks(format!("examples/two-segmentations/{name}-segmentation.json"));
        let renamed = example.to_string().replace(&format!("{name}_mask"), "mask");
        assert_eq!(renamed, built_in.to_string());
    }
}
