//! Manifests with commands, and the identities of their operations.

use crate::{Package, SCALAR_OUT};
use std::os::unix::fs::PermissionsExt;

fn mistake(entry: &str) -> String {
    let text = Package::of("", entry).mistake();
    text.split_once("pleach.toml: ").unwrap().1.to_owned()
}

#[test]
fn placeholders_are_checked() {
    let rest = "inputs = [{ name = \"tile\", type = \"bgr8\" }]\noutputs = [{ name = \"mask\", type = \"mask\" }]\n\
                arguments = [{ name = \"level\", type = \"real\", low = 0, high = 1 }]\nconstants = { c = 1 }";
    let of = |command: &str| mistake(&format!("command = [{command}]\n{rest}"));
    assert_eq!(
        of(r#""cp", "{tile}", "{mask}", "{levle}""#),
        "operation[0].command: \"{levle}\" is not allowed; the placeholders {c}, {folder}, {level}, {mask}, {tile} \
         are known"
    );
    let required = "is not allowed; a placeholder of each input and output is required";
    let without = |name: &str| format!("operation[0].command: a command without {{{name}}} {required}");
    assert_eq!(of(r#""cp", "{tile}""#), without("mask"));
    assert_eq!(of(r#""cp", "{mask}", "{{tile}}""#), without("tile"));
    assert!(of(r#""{tile}", "{mask}""#).contains("a program without placeholders is required first"));
    assert!(of("").contains("program and arguments are required"));
    let twice = mistake(&format!("command = [\"cp\", \"{{out}}\"]\n{SCALAR_OUT}\nconstants = {{ out = 1 }}"));
    assert!(twice.contains("the name \"out\" twice"), "{twice}");
}

#[test]
fn formats_are_checked() {
    let of = |port: &str| {
        mistake(&format!("command = [\"cp\", \"{{out}}\"]\noutputs = [{{ name = \"out\", {port} }}]"))
    };
    let elements =
        "bgr8, gray8, mask, labels, table, array-u8, array-u16, array-i32, array-f32, array-f64, scalar";
    let wanted =
        format!("operation[0].outputs[0].type: points is not allowed; {elements} are allowed for commands");
    assert_eq!(of("type = \"points\""), wanted);
    let format = "operation[0].outputs[0].format:";
    let wanted = format!("{format} csv is not allowed; png or tiff or npy is allowed for mask");
    assert_eq!(of("type = \"mask\", format = \"csv\""), wanted);
    let wanted = format!("{format} png is not allowed; npy is allowed for array-f32");
    assert_eq!(of("type = \"array-f32\", format = \"png\""), wanted);
}

#[test]
fn containers_are_pinned() {
    for program in ["docker", "podman", "/usr/bin/docker"] {
        let entry = format!("command = [\"{program}\", \"run\", \"tool:latest\", \"{{out}}\"]\n{SCALAR_OUT}");
        let wanted = format!(
            "operation[0].command: {program} without a pinned image is not allowed; an image IMAGE@sha256:DIGEST \
             with the 64 hex digits of its digest is required"
        );
        assert_eq!(mistake(&entry), wanted);
    }
}

#[test]
fn program_must_exist() {
    let entry = format!("command = [\"no-such-program\", \"{{out}}\"]\n{SCALAR_OUT}");
    let wanted = "operation exec:test: program no-such-program is not in PATH";
    assert_eq!(mistake(&entry), wanted);
    let entry = format!("command = [\"./script.sh\", \"{{out}}\"]\n{SCALAR_OUT}");
    // It exists, without the right to execute it.
    assert!(mistake(&entry).ends_with("program ./script.sh is not in PATH"));
}

fn executable(package: &Package, name: &str, content: &str) {
    std::fs::write(package.path(name), content).unwrap();
    std::fs::set_permissions(package.path(name), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn identity_has_program_and_files_by_content() {
    let entry = format!("command = [\"./link\", \"{{out}}\"]\n{SCALAR_OUT}\nfiles = [\"script.sh\"]");
    let package = Package::of("weights", &entry);
    executable(&package, "program", "#!/bin/sh\necho 1 > $1\n");
    std::os::unix::fs::symlink("program", package.path("link")).unwrap();
    let first = package.load();
    assert!(first.operation.name().starts_with("exec:test@"));
    assert_eq!(package.load().identity, first.identity);
    executable(&package, "program", "#!/bin/sh\necho 2 > $1\n");
    let second = package.load();
    assert_eq!(second.identity.differences(&first.identity), ["./link changed"]);
    assert_ne!(second.operation.name(), first.operation.name());
    std::fs::write(package.path("script.sh"), "other weights").unwrap();
    assert_eq!(package.load().identity.differences(&second.identity), ["script.sh changed"]);
}

#[test]
fn container_counts_by_its_image() {
    let image = |digit: &str| {
        let word = format!("tool@sha256:{}", digit.repeat(64));
        let entry = format!("command = [\"./docker\", \"{word}\", \"{{out}}\"]\n{SCALAR_OUT}");
        let package = Package::of("", &entry);
        executable(&package, "docker", "#!/bin/sh\n");
        package
    };
    let package = image("a");
    let first = package.load().identity;
    executable(&package, "docker", "#!/bin/sh\n# A later version.\n");
    assert_eq!(package.load().identity, first);
    assert_eq!(image("b").load().identity.differences(&first), ["manifest entry changed"]);
}

#[test]
fn changed_file_fails_the_task() {
    let package = Package::new("echo 1 > $1", &["{out}"], SCALAR_OUT);
    let operation = package.load().operation;
    assert!(operation.run(&[], &[]).is_ok());
    // The same content at another time is no change.
    std::fs::write(package.path("script.sh"), "echo 1 > $1").unwrap();
    assert!(operation.run(&[], &[]).is_ok());
    std::fs::write(package.path("script.sh"), "echo 2 > $1").unwrap();
    let error = operation.run(&[], &[]).unwrap_err().to_string();
    assert_eq!(error, "script.sh changed while the study runs; run the study again");
}
