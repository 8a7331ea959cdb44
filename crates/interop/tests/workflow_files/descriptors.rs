//! Stage descriptors of the thesis.

use super::{Folder, json, registry, texts};
use pleach_interop::workflow_files::{WorkflowMap, import_workflow};
use pleach_study::builtin;
use pleach_workflow::{Stage, TaskInput, stage_file};
use serde_json::json;

/// The segmentation as the framework describes it: tasks, arguments and regions of its descriptor `segmentation_desc`.
pub(crate) fn segmentation() -> String {
    let dr = |name: &str, io: &str| json!({ "name": name, "type": "dr", "io": io });
    let number = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let int = |name: &str| number(name, "int");
    let mat = |name: &str, io: &str| json!({ "name": name, "type": "mat", "io": io });
    let task = |number: usize, args: Vec<serde_json::Value>, inner: Vec<serde_json::Value>| {
        let call = format!("::nscale::HistologicalEntities::segmentNucleiStg{number}");
        json!({ "call": call, "args": args, "interstage_args": inner })
    };
    let bgr = |io: &str| json!({ "name": "bgr", "type": "mat_vect", "io": io });
    let tasks = [
        task(
            1,
            vec![
                dr("normalized_rt", "input"),
                number("blue", "uchar"),
                number("green", "uchar"),
                number("red", "uchar"),
                number("T1", "double"),
                number("T2", "double"),
            ],
            vec![bgr("output"), mat("rbc", "output")],
        ),
        task(
            2,
            vec![int("reconConnectivity")],
            vec![
                bgr("input"),
                mat("rbc", "forward"),
                mat("rc", "output"),
                mat("rc_recon", "output"),
                mat("rc_open", "output"),
            ],
        ),
        task(
            3,
            vec![int("fillHolesConnectivity"), int("G1")],
            vec![
                mat("rc", "input"),
                mat("rc_recon", "input"),
                mat("rc_open", "input"),
                mat("rbc", "forward"),
                mat("bw1", "output"),
                mat("diffIm", "output"),
            ],
        ),
        task(
            4,
            vec![int("minSize"), int("maxSize")],
            vec![
                mat("bw1", "input"),
                mat("rbc", "forward"),
                mat("diffIm", "forward"),
                mat("bw1_t", "output"),
            ],
        ),
        task(
            5,
            vec![int("G2")],
            vec![
                mat("diffIm", "input"),
                mat("bw1_t", "input"),
                mat("rbc", "input"),
                mat("seg_open", "output"),
            ],
        ),
        task(
            6,
            vec![dr("normalized_rt", "input"), int("minSizePl"), int("watershedConnectivity")],
            vec![mat("seg_open", "input"), mat("seg_nonoverlap", "output")],
        ),
        task(
            7,
            vec![
                dr("segmented_rt", "output"),
                int("minSizeSeg"),
                int("maxSizeSeg"),
                int("fillHolesConnectivity"),
            ],
            vec![mat("seg_nonoverlap", "input")],
        ),
    ];
    let regions = [dr("normalized_rt", "input"), dr("segmented_rt", "output")];
    json!({ "name": "Segmentation", "includes": "#include \"x.h\"", "dr_args": regions, "tasks": tasks })
        .to_string()
}

/// Operations of `nuclei` for the calls of the descriptor, with other names of arguments and regions.
pub(crate) const CALLS: &str = r#"
    "segmentNucleiStg1": { "operation": "nuclei.background", "arguments": { "blue": "B", "green": "G", "red": "R" },
                           "writes": ["rbc", "background"] },
    "segmentNucleiStg2": { "operation": "nuclei.reconstruct", "arguments": { "reconConnectivity": "MorphRecon" },
                           "reads": ["normalized_rt"], "writes": ["rc", "rc_recon"] },
    "segmentNucleiStg3": { "operation": "nuclei.candidates", "arguments": { "fillHolesConnectivity": "FillHoles" },
                           "reads": ["rc", "rc_recon"], "writes": ["diffIm", "bw1"] },
    "segmentNucleiStg4": "nuclei.candidate-area",
    "segmentNucleiStg5": { "operation": "nuclei.nuclei", "reads": ["diffIm", "bw1_t", "rbc", "background"] },
    "segmentNucleiStg6": { "operation": "nuclei.separate", "arguments": { "watershedConnectivity": "Watershed" },
                           "reads": ["seg_open", "normalized_rt"] },
    "segmentNucleiStg7": { "operation": "nuclei.final-area", "arguments": { "fillHolesConnectivity": "FillHoles" } }"#;

