//! Sources of packages: the files that `scripts/build-packages` packs, and the list of components with their licenses.
//!
//! `scripts/test-packages`, which `.ci/long` runs, installs the packages.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Packages of `Cargo.lock` by name.
fn locked() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let lock: toml::Table = text.parse().expect("TOML");
    let packages = lock["package"].as_array().expect("packages");
    packages.iter().map(|package| package["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn components_are_listed_with_licenses() {
    let place = tempfile::tempdir().expect("a folder");
    let (licenses, sbom) = (place.path().join("licenses"), place.path().join("sbom"));
    let program = assert_cmd::cargo::cargo_bin!("pleach");
    let mut list = Command::new(root().join("scripts/list-components"));
    list.arg("--binary").arg(program).arg("--licenses").arg(&licenses).arg("--sbom").arg(&sbom);
    let output = list.output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let licenses = fs::read_to_string(licenses).expect("licenses");
    let document: Value = serde_json::from_slice(&fs::read(sbom).expect("a document")).expect("JSON");
    assert_eq!((&document["bomFormat"], &document["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = document["components"].as_array().expect("components");
    let locked = locked();
    let mut names = BTreeSet::new();
    for component in components {
        let text = |field: &str| component[field].as_str().unwrap_or_default();
        if text("bom-ref").starts_with("pkg:cargo/") {
            assert!(locked.contains(text("name")), "{component}");
            let heading = format!("\n{} {} (", text("name"), text("version"));
            assert!(licenses.contains(&heading), "{component}: no license");
        }
        names.insert(text("name"));
    }
    // Linked crates, without those of builds and tests.
    assert!(
        ["quinn", "ring", "opencv", "openslide-sys"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    assert!(
        ["proptest", "criterion", "bindgen", "clap_derive"].iter().all(|name| !names.contains(name)),
        "{names:?}"
    );
    let libraries = ["libopencv_imgproc.so", "libopenslide.so"];
    let text = document.to_string();
    assert!(libraries.iter().all(|library| text.contains(library)), "{text}");
}

#[test]
fn packed_files_exist_and_services_name_the_program() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let deb = &manifest["package"]["metadata"]["deb"];
    let build = fs::read_to_string(root().join("scripts/build-packages")).expect("a script");
    for asset in deb["assets"].as_array().expect("assets") {
        let source = asset[0].as_str().expect("a path");
        match source.strip_prefix("target/packages/stage/") {
            // `completions.bash` stems from a loop over the shells.
            Some(staged) => {
                let first = staged.split(['/', '.']).next().unwrap_or_default();
                assert!(build.contains(&format!("$stage/{first}")), "{staged} is not staged");
            }
            None => {
                let source = source.trim_end_matches('*');
                assert!(root().join(source).exists(), "{source}");
            }
        }
    }
    for script in ["postinst", "prerm", "postrm"] {
        let path = root().join(deb["maintainer-scripts"].as_str().expect("a folder")).join(script);
        let checked = Command::new("sh").arg("-n").arg(&path).status().expect("sh");
        assert!(checked.success(), "{script}");
    }
    for name in ["manager", "worker"] {
        let unit =
            fs::read_to_string(root().join(format!("deploy/systemd/pleach-{name}.service"))).expect("a unit");
        assert!(
            unit.contains(&format!("ExecStart=/usr/local/bin/pleach {name} ")),
            "build-packages replaces this path"
        );
        assert!(unit.contains(&format!("/etc/pleach/{name}.env")), "{unit}");
        let settings =
            fs::read_to_string(root().join(format!("deploy/debian/{name}.env"))).expect("settings");
        assert!(unit.contains(&format!("$PLEACH_{}_OPTIONS", name.to_uppercase())));
        assert!(settings.contains(&format!("PLEACH_{}_OPTIONS=\n", name.to_uppercase())), "{settings}");
    }
}
