//! Damaged and hostile studies and descriptors: the reader accepts or rejects each, with a one-line message that names
//! a file, and with memory in proportion to the length.
//!
//! A file may cost at most [`FACTOR`] times its length plus [`SMALL`] at any one time. Lists of short texts cost most:
//! `"",` is a string of 24 bytes, in a list that may just have doubled, next to its older half. TOML is held as tokens,
//! as a tree with positions, and as a tree. Ranges become lists of up to 1,000,000 values, and the sum is limited.

#[path = "../../../../tests/support/allocations.rs"]
mod allocations;
#[path = "../support/example.rs"]
mod example;
#[path = "../../../../tests/support/mutations.rs"]
mod mutations;
#[path = "../support/registry.rs"]
mod registry;
mod structure;

use allocations::peak_of;
use example::EXAMPLE;
use mutations::{mutated, mutations};
use pleach_workflow::{Study, Workflow, stage_file};
use proptest::prelude::*;
use registry::{registry, shipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// Maximum bytes held per byte of a file.
const FACTOR: usize = 300;

/// Bytes held for any file: the rest of the workflow, and messages.
const SMALL: usize = 2 << 20;

/// The descriptors of the nuclei workflow, the workflow first.
const FILES: [&str; 5] =
    ["workflow.json", "normalization.json", "segmentation.json", "comparison.json", "object-comparison.json"];

static STUDY: LazyLock<String> = LazyLock::new(|| {
    EXAMPLE.replace("workflow = \"nuclei\"", "workflow = \"workflow.json\"")
        + "[parameters.T1]\nfixed = 2.5\n"
});

/// A study, its workflow and a tile, in a folder that is removed on drop.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        FILES.iter().for_each(|name| folder.write(name, shipped_text(name)));
        fs::create_dir(folder.path("tiles")).expect("a folder");
        folder.write("tiles/a.png", "");
        folder.write("study.toml", STUDY.as_str());
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("written");
    }

    /// Loads the study, the workflow alone, and a stage alone. Returns the message of each that is rejected.
    fn load(&self, stage: &str) -> [Result<(), String>; 3] {
        let registry = registry();
        let length = |name: &str| fs::metadata(self.path(name)).expect("a file").len() as usize;
        let all = FILES.iter().map(|name| length(name)).sum::<usize>() + length("study.toml");
        let told = |what: &str, (said, peak): (Result<(), String>, usize)| {
            assert!(peak <= FACTOR * all + SMALL, "{what}: {peak} bytes held for {all}");
            if let Err(said) = &said {
                assert!(said.starts_with(&self.0.path().display().to_string()), "{what}: {said}");
                assert_eq!(said.lines().count(), 1, "{what}: {said}");
            }
            said
        };
        let study = || {
            let study = Study::load(&self.path("study.toml"), &registry, |_| None, &[]);
            study.map(drop).map_err(|error| error.to_string())
        };
        let workflow = || {
            let workflow = Workflow::load(&self.path("workflow.json"), &registry);
            workflow.map(drop).map_err(|error| error.to_string())
        };
        let alone = || stage_file(&self.path(stage), &registry).map(drop).map_err(|error| error.to_string());
        [told("study", peak_of(study)), told("workflow", peak_of(workflow)), told("stage", peak_of(alone))]
    }

    /// Expects that each reader of this file rejects it.
    #[track_caller]
    fn refused(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let good = fs::read(self.path(name)).expect("a file");
        self.write(name, content);
        let [study, workflow, stage] = self.load(name);
        self.write(name, good);
        if name.ends_with("json") {
            assert!(workflow.is_err() && stage.is_err(), "{name}");
        }
        study.expect_err(name)
    }
}

fn shipped_text(name: &str) -> String {
    fs::read_to_string(shipped().with_file_name(name)).expect("a shipped descriptor")
}

fn file_named(said: &str, file: &Path) -> bool {
    said.starts_with(&file.display().to_string())
}

