//! Faults of environments and packages, found while loading or at the start of a process.

use crate::python::{Package, entry, environment};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Further files of a package with their content.
type Files<'a> = &'a [(&'a str, &'a str)];

/// Runs the function `f` of a module, and returns the error of its process's start.
fn refusal(test: &str, module: &str) -> Option<String> {
    let package = Package::written(test, &entry("f", ""), module)?;
    let operations = package.load().unwrap();
    let error = operations[0].operation.run(&[], &[]).unwrap_err().to_string();
    let error = error.strip_prefix("failed to load the operations: ").unwrap_or_else(|| panic!("{error}"));
    Some(error.to_owned())
}

#[test]
fn functions_that_return_no_regions_are_refused() {
    for (module, kind) in [
        ("def f():\n    yield 1\n", "is a generator or coroutine; a plain function is allowed"),
        ("async def f():\n    return 1\n", "is a generator or coroutine; a plain function is allowed"),
        ("async def f():\n    yield 1\n", "is a generator or coroutine; a plain function is allowed"),
        ("f = 7\n", "is no function"),
    ] {
        let Some(error) = refusal("functions_that_return_no_regions", module) else { return };
        assert_eq!(error, format!("m:f {kind}"));
    }
    let Some(error) = refusal("functions_that_return_no_regions", "g = 1\n") else { return };
    assert_eq!(error, "module m has no f");
}

#[test]
fn callable_attributes_are_functions() {
    let module = "from functools import partial\nf = lambda: 5\ng = partial(max, 1, 3)\nclass C:\n    @staticmethod\n    def h():\n        return 9\n";
    let manifest = entry("f", "") + &entry("g", "") + &entry("h", "function = \"m:C.h\"");
    let Some(package) = Package::new("callable_attributes_are_functions", &manifest, module) else { return };
    assert_eq!((package.number("f"), package.number("g"), package.number("h")), (Ok(5.0), Ok(3.0), Ok(9.0)));
}

#[test]
fn exception_of_an_import_has_its_traceback() {
    let module = "import no_such_library\ndef f():\n    return 1\n";
    let Some(error) = refusal("exception_of_an_import", module) else { return };
    assert!(error.starts_with("ModuleNotFoundError: No module named 'no_such_library'\n"), "{error}");
    assert!(error.contains("m.py\", line "), "{error}");
    let module = "raise SystemExit(4)\ndef f():\n    return 1\n";
    let Some(error) = refusal("exception_of_an_import", module) else { return };
    assert!(error.starts_with("SystemExit: 4\n"), "{error}");
}

#[test]
fn refused_start_is_not_repeated_for_each_task() {
    let module = "mark(\"starts\")\nimport no_such_library\ndef f():\n    return 1\n";
    let Some(package) = Package::new("refused_start_is_not_repeated", &entry("f", ""), module) else {
        return;
    };
    let failures: Vec<String> = (0..5).map(|_| package.failure("f")).collect();
    assert!(failures[0].contains("No module named 'no_such_library'"), "{}", failures[0]);
    assert!(failures.iter().all(|failure| *failure == failures[0]), "{failures:?}");
    assert_eq!(package.marks("starts").len(), 1);
}

