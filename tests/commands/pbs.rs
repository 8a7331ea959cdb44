//! The jobs of `deploy/pbs`, with replacements of `qstat`, of `pbsdsh`, and of the `hostname` of each node. The worker's
//! arguments are parsed by the real program.

use crate::pleach::pleach;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/pbs");

/// Starts of the directives that PBS Professional and OpenPBS both know (`man qsub`).
const DIRECTIVES: [&str; 8] =
    ["-N ", "-l select=", "-l place=scatter", "-l walltime=", "-r y", "-V", "-j oe", "-k oed"];

/// The answer of `qstat -f`, with a broken line.
const QSTAT: &str = "Job Id: 4711[3].pbs
    Job_Name = pleach-workers
    Resource_List.ncpus = 32
    Resource_List.place = scatter
    Resource_List.select = 2:ncpus=16:mem=64gb:
\tngpus=2
    Resource_List.walltime = 01:30:00
    stime = Fri Nov 27 10:00:00 2026
";

/// An account with `~/pleach` and programs.
struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().expect("a folder"));
        for folder in ["pleach/ca/manager", "bin", "node", "tmp"] {
            fs::create_dir_all(site.path(folder)).expect("a folder");
        }
        for (file, text) in [
            ("pleach/token", "t"),
            ("pleach/address", "node.cluster:7117\n"),
            ("nodes", "n1\nn2\n"),
            ("qstat", QSTAT),
        ] {
            fs::write(site.path(file), text).expect("written");
        }
        site.program("bin/pleach", "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n");
        site.program("bin/qstat", &format!("#!/bin/sh\ncat {}\n", site.path("qstat").display()));
        site.program("node/hostname", "#!/bin/sh\necho \"$NODE\"\n");
        // As the real one: once on each node, with an environment of its own.
        let path = format!("{}:/usr/bin:/bin", site.path("node").display());
        let nodes = site.path("nodes");
        let script = format!(
            "#!/bin/bash\n[[ $1 == -- ]] || exit 1\nshift\nwhile read -r node; do\n  \
             env -i PATH={path} NODE=\"$node\" PBS_JOBID=\"$PBS_JOBID\" \"$@\"\ndone <{}\n",
            nodes.display()
        );
        site.program("bin/pbsdsh", &script);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        fs::write(self.path(name), script).expect("written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.arg(Path::new(FOLDER).join(script)).env("HOME", self.0.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PLEACH_") {
                command.env_remove(name);
            }
        }
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("PBS_JOBID", "4711[3].pbs").env("PBS_NODEFILE", self.path("nodes"));
        command.env("TMPDIR", self.path("tmp")).env("TZ", "UTC").env("LC_ALL", "C");
        command.envs(variables.iter().copied()).output().expect("bash")
    }

    /// The words with which each node called `pleach`.
    fn calls(&self, variables: &[(&str, &str)]) -> Vec<Vec<String>> {
        let output = self.run("workers.pbs", variables);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.split("worker\n").skip(1).map(|call| call.lines().map(str::to_owned).collect()).collect()
    }

    fn refusal(&self) -> String {
        let output = self.run("workers.pbs", &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    }
}

fn value<'a>(call: &'a [String], option: &str) -> Option<&'a str> {
    let place = call.iter().position(|word| word == option)?;
    Some(call[place + 1].as_str())
}

#[test]
fn directives_of_pbs_are_known() {
    for (script, count) in [("manager.pbs", 7), ("workers.pbs", 8)] {
        let path = Path::new(FOLDER).join(script);
        let checked = Command::new("bash").arg("-n").arg(&path).output().expect("bash");
        assert!(checked.status.success(), "{checked:?}");
        let text = fs::read_to_string(path).expect("UTF-8");
        let directives: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#PBS ")).collect();
        assert_eq!(directives.len(), count, "{script}");
        for directive in directives {
            assert!(DIRECTIVES.iter().any(|known| directive.starts_with(known)), "{script}: {directive}");
        }
        // PBS reads no directive after the first command.
        let commands = text.lines().position(|line| !line.starts_with('#')).expect("a command");
        assert!(!text.lines().skip(commands).any(|line| line.starts_with("#PBS")), "{script}");
    }
}

#[test]
fn manager_of_pbs_publishes_its_addresses() {
    let site = Site::new();
    let output = site.run("manager.pbs", &[("PLEACH_ADDRESS", "node.cluster"), ("PLEACH_PORT", "7200")]);
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8(output.stdout).expect("UTF-8");
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[..5], ["manager", "--listen", "0.0.0.0:7200", "--http", "0.0.0.0:7201"]);
    let folder = site.path("pleach").display().to_string();
    assert_eq!(words[words.len() - 4..], ["--publish", &folder, "--host", "node.cluster"]);
    // The grammar refuses an unknown option or value before it answers --help.
    pleach(Path::new(FOLDER), &[&words[..], &["--help"]].concat()).done();
}

#[test]
fn each_node_of_a_pbs_job_starts_a_worker_with_its_resources() {
    let site = Site::new();
    let calls = site.calls(&[("PLEACH_WORKER_OPTIONS", "--schedule heft"), ("PLEACH_DRAIN_TIMEOUT", "20s")]);
    let names: Vec<_> = calls.iter().map(|call| value(call, "--name")).collect();
    assert_eq!(names, [Some("n1-4711-3"), Some("n2-4711-3")]);
    for call in &calls {
        assert_eq!(value(call, "--manager"), Some("node.cluster:7117"));
        assert_eq!(value(call, "--cores"), Some("16"));
        // 60 % of 65,536 MiB.
        assert_eq!(value(call, "--memory"), Some("39321MiB"));
        assert_eq!(value(call, "--accelerators"), Some("2"));
        // 2026-11-27T10:00:00Z and 90 minutes.
        assert_eq!(value(call, "--until"), Some("1795779000"));
        assert_eq!(value(call, "--drain-timeout"), Some("20s"));
        assert_eq!(value(call, "--schedule"), Some("heft"));
        // The grammar refuses an unknown option or value before it answers --help.
        let words: Vec<&str> = call.iter().map(String::as_str).collect();
        pleach(Path::new(FOLDER), &[&["worker"], &words[..], &["--help"]].concat()).done();
    }
    assert_eq!(fs::read_dir(site.path("tmp")).expect("a folder").count(), 0, "workers remove their folders");
}

#[test]
fn pbs_jobs_without_limits_give_their_workers_none() {
    let site = Site::new();
    fs::write(site.path("qstat"), "    Resource_List.select = 1\n").expect("written");
    let call = site.calls(&[]).remove(0);
    for option in ["--cores", "--memory", "--accelerators", "--until"] {
        assert_eq!(value(&call, option), None, "{option}");
    }
    assert_eq!(value(&call, "--drain-timeout"), Some("45s"));
}

#[test]
fn pbs_jobs_that_cannot_run_say_why() {
    let site = Site::new();
    fs::write(site.path("nodes"), "n1\nn1\n").expect("written");
    assert!(site.refusal().contains("a node twice; one chunk per node"));
    fs::write(site.path("nodes"), "n1\nn2\n").expect("written");
    fs::write(site.path("qstat"), QSTAT.replace("2:ncpus", "1:ncpus=8+2:ncpus")).expect("written");
    assert!(site.refusal().contains("chunks of one kind are allowed"));
    fs::remove_file(site.path("pleach/address")).expect("a file");
    assert!(site.refusal().contains("the manager has not been started"));
    fs::remove_file(site.path("pleach/token")).expect("a file");
    assert!(site.refusal().contains("pleach/token: no such file"));
}
