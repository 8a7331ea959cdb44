//! Options of `pleach cluster` against the library: each one changes a makespan.

use crate::pleach::pleach;
use pleach_clustering::simulate::{Delay, Overheads, Platform, simulate};
use pleach_clustering::{Candidates, Method, Options, ReadOptions, Size, Workflow, cluster, read};
use serde_json::Value;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// Twelve tasks of different run times and sizes, whose outputs four tasks read in groups of three, and a last task.
pub(crate) fn groups(folder: &Path) -> Workflow {
    let mut lines = String::new();
    for task in 0..12_u64 {
        let group = task * 5 % 4;
        lines.push_str(&format!(
            "FILE in{task} {}\nFILE out{task} {}\n",
            (task * 7 % 12) << 25,
            (task + 1) << 22
        ));
        lines.push_str(&format!("TASK t{task} run {}\n", 5 + task * 11 % 12 * 9));
        lines.push_str(&format!("INPUTS t{task} in{task} in{}\nOUTPUTS t{task} out{task}\n", task % 3));
        lines.push_str(&format!("INPUTS g{group} out{task}\nEDGE t{task} g{group}\n"));
    }
    for group in 0..4 {
        lines.push_str(&format!("TASK g{group} join {}\nEDGE g{group} end\n", 10 + group));
    }
    // Only one group has a second child.
    lines.push_str("TASK end end 1\nTASK more end 2\nEDGE g0 more\n");
    let file = folder.join("groups.dag");
    fs::write(&file, lines).expect("written");
    read(&file, ReadOptions::default()).expect("a workflow")
}

fn platform(bytes_per_second: f64, overheads: Overheads) -> Platform {
    Platform::new(NonZeroUsize::new(3).expect("3"), bytes_per_second, overheads).expect("a platform")
}

/// Returns makespan and moved bytes of the last clustering, with three workers.
fn executed(folder: &Path, args: &[&str]) -> (f64, u64) {
    let args = [&["cluster", "groups.dag", "--json", "--workers", "3"], args].concat();
    let document: Value = serde_json::from_str(&pleach(folder, &args).done()).expect("JSON");
    let clusterings = document["workflows"][0]["clusterings"].as_array().expect("clusterings");
    let last = clusterings.last().expect("a clustering");
    (last["makespan_seconds"].as_f64().expect("a number"), last["moved_bytes"].as_u64().expect("a number"))
}

