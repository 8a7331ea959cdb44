//! The shipped nuclei workflow.

use crate::files::Files;
use crate::registry::{registry, shipped};
use pleach_regions::ElementType;
use pleach_workflow::{
    Aggregate, Domain, InputOrigin, Parameter, Stage, TaskInput, TierKind, Value, Workflow, stage_file,
};
use std::collections::BTreeSet;

fn nuclei() -> Workflow {
    Workflow::load(&shipped(), &registry()).expect("shipped descriptors are right")
}

fn names(parameters: &[Parameter]) -> Vec<&str> {
    parameters.iter().map(|parameter| parameter.name.as_str()).collect()
}

/// Describes the origin of every stage's inputs.
fn connections(workflow: &Workflow) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in &workflow.stages {
        for input in &stage.inputs {
            let from = match input.origin {
                InputOrigin::Input(number) => format!("file {}", workflow.inputs[number].region),
                InputOrigin::Reference => "reference".to_owned(),
                InputOrigin::Stage { stage, output } => {
                    let stage = &workflow.stages[stage];
                    format!("{}.{}", stage.name, stage.outputs[output].region.region)
                }
            };
            lines.push(format!("{}.{} <- {from}", stage.name, input.region.region));
        }
    }
    lines
}

const PARAMETERS: [&str; 15] = [
    "B",
    "G",
    "R",
    "T1",
    "T2",
    "MorphRecon",
    "G1",
    "FillHoles",
    "minSize",
    "maxSize",
    "G2",
    "minSizePl",
    "Watershed",
    "minSizeSeg",
    "maxSizeSeg",
];

#[test]
fn workflow_has_four_stages_and_the_papers_parameters() {
    let workflow = nuclei();
    assert_eq!(workflow.name, "nuclei");
    assert_eq!(names(&workflow.parameters), PARAMETERS);
    assert_eq!(
        connections(&workflow),
        [
            "normalization.tile <- file tile",
            "segmentation.normalized <- normalization.normalized",
            "comparison.mask <- segmentation.mask",
            "comparison.reference <- reference",
            "object-comparison.mask <- segmentation.mask",
            "object-comparison.reference <- reference",
        ]
    );
    let metrics =
        [("dice", Aggregate::Mean), ("jaccard", Aggregate::Mean), ("pixel-difference", Aggregate::Sum)];
    assert_eq!(workflow.response.metrics, metrics.map(|(name, over)| (name.to_owned(), over)));
    assert_eq!((workflow.response.stage, workflow.response.output), (2, 0));
    let [objects] = workflow.alternatives.as_slice() else { panic!("one other table") };
    assert_eq!((objects.stage, objects.output), (3, 0));
    let sums = objects.metrics.iter().filter(|(_, over)| *over == Aggregate::Sum);
    assert_eq!(sums.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["nuclei"]);
    let reference = workflow.reference.expect("masks are compared with something");
    assert_eq!((reference.region.region.as_str(), reference.stage, reference.output), ("reference", 1, 0));
}

#[test]
fn tasks_know_their_parameters_and_where_their_inputs_come_from() {
    let workflow = nuclei();
    let segmentation = &workflow.stages[1];
    let consumed = |task: usize| -> Vec<&str> {
        let parameters = segmentation.task_parameters(&segmentation.tasks[task]);
        parameters.map(|parameter| workflow.parameters[parameter].name.as_str()).collect()
    };
    assert_eq!(consumed(0), ["B", "G", "R", "T1", "T2"]);
    assert_eq!(consumed(2), ["G1", "FillHoles"]);
    // t3 defines FillHoles, t7 uses it again.
    assert_eq!(consumed(6), ["minSizeSeg", "maxSizeSeg", "FillHoles"]);
    let of = |task, output| TaskInput::Task { task, output };
    // t5 reads diff, bw1_t, rbc and background.
    assert_eq!(segmentation.tasks[4].reads, [of(2, 0), of(3, 0), of(0, 0), of(0, 1)]);
    assert_eq!(segmentation.tasks[5].reads, [of(4, 0), TaskInput::StageInput(0)]);
    assert_eq!((segmentation.outputs[0].task, segmentation.outputs[0].output), (6, 0));
}

