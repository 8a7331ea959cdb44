//! The jobs of `deploy/slurm`, with a `pleach` that prints its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/slurm/manager.sbatch");

/// Arguments of the manager.
fn started(variables: &[(&str, &str)]) -> String {
    let place = tempfile::tempdir().expect("a folder");
    let (home, bin) = (place.path().join("pleach"), place.path().join("bin"));
    fs::create_dir_all(home.join("ca/manager")).expect("a folder");
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("pleach");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .arg(SCRIPT)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("PLEACH_HOME", &home)
        .env("PLEACH_ADDRESS", "node.cluster")
        .env_remove("PLEACH_PORT")
        .env_remove("PLEACH_HTTP_PORT")
        .envs(variables.iter().copied())
        .output()
        .expect("bash");
    assert!(output.status.success(), "{output:?}");
    let called = String::from_utf8(output.stdout).expect("UTF-8");
    called.replace(&home.display().to_string(), "HOME")
}

#[test]
fn ports_and_host_of_the_manager_are_variables() {
    let called = |listen: u16, http: u16| format!("--listen 0.0.0.0:{listen} --http 0.0.0.0:{http} ");
    for (variables, listen, http) in [
        (&[][..], 7117, 7118),
        (&[("PLEACH_PORT", "7200")][..], 7200, 7201),
        (&[("PLEACH_HTTP_PORT", "8443"), ("SLURM_JOB_ID", "4711")][..], 7117, 8443),
    ] {
        let arguments = started(variables);
        assert!(arguments.contains(&called(listen, http)), "{arguments}");
        assert!(arguments.contains(" --publish HOME --host node.cluster"), "{arguments}");
    }
}

/// Arguments of `srun` in a job of workers, with those of the worker that it starts.
fn step(variables: &[(&str, &str)]) -> String {
    let place = tempfile::tempdir().expect("a folder");
    let (home, bin) = (place.path().join("pleach"), place.path().join("bin"));
    fs::create_dir_all(&home).expect("a folder");
    fs::create_dir(&bin).expect("a folder");
    fs::write(home.join("token"), "t").expect("written");
    fs::write(home.join("address"), "node.cluster:7117\n").expect("written");
    let program = bin.join("srun");
    fs::write(&program, "#!/bin/sh\necho \"$@\" | tr '\\n' ' '; echo\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .arg(Path::new(SCRIPT).with_file_name("workers.sbatch"))
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("PLEACH_HOME", &home)
        .env_remove("PLEACH_WORKER_OPTIONS")
        .env_remove("SLURM_GPUS_ON_NODE")
        .envs([("SLURM_JOB_ID", "4711"), ("SLURM_JOB_NUM_NODES", "2"), ("SLURM_JOB_END_TIME", "2000000000")])
        .envs(variables.iter().copied())
        .output()
        .expect("bash");
    assert!(output.status.success(), "{output:?}");
    let called = String::from_utf8(output.stdout).expect("UTF-8");
    called.lines().next().expect("a step").to_owned()
}

#[test]
fn workers_take_the_gpus_of_their_job() {
    let plain = step(&[]);
    assert!(plain.contains("--manager node.cluster:7117") && plain.contains("--until 2000000000"), "{plain}");
    assert!(!plain.contains("--gres") && !plain.contains("--accelerators"), "{plain}");
    let with = step(&[("SLURM_GPUS_ON_NODE", "2"), ("PLEACH_WORKER_OPTIONS", "--schedule heft")]);
    let (of_step, of_worker) = with.split_once("bash -c").expect("a shell");
    assert!(of_step.contains("--gres=gpu:2") && !of_step.contains("--accelerators"), "{with}");
    assert!(
        of_worker.contains("--accelerators 2 ") && of_worker.trim_end().ends_with("--schedule heft"),
        "{with}"
    );
    assert!(!step(&[("SLURM_GPUS_ON_NODE", "0")]).contains("--accelerators"));
}

#[test]
fn readme_of_slurm_has_no_port_in_a_command() {
    let text = fs::read_to_string(Path::new(SCRIPT).with_file_name("README.md")).expect("UTF-8");
    let blocks = text.split("```").skip(1).step_by(2);
    assert!(blocks.clone().count() > 4);
    blocks.for_each(|block| assert!(["7117", "7118"].iter().all(|port| !block.contains(port)), "{block}"));
}