#[test]
fn each_option_has_the_effect_of_the_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let workflow = groups(folder.path());
    let fixed = |queue, engine, clustering, post| {
        let [queue, engine, clustering, post] = [queue, engine, clustering, post].map(Delay::Fixed);
        Overheads { queue, engine, clustering, post }
    };
    let usual = fixed(60.0, 0.0, 1.0, 0.0);
    let hrb = Options { size: Size::Jobs(4), ..Options::default() };
    let with = |method| Options { method, ..hrb };
    let expected = |workflow: &Workflow, options: Options, platform: Platform| {
        let execution = simulate(workflow, &cluster(workflow, &options), &platform, options.seed);
        (execution.makespan, execution.moved_bytes)
    };
    let base = platform(15e6, usual);
    let of = |options| expected(&workflow, options, base);
    let on = |options, bytes_per_second, overheads| {
        expected(&workflow, options, platform(bytes_per_second, overheads))
    };
    // A fifth job stays empty if near jobs are filled first.
    let spread = Options { size: Size::Jobs(5), ..with(Method::Hdb) };
    let examples = Options { candidates: Candidates::Examples, ..spread };
    let large = workflow.clone().with_scaled_files(3.0);
    let long = workflow.clone().with_scaled_seconds(3.0).expect("seconds");
    let (dfjs, afjs) =
        (Method::Dfjs { max_seconds: 150.0 }, Method::Afjs { max_seconds: 150.0, max_bytes: 500e6 });
    let hc = |seed| Options { seed, ..with(Method::Hc) };
    type Bounds = (f64, u64);
    let cases: [(&[&str], Bounds, Bounds); 15] = [
        (&["--jobs", "2"], of(Options { size: Size::Jobs(2), ..hrb }), of(hrb)),
        (&["--size", "6"], of(Options { size: Size::Tasks(6), ..hrb }), of(hrb)),
        (&["--jobs", "4", "--method", "hdb"], of(with(Method::Hdb)), of(hrb)),
        (&["--jobs", "5", "--method", "hdb", "--candidates", "examples"], of(examples), of(spread)),
        (&["--jobs", "4", "--method", "hifb"], of(with(Method::Hifb)), of(with(Method::Hdb))),
        (&["--jobs", "4", "--method", "hc", "--seed", "2"], of(hc(2)), of(hc(0))),
        (&["--method", "dfjs", "--max-seconds", "150"], of(with(dfjs)), of(hrb)),
        (
            &["--method", "afjs", "--max-seconds", "150", "--max-bytes", "500MB"],
            of(with(afjs)),
            of(with(dfjs)),
        ),
        (&["--jobs", "4", "--bandwidth", "150MB"], on(hrb, 150e6, usual), of(hrb)),
        (&["--jobs", "4", "--queue", "5"], on(hrb, 15e6, fixed(5.0, 0.0, 1.0, 0.0)), of(hrb)),
        (&["--jobs", "4", "--engine", "7"], on(hrb, 15e6, fixed(60.0, 7.0, 1.0, 0.0)), of(hrb)),
        (&["--jobs", "4", "--clustering", "9"], on(hrb, 15e6, fixed(60.0, 0.0, 9.0, 0.0)), of(hrb)),
        (&["--jobs", "4", "--post", "4"], on(hrb, 15e6, fixed(60.0, 0.0, 1.0, 4.0)), of(hrb)),
        (&["--jobs", "4", "--scale-data", "3"], expected(&large, hrb, base), of(hrb)),
        (&["--jobs", "4", "--scale-time", "3"], expected(&long, hrb, base), of(hrb)),
    ];
    for (args, with, without) in cases {
        assert_ne!(with, without, "{args:?}: the case shows no effect");
        assert_eq!(executed(folder.path(), args), with, "{args:?}");
    }
    // Draws of delays depend on the seed.
    let drawn = |seed| on(Options { seed, ..hrb }, 15e6, usual.weibull(2.0));
    assert_ne!(drawn(1), drawn(2));
    let args = ["--jobs", "4", "--weibull", "2", "--seed"];
    assert_eq!(executed(folder.path(), &[&args[..], &["1"]].concat()), drawn(1));
    assert_eq!(executed(folder.path(), &[&args[..], &["2"]].concat()), drawn(2));
}

/// Ids that WfFormat does not allow come back from its files.
#[test]
fn all_formats_hold_the_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "FILE a#1:x 5\nTASK t#1 k/1 2\nTASK t#2 k/1 3\nINPUTS t#1 a#1:x\nEDGE t#1 t#2\n";
    fs::write(folder.path().join("odd.dag"), text).expect("written");
    let original = read(&folder.path().join("odd.dag"), ReadOptions::default()).expect("a workflow");
    for (out, format) in
        [("a.json", "wfformat"), ("b.json.gz", "wfformat"), ("c.dag.gz", "dag"), ("d.xml", "dax")]
    {
        let args = ["cluster", "odd.dag", "--method", "none", "--out", out, "--format", format];
        pleach(folder.path(), &args).done();
        let again = read(&folder.path().join(out), ReadOptions::default()).expect(out);
        assert_eq!((again.tasks(), again.files()), (original.tasks(), original.files()), "{out}");
        assert!(again.edges().eq(original.edges()), "{out}");
    }
}

#[test]
fn figures_of_several_workflows_have_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    groups(folder.path());
    let wide: String = (0..401).map(|task| format!("TASK t{task} run 1\n")).collect();
    fs::write(folder.path().join("wide.dag"), wide).expect("written");
    let answer = pleach(folder.path(), &["cluster", "groups.dag", "wide.dag", "--plot", "figures"]);
    assert!(
        answer.stderr.contains("wide.dag: wide-graph.svg is left out: 401 tasks; up to 400 are drawn"),
        "{}",
        answer.stderr
    );
    let mut names: Vec<String> = fs::read_dir(folder.path().join("figures"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected = [
        "groups-gains.svg",
        "groups-graph.svg",
        "groups-imbalance.svg",
        "groups-timeline.svg",
        "wide-gains.svg",
        "wide-imbalance.svg",
        "wide-timeline.svg",
    ];
    assert_eq!(names, expected);
}
