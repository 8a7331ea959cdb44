//! `pleach completions`: what a shell has to know of the command line, generated from its grammar.
//!
//! Names of files are left to the shell; a study's parameters are not completed.

use crate::cli;
use crate::exit::CommandResult;
use clap_complete::Shell;
use std::io::Write;

/// Runs the command.
pub(super) fn execute(shell: Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::grammar(), "pleach", &mut script);
    // A reader that has gone away is no error.
    let _ = std::io::stdout().write_all(&script);
    Ok(())
}
