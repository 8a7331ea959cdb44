//! Writes the jobs of a clustering as a list or as a workflow, and generated workflows.

use super::evaluation::Evaluation;
use crate::cli::{ClusterArgs, ClusteredFormatArg, FormatArg, GenerateArgs, MethodArg};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_clustering::{Format, WriteError, write_clustered, write_jobs};
use pleach_results::folder::publish;
use std::io::Write;
use std::path::Path;

/// Rejects `--out` for several clusterings or an unknown format, before the simulation.
pub(super) fn check(args: &ClusterArgs, method: MethodArg) -> CommandResult {
    let Some(out) = &args.out else { return Ok(()) };
    let refuse = |text: &str| Err(CommandError::Input(format!("--out {}: {text}", out.display())));
    if method == MethodArg::All {
        return refuse("--method all has several clusterings; one method, or best, is allowed");
    }
    if args.files.len() > 1 {
        return refuse(&format!("{} workflows; one FILE is allowed", args.files.len()));
    }
    clustered_format(out, args.format).map(|_| ())
}

/// Writes the shown clustering of a workflow.
pub(super) fn write(
    out: &Path,
    format: Option<ClusteredFormatArg>,
    evaluation: &Evaluation,
) -> CommandResult {
    let (workflow, clustering) = (&evaluation.workflow, &evaluation.shown().clustering);
    let format = match clustered_format(out, format)? {
        ClusteredFormatArg::Jobs => None,
        ClusteredFormatArg::Dax => Some(Format::Dax),
        ClusteredFormatArg::Dag => Some(Format::Dag),
        ClusteredFormatArg::Wfformat => Some(Format::WfFormat),
    };
    let mut text = Vec::new();
    let written = match format {
        None => write_jobs(workflow, clustering, &mut text),
        Some(format) => write_clustered(workflow, clustering, format, &mut text),
    };
    save(out, written, text)
}

/// Runs `pleach cluster generate`.
pub(super) fn generate(args: &GenerateArgs) -> CommandResult {
    let format = args.format.or_else(|| format_of(&args.out));
    let Some(format) = format.map(Format::from) else {
        return Err(unknown_ending(&args.out));
    };
    let workflow =
        pleach_clustering::generate(args.family, args.tasks, args.seed).map_err(CommandError::input)?;
    let mut text = Vec::new();
    let written = pleach_clustering::write(&workflow, format, &mut text);
    save(&args.out, written, text)?;
    print_line(&format!(
        "{}: workflow {} of {} tasks on {} levels, seed {}",
        args.out.display(),
        workflow.name(),
        workflow.tasks().len(),
        workflow.levels().len(),
        args.seed
    ));
    Ok(())
}

/// Publishes a written text, in gzip if the name of the file ends in `.gz`.
fn save(out: &Path, written: Result<(), WriteError>, text: Vec<u8>) -> CommandResult {
    written.map_err(|error| CommandError::Input(format!("--out {}: {error}", out.display())))?;
    let failed = |error: &std::io::Error| {
        CommandError::writing(format_args!("--out {}: failed to write", out.display()), error)
    };
    let content = if is_gzip(out) { compressed(&text).map_err(|error| failed(&error))? } else { text };
    publish(out, &content).map_err(|error| failed(&error))
}

/// Compresses a text. The header has no time, so equal texts give equal bytes.
fn compressed(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    encoder.finish()
}

fn clustered_format(out: &Path, format: Option<ClusteredFormatArg>) -> CommandResult<ClusteredFormatArg> {
    // A list of jobs is JSON too, and the usual choice.
    let by_ending = || match format_of(out)? {
        FormatArg::Dax => Some(ClusteredFormatArg::Dax),
        FormatArg::Dag => Some(ClusteredFormatArg::Dag),
        FormatArg::Wfformat => Some(ClusteredFormatArg::Jobs),
    };
    format.or_else(by_ending).ok_or_else(|| unknown_ending(out))
}

fn unknown_ending(out: &Path) -> CommandError {
    CommandError::Input(format!(
        "--out {}: unknown ending; .json, .dax, .xml and .dag are allowed, each also with .gz, or any with --format",
        out.display()
    ))
}

fn is_gzip(out: &Path) -> bool {
    out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}

/// Returns the format of a name by its ending, before `.gz`.
fn format_of(out: &Path) -> Option<FormatArg> {
    let plain = if is_gzip(out) { Path::new(out.file_stem()?) } else { out };
    match plain.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "dax" | "xml" => Some(FormatArg::Dax),
        "dag" => Some(FormatArg::Dag),
        "json" => Some(FormatArg::Wfformat),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_the_format() {
        let of = |name: &str| format_of(Path::new(name));
        assert_eq!(of("a/w.dax"), Some(FormatArg::Dax));
        assert_eq!(of("w.XML.gz"), Some(FormatArg::Dax));
        assert_eq!(of("w.dag.GZ"), Some(FormatArg::Dag));
        assert_eq!(of("w.json"), Some(FormatArg::Wfformat));
        assert_eq!([of("w"), of("w.gz"), of("w.txt"), of(".json")], [None; 4]);
        let clustered = clustered_format(Path::new("w.json"), None);
        assert!(matches!(clustered, Ok(ClusteredFormatArg::Jobs)));
    }
}
