//! `pleach workflow stub`: writes the source of operations that pleach lacks.

use super::import::write_new;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_interop::workflow_stub::{Stub, StubLanguage, stub};
use pleach_workflow::Registry;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(file: &Path, rust: bool, out: Option<&Path>, registry: &Registry) -> CommandResult {
    let language = if rust { StubLanguage::Rust } else { StubLanguage::Python };
    let Stub { files, operations } = stub(file, registry, language)?;
    let Some(out) = out else {
        if let [(_, text)] = files.as_slice() {
            print_line(text.trim_end());
            return Ok(());
        }
        for (name, text) in &files {
            print_line(&format!("{name}:\n{}", text.trim_end()));
        }
        return Ok(());
    };
    write_new(out, &files)?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    print_line(&format!("{}: {}", out.display(), names.join(", ")));
    operations.iter().for_each(|operation| print_line(&format!("  {operation}")));
    Ok(())
}
