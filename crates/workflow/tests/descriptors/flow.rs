//! Loops and choices of tasks: their guards, and every possible mistake in one.

use crate::registry::operation;
use pleach_regions::ElementType::{Bgr8, Gray8, Scalar, Table};
use pleach_workflow::{Comparison, DescriptorError, Guard, Real, Registry, Stage, Workflow};
use serde_json::{Value, json};

fn registry() -> Registry {
    let limit = [("limit", pleach_workflow::Accepts::Reals { low: 0.0, high: 1.0 })];
    Registry::new([
        operation("toy.start", &[], &[("image", Bgr8)], &[("state", Gray8)]),
        operation("toy.step", &limit, &[("state", Gray8)], &[("state", Gray8)]),
        operation("toy.measure", &[], &[("state", Gray8)], &[("error", Scalar)]),
        operation("toy.table", &[], &[("state", Gray8), ("error", Scalar)], &[("table", Table)]),
    ])
}

fn task(name: &str, operation: &str, reads: &[&str], writes: &[&str]) -> Value {
    let parameters = match operation {
        "toy.step" => json!([{"name": "limit", "type": "real", "default": 0.5, "range": [0, 1]}]),
        _ => json!([]),
    };
    json!({"task": name, "operation": operation, "version": 1, "parameters": parameters, "reads": reads, "writes": writes})
}

/// A stage with a loop of three iterations and a choice.
fn stage() -> Value {
    json!({
        "stage": "toy",
        "inputs": [{"region": "tile", "type": "bgr8"}],
        "outputs": [{"region": "table", "type": "table"}],
        "tasks": [
            // Listed before the tasks that write its inputs.
            task("table", "toy.table", &["result", "error"], &["table"]),
            task("start", "toy.start", &["tile"], &["begin"]),
            {
                "description": "three times",
                "loop": "refine",
                "at_most": 3,
                "until": {"region": "error", "below": 0.25},
                "carries": [{"region": "state", "first": "begin", "next": "better"}],
                "tasks": [
                    task("step", "toy.step", &["state"], &["better"]),
                    task("measure", "toy.measure", &["better"], &["error"]),
                ],
            },
            {
                "choice": "smooth",
                "if": {"region": "error", "at_least": 1},
                "then": [{
                    "task": "smooth", "operation": "toy.step", "version": 1,
                    "parameters": [{"name": "limit"}], "reads": ["better"], "writes": ["smoothed"]
                }],
                "gives": [{"region": "result", "then": "smoothed", "else": "better"}],
            },
        ],
    })
}

fn load(stage: &Value) -> Result<Workflow, DescriptorError> {
    let workflow = json!({
        "workflow": "toy",
        "inputs": [{"region": "tile", "type": "bgr8"}],
        "stages": [{"descriptor": "stage.json"}],
        "response": {"region": "table", "metrics": [{"metric": "x", "over_tiles": "mean"}]},
    });
    let (workflow, stage) = (workflow.to_string(), stage.to_string());
    Workflow::embedded(&[("workflow.json", &workflow), ("stage.json", &stage)], &registry())
}

fn names(stage: &Stage) -> Vec<&str> {
    stage.tasks.iter().map(|task| task.name.as_str()).collect()
}

/// Returns each task with its reads: inputs of the operation, conditions, and the region that passes for its first output.
fn shape(stage: &Stage) -> Vec<String> {
    let region = |read: &pleach_workflow::TaskInput| match *read {
        pleach_workflow::TaskInput::StageInput(input) => stage.inputs[input].region.region.clone(),
        pleach_workflow::TaskInput::Task { task, output } => stage.tasks[task].writes[output].region.clone(),
    };
    let task = |task: &pleach_workflow::Task| {
        let operands: Vec<String> = task.operands().iter().map(region).collect();
        let conditions = task.guard.iter().flat_map(|guard: &Guard| &guard.conditions).map(|condition| {
            let value = region(&task.reads[condition.value]);
            let pass = condition.passes[0].map_or("nothing".to_owned(), |read| region(&task.reads[read]));
            format!(" if {value} {} is {} else {pass}", condition.comparison, condition.expected)
        });
        format!("{}({}){}", task.name, operands.join(", "), conditions.collect::<String>())
    };
    stage.tasks.iter().map(task).collect()
}

