//! `pleach man`: manual pages, generated from the command line's grammar.

use crate::cli;
use crate::exit::{Outcome, Stop};
use crate::output::folder::publish;
use crate::output::print_line;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(out: &Path) -> Outcome {
    let fail = |what: &str, error| Stop::writing(format_args!("--out {}: {what}", out.display()), &error);
    fs::create_dir_all(out).map_err(|error| fail("cannot be written to", error))?;
    // `pleach help` explains itself, and would need a page for every other page.
    let mut grammar = cli::grammar().disable_help_subcommand(true);
    grammar.build();
    let pages = pages(&grammar)?;
    for (name, page) in &pages {
        publish(&out.join(name), page).map_err(|error| fail(&format!("failed to write {name}"), error))?;
    }
    print_line(&format!("{} manual pages in {}", pages.len(), out.display()));
    Ok(())
}

/// File name and content of a command's page, and of those of the commands below it.
fn pages(command: &clap::Command) -> Outcome<Vec<(String, Vec<u8>)>> {
    let man =
        Man::new(command.clone()).manual("pleach").source(concat!("pleach ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page).map_err(Stop::defect)?;
    let mut all = vec![(man.get_filename(), page)];
    for below in command.get_subcommands() {
        all.extend(pages(below)?);
    }
    Ok(all)
}
