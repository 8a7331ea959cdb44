//! A study of stand-ins that run on cores and on emulated devices: the pipeline example of Region Templates, 100 times faster.

use crate::study::Study;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Seconds on a core and true gain of each stand-in.
pub(crate) const KERNELS: [(&str, f64, f64); 10] = [
    ("rbc", 0.3941, 13.2),
    ("open", 0.1522, 9.2),
    ("recon", 1.7483, 5.5),
    ("area", 0.1295, 4.6),
    ("distance", 1.5873, 6.9),
    ("components", 0.3555, 5.7),
    ("deconvolution", 1.0969, 14.0),
    ("statistics", 0.1517, 16.9),
    ("gradient", 1.7231, 17.8),
    ("sobel", 0.2942, 16.4),
];

/// A hundredth: a test has hundreds of tasks.
const SCALE: f64 = 0.01;

/// Writes the study. `gain` returns the true gain of a stand-in by its number and the gain that its operation declares. `fault`
/// returns the fault of the device in an evaluation: 0 for none, 1 to 5 as `emulation.faulty` has them.
pub(crate) fn pipeline(
    evaluations: u32,
    gain: impl Fn(usize, f64) -> f64,
    fault: impl Fn(u32) -> u32,
) -> Study {
    let study = Study::of_tissue(64);
    let reads = [
        ("rbc", "tried"),
        ("open", "rbc"),
        ("recon", "open"),
        ("area", "recon"),
        ("distance", "area"),
        ("components", "distance"),
        ("deconvolution", "begun"),
        ("statistics", "components"),
        ("gradient", "joined"),
        ("sobel", "joined"),
    ];
    let fixed = |name: &str, argument: &str, kind: &str, value: Value| json!({ "name": name, "argument": argument, "type": kind, "fixed": value });
    let varied = |name: &str, argument: &str| json!({ "name": name, "argument": argument, "type": "integer", "default": 0, "range": [0, 100_000], "step": 1 });
    let task = |name: &str, operation: &str, parameters: Vec<Value>, reads: &[&str], writes: &str| {
        json!({
            "task": name, "description": name, "operation": format!("emulation.{operation}"), "version": 1,
            "parameters": parameters, "reads": reads, "writes": [writes]
        })
    };
    let mut tasks = vec![task(
        "begin",
        "queue",
        vec![
            varied("execution", "execution"),
            fixed("job", "job", "integer", 0.into()),
            fixed("delay", "seconds", "real", 0.0.into()),
        ],
        &[],
        "begun",
    )];
    let parameters = vec![
        fixed("faulty execution", "execution", "integer", 0.into()),
        json!({ "name": "fault", "argument": "fault", "type": "integer", "default": 0, "range": [0, 5], "step": 1 }),
    ];
    tasks.push(task("faulty", "faulty", parameters, &["begun"], "tried"));
    for (number, (name, read)) in reads.into_iter().enumerate() {
        if name == "gradient" {
            tasks.push(task("join", "after", Vec::new(), &["components", "deconvolution"], "joined"));
        }
        let (_, seconds, declared) = KERNELS[number];
        let parameters = vec![
            fixed(&format!("{name} execution"), "execution", "integer", 0.into()),
            fixed(&format!("{name} seconds"), "seconds", "real", (seconds * SCALE).into()),
            fixed(&format!("{name} gain"), "gain", "real", gain(number, declared).into()),
        ];
        tasks.push(task(name, name, parameters, &[read], name));
    }
    tasks.push(task("ends 1", "after", Vec::new(), &["statistics", "gradient"], "end 1"));
    tasks.push(task("ends 2", "after", Vec::new(), &["end 1", "sobel"], "end 2"));
    let parameters = vec![fixed("end execution", "execution", "integer", 0.into()), varied("jobs", "jobs")];
    tasks.push(task("end", "end", parameters, &["end 2"], "table"));
    let stage = json!({
        "stage": "pipeline", "description": "Stand-ins", "inputs": [],
        "outputs": [{ "region": "table", "type": "table" }], "tasks": tasks
    });
    let workflow = json!({
        "workflow": "pipeline", "description": "Stand-ins", "inputs": [], "stages": [{ "descriptor": "pipeline.json" }],
        "response": { "region": "table", "metrics": [{ "metric": "jobs", "over_tiles": "sum" }] }
    });
    study.write("pipeline.json", stage.to_string());
    study.write("workflow.json", workflow.to_string());
    write_sets(&study, evaluations, fault);
    let text = "[study]\nname = \"pipeline\"\nworkflow = \"workflow.json\"\nseed = 1\n[input]\ntiles = [\"tiles/*_01.png\"]\n\
                [method]\nkind = \"table\"\nfile = \"sets.csv\"\n[response]\nmetric = \"jobs\"\n";
    study.write("study.toml", text);
    study
}

/// Writes the parameter sets. Faults change no response.
pub(crate) fn write_sets(study: &Study, evaluations: u32, fault: impl Fn(u32) -> u32) {
    let mut sets = "execution,jobs,fault\n".to_owned();
    for evaluation in 1..=evaluations {
        let _ = writeln!(sets, "{evaluation},{},{}", 2 * evaluation, fault(evaluation));
    }
    study.write("sets.csv", sets);
}

/// Returns the runs of each stand-in on cores and on accelerators, from `run.json`.
pub(crate) fn runs(record: &Value) -> BTreeMap<String, (u64, u64)> {
    let operations = record["operations"].as_array().expect("a list");
    let of = |operation: &Value| {
        let all = operation["runs"].as_u64().expect("a number");
        let accelerator = operation["accelerator"]["runs"].as_u64().unwrap_or(0);
        let name = operation["name"].as_str().expect("a name").strip_prefix("emulation.")?.to_owned();
        let is_kernel = name == "faulty" || KERNELS.iter().any(|(known, ..)| *known == name);
        is_kernel.then_some((name, (all - accelerator, accelerator)))
    };
    operations.iter().filter_map(of).collect()
}