#[test]
fn loops_and_choices_become_guarded_tasks() {
    let workflow = load(&stage()).unwrap();
    let expected = [
        "start(tile)",
        "step [1](begin)",
        "measure [1](better [1])",
        "step [2](better [1]) if error [1] < 0.25 is false else better [1]",
        "measure [2](better [2]) if error [1] < 0.25 is false else error [1]",
        "step [3](better [2]) if error [2] < 0.25 is false else better [2]",
        "measure [3](better [3]) if error [2] < 0.25 is false else error [2]",
        "smooth(better [3]) if error [3] >= 1 is true else better [3]",
        "table(smoothed, error [3])",
    ];
    assert_eq!(shape(&workflow.stages[0]), expected);
    assert_eq!(workflow.parameters.len(), 1);
    let one = Real::try_from(1.0).unwrap();
    let smooth = workflow.stages[0].tasks[7].guard.as_ref().unwrap();
    assert_eq!((smooth.operands, smooth.conditions[0].comparison), (1, Comparison::AtLeast(one)));
}

#[test]
fn regions_that_only_a_loop_reads_do_not_pass() {
    let mut with_one_reader = stage();
    with_one_reader["tasks"][0]["reads"][0] = json!("begin");
    with_one_reader["tasks"].as_array_mut().unwrap().pop();
    let workflow = load(&with_one_reader).unwrap();
    let shape = shape(&workflow.stages[0]);
    assert!(shape.contains(&"step [3](better [2]) if error [2] < 0.25 is false else nothing".to_owned()));
    assert!(
        shape.contains(&"measure [3](better [3]) if error [2] < 0.25 is false else error [2]".to_owned())
    );
}

#[test]
fn loops_and_choices_nest() {
    let mut nested = stage();
    let choice = json!({
        "choice": "kind",
        "if": {"region": "first-error", "below": 0.5},
        "then": [task("one", "toy.step", &["first"], &["by-one"])],
        "else": [{
            "loop": "inner", "at_most": 2, "until": {"region": "inner-error", "at_least": 2},
            "carries": [{"region": "inner-state", "first": "first", "next": "by-two"}],
            "tasks": [
                {"task": "two", "operation": "toy.step", "version": 1, "parameters": [{"name": "limit"}],
                 "reads": ["inner-state"], "writes": ["by-two"]},
                task("inner-measure", "toy.measure", &["by-two"], &["inner-error"]),
            ],
        }],
        "gives": [{"region": "better", "then": "by-one", "else": "by-two"}],
    });
    nested["tasks"][2]["tasks"] = json!([
        {"task": "step", "operation": "toy.start", "version": 1, "reads": ["tile"], "writes": ["first"]},
        task("first-measure", "toy.measure", &["state"], &["first-error"]),
        choice,
        task("measure", "toy.measure", &["better"], &["error"]),
    ]);
    nested["tasks"][3]["then"][0]["parameters"] = json!([{"name": "limit"}]);
    let workflow = load(&nested).unwrap();
    let shape = shape(&workflow.stages[0]);
    let second: Vec<&str> =
        shape.iter().map(String::as_str).filter(|text| text.contains("[2")).take(20).collect();
    for expected in [
        "first-measure [2](by-one [1]) if error [1] < 0.25 is false else nothing",
        "two [2,1](first [2]) if error [1] < 0.25 is false else nothing if first-error [2] < 0.5 is false else nothing",
        "two [2,2](by-two [2,1]) if error [1] < 0.25 is false else nothing if first-error [2] < 0.5 is false else \
         nothing if inner-error [2,1] >= 2 is false else by-two [2,1]",
        "one [2](first [2]) if error [1] < 0.25 is false else by-one [1] if first-error [2] < 0.5 is true else by-two [2,2]",
    ] {
        assert!(second.contains(&expected), "{expected} is not in {second:#?}");
    }
    assert_eq!(names(&workflow.stages[0]).len(), 3 * 8 + 3);
}

#[track_caller]
fn refused(mistake: impl FnOnce(&mut Value), message: &str) {
    let mut stage = stage();
    mistake(&mut stage["tasks"]);
    let error = load(&stage).expect_err("a mistake").to_string();
    assert_eq!(error.split(" at line ").next(), Some(message));
}