#[test]
fn unchanged_files_are_accepted() {
    assert_eq!(Folder::new().load("segmentation.json"), [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn byte_order_marks_and_crlf_are_accepted() {
    let folder = Folder::new();
    for name in ["study.toml", "workflow.json", "segmentation.json"] {
        let good = fs::read_to_string(folder.path(name)).expect("a file");
        for text in [format!("\u{feff}{good}"), good.replace('\n', "\r\n"), format!("{good}\n\n\r\n\t ")] {
            folder.write(name, text);
            let [study, workflow, _] = folder.load("segmentation.json");
            assert_eq!((study, workflow), (Ok(()), Ok(())), "{name}");
        }
        folder.write(name, good);
    }
}

#[test]
fn hostile_content_is_refused_with_the_file_name() {
    let folder = Folder::new();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    let noise: Vec<u8> = (0..10_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let ascii: Vec<u8> = noise.iter().map(|byte| byte % 95 + 32).collect();
    let contents: [(&str, Vec<u8>); 12] = [
        ("nothing", Vec::new()),
        ("a mark", b"\xef\xbb\xbf".to_vec()),
        ("a byte", vec![0]),
        ("no UTF-8", vec![0xff, 0xfe, 0, 0x80]),
        ("lists in lists", deep("[", "]").into_bytes()),
        ("an open end", "[".repeat(200_000).into_bytes()),
        ("objects in objects", deep("{\"a\":", "}").into_bytes()),
        ("tables in tables", format!("a = {}", deep("{a = ", "}")).into_bytes()),
        ("lists in a list", format!("a = {}", deep("[", "]")).into_bytes()),
        ("dots", format!("{} = 1", vec!["a"; 100_000].join(".")).into_bytes()),
        ("noise", noise),
        ("letters", ascii),
    ];
    for (what, content) in contents {
        for name in ["study.toml", "workflow.json", "segmentation.json"] {
            let said = folder.refused(name, &content);
            assert!(file_named(&said, &folder.path(name)), "{what} as {name}: {said}");
        }
    }
}

#[test]
fn hostile_numbers_and_keys_are_refused_by_file_name() {
    let folder = Folder::new();
    for (old, new) in [
        ("seed = 500", "seed = 99999999999999999999999999"),
        ("seed = 500", "seed = -1"),
        ("seed = 500", "seed = 1e400"),
        ("seed = 500", "seed = nan"),
        ("seed = 500", "seed = 500\nseed = 500"),
        ("[method]", "[study]\n[method]"),
        ("trajectories = 10", "trajectories = 9223372036854775807"),
        ("levels = 20", "levels = 1000000000000"),
        ("step = 5", "step = nan"),
        ("step = 5", "step = 1e-300"),
        ("step = 5", "step = -5"),
        ("range = [5, 80]\nstep = 5", "range = [-inf, inf]"),
        ("range = [5, 80]\nstep = 5", "range = [-9223372036854775808, 9223372036854775807]"),
        ("range = [5, 80]\nstep = 5", "range = [0, 1e18]"),
        ("fixed = 2.5", "fixed = inf"),
        ("name = \"nuclei-moat\"", "name = \"a\\u0000b\""),
        ("name = \"nuclei-moat\"", "name = \"a\u{0}b\""),
        ("\"tiles/*.png\"", "\"tiles/\\u0000.png\""),
        ("\"tiles/*.png\"", "\"tiles/***.png\""),
        ("\"tiles/*.png\"", "\"tiles/[.png\""),
        ("\"workflow.json\"", "\"work\\u0000flow.json\""),
        ("\"defaults\"", "\"\\u0000\""),
    ] {
        assert_eq!(STUDY.matches(old).count(), 1, "{old}");
        let said = folder.refused("study.toml", STUDY.replace(old, new));
        assert!(file_named(&said, &folder.path("study.toml")), "{new}: {said}");
    }
    let good = shipped_text("segmentation.json");
    for (old, new) in [
        ("\"version\": 1", "\"version\": 1e99"),
        ("\"version\": 1", "\"version\": -1"),
        ("\"version\": 1", "\"version\": 1, \"version\": 1"),
        ("[5, 80]", "[5, 1e999]"),
        ("[5, 80]", "[NaN, 80]"),
        ("[5, 80]", "[-1e308, 1e308]"),
        ("[5, 80]", "[0, 1e15]"),
        ("\"step\": 5", "\"step\": 1e-9"),
    ] {
        assert!(good.contains(old), "{old}");
        let said = folder.refused("segmentation.json", good.replacen(old, new, 1));
        assert!(file_named(&said, &folder.path("segmentation.json")), "{new}: {said}");
    }
}

/// Lists whose entries are looked up linearly, and ranges that are short in the file but have many values.
#[test]
fn long_lists_are_refused_beyond_the_limit() {
    let folder = Folder::new();
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let long = STUDY.replace("values = [4, 8]", &format!("values = [{}]", numbers(200_000)));
    let said = folder.refused("study.toml", long);
    let refusal = "parameters.FillHoles.values: 199999 is not allowed; allowed: one of 4 8 (operation nuclei.candidates)";
    assert!(said.ends_with(refusal), "{said}");
    let many = STUDY.replace("values = [4, 8]", &format!("values = [{}]", numbers(1_000_001)));
    let said = folder.refused("study.toml", many);
    assert!(
        said.ends_with("parameters.FillHoles.values: 1000001 values are too many; up to 1000000 are allowed"),
        "{said}"
    );
    folder.write("study.toml", STUDY.as_str());

    let good = shipped_text("segmentation.json");
    let task = r#"{"task": "t", "operation": "o", "version": 1, "reads": [], "writes": []}"#;
    let tasks = format!(
        "{{\"stage\": \"s\", \"inputs\": [], \"outputs\": [], \"tasks\": [{}]}}",
        vec![task; 20_000].join(",")
    );
    folder.write("segmentation.json", tasks);
    let [.., said] = folder.load("segmentation.json");
    let said = said.expect_err("too many");
    assert!(
        said.ends_with("#/tasks: the list of tasks has 20000 entries; up to 10000 are allowed"),
        "{said}"
    );
    // 1,000,000 values each, for five parameters.
    let wide = good.replacen("[210, 240], \"step\": 10", "[0, 999999]", 3).replacen(
        "[5, 80], \"step\": 5",
        "[0, 999999]",
        2,
    );
    assert_eq!(wide.matches("[0, 999999]").count(), 5, "{good}");
    folder.write("segmentation.json", wide);
    let said = Workflow::load(&folder.path("workflow.json"), &registry()).expect_err("too many").to_string();
    assert!(said.contains("have more than 4000000 values together"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupt_files_are_read_or_refused_within_bounds(which in 0..5_usize, mutations in mutations()) {
        thread_local! {
            static FOLDER: Folder = Folder::new();
        }
        FOLDER.with(|folder| {
            let name = FILES.get(which).copied().unwrap_or("study.toml");
            let good = fs::read(folder.path(name)).expect("a file");
            folder.write(name, mutated(&good, &mutations));
            let _ = folder.load(if which == 4 { "segmentation.json" } else { name });
            folder.write(name, good);
        });
    }
}