/// Values of the parameters, for a descriptor alone.
const VALUES: &str = r#"
    "blue": { "default": 220 }, "green": { "default": 220 }, "red": { "default": 220 },
    "T1": { "default": 5, "range": [2.5, 7.5], "step": 0.5 }, "T2": { "default": 4, "range": [2.5, 7.5], "step": 0.5 },
    "reconConnectivity": { "default": 8, "values": [4, 8] }, "fillHolesConnectivity": { "default": 4, "values": [4, 8] },
    "G1": { "default": 80, "range": [5, 80], "step": 5 }, "minSize": { "fixed": 11 }, "maxSize": { "fixed": 1000 },
    "G2": { "default": 45, "range": [2, 40], "step": 2 }, "minSizePl": { "fixed": 30 },
    "watershedConnectivity": { "fixed": 8 }, "minSizeSeg": { "fixed": 21 }, "maxSizeSeg": { "fixed": 1000 }"#;

/// Returns the tasks that each task reads, by number.
fn dependencies(stage: &Stage) -> Vec<Vec<usize>> {
    let of_task = |read: &TaskInput| match *read {
        TaskInput::Task { task, .. } => Some(task),
        TaskInput::StageInput(_) => None,
    };
    let tasks = stage.tasks.iter().map(|task| {
        let mut before: Vec<usize> = task.reads.iter().filter_map(of_task).collect();
        before.sort_unstable();
        before.dedup();
        before
    });
    tasks.collect()
}

#[test]
fn segmentation_descriptor_has_the_dependencies_of_nuclei() {
    let folder = Folder::new();
    let file = folder.write("segmentation_desc", &segmentation());
    let map = format!("{{ \"calls\": {{ {CALLS} }}, \"parameters\": {{ {VALUES} }} }}");
    let imported = folder.import(&file, &map).expect("imported");
    assert_eq!(imported.summary, "stage Segmentation: 7 tasks, 15 parameters");
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let stage = stage_file(&folder.path("out/segmentation.json"), &registry()).expect("a valid stage");
    let nuclei = builtin::workflow("nuclei", &registry()).expect("built in").expect("valid");
    let own = nuclei.stages.iter().find(|stage| stage.name == "segmentation").expect("a stage of nuclei");
    assert_eq!(dependencies(&stage), dependencies(own));
    let operations =
        |stage: &Stage| stage.tasks.iter().map(|task| task.operation.clone()).collect::<Vec<_>>();
    assert_eq!(operations(&stage), operations(own));
    // One argument in two tasks is one parameter.
    let json = json(&imported, "segmentation.json");
    let again = json!({ "name": "fillHolesConnectivity", "argument": "FillHoles" });
    assert_eq!(json["tasks"][6]["parameters"][2], again);
    assert_eq!(json["tasks"][2]["parameters"][0]["values"], json!([4, 8]));
}

#[test]
fn forwarded_regions_are_read_from_their_writers() {
    let folder = Folder::new();
    let file = folder.write("segmentation_desc", &segmentation());
    let imported = folder.import(&file, "{}").expect("imported");
    let stage = json(&imported, "segmentation.json");
    let ends = |task: usize, key: &str| texts(&stage["tasks"][task][key]).join(" ");
    assert_eq!((ends(0, "reads"), ends(0, "writes")), ("normalized_rt".into(), "bgr rbc".into()));
    assert_eq!((ends(1, "reads"), ends(1, "writes")), ("bgr".into(), "rc rc_recon rc_open".into()));
    assert_eq!((ends(3, "reads"), ends(3, "writes")), ("bw1".into(), "bw1_t".into()));
    assert_eq!((ends(4, "reads"), ends(4, "writes")), ("diffIm bw1_t rbc".into(), "seg_open".into()));
    assert_eq!(stage["tasks"][0]["operation"], "nscale.HistologicalEntities.segmentNucleiStg1");
    assert_eq!(
        stage["tasks"][0]["parameters"][0],
        json!({ "name": "blue", "type": "integer", "range": [0, 255] })
    );
    let note = "without values: G1, G2, T1, T2, blue, fillHolesConnectivity, green, maxSize, maxSizeSeg, minSize, \
                minSizePl, minSizeSeg, reconConnectivity, red, watershedConnectivity; give \"default\" and \"range\" in \
                the file or --map";
    assert_eq!(imported.notes.last().map(String::as_str), Some(note));
    // The thesis spells the key in another way.
    let thesis = folder
        .write("thesis/segmentation_desc", &segmentation().replace("interstage_args", "intertask_args"));
    assert_eq!(folder.import(&thesis, "{}").expect("imported").files, imported.files);
}

