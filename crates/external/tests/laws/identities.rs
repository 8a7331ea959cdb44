//! Identities of operations: a change of code that can alter results is another operation, any other is not.

use crate::python::{Package, entry};
use pleach_external::Identity;
use std::fs;
use std::process::Command;

/// Returns the identities of the operations, in the order of the manifest.
fn identities(package: &Package, names: &[&str]) -> Vec<Identity> {
    let operations = package.load().unwrap();
    let of = |name: &&str| {
        let found =
            operations.iter().find(|found| found.operation.name().starts_with(&format!("python:{name}@")));
        let found = found.unwrap_or_else(|| panic!("{name} of {operations:?}"));
        assert!(found.operation.name().ends_with(&found.identity.digest()));
        found.identity.clone()
    };
    names.iter().map(of).collect()
}

const OTHER: &str = "[[operation]]\nname = \"python:other.f\"\nversion = 1\noutputs = [{ name = \"out\", type = \"scalar\" }]\n";

#[test]
fn digests_follow_the_imported_files() {
    let manifest = entry("f", "") + OTHER;
    let module = "import helper\nfrom inner.deep import value\ndef f():\n    return 1\n";
    let Some(package) = Package::written("digests_follow_the_imported_files", &manifest, module) else {
        return;
    };
    package.write("helper.py", "import indirect\n");
    package.write("indirect.py", "X = 1\n");
    package.write("inner/__init__.py", "from . import beside\n");
    package.write("inner/beside.py", "");
    package.write("inner/deep.py", "from .beside import *\ndef value():\n    from ..nothing import x\n");
    package.write("other.py", "def f():\n    return 1\n");
    package.write("unrelated.py", "");
    let names = ["m.f", "other.f"];
    let first = identities(&package, &names);
    assert_ne!(first[0].digest(), first[1].digest());
    assert_eq!(identities(&package, &names), first);
    package.write("unrelated.py", "x = 1\n");
    assert_eq!(identities(&package, &names), first);
    for file in ["helper.py", "indirect.py", "inner/__init__.py", "inner/beside.py", "inner/deep.py"] {
        let before = identities(&package, &names);
        let text = std::fs::read_to_string(package.path(file)).unwrap();
        package.write(file, &format!("{text}# edited\n"));
        let after = identities(&package, &names);
        assert_ne!(after[0].digest(), before[0].digest(), "{file}");
        assert_eq!(after[0].differences(&before[0]), [format!("{file} changed")]);
        assert_eq!(after[1], before[1], "{file} is no part of the other operation");
    }
    let before = identities(&package, &names);
    package.write("other.py", "def f():\n    return 2\n");
    let after = identities(&package, &names);
    assert_eq!(after[0], before[0]);
    assert_eq!(after[1].differences(&before[1]), ["other.py changed"]);
}

#[test]
fn digests_follow_declarations_and_listed_files() {
    let of = |lines: &str| entry("f", lines) + OTHER;
    let Some(package) = Package::written("digests_follow_declarations", &of(""), "def f():\n    return 1\n")
    else {
        return;
    };
    package.write("other.py", "def f():\n    return 1\n");
    package.write("weights/a.bin", "1");
    let names = ["m.f", "other.f"];
    let first = identities(&package, &names);
    package.write("pleach.toml", &of("files = [\"weights/a.bin\"]"));
    let listed = identities(&package, &names);
    assert_eq!(listed[0].differences(&first[0]), ["weights/a.bin added"]);
    assert_eq!(listed[1], first[1]);
    package.write("weights/a.bin", "2");
    assert_eq!(identities(&package, &names)[0].differences(&listed[0]), ["weights/a.bin changed"]);
    package.write("pleach.toml", &of("cost = { seconds = 3 }\ntimeout_seconds = 9\nmemory.limit = \"1GB\""));
    assert_eq!(identities(&package, &names)[0], first[0], "estimates and limits alter no result");
    package.write("pleach.toml", &of("constants = { x = 1 }"));
    assert_eq!(identities(&package, &names)[0].differences(&first[0]), ["manifest entry changed"]);
    package.write("pleach.toml", &format!("package.requires = [\"scipy\"]\n{}", of("")));
    assert_eq!(identities(&package, &names)[0].differences(&first[0]), ["scipy added"]);
    std::fs::remove_file(package.path("weights/a.bin")).unwrap();
    package.write("pleach.toml", &of("files = [\"weights/a.bin\"]"));
    let error = package.load().unwrap_err().to_string();
    assert!(error.contains("weights/a.bin: failed to read: "), "{error}");
}

#[test]
fn sources_of_editable_distributions_are_part_of_the_identity() {
    let test = "sources_of_editable_distributions";
    let manifest = format!("package.requires = [\"mine\"]\n{}", entry("f", ""));
    let module = "import mine.deep\ndef f():\n    return mine.deep.VALUE\n";
    let Some(package) = Package::written(test, &manifest, module) else { return };
    // A further environment, which finds numpy in the first.
    let venv = ["-m", "venv", "--without-pip", "env"];
    let python = package.environment.join("bin/python");
    let made = Command::new(&python).args(venv).current_dir(package.folder.path()).status();
    assert!(made.is_ok_and(|status| status.success()));
    let libraries = |environment: &std::path::Path| {
        let lib = fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap();
        lib.path().join("site-packages")
    };
    let (own, of_tests) = (libraries(&package.path("env")), libraries(&package.environment));
    let elsewhere = tempfile::tempdir().unwrap();
    let source = elsewhere.path();
    fs::create_dir(source.join("mine")).unwrap();
    fs::write(source.join("mine/__init__.py"), "").unwrap();
    fs::write(source.join("mine/deep.py"), "VALUE = 1\n").unwrap();
    fs::write(own.join("paths.pth"), format!("{}\n{}\n", of_tests.display(), source.display())).unwrap();
    let info = own.join("mine-1.0.dist-info");
    fs::create_dir(&info).unwrap();
    fs::write(info.join("METADATA"), "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n").unwrap();
    fs::write(info.join("RECORD"), "mine-1.0.dist-info/METADATA,,\n").unwrap();
    let direct = format!(r#"{{"url": "file://{}", "dir_info": {{"editable": true}}}}"#, source.display());
    fs::write(info.join("direct_url.json"), direct).unwrap();
    let run = || {
        let loaded = package.load_with(&package.path("env")).unwrap().remove(0);
        let result = loaded.operation.run(&[], &[]).map_err(|error| error.to_string()).unwrap();
        (loaded.identity, result)
    };
    let (first, one) = run();
    fs::write(source.join("mine/deep.py"), "VALUE = 2\n").unwrap();
    let (second, two) = run();
    assert_ne!(one, two);
    assert_eq!(second.differences(&first), ["mine changed"]);
}
