//! The trial of the drivers in a child process: a driver that crashes when it is loaded gives a remark and no device.
//!
//! Without the test harness, since the trial starts this program again: `serve_probe` is the first call in `main`.

use pleach_accelerate::{find, serve_probe};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

const NAME: &str = "driver_that_crashes_gives_a_remark_and_no_device";

/// Argument of the runs below, with a choice of devices: finds and prints them, and whether PoCL is in the process.
const FIND: &str = "--find-devices";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the program is its own test harness")]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(found) = serve_probe() {
        print!("{found}");
        return Ok(());
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [argument, devices] = &arguments[..]
        && argument == FIND
    {
        println!("{:?}", find(&devices.parse()?, None)?);
        let has_pocl = fs::read_to_string("/proc/self/maps")?.contains("libpocl");
        println!("PoCL is loaded: {has_pocl}");
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
    let whole = found("all", None)?;
    if text(&whole).contains("no OpenCL library") {
        eprintln!("SKIPPED {NAME}: no OpenCL device is present, nor a loader of drivers");
        return Ok(());
    }
    assert!(whole.status.success() && !text(&whole).contains("crashes"), "{whole:?}");
    // Without graphics cards, the drivers of processors stay out of a process that looks for cards only.
    let cards = found("auto", None)?;
    let no_cards = "devices: [], remarks: []";
    assert!(
        !text(&cards).contains(no_cards) || text(&cards).contains("PoCL is loaded: false"),
        "{cards:?} after {whole:?}"
    );

    fs::write(folder.path().join("crash.icd"), library.display().to_string())?;
    let crashed = found("all", Some(folder.path()))?;
    assert!(crashed.status.success(), "the program survives: {crashed:?}");
    let expected = "devices: [], remarks: [\"OpenCL: a driver crashes when it is loaded (signal: 6";
    assert!(text(&crashed).contains(expected), "{crashed:?}");
    println!("test {NAME} ... ok");
    Ok(())
}

/// Runs this program, with the drivers of a folder instead of those of the system.
fn found(devices: &str, drivers: Option<&Path>) -> std::io::Result<Output> {
    let mut command = Command::new(env::current_exe()?);
    if let Some(folder) = drivers {
        command.env("OCL_ICD_VENDORS", folder);
    }
    command.args([FIND, devices]).output()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
