//! `pleach instrument`: proposes the cuts of a function in Python, and writes them as a module with its descriptors.

use crate::cli::InstrumentArgs;
use crate::command::segment::read;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_external::Environment;
use pleach_external::instrument::{
    InstrumentRequest, JoinAdvice, Proposal, ProposedParameter, ProposedRegion, ProposedTask, TracedTile,
    instrument,
};
use pleach_regions::{ElementType, Raster};
use std::io;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(in crate::command) fn execute(args: &InstrumentArgs) -> CommandResult {
    if let Some(out) = &args.out {
        check_new(out)?;
    }
    if !args.script.is_file() {
        return Err(CommandError::Input(format!(
            "{}: no such file; a Python file is allowed",
            args.script.display()
        )));
    }
    let environment = match args.python.path() {
        Some(path) => Environment::at(path),
        None => Environment::of_shell(),
    };
    let environment = environment.map_err(CommandError::input)?;
    let tile = args.tile.as_deref().map(read).transpose()?;
    let rgb = match &tile {
        Some(tile) => rgb(tile.raster(ElementType::Bgr8).map_err(CommandError::defect)?),
        None => (0, 0, Vec::new()),
    };
    let (height, width, rgb) = &rgb;
    let traced = args.tile.as_deref().map(|file| TracedTile { file, height: *height, width: *width, rgb });
    let proposal = instrument(
        &environment,
        &InstrumentRequest {
            script: &args.script,
            function: args.function.as_deref(),
            constants: &args.constant,
            joins: &args.join,
            tile: traced,
            out: args.out.as_deref(),
        },
    )
    .map_err(CommandError::input)?;
    if let Some(out) = &args.out {
        if proposal.files.is_empty() {
            let reason = proposal.warnings.last().map_or("no study is possible", String::as_str);
            return Err(CommandError::Input(format!("{}: {reason}", args.script.display())));
        }
        write(&proposal, &args.script, out)?;
    }
    if args.json {
        return print_json(&proposal);
    }
    show(&proposal);
    if let Some(out) = &args.out {
        let files: Vec<&str> = proposal.files.keys().map(String::as_str).collect();
        print_line(&format!(
            "{}: {}; edit the ranges in stage.json, then pleach run study.toml",
            out.display(),
            files.join(", ")
        ));
    }
    Ok(())
}

/// Checks that the folder is missing or empty.
fn check_new(out: &Path) -> CommandResult {
    let is_new = match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_new {
        return Ok(());
    }
    Err(CommandError::Input(format!("--out {}: exists; a new or empty folder is allowed", out.display())))
}

/// Returns height, width, and the pixels in the order that functions see.
fn rgb(tile: &Raster) -> (u32, u32, Vec<u8>) {
    let (pixels, _) = tile.data().as_chunks::<3>();
    let rgb = pixels.iter().flat_map(|[blue, green, red]| [*red, *green, *blue]).collect();
    (tile.height_px(), tile.width_px(), rgb)
}

/// Writes the folder, as a whole or not at all.
fn write(proposal: &Proposal, script: &Path, out: &Path) -> CommandResult {
    let failed = |error: io::Error| {
        CommandError::writing(format_args!("--out {}: failed to write", out.display()), &error)
    };
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let partial = out.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        std::fs::create_dir(&partial)?;
        for (file, text) in &proposal.files {
            std::fs::write(partial.join(file), text)?;
        }
        for file in &proposal.copied {
            let to: PathBuf = partial.join(file);
            std::fs::create_dir_all(to.parent().unwrap_or(&partial))?;
            std::fs::copy(script.with_file_name("").join(file), to)?;
        }
        // Replaces an empty folder.
        std::fs::rename(&partial, out)
    };
    write().map_err(|error| {
        // The first error is the one to report.
        let _ = std::fs::remove_dir_all(&partial);
        failed(error)
    })
}

fn show(proposal: &Proposal) {
    let Proposal { script, function, statements, parameters, tasks, .. } = proposal;
    print_line(&format!(
        "{script}: {function}: {}, {}, {}",
        counted(*statements, "statement"),
        counted(parameters.len(), "parameter"),
        counted(tasks.len(), "task")
    ));
    for (number, task) in tasks.iter().enumerate() {
        show_task(number + 1, task, proposal);
    }
    let results: u64 = tasks.iter().map(|task| task.results).sum();
    print_line(&format!(
        "\nMOAT study of {} trajectories, for each tile: up to {results} task results instead of {} ({} runs of {})",
        proposal.trajectories,
        proposal.results * tasks.len() as u64,
        proposal.results,
        counted(tasks.len(), "task")
    ));
    if let (Some(seconds), Some(advice)) = (proposal.seconds, &proposal.advice) {
        show_times(seconds * proposal.results as f64, advice, proposal);
    }
    print_line("\nRanges are proposals from the defaults:");
    for parameter in parameters {
        print_line(&format!("  {:<20} {:<8} {}", parameter.name, parameter.kind, domain(parameter)));
    }
    if !proposal.constants.is_empty() {
        print_line(&format!("  at their defaults: {}", proposal.constants.join(", ")));
    }
    for reason in &proposal.joined {
        print_line(&format!("\njoined: {reason}"));
    }
    for warning in &proposal.warnings {
        print_line(&format!("\nwarning: {warning}"));
    }
    print_line(&format!("\n{}", proposal.diff));
}

/// Returns a number with its noun.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn show_task(number: usize, task: &ProposedTask, proposal: &Proposal) {
    print_line(&format!("\n{number} {}: {}", task.task, task.lines));
    let listed = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let regions = |regions: &[ProposedRegion]| {
        let named: Vec<String> = regions.iter().map(region).collect();
        listed(&named)
    };
    print_line(&format!("  reads       {}", regions(&task.reads)));
    print_line(&format!("  writes      {}", regions(&task.writes)));
    print_line(&format!("  parameters  {}", listed(&task.parameters)));
    print_line(&format!("  key         {}", listed(&task.key)));
    let time = task.seconds.map(|seconds| format!(", {:.1} ms each", seconds * 1e3));
    print_line(&format!(
        "  results     {} of {}{}",
        task.results,
        proposal.results,
        time.unwrap_or_default()
    ));
}

fn region(region: &ProposedRegion) -> String {
    let bytes = region.bytes.map(|bytes| format!(", {bytes} B")).unwrap_or_default();
    format!("{} ({}{bytes})", region.region, region.element)
}

fn show_times(whole: f64, advice: &JoinAdvice, proposal: &Proposal) {
    print_line(&format!(
        "At the measured times: {whole:.2} s as one function, {:.2} s as proposed, transfers included",
        advice.seconds
    ));
    if !advice.joins.is_empty() {
        let joins: Vec<String> = advice.joins.iter().map(|task| format!("--join {task}")).collect();
        print_line(&format!("{:.2} s with {}", advice.joined_seconds, joins.join(" ")));
    }
    print_line(&match proposal.compared {
        0 => "Not compared with the function".to_owned(),
        compared => format!("The tasks give the bits of {} for {compared} parameter sets", proposal.function),
    });
}

fn domain(parameter: &ProposedParameter) -> String {
    let values = match (&parameter.range, &parameter.values, &parameter.choices) {
        (Some([low, high]), ..) => format!("{low} to {high}"),
        (_, Some(values), _) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        (_, _, Some(choices)) => {
            let numbered = choices.iter().enumerate().map(|(index, text)| format!("{} {text}", index + 1));
            numbered.collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    format!("{values}, default {}", parameter.default)
}