#[test]
fn call_without_tasks_is_a_stage_of_one() {
    let folder = Folder::new();
    let text = r#"{ "name": "NormalizationComp", "call": "normalized_rt = ::nscale::Normalization::normalization(input_img, target_mean)",
        "args": [{ "name": "input_img", "type": "dr", "io": "input" }, { "name": "normalized_rt", "type": "dr", "io": "output" },
                 { "name": "target_mean", "type": "float_array" }] }"#;
    let file = folder.write("normalization_desc", text);
    let imported = folder.import(&file, "{}").expect("imported");
    let stage = json(&imported, "normalizationcomp.json");
    assert_eq!(stage["tasks"][0]["task"], "normalization");
    assert_eq!(stage["tasks"][0]["operation"], "nscale.Normalization.normalization");
    let names: Vec<_> = (0..3).map(|place| stage["tasks"][0]["parameters"][place]["name"].clone()).collect();
    assert_eq!(names, ["target_mean.0", "target_mean.1", "target_mean.2"]);
    assert_eq!(stage["tasks"][0]["parameters"][0]["argument"], "target_mean_0");
    assert_eq!(imported.notes[0], "target_mean: 3 numbers assumed; the file has no length");
    // A map may drop an array.
    let map = r#"{ "calls": { "normalization": { "operation": "nuclei.normalize", "arguments": { "target_mean": null } } } }"#;
    folder.import(&file, map).expect("imported");
    stage_file(&folder.path("out/normalizationcomp.json"), &registry()).expect("a valid stage");
}

#[test]
fn invalid_descriptors_are_refused_with_their_field() {
    let folder = Folder::new();
    let refused = |text: &str, map: &str, message: &str| {
        let file = folder.write("desc", text);
        assert_eq!(folder.import(&file, map).expect_err("refused"), message);
    };
    let task = |args: &str, inner: &str| {
        format!(
            r#"{{ "name": "S", "tasks": [{{ "call": "f", "args": [{args}], "interstage_args": [{inner}] }}] }}"#
        )
    };
    refused(
        &task(r#"{ "name": "a", "type": "long" }"#, ""),
        "{}",
        "DIR/desc: tasks[0].args[0].type: unknown variant `long`, expected one of `dr`, `uchar`, `int`, `float`, `double`, \
         `float_array` at line 1 column 78",
    );
    refused(
        &task(r#"{ "name": "a", "type": "dr" }"#, ""),
        "{}",
        "DIR/desc: tasks[0].args[0]: a region needs \"io\": \"input\" or \"output\"",
    );
    refused(
        &task(
            r#"{ "name": "o", "type": "dr", "io": "output" }"#,
            r#"{ "name": "m", "type": "mat", "io": "input" }"#,
        ),
        "{}",
        "DIR/desc: tasks[0]: region \"m\" has no earlier writer; known are ",
    );
    refused(
        &task(r#"{ "name": "a", "type": "int" }, { "name": "a", "type": "double" }"#, ""),
        "{}",
        "DIR/desc: tasks[0].args[1]: \"a\" has two types; one is allowed",
    );
    refused(
        r#"{ "name": "S", "tasks": [], "dr_args": [] }"#,
        "{}",
        "DIR/desc: \"tasks\", or \"call\" with \"args\", is allowed; one of them is needed",
    );
    let good = task(r#"{ "name": "o", "type": "dr", "io": "output" }"#, "");
    refused(
        &good,
        r#"{ "calls": { "g": "x" } }"#,
        "DIR/map.json: calls: \"g\" is not in the imported file; known are f",
    );
    refused(
        &good,
        r#"{ "regions": { "p": "mask" } }"#,
        "DIR/map.json: regions: \"p\" is not in the imported file; known are o",
    );
    refused(
        &good,
        r#"{ "cals": {} }"#,
        "DIR/map.json: cals: unknown field `cals`, expected one of `calls`, `regions`, `reference`, `parameters`, \
         `responses` at line 1 column 8",
    );
}

#[test]
fn other_files_are_not_imported() {
    let folder = Folder::new();
    let problem = folder.write("problem.json", r#"{ "num_vars": 1, "names": ["x"], "bounds": [[0, 1]] }"#);
    for file in [problem, folder.path("missing.t2flow")] {
        assert!(import_workflow(&file, &WorkflowMap::default(), &registry()).expect("no error").is_none());
    }
}
