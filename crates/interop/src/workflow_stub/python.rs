//! Source in Python: functions on numpy arrays, and the manifest that declares them.

use super::{Stub, StubArgument, StubError, StubOperation, StubPort, identifier, last_part, snake_case};
use pleach_regions::ElementType;
use pleach_workflow::{OperationUse, is_stage, text};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Prefix of operations in Python.
const PREFIX: &str = "python:";

const MANIFEST: &str = "pleach.toml";

/// Maximum length of a signature on one line, as formatters of Python break it.
const MAX_SIGNATURE: usize = 80;

/// Beginning of the manifest.
const HEAD: &str = "\
# The operations of this folder. docs/python.md of pleach describes all keys.

[package]
# Distributions that the modules import. Their versions are part of each result's identity.
requires = [\"numpy\"]
";

/// An operation with the module and function that run it.
struct Function<'a> {
    operation: &'a StubOperation,
    module: String,
    function: String,
}

impl Function<'_> {
    fn name(&self) -> String {
        format!("{PREFIX}{}.{}", self.module, self.function)
    }
}

/// Returns manifest, modules, and copies of the descriptors that name the functions.
pub(super) fn files(
    file: &Path,
    uses: &[OperationUse],
    operations: &[StubOperation],
) -> Result<Stub, StubError> {
    check_arguments(uses, operations)?;
    let functions = functions(operations);
    let mut manifest = HEAD.to_owned();
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for function in &functions {
        write_entry(&mut manifest, function);
        let module = modules.entry(function.module.clone()).or_insert_with(|| {
            let stage = &function.operation.stage;
            format!("\"\"\"Operations of the stage {stage}. Begun by `pleach workflow stub`: write the functions.\"\"\"\n")
        });
        write_function(module, function);
    }
    let mut files = vec![(MANIFEST.to_owned(), manifest)];
    files.extend(modules.into_iter().map(|(module, text)| (format!("{module}.py"), text)));
    let changes: Vec<(&str, String)> =
        functions.iter().map(|function| (function.operation.name.as_str(), function.name())).collect();
    let stages: BTreeSet<&PathBuf> = uses.iter().map(|of| &of.file).collect();
    let mut is_changed = false;
    for stage in stages {
        let (text, renamed) = (read(stage)?, |text: &str| renamed(text, &changes));
        is_changed |= renamed(&text) != text;
        let name = stage.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, renamed(&text)));
    }
    if is_stage(file) {
        // The user's own stage file is complete if no name changes.
        if !is_changed {
            files.pop();
        }
    } else {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, with_manifest(&read(file)?)));
    }
    let operations = functions.iter().map(Function::name).collect();
    Ok(Stub { files, operations })
}

