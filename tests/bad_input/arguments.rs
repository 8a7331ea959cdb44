//! Arguments outside the command line grammar are refused.

use crate::study::Study;
use crate::{refused, refused_as};

#[test]
fn invalid_arguments_are_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |args: &str, expected: &str| {
        refused(folder.path(), &args.split(' ').collect::<Vec<_>>(), expected);
    };
    refused("weave", "unrecognized subcommand 'weave'");
    refused("run", "the following required arguments were not provided: <STUDY>");
    refused("run a.toml b.toml", "unexpected argument 'b.toml' found");
    refused("run a.toml --out", "a value is required for '--out <DIR>' but none was supplied");
    let count = "a whole number of at least 1 is allowed";
    refused(
        "run a.toml --max-bucket-size 0",
        &format!("invalid value '0' for '--max-bucket-size <N>': {count}"),
    );
    refused("plan a.toml --max-buckets 0", &format!("invalid value '0' for '--max-buckets <N>': {count}"));
    refused("plan a.toml --memory 0", "invalid value '0' for '--memory <SIZE>': 1 byte or more is allowed");
    refused("tissue --out x --count 0", &format!("invalid value '0' for '--count <N>': {count}"));
    refused("tissue --out x --size 9.5", &format!("invalid value '9.5' for '--size <PX>': {count}"));
    let form = "a number and a unit are allowed, as in 600MB or 1.5GiB; units are B, kB, MB, GB, TB (powers of 1000) and \
                KiB, MiB, GiB, TiB (powers of 1024)";
    for size in ["-1", "-1GB", "12QB", "NaN", "inf", "1G", "1e9", "--json"] {
        refused(
            &format!("run a.toml --memory {size}"),
            &format!("invalid value '{size}' for '--memory <SIZE>': {form}"),
        );
    }
    refused("run a.toml --memory 0", "invalid value '0' for '--memory <SIZE>': 1 byte or more is allowed");
    let large = "invalid value '99999999999TB' for '--memory <SIZE>': less than 18446744 TB is allowed";
    refused("run a.toml --memory 99999999999TB", large);
    // Units are accepted in any case. The missing study is the first error.
    let missing = "a.toml: failed to read: No such file or directory (os error 2)";
    refused("run a.toml --memory 1gb", missing);
    refused("run a.toml --memory 1.5GiB", missing);
    refused("run a.toml --workers 0", "invalid value '0' for '--workers <N>': 1 to 1024 is allowed");
    refused("run a.toml --workers 1025", "invalid value '1025' for '--workers <N>': 1 to 1024 is allowed");
}

/// Devices, policies and rates outside their ranges are refused by name. A number of devices that the machine lacks is refused
/// with those that are present, before anything is written.
#[test]
fn invalid_accelerators_are_refused() {
    let study = Study::of_tissue(64);
    let refused = |args: &str, expected: &str| {
        refused(study.folder(), &args.split(' ').collect::<Vec<_>>(), expected);
    };
    for text in ["gpu", "-1", "65", "emulate:2", "emulate:0x", "emulate:-1x"] {
        refused(
            &format!("run study.toml --accelerators={text}"),
            &format!(
                "invalid value '{text}' for '--accelerators <DEVICES>': \"{text}\" is no choice of accelerators; auto, none, all, \
                 a number up to 64, or emulate:2x,1.5x is allowed"
            ),
        );
    }
    for rate in ["-0.1", "1.1", "nan", "all"] {
        refused(
            &format!("run study.toml --device-check {rate}"),
            &format!("invalid value '{rate}' for '--device-check <RATE>': a number from 0 to 1 is allowed"),
        );
    }
    refused(
        "run study.toml --device-memory 0",
        "invalid value '0' for '--device-memory <SIZE>': 1 byte or more is allowed",
    );
    let policies = "invalid value 'fifo' for '--schedule <POLICY>'; [possible values: pats, heft, fcfs";
    refused_as(study.folder(), &["run", "study.toml", "--schedule", "fifo"], policies);
    let missing = "--accelerators: 64 accelerators wanted, ";
    refused_as(study.folder(), &["run", "study.toml", "--out", "out", "--accelerators", "64"], missing);
}

#[test]
fn invalid_argument_error_lists_possible_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused_as = |args: &[&str], beginning: &str| refused_as(folder.path(), args, beginning);
    let strategies = "invalid value 'best' for '--strategy <STRATEGY>'; [possible values: none, stage, naive, sca, rtma, trtma, ranges, hrb";
    refused_as(&["run", "a.toml", "--strategy", "best"], strategies);
    refused_as(&["plan", "a.toml", "--strategy", "best"], strategies);
    let order = "invalid value 'worst' for '--task-order <TASK_ORDER>'; [possible values: declared, best";
    refused_as(&["run", "a.toml", "--task-order", "worst"], order);
    let reuse = "invalid value 'all' for '--reuse <REUSE>'; [possible values: tree, dataflow, value";
    refused_as(&["run", "a.toml", "--reuse", "all"], reuse);
    refused_as(&["run", "a.toml", "--again"], "unexpected argument '--again' found");
    refused_as(&["segment", "a.png"], "the following required arguments were not provided: --out <MASK.png");
}

#[test]
fn preview_of_a_table_task_is_refused() {
    let study = Study::of_tissue(64);
    let refused = |task: &str, expected: &str| {
        let run = ["run", "study.toml", "--out", "out", "--preview", "t3", "--preview", task];
        refused(study.folder(), &run, &format!("--preview {task}: {expected}"));
    };
    let tasks = "normalize, t1, t2, t3, t4, t5, t6, t7";
    refused("t9", &format!("not a task of workflow nuclei; its tasks are {tasks}, compare"));
    refused("", &format!("not a task of workflow nuclei; its tasks are {tasks}, compare"));
    let table = "the task writes metrics (table), not an image; tasks that write images are allowed:";
    refused("compare", &format!("{table} {tasks}"));
}
