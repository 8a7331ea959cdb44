//! Nuclear segmentation on OpenCL devices: the findings of cores, with one device and with two, by each policy.

use crate::FINDINGS;
use crate::pleach::answer;
use crate::results::{json, text};
use crate::study::Study;
use pleach_accelerate::{DeviceSpec, find};
use std::process::Command;

/// Operations of the study that have a device variant.
const WITH_KERNELS: [&str; 8] = [
    "nuclei.normalize",
    "nuclei.background",
    "nuclei.reconstruct",
    "nuclei.candidates",
    "nuclei.candidate-area",
    "nuclei.nuclei",
    "nuclei.final-area",
    "compare.masks",
];

/// Runs the study on two cores and on `devices`. Returns its findings, and the runs of its operations on all slots and on devices.
fn segmented(study: &Study, out: &str, devices: &str, policy: &str) -> (Vec<String>, u64, u64) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
    // PoCL makes a device of each entry.
    let pocl = vec!["pthread"; devices.parse().unwrap_or(1)].join(" ");
    command.current_dir(study.folder()).env("POCL_DEVICES", pocl);
    command.args(["run", "study.toml", "--out", out, "--quiet", "--workers", "2", "--reuse", "tree"]);
    let answer = answer(command.args(["--accelerators", devices, "--schedule", policy]));
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let mut runs = (0, 0);
    for operation in json(&study.path(out).join("run.json"))["operations"].as_array().expect("a list") {
        let on_devices = operation["accelerator"]["runs"].as_u64().unwrap_or(0);
        let name = operation["name"].as_str().expect("a name");
        assert!(on_devices == 0 || WITH_KERNELS.contains(&name), "{operation}");
        runs.0 += operation["runs"].as_u64().expect("a number");
        runs.1 += on_devices;
    }
    let findings = FINDINGS.iter().map(|name| text(&study.path(out).join(name))).collect();
    (findings, runs.0, runs.1)
}

#[test]
fn segmentation_on_opencl_devices_has_the_findings_of_cores() {
    let found = find(&DeviceSpec::All, None).expect("drivers are listed");
    if !found.devices.iter().any(|device| device.name().contains("pthread")) {
        let test = "segmentation_on_opencl_devices_has_the_findings_of_cores";
        return eprintln!("SKIPPED {test}: no OpenCL device of PoCL is present: {:?}", found.remarks);
    }
    drop(found);
    let study = Study::of_tissue(128);
    let (expected, all, on_devices) = segmented(&study, "cores", "none", "pats");
    assert_eq!(on_devices, 0);
    for (devices, policy) in [("1", "pats"), ("1", "fcfs"), ("2", "heft"), ("2", "pats")] {
        let out = format!("{devices}-{policy}");
        let (findings, runs, on_devices) = segmented(&study, &out, devices, policy);
        assert!(findings == expected, "{out}: the files are equal");
        assert_eq!(runs, all, "{out}");
        // How many there are depends on the time of each.
        assert!(on_devices > 0 && on_devices < all, "{out}: {on_devices} of {all} runs");
        println!("{out}: {on_devices} of {all} runs on devices");
    }
}
