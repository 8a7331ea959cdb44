//! `pleach region show|export`: shows and exports data regions in files of a storage tier or from elsewhere.
//!
//! Decoding verifies the digest, so the output equals the stored content.

mod statistics;

use crate::cli::RegionCommand;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_interop::export::{self, Format};
use pleach_planner::memory_size::human;
use pleach_regions::{DataRegion, Description};
use pleach_results::folder::publish;
use pleach_results::template;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Runs the command.
pub(super) fn execute(command: &RegionCommand) -> CommandResult {
    match command {
        RegionCommand::Show { file, json } => show(file, *json),
        RegionCommand::Export { file, out } => export(file, out),
    }
}

/// Reads a region file. Returns its content, its header and its length in bytes.
fn read(file: &Path) -> CommandResult<(DataRegion, Description, u64)> {
    let fail = |text: String| CommandError::Input(format!("{}: {text}", file.display()));
    let found = fs::metadata(file).map_err(|error| fail(format!("cannot be read: {error}")))?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "not a regular file" };
        return Err(fail(format!("is {what}; the file of a data region is allowed")));
    }
    let bytes = fs::read(file).map_err(|error| fail(format!("cannot be read: {error}")))?;
    let (region, description) = DataRegion::decode_described(&bytes).map_err(|error| {
        let newer = if error.is_newer() { "; a later version of pleach wrote it" } else { "" };
        fail(format!("{error}{newer}"))
    })?;
    Ok((region, description, bytes.len() as u64))
}

fn show(file: &Path, as_json: bool) -> CommandResult {
    if template::exists(file) {
        return show_template(file, as_json);
    }
    let (region, description, file_bytes) = read(file)?;
    let statistics = statistics::of(&region);
    if as_json {
        return print_json(&document(file, &region, &description, file_bytes, &statistics));
    }
    let line = |name: &str, text: &str| print_line(&format!("  {name:<12} {text}"));
    print_line(&file.display().to_string());
    line("type", &format!("{}, shape {}", description.element, description.shape));
    let bounds = description.bounds.map(|bounds| bounds.to_string());
    line("bounds", bounds.as_deref().unwrap_or("unknown"));
    line("digest", &description.digest.to_string());
    line(
        "encoding",
        &format!("version {}.{}, {}", description.version, description.minor, description.coding),
    );
    if description.fields_skipped > 0 {
        let count = description.fields_skipped;
        line("", &format!("{count} fields of a later version of pleach were skipped"));
    }
    line("in memory", &human(region.bytes()));
    #[expect(clippy::cast_precision_loss, reason = "a share to look at")]
    let share = file_bytes as f64 / region.bytes().max(1) as f64 * 100.0;
    line("in the file", &format!("{} ({share:.1} %)", human(file_bytes)));
    for (name, value) in &statistics {
        line(name, &text(value));
    }
    Ok(())
}

/// Shows a folder's region template and its data regions.
fn show_template(folder: &Path, as_json: bool) -> CommandResult {
    let template = template::read(folder)?;
    if as_json {
        return print_json(&template);
    }
    let line = |name: &str, text: &str| print_line(&format!("  {name:<12} {text}"));
    print_line(&folder.display().to_string());
    line("template", &format!("{} {}, version {}", template.name(), template.id(), template.version()));
    line("bounds", &template.bounds().to_string());
    for (name, region) in template.regions() {
        let file = template::file_of(folder, name);
        let bytes = fs::metadata(&file).map(|found| human(found.len()));
        let bytes = bytes.unwrap_or_else(|_| "file missing".to_owned());
        line(name, &format!("{}, version {}, {bytes}", region.element, region.version));
    }
    Ok(())
}

fn document(
    file: &Path,
    region: &DataRegion,
    description: &Description,
    file_bytes: u64,
    statistics: &[(&'static str, Value)],
) -> Value {
    let statistics: serde_json::Map<String, Value> =
        statistics.iter().map(|(name, value)| (name.replace(' ', "_"), value.clone())).collect();
    json!({
        "file": file.display().to_string(),
        "type": description.element,
        "shape": &*description.shape,
        "bounds": description.bounds,
        "digest": description.digest.to_string(),
        "version": description.version,
        "minor_version": description.minor,
        "fields_skipped": description.fields_skipped,
        "coding": description.coding,
        "memory_bytes": region.bytes(),
        "stored_bytes": description.stored_bytes,
        "file_bytes": file_bytes,
        "statistics": statistics,
    })
}

/// Formats a statistic as text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", text(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Null => "not finite".to_owned(),
        other => other.to_string(),
    }
}

fn export(file: &Path, out: &Path) -> CommandResult {
    let fail = |text: String| CommandError::Input(format!("--out {}: {text}", out.display()));
    let format = Format::of(out).map_err(&fail)?;
    if out.is_dir() {
        return Err(fail(format!("is a folder; the name of a {format} file is allowed")));
    }
    if let (Ok(out), Ok(file)) = (out.canonicalize(), file.canonicalize())
        && out == file
    {
        return Err(fail("is the region file itself; another file is allowed".to_owned()));
    }
    let (region, ..) = read(file)?;
    let bytes = export::bytes(&region, format).map_err(&fail)?;
    publish(out, &bytes).map_err(|error| {
        CommandError::writing(format_args!("--out {}: cannot be written", out.display()), &error)
    })?;
    let written = bytes.len() as u64;
    print_line(&format!("{}: {} as {format}, {}", out.display(), region.element(), human(written)));
    Ok(())
}
