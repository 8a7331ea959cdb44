//! `pleach completions`: generates a shell's completion script from the grammar.
//!
//! The shell completes file names. Parameters of a study are not completed.

use crate::cli;
use crate::exit::CommandResult;
use clap_complete::Shell;
use std::io::Write;

/// Runs the command.
pub(super) fn execute(shell: Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::grammar(), "pleach", &mut script);
    // A closed stdout is not an error.
    let _ = std::io::stdout().write_all(&script);
    Ok(())
}
