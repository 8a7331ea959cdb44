//! `examples/networks`: manifests, stages and workflows of Cellpose and StarDist, without these packages and their weights.

use crate::pleach::pleach;
use crate::results::text;
use crate::{copy, environment};
use std::fs;
use std::path::Path;

#[test]
fn workflows_of_networks_are_valid_and_name_the_missing_package() {
    let test = "workflows_of_networks_are_valid_and_name_the_missing_package";
    let Some(python) = environment(test) else { return };
    let python = python.to_str().expect("UTF-8");
    let cases = [
        (
            "cellpose",
            "3 tasks, 3 parameters",
            ["flow_threshold", "cellprob_threshold", "min_size"].as_slice(),
        ),
        ("stardist", "3 tasks, 2 parameters", &["prob_thresh", "nms_thresh"]),
    ];
    for (name, summary, parameters) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/networks").join(name), folder.path());
        let check = ["workflow", "check", "workflow.json", "--python", python];
        let answer = pleach(folder.path(), &check);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(name) && answer.stderr.contains("not installed"), "{answer:?}");

        let manifest = text(&folder.path().join("pleach.toml"));
        let requires = manifest.lines().find(|line| line.starts_with("requires")).expect("a key").to_owned();
        fs::write(folder.path().join("pleach.toml"), manifest.replace(&requires, "requires = []"))
            .expect("written");
        let checked = pleach(folder.path(), &check).done();
        assert!(checked.contains(summary), "{checked}");
        let shown = pleach(folder.path(), &["workflow", "show", "workflow.json", "--python", python]).done();
        for parameter in parameters {
            assert!(shown.contains(parameter), "{parameter}: {shown}");
        }
    }
}