#[test]
fn modules_that_the_identity_misses_are_refused() {
    let test = "modules_that_the_identity_misses";
    let helper = [("helper.py", "def one():\n    return 1\n")];
    let cases: [(&str, Files<'_>, &str); 7] = [
        (
            "import importlib\nhelper = importlib.import_module('helper')\n",
            &helper,
            "module helper of the package is imported in a way that its identity misses; use import statements",
        ),
        ("import scipy\n", &[("scipy.py", "")], "module scipy is loaded from "),
        ("import json\n", &[("json.py", "")], "module json is loaded from "),
        ("import numpy\n", &[("numpy.py", "")], "module numpy is loaded from "),
        // Not the libraries that pandas itself requires.
        ("import pandas\n", &[], "`requires` of the manifest lacks pandas, which the modules import"),
        ("import scipy\n", &[], "`requires` of the manifest lacks scipy, which the modules import"),
        (
            "import sys\nsys.path.insert(0, HERE + '/../' + os.path.basename(HERE) + '-aside')\nimport aside\n",
            &[],
            "module aside is loaded from ",
        ),
    ];
    for (module, files, wanted) in cases {
        let module = format!("{module}def f():\n    return 1\n");
        let manifest = entry("f", "");
        let Some(package) = Package::written(test, &manifest, &module) else { return };
        files.iter().for_each(|(file, content)| package.write(file, content));
        let aside = format!("{}-aside", package.folder.path().display());
        fs::create_dir(&aside).unwrap();
        fs::write(Path::new(&aside).join("aside.py"), "").unwrap();
        let error = package.load().unwrap()[0].operation.run(&[], &[]).map_err(|error| error.to_string());
        fs::remove_dir_all(&aside).unwrap();
        assert!(error.clone().is_err_and(|error| error.contains(wanted)), "{module}: {error:?}");
    }
    let declared = "import scipy.ndimage\ndef f():\n    return float(scipy.ndimage.sum([1, 2]))\n";
    let manifest = format!("package.requires = [\"scipy\"]\n{}", entry("f", ""));
    let Some(package) = Package::new(test, &manifest, declared) else { return };
    assert_eq!(package.number("f"), Ok(3.0));
}

#[test]
fn module_imported_by_a_task_is_checked() {
    let module = "def f():\n    import importlib\n    importlib.import_module('helper')\n    return 1\n";
    let Some(package) = Package::new("module_imported_by_a_task", &entry("f", ""), module) else { return };
    package.write("helper.py", "");
    for _ in 0..2 {
        assert!(package.failure("f").contains("its identity misses"));
    }
}

#[test]
fn file_edited_after_loading_is_named() {
    let module = "from inner import helper\ndef f():\n    return helper.value()\n";
    let Some(package) = Package::written("file_edited_after_loading", &entry("f", ""), module) else {
        return;
    };
    package.write("inner/__init__.py", "");
    package.write("inner/helper.py", "def value():\n    return 1\n");
    let operations = package.load().unwrap();
    let run = || operations[0].operation.run(&[], &[]).map(drop).map_err(|error| error.to_string());
    assert_eq!(run(), Ok(()));
    package.write("inner/helper.py", "def value():\n    return 2\n");
    assert_eq!(run(), Ok(()), "a running process has the earlier code");
    package.pool.clear();
    assert_eq!(run().unwrap_err(), "inner/helper.py changed while the study runs; run the study again");
    package.write("inner/helper.py", "def value():\n    return 1\n");
    assert_eq!(run(), Ok(()));
    package.pool.clear();
    fs::remove_file(package.path("inner/helper.py")).unwrap();
    assert!(run().unwrap_err().contains("helper"));
}

#[test]
fn environment_removed_after_loading_is_named() {
    let Some(package) = Package::written("environment_removed_after_loading", &entry("pid", ""), "") else {
        return;
    };
    let link = package.path("env");
    symlink(&package.environment, &link).unwrap();
    let operations = package.load_with(&link).unwrap();
    operations[0].operation.run(&[], &[]).unwrap();
    package.pool.clear();
    fs::remove_file(&link).unwrap();
    let error = operations[0].operation.run(&[], &[]).unwrap_err().to_string();
    assert!(error.contains("env/bin/python") && error.contains("No such file"), "{error}");
}

/// Writes a program. The file is never open for writing in this process, whose children could keep it open.
fn program(path: &Path, text: &str) {
    let script = r#"printf '%s\n' "$2" >"$1" && chmod +x "$1""#;
    let written = Command::new("sh").args(["-c", script, "sh"]).arg(path).arg(text).status();
    assert!(written.unwrap().success());
}

#[test]
fn unusable_environments_are_named_with_the_remedy() {
    let Some(package) = Package::written("unusable_environments", &entry("pid", ""), "") else { return };
    let error = |path: &Path| package.load_with(path).unwrap_err().to_string();
    let missing = package.path("nothing");
    assert_eq!(
        error(&missing),
        format!(
            "{}: no Python here; the folder of a virtual environment or an interpreter is allowed (--python)",
            missing.display()
        )
    );
    let old = package.path("old");
    program(&old, "#!/bin/sh\necho '{\"too_old\": \"3.8.1\"}'");
    assert_eq!(error(&old), format!("{}: Python 3.8.1; 3.10 or later is allowed", old.display()));
    let broken = package.path("broken");
    program(&broken, "#!/bin/sh\necho first >&2; echo last >&2; exit 5");
    assert_eq!(
        error(&broken),
        format!("{}: failed to describe the environment: exit status: 5: last", broken.display())
    );
    let silent = package.path("silent");
    program(&silent, "#!/bin/sh\nexit 0");
    assert!(error(&silent).contains("silent: failed to describe the environment: "));
    let bare = package.path("bare");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&bare).status();
    assert!(made.unwrap().success());
    let python = bare.join("bin/python");
    let python = python.display();
    assert_eq!(
        error(&bare),
        format!("{python}: numpy not installed; install with {python} -m pip install numpy")
    );
}

