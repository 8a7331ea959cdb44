//! Names of calls, and their operations by the map.

use super::draft::TaskDraft;
use super::map::MappedCall;

/// Returns the names under which a map may list a call: its text, the function with its path, and the function.
pub(crate) fn call_names(call: &str) -> Vec<String> {
    let call = call.trim();
    let function = match call.split_once('=') {
        Some((_, function)) if !function.starts_with('=') => function,
        _ => call,
    };
    let function = function.split('(').next().unwrap_or(function).trim().trim_start_matches("::");
    let last = function.rsplit("::").next().unwrap_or(function);
    let mut names = vec![call.to_owned()];
    for name in [function, last] {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the name of the operation of a call without an entry in the map: the path of the function, with dots.
pub(crate) fn operation_name(call: &str) -> String {
    let names = call_names(call);
    let function = if names.len() > 1 { &names[1] } else { &names[0] };
    function.trim_start_matches("::").replace("::", ".")
}

/// Applies the entry of the map to a task.
pub(crate) fn with_map(mut task: TaskDraft, mapped: Option<&MappedCall>) -> TaskDraft {
    let Some(mapped) = mapped else { return task };
    if let Some(operation) = &mapped.operation {
        task.operation.clone_from(operation);
    }
    task.version = mapped.version.unwrap_or(task.version);
    task.parameters.retain(|parameter| argument(mapped, &parameter.name) != Some(None));
    for parameter in &mut task.parameters {
        if let Some(Some(argument)) = argument(mapped, &parameter.name) {
            parameter.argument = (argument != parameter.name).then_some(argument);
        }
    }
    if let Some(reads) = &mapped.reads {
        task.reads.clone_from(reads);
    }
    if let Some(writes) = &mapped.writes {
        task.writes.clone_from(writes);
    }
    task
}

/// Returns the argument that the map gives for a parameter, `Some(None)` for a parameter that it drops. An entry for an
/// array holds for all of its numbers.
fn argument(mapped: &MappedCall, parameter: &str) -> Option<Option<String>> {
    if let Some(argument) = mapped.arguments.get(parameter) {
        return Some(argument.clone());
    }
    let (array, place) = parameter.rsplit_once('.')?;
    place.parse::<usize>().ok()?;
    let argument = mapped.arguments.get(array)?;
    Some(argument.as_ref().map(|argument| format!("{argument}_{place}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names_with_and_without_path() {
        assert_eq!(call_names("::a::B::run"), ["::a::B::run", "a::B::run", "run"]);
        assert_eq!(call_names("out = ::a::run(in, 2)"), ["out = ::a::run(in, 2)", "a::run", "run"]);
        assert_eq!(call_names("seg"), ["seg"]);
        assert_eq!(operation_name("out = ::a::run(in, 2)"), "a.run");
        assert_eq!(operation_name("seg"), "seg");
    }
}
