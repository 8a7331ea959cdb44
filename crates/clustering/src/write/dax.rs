//! Writes Pegasus DAX 2.1, with the elements and attributes of the Pegasus workflow generator.

use std::fmt;
use std::io::Write;

use super::error::WriteError;
use crate::format::Format;
use crate::workflow::Workflow;

/// Writes a workflow.
pub(super) fn write(workflow: &Workflow, out: &mut impl Write) -> Result<(), WriteError> {
    check(workflow)?;
    let tasks = workflow.tasks();
    let numbers = || 0..tasks.len() as u32;
    let children = numbers().filter(|task| !workflow.parents(*task).is_empty());
    let (name, jobs, count) = (Escaped(workflow.name()), tasks.len(), children.clone().count());
    write!(
        out,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://pegasus.isi.edu/schema/DAX http://pegasus.isi.edu/schema/dax-2.1.xsd" version="2.1" count="1" index="0" name="{name}" jobCount="{jobs}" fileCount="0" childCount="{count}">
"#
    )?;
    for task in tasks {
        let (id, kind) = (Escaped(&task.id), Escaped(&task.kind));
        let seconds = task.seconds;
        writeln!(
            out,
            r#"  <job id="{id}" namespace="pleach" name="{kind}" version="1.0" runtime="{seconds}">"#
        )?;
        for (link, files) in [("input", &task.reads), ("output", &task.writes)] {
            for file in files {
                let file = &workflow.files()[*file as usize];
                let (name, bytes) = (Escaped(&file.name), file.bytes);
                writeln!(
                    out,
                    r#"    <uses file="{name}" link="{link}" register="true" transfer="true" optional="false" type="data" size="{bytes}"/>"#
                )?;
            }
        }
        writeln!(out, "  </job>")?;
    }
    for child in children {
        writeln!(out, r#"  <child ref="{}">"#, Escaped(&tasks[child as usize].id))?;
        for parent in workflow.parents(child) {
            writeln!(out, r#"    <parent ref="{}"/>"#, Escaped(&tasks[*parent as usize].id))?;
        }
        writeln!(out, "  </child>")?;
    }
    writeln!(out, "</adag>")?;
    Ok(())
}

fn check(workflow: &Workflow) -> Result<(), WriteError> {
    let ids = workflow.tasks().iter().map(|task| ("task", task.id.as_str()));
    let kinds = workflow.tasks().iter().map(|task| ("kind", task.kind.as_str()));
    let files = workflow.files().iter().map(|file| ("file", file.name.as_str()));
    for (element, name) in [("workflow", workflow.name())].into_iter().chain(ids).chain(kinds).chain(files) {
        if !name.chars().all(is_xml) {
            let allowed = "characters of XML 1.0 are allowed: no control characters";
            return Err(WriteError::Name { element, name: name.to_owned(), format: Format::Dax, allowed });
        }
    }
    Ok(())
}

/// Returns whether XML 1.0 can hold the character (section 2.2).
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The value of an attribute in double quotes.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(position) = rest.find(['&', '<', '>', '"', '\t', '\n', '\r']) {
            f.write_str(&rest[..position])?;
            f.write_str(match rest.as_bytes()[position] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                // A reader turns white space into spaces, unless it is a reference.
                b'\t' => "&#9;",
                b'\n' => "&#10;",
                _ => "&#13;",
            })?;
            rest = &rest[position + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_escaped() {
        assert_eq!(Escaped("a<b>&\"c\"\n'é'").to_string(), "a&lt;b&gt;&amp;&quot;c&quot;&#10;'é'");
    }
}
