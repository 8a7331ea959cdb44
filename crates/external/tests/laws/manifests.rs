//! Mistakes in manifests: each message names the file, the field, the value and the allowed values.

use pleach_external::Manifest;
use std::fs;

fn mistake(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pleach.toml");
    fs::write(&file, text).unwrap();
    let error = match Manifest::load(&file) {
        Ok(manifest) => panic!("{text}\n{manifest:?}"),
        Err(error) => error.to_string(),
    };
    assert!(!error.contains('\n'), "{error}");
    let error = error.strip_prefix(&format!("{}:", file.display()));
    error.unwrap_or_else(|| panic!("the file is not named: {text}")).trim_start().to_owned()
}

/// Returns a manifest of one operation with these lines.
fn operation(name: &str, lines: &str) -> String {
    let outputs =
        if lines.contains("outputs =") { "" } else { "outputs = [{ name = \"out\", type = \"scalar\" }]" };
    format!("[[operation]]\nname = \"{name}\"\nversion = 1\n{outputs}\n{lines}\n")
}

#[test]
fn mistakes_of_fields_are_named() {
    let names = "python:MODULE.FUNCTION and exec:NAME are allowed";
    let functions = "MODULE:FUNCTION is allowed, of a module in the manifest's folder, not __main__";
    let argument = "type = \"real\" or \"integer\" with low and high, type = \"integer\" with values, or choices = { 1 = \"text\" } are allowed";
    let cases = [
        ("nuclei.f", "", format!("operation[0].name: nuclei.f is not allowed; {names}")),
        ("python:f", "", format!("operation[0].name: python:f is not allowed; {names}")),
        ("python:__main__.f", "", format!("operation[0].function: __main__:f is not allowed; {functions}")),
        ("python:a-b.f", "", format!("operation[0].function: a-b:f is not allowed; {functions}")),
        ("python:m.", "", format!("operation[0].function: m: is not allowed; {functions}")),
        ("python:..m.f", "", format!("operation[0].function: ..m:f is not allowed; {functions}")),
        ("python:m.f", "function = \"m.f\"", format!("operation[0].function: m.f is not allowed; {functions}")),
        ("python:m.f", "function = \"../m:f\"", format!("operation[0].function: ../m:f is not allowed; {functions}")),
        ("python:m.f", "setup = \"load\"", format!("operation[0].setup: load is not allowed; {functions}")),
        ("python:m.f", "setup = \"__main__:load\"", format!("operation[0].setup: __main__:load is not allowed; {functions}")),
        ("python:m.f@1", "", format!("operation[0].function: m:f@1 is not allowed; {functions}")),
        ("python:m.f", "command = [\"a\"]", "operation[0].command: a list is not allowed; only exec: operations have a command".to_owned()),
        ("exec:a b", "command = [\"a\"]", "operation[0].name: exec:a b is not allowed; letters, digits, \"-\", \".\" and \"_\" are allowed".to_owned()),
        ("exec:a", "", "operation[0].command: an empty list is not allowed; program and arguments are required".to_owned()),
        ("python:m.f", "outputs = []", "operation[0].outputs: an empty list is not allowed; at least one output is required".to_owned()),
        ("python:m.f", "inputs = [{ name = \"out\", type = \"mask\" }]", "operation[0]: the name \"out\" twice is not allowed; each name is allowed once".to_owned()),
        ("python:m.f", "inputs = [{ name = \"a b\", type = \"mask\" }]", "operation[0].inputs[0].name: a b is not allowed; letters, digits, \"-\" and \"_\" are allowed".to_owned()),
        ("python:m.f", "inputs = [{ name = \"a\", type = \"mask\", channels = \"rgb\" }]", "operation[0].inputs[0].channels: rgb is not allowed; \"bgr\" and \"rgb\" are allowed, for bgr8".to_owned()),
        ("python:m.f", "inputs = [{ name = \"a\", type = \"array-u8\", axes = \"xyz\" }]", "operation[0].inputs[0].axes: xyz is not allowed; \"yxc\" and \"zyx\" are allowed".to_owned()),
        ("python:m.f", "inputs = [{ name = \"a\", type = \"mask\", format = \"png\" }]", "operation[0].inputs[0].format: Png is not allowed; only exec: operations have formats".to_owned()),
        ("python:m.f", "arguments = [{ name = \"a-b\", type = \"real\", low = 0, high = 1 }]", "operation[0].arguments[0].name: a-b is not allowed; letters, digits and \"_\" are allowed".to_owned()),
        ("python:m.f", "arguments = [{ name = \"a\" }]", format!("operation[0].arguments[0]: argument \"a\" is not allowed; {argument}")),
        ("python:m.f", "arguments = [{ name = \"a\", type = \"real\", low = 2, high = 1 }]", format!("operation[0].arguments[0]: argument \"a\" is not allowed; {argument}")),
        ("python:m.f", "arguments = [{ name = \"a\", type = \"real\", low = 0, high = inf }]", format!("operation[0].arguments[0]: argument \"a\" is not allowed; {argument}")),
        ("python:m.f", "arguments = [{ name = \"a\", type = \"integer\", low = 0.5, high = 1 }]", format!("operation[0].arguments[0]: argument \"a\" is not allowed; {argument}")),
        ("python:m.f", "arguments = [{ name = \"a\", type = \"text\", low = 0, high = 1 }]", format!("operation[0].arguments[0]: argument \"a\" is not allowed; {argument}")),
        ("python:m.f", "arguments = [{ name = \"a\", choices = { x = \"y\" } }]", "operation[0].arguments[0].choices: x is not allowed; whole numbers are allowed as keys".to_owned()),
        ("python:m.f", "arguments = [{ name = \"a\", choices = { 1 = \"y\" } }]\nconstants = { a = 1 }", "operation[0]: the name \"a\" twice is not allowed; each name is allowed once".to_owned()),
        ("python:m.f", "constants = { a = nan }", "operation[0].constants.a: nan is not allowed; numbers, texts, booleans and lists of them are allowed".to_owned()),
        ("python:m.f", "constants = { a = [1, [inf]] }", "operation[0].constants.a: [1, [inf]] is not allowed; numbers, texts, booleans and lists of them are allowed".to_owned()),
        ("python:m.f", "constants = { a = 2026-01-01 }", "operation[0].constants.a: 2026-01-01 is not allowed; numbers, texts, booleans and lists of them are allowed".to_owned()),
        ("python:m.f", "files = [\"../weights\"]", "operation[0].files: ../weights is not allowed; paths within the manifest's folder are allowed".to_owned()),
        ("python:m.f", "files = [\"/etc/passwd\"]", "operation[0].files: /etc/passwd is not allowed; paths within the manifest's folder are allowed".to_owned()),
        ("python:m.f", "cost = { seconds = -1 }", "operation[0].cost.seconds: -1 is not allowed; a number of at least 0 is allowed".to_owned()),
        ("python:m.f", "cost = { ns_a_pixel = nan }", "operation[0].cost.ns_a_pixel: NaN is not allowed; a number of at least 0 is allowed".to_owned()),
        ("python:m.f", "memory = { limit = \"3 bytes\" }", "operation[0].memory.limit: \"3 bytes\" is not allowed; a size as in \"200MB\" is allowed".to_owned()),
        ("python:m.f", "memory = { resident = \"-3GB\" }", "operation[0].memory.resident: \"-3GB\" is not allowed; a size as in \"200MB\" is allowed".to_owned()),
        ("python:m.f", "device_memory = \"2GB\"", "operation[0].device_memory: \"2GB\" is not allowed; only operations with device = \"accelerator\" have device memory".to_owned()),
        ("python:m.f", "device = \"accelerator\"\ndevice_memory = \"2 GPUs\"", "operation[0].device_memory: \"2 GPUs\" is not allowed; a size as in \"200MB\" is allowed".to_owned()),
        ("python:m.f", "timeout_seconds = 0", "operation[0].timeout_seconds: 0 is not allowed; more than 0 and at most 1000000 s are allowed".to_owned()),
        ("python:m.f", "timeout_seconds = nan", "operation[0].timeout_seconds: NaN is not allowed; more than 0 and at most 1000000 s are allowed".to_owned()),
    ];
    let mut wrong = Vec::new();
    for (name, lines, wanted) in cases {
        let found = mistake(&operation(name, lines));
        if found != wanted {
            wrong.push(format!("{found}\n  instead of {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let twice = operation("python:m.f", "") + &operation("python:m.f", "");
    assert_eq!(
        mistake(&twice),
        "operation[1].name: python:m.f is not allowed; a name and version occur once"
    );
    assert_eq!(
        mistake(""),
        "operation: an empty list is not allowed; at least one [[operation]] is required"
    );
}

#[test]
fn mistakes_of_the_file_have_their_place() {
    for (lines, wanted) in [
        ("timeout = 3", "5:1: unknown field `timeout`, expected one of `name`, `version`, `function`"),
        (
            "inputs = [{ name = \"a\", type = \"rgb8\" }]",
            "5:32: unknown variant `rgb8`, expected one of `bgr8`",
        ),
        ("inputs = [{ name = \"a\" }]", "5:11: missing field `type`"),
        ("memory = { peak = 3 }", "5:12: unknown field `peak`, expected one of `resident`"),
        ("arguments = [{ name = \"a\", minimum = 3 }]", "5:28: unknown field `minimum`, expected one of"),
        (
            "determinism = \"maybe\"",
            "5:15: unknown variant `maybe`, expected one of `bits`, `seeded`, `none`",
        ),
        ("device = \"tpu\"", "5:10: unknown variant `tpu`, expected one of `cpu`, `gpu`, `accelerator`"),
        ("version = 2", "5:1: duplicate key"),
        ("env = { A = 1 }", "5:13: invalid type: integer `1`, expected a string"),
        ("files = [\"a\"", "5:13: unclosed array"),
    ] {
        let found = mistake(&operation("python:m.f", lines));
        assert!(found.starts_with(wanted), "{lines}: {found}");
    }
    let unversioned = mistake("[[operation]]\nname = \"python:m.f\"\noutputs = []\n");
    assert_eq!(unversioned, "1:1: missing field `version`");
    let folder = tempfile::tempdir().unwrap();
    let error = Manifest::load(&folder.path().join("pleach.toml")).unwrap_err().to_string();
    assert!(
        error.ends_with("pleach.toml: failed to read: No such file or directory (os error 2)"),
        "{error}"
    );
}