#[test]
fn missing_modules_and_distributions_are_named() {
    let Some(environment) = environment("missing_modules_and_distributions") else { return };
    let other = "[[operation]]\nname = \"python:deep.other.f\"\nversion = 1\noutputs = [{ name = \"out\", type = \"scalar\" }]\n";
    let Some(package) = Package::written("missing_modules", other, "") else { return };
    let folder = package.folder.path().canonicalize().unwrap();
    let manifest = package.path("pleach.toml");
    assert_eq!(
        package.load().unwrap_err().to_string(),
        format!(
            "{}: operation python:deep.other.f: no module deep.other in {}; a file deep/other.py is allowed",
            manifest.display(),
            folder.display()
        )
    );
    package.write("deep/other.py", "def f(:\n");
    let error = package.load().unwrap_err().to_string();
    assert!(
        error.starts_with(&folder.display().to_string()) && error.contains("deep/other.py, line 1"),
        "{error}"
    );
    package.write("deep/other.py", "");
    package.write("pleach.toml", &format!("package.requires = [\"no-such-library>=2\", \"NumPy\"]\n{other}"));
    let python: PathBuf = environment.join("bin/python");
    let python = python.display();
    assert_eq!(
        package.load().unwrap_err().to_string(),
        format!(
            "{python}: no-such-library not installed; install with {python} -m pip install no-such-library"
        )
    );
}

#[test]
fn versions_that_a_manifest_does_not_allow_are_refused() {
    let test = "versions_that_a_manifest_does_not_allow";
    let manifest = |requires: &str| format!("package.requires = [{requires}]\n{}", entry("f", ""));
    let module = "def f():\n    return 1\n";
    let Some(package) = Package::written(test, &manifest("\"NumPy >= 1.20, < 99\", \"scipy\""), module)
    else {
        return;
    };
    package.load().unwrap();
    package.write("pleach.toml", &manifest("\"NumPy >= 99\", \"scipy==0.1\", \"scipy>0\""));
    let error = package.load().unwrap_err().to_string();
    let python = package.environment.join("bin/python");
    assert!(error.starts_with(&format!("{}: numpy ", python.display())), "{error}");
    let expected = format!(
        " installed; NumPy>=99, scipy==0.1 required by {}; install with {} -m pip install 'NumPy>=99' 'scipy==0.1'",
        package.path("pleach.toml").display(),
        python.display()
    );
    assert!(error.ends_with(&expected), "{error}\nwanted: {expected}");
    package.write("pleach.toml", &manifest("\"numpy\", \"scipy[all]\""));
    let error = package.load().unwrap_err().to_string();
    let expected = "package.requires[1]: \"scipy[all]\" is not allowed; the name of a distribution is allowed, with or without versions";
    assert!(error.contains(expected), "{error}");
}
