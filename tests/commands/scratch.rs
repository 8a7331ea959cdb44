//! The folder of a worker in the jobs of `deploy/slurm` and `deploy/pbs`, with replacements of `pleach` and `rm`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A worker that refuses a tier without its marker, as the real one does.
const PLEACH: &str = "#!/bin/bash
while [[ $1 != --ssd ]]; do shift; done
if [[ -e $2/regions/a && ! -e $2/regions/FORMAT ]]; then
  exit 2
fi
mkdir -p \"$2/regions/a\"
touch \"$2/regions/FORMAT\"
";

/// Removes the marker first. While there is a file INTERRUPT, the job is killed then.
const RM: &str = "#!/bin/bash
/bin/rm -f -- \"${!#}/regions/FORMAT\"
if [[ -e $INTERRUPT && -e ${!#} ]]; then
  kill -9 $PPID; exit 1
fi
/bin/rm \"$@\"
";

/// Returns the script that runs on each node.
fn worker_script(job: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(job);
    let text = fs::read_to_string(path).expect("UTF-8");
    let (_, rest) = text.split_once("\nworker='\n").expect("a script");
    rest.split_once("\n'\n").expect("its end").0.to_owned()
}

/// Slurm and PBS kill a job some time after its SIGTERM, and run a requeued one on the same node.
#[test]
fn job_killed_while_it_removes_its_folder_runs_again() {
    for job in ["slurm/workers.sbatch", "pbs/workers.pbs"] {
        let place = tempfile::tempdir().expect("a folder");
        let path = |name: &str| place.path().join(name);
        for folder in ["bin", "tmp"] {
            fs::create_dir(path(folder)).expect("a folder");
        }
        for (name, text) in [("bin/pleach", PLEACH), ("bin/rm", RM)] {
            fs::write(path(name), text).expect("written");
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).expect("executable");
        }
        let run = || {
            let mut command = Command::new("bash");
            command.args(["-c", &worker_script(job), "worker"]);
            if job.starts_with("pbs") {
                command.arg(path("bin/pleach")).arg("4711");
            }
            command.arg(path("tmp")).env("PATH", format!("{}:/usr/bin:/bin", path("bin").display()));
            command.env("SLURM_JOB_ID", "4711").env("SLURMD_NODENAME", "n1").env_remove("PLEACH_WORKER_NAME");
            command.env("INTERRUPT", path("interrupt")).output().expect("bash")
        };
        fs::write(path("interrupt"), "").expect("written");
        let killed = run();
        assert_eq!(killed.status.code(), None, "{job}: {killed:?}");
        assert_eq!(fs::read_dir(path("tmp")).expect("a folder").count(), 1, "{job}: a part is left");
        fs::remove_file(path("interrupt")).expect("a file");
        let again = run();
        assert!(again.status.success(), "{job}: {again:?}");
        assert_eq!(fs::read_dir(path("tmp")).expect("a folder").count(), 0, "{job}: all is removed");
    }
}