#[test]
fn domains_and_defaults_are_those_of_the_descriptor() {
    let workflow = nuclei();
    let levels = |name: &str| match &workflow.parameters[PARAMETERS.iter().position(|p| *p == name).unwrap()]
    {
        Parameter { default, domain: Domain::Levels { values }, .. } => {
            (default.to_string(), values[0].to_string(), values[values.len() - 1].to_string(), values.len())
        }
        other => panic!("not a grid: {other:?}"),
    };
    let expect = |default: &str, low: &str, high: &str, count| {
        (default.to_owned(), low.to_owned(), high.to_owned(), count)
    };
    assert_eq!(levels("B"), expect("220", "210", "240", 4));
    assert_eq!(levels("T1"), expect("5", "2.5", "7.5", 11));
    assert_eq!(levels("G1"), expect("80", "5", "80", 16));
    assert_eq!(levels("FillHoles"), expect("4", "4", "8", 2));
    // A default may be outside the sampled values.
    assert_eq!(levels("G2"), expect("45", "2", "40", 20));
    assert!(matches!(workflow.parameters[3].default, Value::Real(_)));
}

#[test]
fn without_normalization_the_tile_is_segmented_as_it_is() {
    let workflow = nuclei();
    assert_eq!(workflow.switches(), ["normalize"]);
    let short = workflow.without(&["normalize".to_owned()]);
    assert_eq!(
        connections(&short),
        [
            "segmentation.normalized <- file tile",
            "comparison.mask <- segmentation.mask",
            "comparison.reference <- reference",
            "object-comparison.mask <- segmentation.mask",
            "object-comparison.reference <- reference",
        ]
    );
    assert_eq!(
        (short.response.stage, short.reference.as_ref().map(|reference| reference.stage)),
        (1, Some(0))
    );
    assert_eq!(short.alternatives[0].stage, 2);
    assert_eq!(names(&short.parameters), PARAMETERS);
    assert_eq!(connections(&workflow.without(&[])), connections(&workflow));
    assert_eq!(connections(&workflow.without(&["nonsense".to_owned()])), connections(&workflow));
}

