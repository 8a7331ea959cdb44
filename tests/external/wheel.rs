//! The wheel of the Python package with this binary in it, installed into a new environment.

use crate::skipped;
use std::path::Path;
use std::process::{Command, Output};

/// Runs in the new environment, and prints the program, its libraries outside the package and the results of a study.
const PROGRAM: &str = r#"
import subprocess, sys
from pathlib import Path
import numpy as np
import pleach_studies as ps

program = ps.find_program()
assert Path(program).is_relative_to(Path(ps.__file__).parent), program
libraries = [line.split() for line in subprocess.check_output(["ldd", program], text=True).splitlines()]
packed = str(Path(ps.__file__).parents[1])
print("outside", *sorted({Path(line[0]).name for line in libraries if not (len(line) > 2 and line[2].startswith(packed))}))
print("packed", sum(len(line) > 2 and line[2].startswith(packed) for line in libraries))
command = str(Path(sys.executable).with_name("pleach"))
print("command", subprocess.check_output([command, "--version"], text=True).strip())
subprocess.run([command, "tissue", "--out", "tiles", "--size", "64", "--count", "1"], check=True, capture_output=True)
moat = {"kind": "moat", "trajectories": 1}
results = ps.Study(workflow="nuclei", tiles="tiles/*.png", method=moat).run("out", quiet=True)
print("evaluations", len(results.Y("dice")), "finite", bool(np.isfinite(results.Y("dice")).all()))
"#;

#[test]
fn installed_wheel_runs_a_study() {
    let test = "installed_wheel_runs_a_study";
    let folder = tempfile::tempdir().expect("a folder");
    let binary = assert_cmd::cargo::cargo_bin!("pleach");
    let built = build(&["--fast", "--out", "wheels", "--binary", &binary.to_string_lossy()], folder.path());
    if !built.status.success() {
        let text = String::from_utf8_lossy(&built.stderr).into_owned();
        // Tools come from PyPI. Any other failure is one of the script.
        assert!(text.contains("-m venv") || text.contains("pip install"), "{text}");
        return skipped(test, &format!("no tools for wheels: {}", text.lines().last().unwrap_or_default()));
    }
    let wheel = String::from_utf8(built.stdout).expect("UTF-8").trim().to_owned();
    let name = Path::new(&wheel).file_name().expect("a file").to_string_lossy().into_owned();
    assert!(name.starts_with("pleach_studies-") && name.contains("-py3-none-manylinux_2_"), "{name}");

    let run = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder.path()).env_remove("PLEACH").env_remove("PYTHONPATH");
        let output = command.env("PATH", "/usr/bin:/bin").output().expect("it starts");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    run(&python(), &["-m", "venv", "new"]);
    let new = folder.path().join("new/bin/python");
    run(&new, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", &wheel]);
    let output = run(&new, &["-c", PROGRAM]);
    let lines: Vec<&str> = output.lines().collect();
    let outside =
        "outside ld-linux-x86-64.so.2 libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6 linux-vdso.so.1";
    assert_eq!(lines[0], outside, "only libraries of glibc and GCC are not in the wheel");
    let packed = lines[1].strip_prefix("packed ").and_then(|number| number.parse::<u32>().ok());
    assert!(packed.is_some_and(|number| number > 10), "{output}");
    assert_eq!(lines[2], format!("command pleach {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(lines[3], "evaluations 16 finite True");
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, expected) in [
        (&["--binary", "none"][..], "none: no such program; build it with cargo build --release --locked"),
        (&["--binary"], "--binary: a path is needed"),
        (&["--slow"], "unknown argument --slow; --binary FILE, --out FOLDER and --fast are allowed"),
    ] {
        let output = build(args, folder.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("build-wheel: {expected}\n"), "{args:?}");
    }
}

fn build(args: &[&str], folder: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/build-wheel");
    Command::new(script).args(args).current_dir(folder).output().expect("the script runs")
}

/// Returns the machine's Python, which built the environment of the tests.
fn python() -> std::path::PathBuf {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    String::from_utf8(output.expect("Python starts").stdout).expect("UTF-8").trim().into()
}
