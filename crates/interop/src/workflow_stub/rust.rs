//! Source in Rust: a program like `examples/own-operation`.

use super::{StubArgument, StubOperation, StubPort, identifier, last_part, snake_case};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Beginning of the file.
const HEAD: &str = include_str!("rust/head.txt");

/// Function that ends a body that is not written.
const UNWRITTEN: &str = include_str!("rust/unwritten.txt");

/// Function that starts the program.
const MAIN: &str = include_str!("rust/main.txt");

/// Returns the program.
pub(super) fn source(operations: &[StubOperation]) -> String {
    let mut text = HEAD.to_owned();
    let mut structs = BTreeSet::new();
    let mut names = Vec::new();
    for operation in operations {
        let mut name = struct_name(&operation.name);
        while !structs.insert(name.clone()) {
            name.push('2');
        }
        write_operation(&mut text, &name, operation);
        names.push(name);
    }
    text += UNWRITTEN;
    text += "\n/// Returns the built-in operations and those of this program.\npub(crate) fn operations() -> Registry {\n    \
             pleach::builtin_operations()";
    for name in &names {
        let _ = write!(text, "\n        .with({name})");
    }
    text += "\n}\n";
    text += MAIN;
    if operations.iter().all(|operation| operation.arguments.is_empty()) {
        text = text.replace("{Accepts, Argument,", "{Argument,");
    }
    text
}

/// Returns the name of the type: `DarkFraction` for `example.dark-fraction`.
fn struct_name(operation: &str) -> String {
    let words = snake_case(last_part(operation));
    let capital = |word: &str| -> String {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    };
    identifier(&words.split('_').map(capital).collect::<String>())
}

fn write_operation(text: &mut String, name: &str, operation: &StubOperation) {
    let StubOperation { name: operation_name, version, description, inputs, outputs, arguments, .. } =
        operation;
    let about = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let about = if about.is_empty() { format!("Operation {operation_name}.") } else { format!("{about}.") };
    let _ = write!(
        text,
        "\n/// {about}\nstruct {name};\n\nimpl Operation for {name} {{\n    fn name(&self) -> &'static str {{\n        \
         {operation_name:?}\n    }}\n\n    fn version(&self) -> u32 {{\n        {version}\n    }}\n\n    \
         fn arguments(&self) -> &[Argument] {{\n        &{}\n    }}\n\n    fn inputs(&self) -> &[Port] {{\n        &{}\n    \
         }}\n\n    fn outputs(&self) -> &[Port] {{\n        &{}\n    }}\n",
        list(arguments, argument),
        list(inputs, port),
        list(outputs, port),
    );
    let bytes = outputs.iter().map(|port| format!("ElementType::{:?}.bytes(pixels)", port.element));
    let bytes: Vec<String> = bytes.collect();
    let bytes = if bytes.is_empty() { "0".to_owned() } else { bytes.join(" + ") };
    let _ = write!(
        text,
        "\n    // An estimate for the first plan. Later plans use measured times.\n    \
         fn cost_seconds(&self, pixels: u64) -> f64 {{\n        pixels as f64 * 10e-9\n    }}\n\n    \
         // Outputs and scratch, not inputs: admission control relies on it.\n    \
         fn memory_bytes(&self, pixels: u64) -> u64 {{\n        let _ = pixels;\n        {bytes}\n    }}\n\n    \
         fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {{\n"
    );
    if bytes.contains("pixels") {
        let end = text.rfind("        let _ = pixels;\n").unwrap_or(text.len());
        text.replace_range(end..end + "        let _ = pixels;\n".len(), "");
    }
    let mut names = BTreeSet::new();
    let mut variables = |names_of: Vec<(String, String, String)>| -> Vec<String> {
        let mut used = Vec::new();
        for (wanted, value, remark) in names_of {
            let mut name = snake_case(&wanted);
            while ["inputs", "arguments"].contains(&name.as_str()) || !names.insert(name.clone()) {
                name.push('_');
            }
            let _ = writeln!(text, "        let {name} = {value}; // {remark}");
            used.push(name);
        }
        used
    };
    let regions = inputs
        .iter()
        .enumerate()
        .map(|(place, port)| (port.name.clone(), format!("inputs[{place}]"), port.element.name().to_owned()));
    let regions = variables(regions.collect());
    let numbers = arguments.iter().enumerate().map(|(place, argument)| {
        (argument.identifier.clone(), format!("arguments[{place}].as_f64()"), remark(argument))
    });
    let numbers = variables(numbers.collect());
    let wanted: Vec<String> =
        outputs.iter().map(|port| format!("{} ({})", port.name, port.element.name())).collect();
    let unused = |list: &[String], name: &str| {
        if list.is_empty() { format!("        let _ = {name};\n") } else { String::new() }
    };
    let _ = write!(
        text,
        "{}{}        // Return {}.\n        unwritten(self, &[{}], &[{}])\n    }}\n}}\n",
        unused(&regions, "inputs"),
        unused(&numbers, "arguments"),
        if wanted.is_empty() { "no region".to_owned() } else { wanted.join(", ") },
        regions.join(", "),
        numbers.join(", "),
    );
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    match items {
        [] => "[]".to_owned(),
        _ => {
            let items: String = items.iter().map(|of| format!("\n            {}", item(of))).collect();
            format!("[{items}\n        ]")
        }
    }
}

fn port(port: &StubPort) -> String {
    let text = format!("Port {{ name: {:?}, element: ElementType::{:?} }},", port.name, port.element);
    if port.is_assumed { format!("{text} // type assumed") } else { text }
}

fn argument(argument: &StubArgument) -> String {
    let [low, high] = argument.bounds.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    let accepts = if argument.is_integer {
        let end = |number: f64, unknown: &str| {
            if number.is_finite() { format!("{number:.0}") } else { unknown.to_owned() }
        };
        format!("Integers {{ low: {}, high: {} }}", end(low, "i64::MIN"), end(high, "i64::MAX"))
    } else {
        let end = |number: f64, unknown: &str| {
            if number.is_finite() { format!("{number:?}") } else { unknown.to_owned() }
        };
        format!("Reals {{ low: {}, high: {} }}", end(low, "f64::MIN"), end(high, "f64::MAX"))
    };
    format!("Argument {{ name: {:?}, accepts: Accepts::{accepts} }},", argument.name)
}

fn remark(argument: &StubArgument) -> String {
    let kind = if argument.is_integer { "integer" } else { "real" };
    match argument.bounds {
        None => kind.to_owned(),
        Some([low, high]) => format!("{kind} from {low} to {high}"),
    }
}
