//! The trial of the drivers in a child process: a driver that crashes when it is loaded gives a remark and no device.
//!
//! Without the test harness, since the trial starts this program again: `serve_probe` is the first call in `main`.

use pleach_accelerate::{DeviceSpec, find, serve_probe};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

const NAME: &str = "driver_that_crashes_gives_a_remark_and_no_device";

/// Argument of the runs below: finds all devices and prints them.
const FIND: &str = "--find-devices";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the program is its own test harness")]
fn main() -> Result<(), Box<dyn Error>> {
    if serve_probe() {
        return Ok(());
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == FIND) {
        println!("{:?}", find(&DeviceSpec::All, None)?);
        return Ok(());
    }
    if arguments.iter().any(|argument| argument == "--list") {
        println!("{NAME}: test");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("crash.so");
    let source = folder.path().join("crash.c");
    let crash = "#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n";
    fs::write(&source, crash)?;
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED {NAME}: no C compiler is present");
        return Ok(());
    }
    let whole = found(None)?;
    if text(&whole).contains("no OpenCL library") {
        eprintln!("SKIPPED {NAME}: no OpenCL device is present, nor a loader of drivers");
        return Ok(());
    }
    assert!(whole.status.success() && !text(&whole).contains("crashes"), "{whole:?}");

    fs::write(folder.path().join("crash.icd"), library.display().to_string())?;
    let crashed = found(Some(folder.path()))?;
    assert!(crashed.status.success(), "the program survives: {crashed:?}");
    let expected = "devices: [], remarks: [\"OpenCL: a driver crashes when it is loaded (signal: 6";
    assert!(text(&crashed).contains(expected), "{crashed:?}");
    println!("test {NAME} ... ok");
    Ok(())
}

/// Runs this program, with the drivers of a folder instead of those of the system.
fn found(drivers: Option<&Path>) -> std::io::Result<Output> {
    let mut command = Command::new(env::current_exe()?);
    if let Some(folder) = drivers {
        command.env("OCL_ICD_VENDORS", folder);
    }
    command.arg(FIND).output()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