#[test]
fn study_keeps_only_stages_its_metric_needs() {
    let workflow = nuclei();
    let stages = |workflow: &Workflow| -> Vec<String> {
        workflow.stages.iter().map(|stage| stage.name.clone()).collect()
    };
    let pixels = workflow.measuring(0);
    assert_eq!(stages(&pixels), ["normalization", "segmentation", "comparison"]);
    assert_eq!((pixels.response.stage, pixels.alternatives.len()), (2, 0));
    assert_eq!(pixels.reference_elements(), [ElementType::Mask]);
    let objects = workflow.measuring(1);
    assert_eq!(stages(&objects), ["normalization", "segmentation", "object-comparison"]);
    assert_eq!((objects.response.stage, objects.response.metrics[0].0.as_str()), (2, "object-dice"));
    assert_eq!(objects.reference_elements(), [ElementType::Labels]);
    assert_eq!(workflow.reference_elements(), [ElementType::Mask, ElementType::Labels]);
    let short = workflow.without(&["normalize".to_owned()]).measuring(1);
    assert_eq!(stages(&short), ["segmentation", "object-comparison"]);
    assert_eq!(
        connections(&short),
        [
            "segmentation.normalized <- file tile",
            "object-comparison.mask <- segmentation.mask",
            "object-comparison.reference <- reference",
        ]
    );
    for workflow in [&pixels, &objects, &short] {
        assert_eq!(names(&workflow.parameters), PARAMETERS);
        assert_eq!(stages(&workflow.measuring(0)), stages(workflow));
    }
    let named: Vec<_> =
        workflow.metrics().filter(|(table, ..)| *table == 1).map(|(_, place, _)| place).collect();
    assert_eq!(named, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn parameters_of_a_stage_that_is_left_out_are_left_out_too() {
    let mut files = Files::shipped();
    // Normalization becomes an area filter, which has two parameters, and segmentation consists of t7 alone.
    files.normalization()["tasks"][0]["parameters"] = files.task(4)["parameters"].take();
    files.normalization()["tasks"][0]["operation"] = "nuclei.candidate-area".into();
    for pointer in ["/inputs/0/type", "/outputs/0/type"] {
        *files.normalization().pointer_mut(pointer).unwrap() = "mask".into();
    }
    files.workflow()["inputs"][0]["type"] = "mask".into();
    files.segmentation()["inputs"][0]["type"] = "mask".into();
    files.segmentation()["tasks"] = serde_json::json!([files.task(7).clone()]);
    files.task(1)["reads"][0] = "normalized".into();
    files.task(1)["parameters"][2] = serde_json::json!(
        { "name": "FillHoles", "type": "integer", "default": 4, "values": [4, 8] }
    );
    let workflow = files.load().unwrap();
    assert_eq!(names(&workflow.parameters), ["minSize", "maxSize", "minSizeSeg", "maxSizeSeg", "FillHoles"]);
    assert_eq!(workflow.stages[1].parameters, [2, 3, 4]);
    let short = workflow.without(&["normalize".to_owned()]);
    assert_eq!(names(&short.parameters), ["minSizeSeg", "maxSizeSeg", "FillHoles"]);
    let stage = &short.stages[0];
    assert_eq!(stage.task_parameters(&stage.tasks[0]).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn output_sets_durability_and_tier() {
    let mut files = Files::shipped();
    let said = |workflow: &Workflow| {
        let output = &workflow.stages[1].outputs[0];
        (output.durable, output.tier)
    };
    assert_eq!(said(&files.load().unwrap()), (None, None));
    let output = &mut files.segmentation()["outputs"][0];
    (output["durable"], output["tier"]) = (true.into(), "lustre".into());
    assert_eq!(said(&files.load().unwrap()), (Some(true), Some(TierKind::Lustre)));
}

#[test]
fn a_stage_descriptor_is_checked_on_its_own() {
    let stage = stage_file(&shipped().with_file_name("segmentation.json"), &registry()).unwrap();
    assert_eq!((stage.name.as_str(), stage.tasks.len(), stage.parameters.len()), ("segmentation", 7, 15));
}

#[test]
fn stages_and_tasks_may_be_listed_in_any_order() {
    let listed = nuclei();
    let mut files = Files::shipped();
    files.workflow()["stages"].as_array_mut().unwrap().reverse();
    // t5 comes before t4, whose output it reads. Parameters stay in listed order.
    files.segmentation()["tasks"].as_array_mut().unwrap().swap(3, 4);
    let sorted = files.load().unwrap();
    // The two comparisons are independent, so they keep their listed order.
    let sorted_lines = |workflow: &Workflow| connections(workflow).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(sorted_lines(&sorted), sorted_lines(&listed));
    assert_eq!(connections(&sorted)[..2], connections(&listed)[..2]);
    let tasks = |workflow: &Workflow| -> Vec<String> {
        workflow.stages[1].tasks.iter().map(|task| format!("{} {:?}", task.name, task.reads)).collect()
    };
    assert_eq!(tasks(&sorted), tasks(&listed));
    let g2 = names(&sorted.parameters).iter().position(|name| *name == "G2");
    assert_eq!(g2, Some(8));
    let stage = &sorted.stages[1];
    assert_eq!(stage.task_parameters(&stage.tasks[4]).collect::<Vec<_>>(), [8]);
}

#[test]
fn reader_of_the_reference_follows_its_writer() {
    let mut files = Files::shipped();
    // Compares the reference with itself, so only the reference connects the stages.
    files.comparison()["inputs"].as_array_mut().unwrap().remove(0);
    files.comparison()["tasks"][0]["reads"][0] = "reference".into();
    files.workflow()["stages"].as_array_mut().unwrap().reverse();
    let order: Vec<String> = files.load().unwrap().stages.into_iter().map(|stage| stage.name).collect();
    assert_eq!(order, ["normalization", "segmentation", "object-comparison", "comparison"]);
}

#[test]
fn one_switch_may_leave_out_several_stages() {
    let mut files = Files::shipped();
    let second = serde_json::json!({
        "stage": "again", "inputs": [{ "region": "normalized", "type": "bgr8" }],
        "outputs": [{ "region": "twice", "type": "bgr8" }],
        "tasks": [{ "task": "normalize", "operation": "nuclei.normalize", "version": 1,
                    "reads": ["normalized"], "writes": ["twice"] }]
    });
    *files.comparison() = second;
    files.workflow()["stages"][2] = serde_json::json!(
        { "descriptor": "comparison.json", "switch": "normalize", "bypass": { "twice": "tile" } }
    );
    files.segmentation()["inputs"][0]["region"] = "twice".into();
    files.task(1)["reads"][0] = "twice".into();
    files.task(2)["reads"][0] = "twice".into();
    files.task(6)["reads"][1] = "twice".into();
    // No stage compares any more, so the background table provides the response.
    files.segmentation()["outputs"] = serde_json::json!([
        { "region": "mask", "type": "mask" }, { "region": "background", "type": "table" }
    ]);
    files.workflow()["stages"].as_array_mut().unwrap().pop();
    files.workflow()["response"].as_array_mut().unwrap().pop();
    files.response(0)["region"] = "background".into();
    let workflow = files.load().unwrap();
    assert_eq!(workflow.switches(), ["normalize"]);
    assert_eq!(workflow.stages.len(), 3);
    let short = workflow.without(&["normalize".to_owned()]);
    assert_eq!(connections(&short), ["segmentation.twice <- file tile"]);
}

#[test]
fn tasks_in_another_order_read_what_they_did() {
    let workflow = nuclei();
    let stage = &workflow.stages[1];
    let names = |stage: &Stage| -> Vec<String> { stage.tasks.iter().map(|task| task.name.clone()).collect() };
    let written = |stage: &Stage, name: &str| -> Vec<(String, usize)> {
        let task = stage.tasks.iter().find(|task| task.name == name).unwrap();
        let read = |read: &TaskInput| match *read {
            TaskInput::StageInput(input) => (stage.inputs[input].region.region.clone(), 0),
            TaskInput::Task { task, output } => (stage.tasks[task].name.clone(), output),
        };
        task.reads.iter().map(read).collect()
    };
    let given: Vec<usize> = (0..stage.tasks.len()).collect();
    assert_eq!(names(&stage.in_order(&given).unwrap()), names(stage));
    // The first task moves behind three tasks that do not read from it.
    let order = [1, 2, 3, 0, 4, 5, 6];
    let moved = stage.in_order(&order).unwrap();
    let expected: Vec<String> = order.iter().map(|task| stage.tasks[*task].name.clone()).collect();
    assert_eq!(names(&moved), expected);
    for name in names(stage) {
        assert_eq!(written(&moved, &name), written(stage, &name), "{name}");
    }
    let output = |stage: &Stage| stage.tasks[stage.outputs[0].task].name.clone();
    assert_eq!(output(&moved), output(stage));
    for no_order in
        [&[0, 1, 2, 3, 4, 5][..], &[0, 1, 2, 3, 4, 5, 5], &[0, 1, 2, 3, 4, 6, 5], &[0, 1, 2, 3, 4, 5, 7]]
    {
        assert!(stage.in_order(no_order).is_none(), "{no_order:?}");
    }
}
