//! `pleach workflow import`: converts a file of another program to a study file, or to the files of a workflow.

use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_interop::problem::{import, recipe};
use pleach_interop::workflow_files::{ImportedWorkflow, WorkflowMap, import_workflow};
use pleach_results::folder::publish;
use pleach_sensitivity::import::Imported;
use pleach_workflow::Registry;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(super) fn execute(
    file: &Path,
    out: Option<&Path>,
    map: Option<&Path>,
    registry: &Registry,
) -> CommandResult {
    let loaded = map.map_or_else(|| Ok(WorkflowMap::default()), WorkflowMap::load)?;
    if let Some(workflow) = import_workflow(file, &loaded, registry)? {
        return write_workflow(&workflow, out);
    }
    if let Some(map) = map {
        let text =
            format!("--map {}: {} is no workflow; only workflows have calls", map.display(), file.display());
        return Err(CommandError::Input(text));
    }
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

/// Writes the files of a workflow into a folder, or prints them.
fn write_workflow(workflow: &ImportedWorkflow, out: Option<&Path>) -> CommandResult {
    let Some(out) = out else {
        for (name, text) in &workflow.files {
            print_line(&format!("{name}:\n{}", text.trim_end()));
        }
        return Ok(());
    };
    write_new(out, &workflow.files)?;
    print_line(&format!("{}: {}", out.display(), workflow.summary));
    for (name, _) in &workflow.files {
        print_line(&format!("  {name}"));
    }
    workflow.notes.iter().for_each(|note| print_line(&format!("note: {note}")));
    Ok(())
}

/// Writes new files into a folder, which is created if it is missing. Existing files are the user's.
pub(super) fn write_new(folder: &Path, files: &[(String, String)]) -> CommandResult {
    // Links are not followed: a dangling one occupies the name too.
    let taken = files.iter().map(|(name, _)| folder.join(name)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = taken {
        return Err(CommandError::Input(format!("{}: exists; only new files are written", path.display())));
    }
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        if let Err(error) = std::fs::create_dir_all(parent).and_then(|()| publish(&path, text.as_bytes())) {
            // A part of the files would be no workflow. The first error is the one to report.
            written.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err(CommandError::writing(format_args!("{}: failed to write", path.display()), &error));
        }
        written.push(path);
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
