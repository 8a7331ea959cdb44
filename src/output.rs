//! What a study leaves behind: files, each written whole or not at all.

pub(crate) mod folder;
pub(crate) mod record;
pub(crate) mod tables;

use crate::exit::{CommandError, CommandResult};
use serde::Serialize;
use std::io::Write;

/// Prints one JSON document.
pub(crate) fn print_json(document: &impl Serialize) -> CommandResult {
    let text = serde_json::to_string_pretty(document).map_err(CommandError::defect)?;
    print_line(&text);
    Ok(())
}

/// Prints a notice on stderr: a remark that is no result.
#[expect(clippy::print_stderr, reason = "notices of commands are printed here")]
pub(crate) fn print_notice(text: &str) {
    eprintln!("{text}");
}

/// Prints a line. A reader that has gone away (`pleach … | head`) is no error.
pub(crate) fn print_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
