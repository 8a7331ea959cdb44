//! Reads DAG lines: `FILE name bytes`, `TASK id type seconds`, `INPUTS|OUTPUTS id file…` and `EDGE parent child…`.
//!
//! Lines may be in any order. A type `namespace::name:version` is the kind `name`.

use super::draft::{BYTES, Draft, SECONDS, bytes, seconds};
use super::error::{Located, Place, ReadProblem};
use super::options::ReadOptions;
use crate::workflow::Workflow;

/// First words of lines.
const KEYWORDS: [&str; 5] = ["FILE", "TASK", "INPUTS", "OUTPUTS", "EDGE"];

/// Returns whether the text starts with a line of this format.
pub(super) fn is_dag(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| KEYWORDS.contains(&word))
}

/// Reads a text. `name` is the name of the workflow.
pub(super) fn parse(name: &str, text: &str, options: ReadOptions) -> Result<Workflow, Located> {
    let mut draft = Draft::new(None);
    // Tasks and files first: lists and edges may precede them.
    for (line, text) in (1..).zip(text.lines()) {
        definition(&mut draft, text, line, options).map_err(|problem| problem.at(Place::Line(line)))?;
    }
    for (line, text) in (1..).zip(text.lines()) {
        relation(&mut draft, text, line).map_err(|problem| problem.at(Place::Line(line)))?;
    }
    draft.finish(name, options, Place::Line)
}

fn definition(draft: &mut Draft, text: &str, line: u64, options: ReadOptions) -> Result<(), ReadProblem> {
    let mut words = text.split_whitespace();
    match words.next() {
        Some("FILE") => {
            let (Some(name), value, None) = (words.next(), words.next(), words.next()) else {
                return Err(syntax(text, "FILE name bytes is allowed"));
            };
            let file = draft.file(name, line);
            if draft.bytes(file).is_some() {
                return Err(ReadProblem::Twice { element: "file", id: name.to_owned() });
            }
            let size = match value {
                None if options.assume_zero => Some(0),
                value => value.and_then(|value| bytes(value, options)),
            };
            let size = size.ok_or_else(|| refused("file", name, "size", value, BYTES))?;
            draft.set_bytes(file, size);
        }
        Some("TASK") => {
            let (Some(id), Some(kind), value, None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(syntax(text, "TASK id type seconds is allowed"));
            };
            let time = match value {
                None if options.assume_zero => Some(0.0),
                value => value.and_then(|value| seconds(value, options)),
            };
            let time = time.ok_or_else(|| refused("task", id, "run time", value, SECONDS))?;
            draft.add_task(id, kind_of(kind), time)?;
        }
        Some(word) if !KEYWORDS.contains(&word) => {
            return Err(syntax(text, "lines FILE, TASK, INPUTS, OUTPUTS and EDGE are allowed"));
        }
        _ => {}
    }
    Ok(())
}

fn relation(draft: &mut Draft, text: &str, line: u64) -> Result<(), ReadProblem> {
    let mut words = text.split_whitespace();
    let keyword = words.next();
    match keyword {
        Some("INPUTS" | "OUTPUTS") => {
            let id = words
                .next()
                .ok_or_else(|| syntax(text, "INPUTS id file… and OUTPUTS id file… are allowed"))?;
            let task = draft.task(id)?;
            for name in words {
                let file = draft.file(name, line);
                if keyword == Some("INPUTS") {
                    draft.add_input(task, file);
                } else {
                    draft.add_output(task, file);
                }
            }
        }
        Some("EDGE") => {
            let (Some(parent), Some(first)) = (words.next(), words.next()) else {
                return Err(syntax(text, "EDGE parent child… is allowed"));
            };
            let parent = draft.task(parent)?;
            for child in std::iter::once(first).chain(words) {
                draft.add_edge(parent, draft.task(child)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the name in `namespace::name:version`, or the whole type if it is not of this form.
fn kind_of(kind: &str) -> &str {
    kind.split_once("::").map_or(kind, |(_, name)| name.rsplit_once(':').map_or(name, |(name, _)| name))
}

fn syntax(text: &str, allowed: &'static str) -> ReadProblem {
    ReadProblem::Syntax { cause: format!("line {}", crate::format::text::quoted(text)), allowed }
}

fn refused(
    element: &'static str,
    id: &str,
    field: &'static str,
    value: Option<&str>,
    allowed: &'static str,
) -> ReadProblem {
    ReadProblem::Value { element, id: id.to_owned(), field, value: value.map(str::to_owned), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_without_namespace_and_version() {
        assert_eq!(kind_of("Montage::mAdd:1.0"), "mAdd");
        assert_eq!(kind_of("a::b::c:d:1.0"), "b::c:d");
        assert_eq!(kind_of("mAdd:1.0"), "mAdd:1.0");
    }
}
