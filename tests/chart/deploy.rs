//! `deploy/Dockerfile` and `deploy/compose.yaml` pass the linter and the schema, and are complete as far as a test without a
//! container engine can check.

use crate::chart::{Tools, root, strings};
use crate::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

fn output_of(program: &str, args: &[&str]) -> String {
    let output =
        Command::new(program).args(args).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn dockerfile_is_pinned_and_unprivileged() {
    let Some(tools) = Tools::of("dockerfile_is_pinned_and_unprivileged") else { return };
    let linted = tools.call("hadolint", &["--failure-threshold", "style", "deploy/Dockerfile"]);
    assert_eq!(linted, Ok(String::new()));
    // The linter detects an error.
    let text = fs::read_to_string(root().join("deploy/Dockerfile")).expect("a file");
    let wrong = tempfile::NamedTempFile::new().expect("a file");
    fs::write(wrong.path(), text.replace("USER 10001:10001", "RUN sudo true")).expect("a file written");
    let said =
        tools.call("hadolint", &["--failure-threshold", "style", wrong.path().to_str().expect("UTF-8")]);
    assert!(said.as_ref().is_err_and(|said| said.contains("DL3004")), "{said:?}");
    // The last stage runs as a numeric user that is not root.
    let last = text.rsplit("\nFROM ").next().expect("a stage");
    assert!(
        last.contains("\nUSER 10001:10001\n") && last.contains("\nENTRYPOINT [\"/usr/local/bin/pleach\"]\n")
    );
}

/// The last stage has the OpenCL loader, the name of the library that NVIDIA's container toolkit mounts, and no OpenCL device of its
/// own.
#[test]
fn the_image_finds_mounted_opencl_libraries() {
    let text = fs::read_to_string(root().join("deploy/Dockerfile")).expect("a file");
    let last = text.rsplit("\nFROM ").next().expect("a stage");
    let (_, install) = last.split_once("--no-install-recommends ").expect("packages");
    let packages: Vec<&str> = install.lines().next().expect("a line").split_whitespace().collect();
    assert!(packages.contains(&"ocl-icd-libopencl1"), "{packages:?}");
    assert!(!text.contains("pocl"), "an image computes on accelerators or on its cores");
    assert!(last.contains("echo libnvidia-opencl.so.1 >/etc/OpenCL/vendors/nvidia.icd"), "{last}");
    assert!(last.contains("\nENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"), "{last}");
}

/// The packages of the image, with all dependencies.
fn brought(packages: &[&str]) -> BTreeSet<String> {
    let shown = output_of("dpkg-query", &["--show", "--showformat=${Package}\t${Pre-Depends}, ${Depends}\n"]);
    let depends: BTreeMap<&str, &str> = shown.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut all: BTreeSet<String> = BTreeSet::new();
    let mut next: Vec<&str> = packages.to_vec();
    while let Some(package) = next.pop() {
        if all.insert(package.to_owned()) {
            // Alternatives count if they are installed on this machine. Versions do not count.
            let of = depends.get(package).copied().unwrap_or_default().split([',', '|']);
            next.extend(of.filter_map(|text| text.split_whitespace().next()?.split(':').next()));
        }
    }
    all
}

/// Every library that the binary loads is in a package of the image's second stage or in a dependency of one, and
/// `deploy/libraries` copies it to the last stage.
#[test]
fn the_image_has_the_libraries_of_the_binary() {
    let test = "the_image_has_the_libraries_of_the_binary";
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !release.contains("VERSION_CODENAME=bookworm") {
        return skipped(test, "this is not Debian 12");
    }
    let text = fs::read_to_string(root().join("deploy/Dockerfile")).expect("a file");
    let stage = text.split("\nFROM ").find(|stage| stage.contains(" AS libraries\n")).expect("a stage");
    let (_, install) = stage.split_once("--no-install-recommends ").expect("packages");
    let install = install.split_once("\\\n  &&").expect("an end").0;
    let packages: Vec<&str> = install.split_whitespace().filter(|word| *word != "\\").collect();
    assert!(packages.contains(&"libopenslide0"), "{packages:?}");
    // Every Debian image has libc6.
    let brought = brought(&[&packages[..], &["libc6"]].concat());
    let binary = assert_cmd::cargo::cargo_bin!("pleach");
    let listed = output_of("ldd", &[binary.to_str().expect("UTF-8")]);
    let libraries = listed.lines().filter_map(|line| line.split_once(" => ")?.1.split(' ').next());
    let libraries: Vec<&str> = libraries.filter(|path| path.starts_with('/')).collect();
    assert!(libraries.len() > 10, "{listed}");
    // Packages built before the merge of /lib into /usr/lib still list the old path.
    let really = |path: &&str| fs::canonicalize(path).expect("a library").to_str().expect("UTF-8").to_owned();
    let files: Vec<String> = libraries.iter().map(really).collect();
    let before = files.iter().filter_map(|file| file.strip_prefix("/usr"));
    let asked: Vec<&str> =
        ["--search"].into_iter().chain(files.iter().map(String::as_str)).chain(before).collect();
    let owned = output_of("dpkg-query", &asked);
    let owned = owned.lines().filter_map(|line| line.split_once(": "));
    let owners: BTreeMap<String, &str> = owned
        .map(|(owner, file)| {
            let file = if file.starts_with("/usr") { file.to_owned() } else { format!("/usr{file}") };
            (file, owner.split(':').next().unwrap_or(owner))
        })
        .collect();
    let copies = tempfile::tempdir().expect("a folder");
    let script = root().join("deploy/libraries");
    let copied = Command::new(script).arg(binary).arg(copies.path()).output().expect("a shell starts");
    assert!(copied.status.success(), "{copied:?}");
    for (path, library) in libraries.iter().zip(&files) {
        let owner = owners.get(library).copied().unwrap_or("nobody");
        assert!(brought.contains(owner), "{library}: {owner}");
        if owner != "libc6" {
            let (_, name) = path.split_once("/lib/").expect("a library");
            let copy = copies.path().join("usr/lib").join(name);
            assert!(copy.is_file(), "{}", copy.display());
        }
    }
}

/// `.dockerignore` lets through every file that the build reads.
#[test]
fn the_build_sees_its_files() {
    let ignored = fs::read_to_string(root().join(".dockerignore")).expect("a file");
    for needed in [
        ".cargo",
        "Cargo.lock",
        "Cargo.toml",
        "actors",
        "benches/*.rs",
        "crates",
        "deploy/libraries",
        "examples/own-operation",
        "scripts/list-components",
        "src",
    ] {
        assert!(ignored.lines().any(|line| line == format!("!{needed}")), "{needed}");
    }
    // No source file includes a file that the build does not see.
    let included = output_of(
        "git",
        &[
            "-C",
            root().to_str().expect("UTF-8"),
            "grep",
            "-hoE",
            "include_(str|bytes)!\\(\"(\\.\\./)+(docs|tests|scripts|grafana|deploy|helm)[^\"]*",
            "--",
            "src",
            "crates/*/src",
            "actors/src",
        ],
    );
    assert_eq!(included, "");
}

#[test]
fn compose_file_is_valid_and_its_paths_exist() {
    let Some(tools) = Tools::of("compose_file_is_valid_and_its_paths_exist") else { return };
    let text = fs::read_to_string(root().join("deploy/compose.yaml")).expect("a file");
    let validate = |text: &str| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("a file written");
        // YAML merge keys are resolved before validation: the schema does not know them.
        let script = "import json, sys, yaml\n\
                      from compose_spec import _PyCompose as Compose\n\
                      try: Compose.from_json(json.dumps(yaml.safe_load(open(sys.argv[1]))))\n\
                      except ValueError as error: sys.exit(str(error))";
        tools.call("python", &["-c", script, file.path().to_str().expect("UTF-8")])
    };
    assert_eq!(validate(&text), Ok(String::new()));
    let refused =
        validate(&text.replace("stop_grace_period", "stop_grace_periods")).expect_err("a wrong key");
    assert!(refused.contains("stop_grace_periods"), "{refused}");

    let file = tools.read(&text).remove(0);
    let services = file["services"].as_object().expect("services");
    let names: BTreeSet<&String> = services.keys().collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        ["certificates", "grafana", "manager", "prometheus", "worker1", "worker2"]
    );
    for (name, service) in services {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
        let depends = &service["depends_on"];
        let named = strings(depends)
            .into_iter()
            .chain(depends.as_object().into_iter().flat_map(|of| of.keys().cloned()));
        named.for_each(|of| assert!(services.contains_key(&of), "{name} depends on {of}"));
        for volume in strings(&service["volumes"]) {
            let source = volume.split(':').next().expect("a source");
            let there = match source.starts_with('.') {
                true => root().join("deploy").join(source).exists(),
                false => file["volumes"].get(source).is_some(),
            };
            assert!(there, "{name}: {source}");
        }
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port} is open to everybody");
        }
    }
    // The file for a GPU changes existing services, and nothing but their device.
    let text = fs::read_to_string(root().join("deploy/compose/gpu.yaml")).expect("a file");
    assert_eq!(validate(&text), Ok(String::new()));
    assert!(validate(&text.replace("reservations", "reserves")).is_err());
    let gpu = tools.read(&text).remove(0);
    for (name, service) in gpu["services"].as_object().expect("services") {
        assert!(services.contains_key(name), "{name}");
        let keys: Vec<&String> = service.as_object().expect("keys").keys().collect();
        assert_eq!(keys, ["deploy", "environment"], "{name}");
        let device = &service["deploy"]["resources"]["reservations"]["devices"][0];
        assert_eq!(service["environment"]["PLEACH_ACCELERATORS"], device["count"].to_string(), "{name}");
    }
    // Files of Prometheus and Grafana are at the paths where these programs look for them.
    for (file, what) in [
        ("deploy/compose/prometheus.yml", "manager:7118"),
        ("grafana/provisioning/datasources/pleach.yaml", "http://prometheus:9090"),
        ("grafana/provisioning/dashboards/pleach.yaml", "/var/lib/grafana/dashboards"),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(what), "{file}: {what}");
        assert!(!tools.read(&text).is_empty(), "{file}");
    }
}
