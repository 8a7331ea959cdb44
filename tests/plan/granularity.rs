//! `pleach plan --granularity`: tasks and stages that would take less time as one.

use crate::pleach::pleach;
use crate::seconds;
use crate::study::Study;
use serde_json::Value;

#[test]
fn granularity_proposes_groups_by_overhead() {
    let study = Study::of_tissue(64);
    let asked = |overhead: &str| -> Value {
        let options = ["plan", "study.toml", "--json", "--granularity", "--task-overhead", overhead];
        serde_json::from_str(&pleach(study.folder(), &options).done()).expect("one JSON document")
    };
    let segmentation = |document: &Value| document["granularity"]["stages"][1].clone();
    let (free, expensive) = (segmentation(&asked("0")), segmentation(&asked("1000000")));
    // Without overhead, fusing only repeats tasks. With one of a second it pays off for all chains. t3 and t1 have two readers, t5 has
    // several sources.
    assert_eq!(free["groups"], serde_json::json!([["t1"], ["t2"], ["t3"], ["t4"], ["t5"], ["t6"], ["t7"]]));
    assert_eq!(expensive["groups"], serde_json::json!([["t1"], ["t2", "t3"], ["t4"], ["t5", "t6", "t7"]]));
    assert!(seconds(&expensive, "seconds") < seconds(&expensive, "separate_seconds"));
    assert_eq!(seconds(&free, "seconds"), seconds(&free, "separate_seconds"));
    let text =
        pleach(study.folder(), &["plan", "study.toml", "--granularity", "--task-overhead", "1000000"]).done();
    assert!(text.contains("with t2 + t3, t5 + t6 + t7 as one"), "{text}");
    let refused = pleach(study.folder(), &["plan", "study.toml", "--granularity", "--task-overhead", "some"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("a number of microseconds from 0"), "{}", refused.stderr);
}

/// Stages are fused where their transfers take longer than repeated instances. The tiles are so large that a fast network has no
/// reason.
#[test]
fn granularity_fuses_stages_where_transfers_take_longer() {
    let study = Study::of_tissue(320);
    let asked = |bandwidth: &str| -> Value {
        let options = ["plan", "study.toml", "--json", "--granularity", "--bandwidth", bandwidth];
        let printed = pleach(study.folder(), &options).done();
        serde_json::from_str::<Value>(&printed).expect("one JSON document")["granularity"].take()
    };
    let (fast, slow) = (asked("10GB"), asked("1MB"));
    let separate = serde_json::json!([["normalization"], ["segmentation"], ["comparison"]]);
    assert_eq!(fast["workflow"]["groups"], separate);
    assert_eq!(seconds(&fast["workflow"], "seconds"), seconds(&fast["workflow"], "separate_seconds"));
    // The reference is a mask of the segmentation, so that stage is not fused with its reader.
    let fused = serde_json::json!([["normalization", "segmentation"], ["comparison"]]);
    assert_eq!(slow["workflow"]["groups"], fused);
    // Each instance of the segmentation repeats the normalization, and receives no tile: 3 bytes a pixel, and 1 ms.
    let step = |number: usize| {
        let step = &slow["workflow"]["steps"][number];
        (step["instances"].as_u64().expect("a number") as f64, seconds(step, "seconds"))
    };
    let ((tiles, normalization), (instances, _)) = (step(0), step(1));
    let transfer = 1e-3 + f64::from(3 * 320 * 320) / 1e6;
    let repeated = (instances - tiles) * normalization / tiles;
    let saved = tiles * seconds(&slow, "stage_overhead_seconds") + instances * transfer - repeated;
    let predicted = seconds(&slow["workflow"], "separate_seconds") - seconds(&slow["workflow"], "seconds");
    assert!((predicted - saved).abs() < 1e-9 && saved > 0.0, "{predicted} {saved}");
    // Tasks of an instance run on one worker: the network does not change their groups.
    assert_eq!(fast["stages"], slow["stages"]);
    let options = ["plan", "study.toml", "--granularity", "--bandwidth", "1MB"];
    let text = pleach(study.folder(), &options).done();
    assert!(text.contains("with normalization + segmentation as one"), "{text}");
}
