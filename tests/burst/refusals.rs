//! Invalid burst files: one line names the file, the field, the value and the allowed values. The command exits with 2 and
//! writes no pictures.

use crate::Copied;
use crate::pleach::pleach;

/// Asserts that a burst file with these edits is refused with `expected` after the file's name.
#[track_caller]
fn refused(edits: &[(&str, &str)], expected: &str) {
    let copied = Copied::new();
    copied.edit("burst.toml", edits);
    let answer = pleach(copied.folder(), &["simulate", "burst.toml", "--out", "pictures"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    let beginning = format!("error: burst.toml: {expected}");
    assert!(answer.stderr.starts_with(&beginning), "{}\nwanted: {beginning}", answer.stderr);
    assert!(!copied.folder().join("pictures").exists(), "a folder was left behind");
}

#[test]
fn unknown_field_error_lists_known_fields() {
    refused(&[("max = 64", "max = 64\ncolor = 1")], "pool 1.color: unknown; known are name, cores");
    refused(&[("seed = 500", "sead = 500")], "burst.sead: unknown; known are deadline_seconds");
    refused(&[("[base]", "[basis]\n[base]")], "basis: unknown; known are study, base, pool, burst, policy");
    refused(&[("variation = 0.2", "variance = 0.2")], "study.variance: unknown; known are file");
    refused(&[("{ cloud = 8 }", "{ clod = 8 }")], "policy 1.workers.clod: unknown; known are cloud");
    refused(&[("kind = \"budget\"", "kind = \"budget\"\nprice = 1")], "policy 4.price: unknown; known are");
}

#[test]
fn invalid_numbers_are_refused() {
    let price = "pool 1.price_per_hour: -0.2 is not allowed; 0 or more per worker and hour is allowed";
    refused(&[("price_per_hour = 0.10", "price_per_hour = -0.2")], price);
    refused(
        &[("= 0.02", "= -1")],
        "pool 1.egress_price_per_gb: -1 is not allowed; 0 to 1e6 is allowed: price",
    );
    refused(&[("startup_seconds = 120\n", "")], "pool 1.startup_seconds: missing; 0 to 604800 is allowed");
    refused(
        &[("startup_seconds = 120", "startup_seconds = \"soon\"")],
        "pool 1.startup_seconds: \"soon\" is not",
    );
    refused(&[("max = 64", "max = 0")], "pool 1.max: 0 is not allowed; a whole number from 1 to 100000");
    refused(&[("nodes = 8", "nodes = 0")], "base.nodes: 0 is not allowed; a whole number from 1 to 100000");
    refused(
        &[("{ cloud = 8 }", "{ cloud = 65 }")],
        "policy 1.workers.cloud: 65 is not allowed; a whole number",
    );
    refused(
        &[("nodes = 8", "nodes = 8\nprocessors = 0")],
        "base.processors: 0 is not allowed; a whole number",
    );
    refused(
        &[("nodes = 8", "nodes = 8\nprocessors = 2\naccelerators = 1")],
        "base.processors: 2 is not allowed; accelerators is set as well",
    );
    refused(
        &[("nodes = 8", "nodes = 8\ntask_work_ms = 0.5")],
        "base.task_work_ms: 0.5 is not allowed; processors is not set",
    );
    refused(
        &[("nodes = 8", "nodes = 8\nprocessors = 2\nmegapixel_work_ms = -1")],
        "base.megapixel_work_ms: -1 is not allowed; 0 to 1000 is allowed",
    );
    refused(
        &[("deadline_of_base = 0.5", "deadline_seconds = -60")],
        "burst.deadline_seconds: -60 is not allowed; 1 to",
    );
    refused(
        &[("deadline_of_base = 0.5", "deadline_of_base = 0")],
        "burst.deadline_of_base: 0 is not allowed; 0.001",
    );
    refused(
        &[("deadline_of_base = 0.5", "deadline_of_base = 0.5\ndeadline_seconds = 60")],
        "burst.deadline_of_base: 0.5 is not allowed; deadline_seconds is set as well",
    );
    refused(&[("budget = 2.0", "budget = nan")], "burst.budget: nan is not allowed; 0 to 1e12 is allowed");
}

#[test]
fn missing_and_unknown_values_are_refused() {
    let kinds =
        "policy 1.kind: \"guess\" is not allowed; \"fixed\", \"deadline\", \"budget\", \"queue-length\" and";
    refused(&[("kind = \"fixed\"", "kind = \"guess\"")], kinds);
    refused(&[("kind = \"fixed\"\n", "")], "policy 1.kind: missing; \"fixed\", \"deadline\"");
    let reuse = "study.reuse: \"values\" is not allowed; \"tree\", \"dataflow\" or \"value\" is allowed";
    refused(&[("reuse = \"tree\"", "reuse = \"values\"")], reuse);
    let run = "study.run: missing; needed with reuse = \"value\": the run.json of pleach run --reuse value";
    refused(&[("reuse = \"tree\"", "reuse = \"value\"")], run);
    let study = "study.file: \"none.toml\" is not allowed; file not found; the path of a study file";
    refused(&[("\"study.toml\"", "\"none.toml\"")], study);
    refused(&[("tile_pixels = 1073741824\n", "")], "study.tile_pixels: missing; needed if tiles is set");
    refused(
        &[("deadline_of_base = 0.5\n", "")],
        "policy 3.deadline_seconds: missing; a policy of this kind needs",
    );
    refused(&[("budget = 2.0\n", "")], "policy 4.budget: missing; a policy of this kind needs");
    refused(
        &[("kind = \"queue-length\"", "kind = \"fixed\"\nname = \"fixed\"")],
        "policy 2.buckets_a_slot: unknown",
    );
    refused(
        &[("kind = \"budget\"", "kind = \"deadline\"")],
        "policy 4.name: \"deadline\" is not allowed; names",
    );
    refused(
        &[("[[policy]]\nkind = \"fixed\"", "[[policy]]\nname = \"a/b\"\nkind = \"fixed\"")],
        "policy 1.name: \"a/b\"",
    );
}

#[test]
fn without_pools_policies_or_a_file_there_is_nothing_to_simulate() {
    let copied = Copied::new();
    let cases = [
        ("[study]\nfile = \"study.toml\"\n", "base: missing; a table [base]"),
        ("[base]\nnodes = 1\ncores = 1\n", "study: missing; a table [study]"),
        (
            "[study]\nfile = \"study.toml\"\n[base]\nnodes = 1\ncores = 1\n",
            "pool: missing; at least one [[pool]] is needed",
        ),
        (
            "pool = []\n[study]\nfile = \"study.toml\"\n[base]\nnodes = 1\ncores = 1\n",
            "pool: missing; at least one [[pool]] is needed",
        ),
        (
            "pool = 3\n[study]\nfile = \"study.toml\"\n[base]\nnodes = 1\ncores = 1\n",
            "pool: 3 is not allowed; tables",
        ),
        ("[study\n", ""),
    ];
    for (text, expected) in cases {
        std::fs::write(copied.folder().join("wrong.toml"), text).expect("a folder");
        let answer = pleach(copied.folder(), &["simulate", "wrong.toml"]);
        assert_eq!((answer.code, answer.stderr.lines().count()), (2, 1), "{answer:?}");
        let beginning = if expected.is_empty() { "error: wrong.toml:1:" } else { "error: wrong.toml: " };
        assert!(
            answer.stderr.starts_with(&format!("{beginning}{expected}")),
            "{answer:?}\nwanted: {expected}"
        );
    }
    let answer = pleach(copied.folder(), &["simulate", "nowhere.toml"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.starts_with("error: nowhere.toml: failed to read: "), "{answer:?}");
    let answer = pleach(copied.folder(), &["simulate", "burst.toml", "--out", "study.toml"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.starts_with("error: --out study.toml: "), "{answer:?}");
}
