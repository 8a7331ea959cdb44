//! `pleach workflow import`: converts a file of another program to a study file.

use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_interop::problem::{import, recipe};
use pleach_results::folder::publish;
use pleach_sensitivity::import::Imported;
use std::fmt::Write;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(file: &Path, out: Option<&Path>) -> CommandResult {
    let imported = import(file)?;
    // Reject an invalid problem now, rather than when `pleach` reads the study file.
    imported.parameters().map_err(|error| CommandError::Input(format!("{}: {error}", file.display())))?;
    let text = study(&imported, file);
    match out {
        None => print_line(text.trim_end()),
        Some(out) => {
            publish(out, text.as_bytes()).map_err(|error| {
                CommandError::writing(format_args!("--out {}: failed to write", out.display()), &error)
            })?;
            print_line(&format!("{}: {}", out.display(), counted(&imported)));
        }
    }
    Ok(())
}

fn counted(imported: &Imported) -> String {
    let resting = imported.parameters.iter().filter(|parameter| parameter.rests()).count();
    let varying = imported.parameters.len() - resting;
    let method =
        recipe(imported).kind.map_or_else(|| "no method".to_owned(), |kind| format!("method {kind}"));
    format!("{varying} varying and {resting} fixed parameters, {method}")
}

/// Returns the study file. It names no workflow, because only the user can map the other program's parameters to one.
fn study(imported: &Imported, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let mut text = format!("# Imported from {name}.\n");
    for note in &imported.notes {
        let _ = writeln!(text, "# {note}");
    }
    text += "# `pleach sample` and `pleach analyze` accept this file. To run a workflow, name it in [study],\n\
             # its images in [input] and its metric in [response], and give the parameters the names that it uses.\n\n";
    if let Some(seed) = imported.seed {
        text += "[study]\n# The random numbers differ from those of the other program.\n";
        let _ = writeln!(text, "seed = {seed}\n");
    }
    text += &method(imported);
    text + &imported.parameter_sections()
}

fn method(imported: &Imported) -> String {
    let recipe = recipe(imported);
    let Some(kind) = &recipe.kind else { return String::new() };
    let mut text = format!("[method]\nkind = \"{kind}\"\n");
    let texts = [("sampler", &recipe.sampler), ("base", &recipe.base)];
    for (key, value) in texts {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = \"{value}\"");
        }
    }
    let numbers =
        [("trajectories", recipe.trajectories), ("levels", recipe.levels), ("samples", recipe.samples)];
    for (key, value) in numbers {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text + "\n"
}
