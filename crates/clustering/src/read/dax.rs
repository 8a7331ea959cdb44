//! Reads Pegasus DAX 2.1: `job@id,name,runtime`, `uses@file|name,link,size`, `child@ref` and `parent@ref`.
//!
//! Document type declarations are refused, and with them entities that expand without limit. Jobs of the traces give
//! different sizes for one file. The last size counts, as in the DAG files that were made from them. Dependencies are those of
//! `child` and `parent` only: traces leave out files.

use roxmltree::{Document, Error, Node};

use super::draft::{BYTES, Draft, SECONDS, bytes, seconds};
use super::error::{Located, Place, ReadProblem};
use super::options::ReadOptions;
use crate::workflow::Workflow;

/// Reads a text. `name` is the name of a workflow without one.
pub(super) fn parse(name: &str, text: &str, options: ReadOptions) -> Result<Workflow, Located> {
    let document = Document::parse(text).map_err(|error| {
        let cause = match &error {
            Error::DtdDetected => "document type declaration".to_owned(),
            error => format!("no XML: {}", error.to_string().replace('\n', " ")),
        };
        let allowed = "XML without a document type declaration is allowed";
        ReadProblem::Syntax { cause, allowed }.at(Place::Line(u64::from(error.pos().row)))
    })?;
    // The position is an offset: finding its line takes a pass over the text.
    let line = |offset: u64| Place::Line(u64::from(document.text_pos_at(offset as usize).row));
    let at = |node: Node<'_, '_>, problem: ReadProblem| problem.at(line(node.range().start as u64));
    let root = document.root_element();
    if root.tag_name().name() != "adag" {
        let cause = format!("element <{}>", root.tag_name().name());
        return Err(at(root, ReadProblem::Syntax { cause, allowed: "a root element <adag> is allowed" }));
    }
    let mut draft = Draft::new(root.attribute("name").map(str::to_owned));
    for node in elements(root, "job") {
        let task = job(&mut draft, node, options).map_err(|problem| at(node, problem))?;
        for node in elements(node, "uses") {
            uses(&mut draft, task, node, options).map_err(|problem| at(node, problem))?;
        }
    }
    for node in elements(root, "child") {
        let child = reference(&draft, node).map_err(|problem| at(node, problem))?;
        for node in elements(node, "parent") {
            let parent = reference(&draft, node).map_err(|problem| at(node, problem))?;
            draft.add_edge(parent, child);
        }
    }
    draft.finish(name, options, line)
}

fn elements<'a, 'd>(node: Node<'a, 'd>, name: &'static str) -> impl Iterator<Item = Node<'a, 'd>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

fn job(draft: &mut Draft, node: Node<'_, '_>, options: ReadOptions) -> Result<u32, ReadProblem> {
    let id = node.attribute("id").ok_or_else(|| missing("job", "id"))?;
    let value = node.attribute("runtime");
    let time = match value {
        None if options.assume_zero => Some(0.0),
        value => value.and_then(|value| seconds(value, options)),
    };
    let time = time.ok_or_else(|| ReadProblem::Value {
        element: "task",
        id: id.to_owned(),
        field: "runtime",
        value: value.map(str::to_owned),
        allowed: SECONDS,
    })?;
    draft.add_task(id, node.attribute("name").unwrap_or_default(), time)
}

fn uses(draft: &mut Draft, task: u32, node: Node<'_, '_>, options: ReadOptions) -> Result<(), ReadProblem> {
    let name = node.attribute("file").or_else(|| node.attribute("name"));
    let name = name.ok_or_else(|| missing("uses", "file"))?;
    let file = draft.file(name, node.range().start as u64);
    if let Some(value) = node.attribute("size") {
        let size = bytes(value, options).ok_or_else(|| refused(name, "size", Some(value), BYTES))?;
        draft.set_bytes(file, size);
    }
    match node.attribute("link") {
        Some("input") => draft.add_input(task, file),
        Some("output") => draft.add_output(task, file),
        Some("inout") => {
            draft.add_input(task, file);
            draft.add_output(task, file);
        }
        link => return Err(refused(name, "link", link, "input, output and inout are allowed")),
    }
    Ok(())
}

fn refused(name: &str, field: &'static str, value: Option<&str>, allowed: &'static str) -> ReadProblem {
    ReadProblem::Value {
        element: "file",
        id: name.to_owned(),
        field,
        value: value.map(str::to_owned),
        allowed,
    }
}

fn reference(draft: &Draft, node: Node<'_, '_>) -> Result<u32, ReadProblem> {
    let id = node.attribute("ref").ok_or_else(|| missing("child and parent", "ref"))?;
    draft.task(id)
}

fn missing(element: &str, attribute: &str) -> ReadProblem {
    let cause = format!("element <{element}> without attribute {attribute}");
    ReadProblem::Syntax { cause, allowed: "job@id, uses@file, child@ref and parent@ref are needed" }
}