#[test]
fn invalid_loops_are_refused() {
    refused(
        |tasks| tasks[2]["at_most"] = json!(0),
        r#"stage.json#/tasks/2/at_most: loop "refine" repeats its tasks at most 0 times; 1 to 1000 are allowed"#,
    );
    refused(
        |tasks| tasks[2]["at_most"] = json!("3"),
        r#"stage.json#/tasks/2/at_most: invalid type: string "3", expected a whole number, 0 or more"#,
    );
    refused(
        |tasks| tasks[2]["upto"] = json!(3),
        "stage.json#/tasks/2/upto: unknown key `upto`, expected one of `loop`, `description`, `at_most`, `until`, \
         `carries`, `tasks`",
    );
    refused(
        |tasks| tasks[2]["until"] = json!({"region": "error"}),
        r#"stage.json#/tasks/2/until: the condition on "error" needs exactly one of "below" and "at_least""#,
    );
    refused(
        |tasks| tasks[2]["until"]["at_least"] = json!(2),
        r#"stage.json#/tasks/2/until: the condition on "error" needs exactly one of "below" and "at_least""#,
    );
    refused(
        |tasks| tasks[2]["until"]["region"] = json!("begin"),
        r#"stage.json#/tasks/2/until/region: region "begin" has no writer; known are better, error"#,
    );
    refused(
        |tasks| tasks[2]["until"]["region"] = json!("better"),
        r#"stage.json#/tasks/2/until/region: region "better [1]" holds gray8, but scalar is required by the condition"#,
    );
    refused(
        |tasks| tasks[2]["carries"][0]["next"] = json!("begin"),
        r#"stage.json#/tasks/2/carries/0/next: region "begin" has no writer; known are better, error"#,
    );
    refused(
        |tasks| tasks[2]["carries"][0]["first"] = json!("state"),
        r#"stage.json#/tasks/2/carries/0/first: region "state" has no writer; known are tile, table, begin, better, error, result"#,
    );
    refused(
        |tasks| tasks[2]["carries"][0]["region"] = json!("begin"),
        r#"stage.json#/tasks/2/carries/0/region: region "begin" already has a writer, task "start"; one writer is allowed"#,
    );
    refused(
        |tasks| tasks[3]["choice"] = json!("refine"),
        r#"stage.json#/tasks/3/choice: two loops or choices are named "refine"; names must be unique"#,
    );
    refused(
        |tasks| tasks[2]["tasks"] = json!([]),
        "stage.json#/tasks/2/tasks: the list of tasks is empty; at least one is needed",
    );
    refused(
        |tasks| tasks[2]["tasks"][1]["operation"] = json!("toy.mesure"),
        r#"stage.json#/tasks/2/tasks/1/operation: operation "toy.mesure" is unknown; known are toy.measure, toy.start, toy.step, toy.table"#,
    );
    // The carried region is visible within the loop only.
    refused(
        |tasks| tasks[0]["reads"][0] = json!("state"),
        r#"stage.json#/tasks/0/reads/0: region "state" has no writer; known are tile, table, begin, better, error, result"#,
    );
    refused(
        |tasks| {
            let mut inner = tasks[2].clone();
            for _ in 0..3 {
                inner = json!({"loop": "outer", "at_most": 1000, "until": {"region": "error", "below": 1}, "tasks": [inner]});
            }
            inner["loop"] = json!("outermost");
            inner["tasks"][0]["loop"] = json!("middle");
            tasks[2] = inner;
        },
        "stage.json#/tasks: the list of tasks in all iterations has 6000000003 entries; up to 10000 are allowed",
    );
}

#[test]
fn invalid_choices_are_refused() {
    refused(
        |tasks| tasks[3]["if"]["region"] = json!("noise"),
        r#"stage.json#/tasks/3/if/region: region "noise" has no writer; known are tile, table, begin, better, error, result"#,
    );
    refused(
        |tasks| tasks[3]["then"] = json!([]),
        "stage.json#/tasks/3/then: the list of tasks is empty; at least one is needed",
    );
    refused(
        |tasks| tasks[3]["gives"] = json!([]),
        "stage.json#/tasks/3/gives: the list of regions is empty; at least one is needed",
    );
    refused(
        |tasks| tasks[3]["gives"][0]["then"] = json!("better"),
        r#"stage.json#/tasks/3/gives/0/region: no task of choice "smooth" writes region "result"; a region that its tasks write is needed in "then" or "else""#,
    );
    refused(
        |tasks| tasks[3]["gives"][0]["else"] = json!("tile"),
        r#"stage.json#/tasks/3/gives/0/else: region "tile" holds bgr8, but gray8 is required by region "smoothed", which it replaces"#,
    );
    refused(
        |tasks| {
            let other = json!({"region": "other", "then": "smoothed", "else": "begin"});
            tasks[3]["gives"].as_array_mut().unwrap().push(other);
        },
        r#"stage.json#/tasks/3/gives/1/then: region "smoothed" is given twice; once is allowed"#,
    );
    // A region of one branch may be missing, so only its branch may read it.
    refused(
        |tasks| tasks[0]["reads"][0] = json!("smoothed"),
        r#"stage.json#/tasks/0/reads/0: region "smoothed" has no writer; known are tile, table, begin, better, error, result"#,
    );
    refused(
        |tasks| tasks[3]["then"][0]["reads"][0] = json!("result"),
        "stage.json#/tasks/3/then/0: tasks depend on each other in a cycle: smooth -> smooth",
    );
}
