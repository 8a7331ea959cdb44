//! `pleach man`: generates manual pages from the grammar of the command line.

use crate::cli::{self, manual};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use clap_mangen::Man;
use pleach_results::folder::publish;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(out: &Path) -> CommandResult {
    let fail =
        |what: &str, error| CommandError::writing(format_args!("--out {}: {what}", out.display()), &error);
    fs::create_dir_all(out).map_err(|error| fail("cannot be written to", error))?;
    // Omit `pleach help`: it would need a page for every other page.
    let mut grammar = cli::grammar().disable_help_subcommand(true);
    grammar.build();
    let pages = pages(&grammar)?;
    for (name, page) in &pages {
        publish(&out.join(name), page).map_err(|error| fail(&format!("failed to write {name}"), error))?;
    }
    print_line(&format!("{} manual pages in {}", pages.len(), out.display()));
    Ok(())
}

/// Returns the file names and contents of the pages of a command and its subcommands.
fn pages(command: &clap::Command) -> CommandResult<Vec<(String, Vec<u8>)>> {
    let man =
        Man::new(command.clone()).manual("pleach").source(concat!("pleach ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    render(&man, command, &mut page).map_err(CommandError::defect)?;
    let mut all = vec![(man.get_filename(), page)];
    for below in command.get_subcommands() {
        all.extend(pages(below)?);
    }
    Ok(all)
}

/// Renders the sections in the order of man-pages(7).
fn render(man: &Man, command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let statuses = manual::EXIT_STATUSES.iter().map(|(status, meaning)| (status.to_string(), *meaning));
    section(page, "EXIT STATUS", statuses)?;
    section(page, "ENVIRONMENT", manual::variables(command))?;
    let words = command.get_bin_name().unwrap_or_default();
    let words = words.strip_prefix("pleach").unwrap_or(words).trim_start();
    section(page, "EXAMPLES", manual::examples(words))?;
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}

/// Writes a section of terms and their meanings. Writes nothing without terms.
fn section<T: AsRef<str>, M: AsRef<str>>(
    page: &mut Vec<u8>,
    title: &str,
    entries: impl IntoIterator<Item = (T, M)>,
) -> std::io::Result<()> {
    let mut entries = entries.into_iter().peekable();
    if entries.peek().is_some() {
        writeln!(page, ".SH \"{title}\"")?;
    }
    for (term, meaning) in entries {
        writeln!(page, ".TP\n\\fB{}\\fR\n{}", roff(term.as_ref()), roff(meaning.as_ref()))?;
    }
    Ok(())
}

/// Escapes text for a line of roff, so that it contains no request or escape and its hyphens can be copied.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\(rs").replace('-', "\\-");
    // A dot or an apostrophe at the start of a line begins a request.
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_request_and_no_escape() {
        assert_eq!(roff("--out a\\b"), "\\-\\-out a\\(rsb");
        assert_eq!(roff(".SH"), "\\&.SH");
        assert_eq!(roff("'quoted'"), "\\&'quoted'");
    }
}
