//! Printing: results on stdout, notices on stderr.

use crate::exit::{CommandError, CommandResult};
use serde::Serialize;
use std::io::Write;

/// Prints one JSON document.
pub(crate) fn print_json(document: &impl Serialize) -> CommandResult {
    let text = serde_json::to_string_pretty(document).map_err(CommandError::defect)?;
    print_line(&text);
    Ok(())
}

/// Prints a notice on stderr. Notices are not part of the result.
#[expect(clippy::print_stderr, reason = "notices of commands are printed here")]
pub(crate) fn print_notice(text: &str) {
    eprintln!("{text}");
}

/// Prints a line on stdout. Ignores a closed pipe (`pleach … | head`).
pub(crate) fn print_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