/// Rejects names of arguments that functions in Python cannot have: pleach calls functions by them.
fn check_arguments(uses: &[OperationUse], operations: &[StubOperation]) -> Result<(), StubError> {
    let is_stub = |of: &&OperationUse| operations.iter().any(|known| known.name == of.operation);
    for of in uses.iter().filter(is_stub) {
        if let Some(argument) =
            of.arguments.iter().find(|argument| identifier(&argument.name) != argument.name)
        {
            let (file, pointer, operation) = (of.file.clone(), of.pointer.clone(), of.operation.clone());
            return Err(StubError::ArgumentName {
                file,
                pointer,
                operation,
                argument: argument.name.clone(),
            });
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, StubError> {
    text::read(file).map_err(|cause| StubError::Unreadable { file: file.to_owned(), cause })
}

/// Returns the function of each operation. A name such as `python:nuclei.threshold` has module and function, any other
/// name gets the module of its stage.
fn functions(operations: &[StubOperation]) -> Vec<Function<'_>> {
    let mut taken = BTreeSet::new();
    let mut functions = Vec::new();
    for operation in operations {
        let named = operation.name.strip_prefix(PREFIX).and_then(|name| name.rsplit_once('.'));
        let (module, mut function) = match named {
            Some((module, function)) => (module.to_owned(), function.to_owned()),
            None => (snake_case(&operation.stage), snake_case(last_part(&operation.name))),
        };
        while !taken.insert((module.clone(), function.clone())) {
            function.push('_');
        }
        functions.push(Function { operation, module, function });
    }
    functions
}

fn write_entry(text: &mut String, function: &Function<'_>) {
    let StubOperation { version, inputs, outputs, arguments, description, .. } = function.operation;
    let about = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = |items: Vec<String>| match items.as_slice() {
        [] => "[]".to_owned(),
        [item] => format!("[{item}]"),
        _ => format!("[\n{}]", items.iter().map(|item| format!("    {item},\n")).collect::<String>()),
    };
    let ports = |ports: &[StubPort]| list(ports.iter().map(port).collect());
    let _ = write!(
        text,
        "\n# {}\n[[operation]]\nname = {}\nversion = {version}\ninputs = {}\noutputs = {}\n",
        if about.is_empty() { "An operation" } else { &about },
        quoted(&function.name()),
        ports(inputs),
        ports(outputs)
    );
    if let Some((module, function)) =
        function.module.contains('.').then_some((&function.module, &function.function))
    {
        let _ = writeln!(text, "function = {}", quoted(&format!("{module}:{function}")));
    }
    if !arguments.is_empty() {
        let _ = writeln!(text, "arguments = {}", list(arguments.iter().map(argument).collect()));
    }
    let assumed: Vec<&str> =
        inputs.iter().chain(outputs).filter(|port| port.is_assumed).map(|port| port.name.as_str()).collect();
    if !assumed.is_empty() {
        let _ =
            writeln!(text, "# Types assumed, equal in the writer and all readers: {}", assumed.join(", "));
    }
}

fn quoted(text: &str) -> String {
    // JSON strings without control characters are TOML strings.
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    serde_json::Value::from(plain).to_string()
}

fn port(port: &StubPort) -> String {
    let channels = if port.element == ElementType::Bgr8 { ", channels = \"rgb\"" } else { "" };
    format!("{{ name = {}, type = \"{}\"{channels} }}", quoted(&port.name), port.element.name())
}

fn argument(argument: &StubArgument) -> String {
    // Any number, if no descriptor has values.
    let [low, high] = argument.bounds.unwrap_or([-1e9, 1e9]);
    let bounds = if argument.is_integer {
        format!("type = \"integer\", low = {low:.0}, high = {high:.0}")
    } else {
        format!("type = \"real\", low = {low:?}, high = {high:?}")
    };
    format!("{{ name = {}, {bounds} }}", quoted(&argument.name))
}

fn write_function(text: &mut String, function: &Function<'_>) {
    let StubOperation { inputs, outputs, arguments, description, .. } = function.operation;
    let names: Vec<String> = inputs.iter().map(|port| identifier(&port.name)).collect();
    let arguments = arguments.iter().map(|argument| argument.identifier.clone());
    let parameters: Vec<String> = names.into_iter().chain(arguments).collect();
    let line = parameters.join(", ");
    let fits = line.len() + function.function.len() < MAX_SIGNATURE;
    let lines = || parameters.iter().map(|name| format!("    {name},\n")).collect::<String>();
    let parameters = if fits { line } else { format!("\n{}", lines()) };
    let about = description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('\\', "/")
        .replace("\"\"\"", "'''");
    let about = if about.is_empty() { format!("Operation {}", function.operation.name) } else { about };
    let typed = |port: &StubPort| format!("{} ({})", port.name, port.element.name());
    let wanted: Vec<String> = outputs.iter().map(typed).collect();
    let given: Vec<String> = inputs.iter().map(typed).collect();
    let _ = write!(
        text,
        "\n\ndef {}({parameters}):\n    \"\"\"{about}.\n\n    Takes {}.\n    Returns {}.\n    \"\"\"\n    \
         raise NotImplementedError(\"{} is not written yet\")\n",
        function.function,
        if given.is_empty() { "no region".to_owned() } else { given.join(", ") },
        if wanted.is_empty() { "no region".to_owned() } else { wanted.join(", ") },
        function.name()
    );
}

/// Returns a descriptor with other names of operations. Its other text stays as its author wrote it.
fn renamed(text: &str, changes: &[(&str, String)]) -> String {
    const KEY: &str = "\"operation\"";
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(KEY) {
        let (before, after) = rest.split_at(at + KEY.len());
        result += before;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let written = |name: &str| serde_json::Value::from(name).to_string();
        let change =
            changes.iter().find(|(old, _)| value.is_some_and(|value| value.starts_with(&written(old))));
        rest = match (change, value) {
            (Some((old, new)), Some(value)) => {
                result += &after[..after.len() - value.len()];
                result += &written(new);
                &value[written(old).len()..]
            }
            _ => after,
        };
    }
    result + rest
}

/// Returns a workflow that names the manifest.
fn with_manifest(workflow: &str) -> String {
    let document: Option<serde_json::Value> = serde_json::from_str(workflow).ok();
    let names_one = document.is_some_and(|document| document.get("operations").is_some());
    match workflow.find('{') {
        Some(at) if !names_one => {
            let (before, after) = workflow.split_at(at + 1);
            format!("{before}\n  \"operations\": [\"{MANIFEST}\"],{after}")
        }
        _ => workflow.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_renamed_in_place() {
        let text = "{ \"operation\" : \"a.b\",  \"x\": \"a.b\" }, { \"operation\": \"a.bc\" }";
        let changed = renamed(text, &[("a.b", "python:s.b".to_owned())]);
        assert_eq!(
            changed,
            "{ \"operation\" : \"python:s.b\",  \"x\": \"a.b\" }, { \"operation\": \"a.bc\" }"
        );
    }

    #[test]
    fn manifest_is_named_once() {
        let named = with_manifest("{ \"workflow\": \"w\" }");
        assert_eq!(named, "{\n  \"operations\": [\"pleach.toml\"], \"workflow\": \"w\" }");
        assert_eq!(with_manifest(&named), named);
    }
}
