//! `pleach cache`: searches a task cache, and shows its size by user. Changes nothing in the cache.

use crate::cli::{CacheCommand, CacheSearchArgs, CacheStatsArgs};
use crate::command::client::table;
use crate::exit::CommandResult;
use crate::terminal::{print_json, print_line};
use pleach_cache::{Entry, Query};
use pleach_client::plain;
use pleach_planner::memory_size::human;
use pleach_results::cache_walk;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs a command.
pub(in crate::command) fn execute(command: &CacheCommand) -> CommandResult {
    match command {
        CacheCommand::Search(args) => search(args),
        CacheCommand::Stats(args) => stats(args),
    }
}

/// A found result, as JSON.
#[derive(Debug, Serialize)]
struct FoundResult {
    key: String,
    operation: String,
    version: u32,
    parameters: serde_json::Map<String, serde_json::Value>,
    /// Input names and the digests of their content.
    inputs: serde_json::Map<String, serde_json::Value>,
    study: Option<String>,
    /// Number of the study on its manager.
    study_id: Option<u32>,
    user: Option<String>,
    /// Seconds that the task took.
    seconds: f64,
    bytes: u64,
    outputs: usize,
    stored_outputs: usize,
    /// Since the result was written.
    age_seconds: u64,
    /// Since a result in the same segment was used.
    unused_seconds: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn search(args: &CacheSearchArgs) -> CommandResult {
    let cache = cache_walk::open_to_read(&args.cache)?;
    let query = Query {
        operation: args.operation.clone(),
        arguments: args.parameter.clone(),
        study: args.study.clone(),
        user: args.user.clone(),
    };
    let now = now();
    let found: Vec<FoundResult> = cache.search(&query).into_iter().map(|entry| result(entry, now)).collect();
    if args.json {
        return print_json(&found);
    }
    let header = ["OPERATION", "PARAMETERS", "STUDY", "USER", "SIZE", "STORED", "AGE", "UNUSED"];
    print_line(table::lines(header, found.iter().map(row)).trim_end());
    print_line(&format!("{} results", found.len()));
    Ok(())
}

fn result(entry: Entry, now: u64) -> FoundResult {
    let components = entry.trace.components;
    let text = |(name, value): (String, String)| (name, serde_json::Value::String(value));
    let inputs = components.inputs.into_iter().map(|(name, digest)| text((name, digest.to_string())));
    let label = entry.trace.label;
    FoundResult {
        key: entry.key.to_string(),
        operation: components.operation,
        version: components.version,
        parameters: components.arguments.into_iter().map(text).collect(),
        inputs: inputs.collect(),
        study: label.as_ref().map(|label| label.study.clone()),
        study_id: label.as_ref().and_then(|label| label.id),
        user: label.map(|label| label.user),
        seconds: entry.trace.seconds,
        bytes: entry.bytes,
        outputs: entry.trace.outputs.len(),
        stored_outputs: entry.stored_outputs,
        age_seconds: now.saturating_sub(entry.written_seconds),
        unused_seconds: now.saturating_sub(entry.used_seconds),
    }
}

fn row(found: &FoundResult) -> [String; 8] {
    let parameters = found.parameters.iter();
    let parameters = parameters.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    let study = found.study.as_ref().map(|study| match found.study_id {
        Some(id) => format!("{study} ({id})"),
        None => study.clone(),
    });
    // Other users have written these texts.
    [
        plain(&found.operation),
        plain(&parameters.collect::<Vec<_>>().join(" ")),
        plain(study.as_deref().unwrap_or("-")),
        plain(found.user.as_deref().unwrap_or("-")),
        human(found.bytes),
        format!("{} of {}", found.stored_outputs, found.outputs),
        duration(found.age_seconds),
        duration(found.unused_seconds),
    ]
}

/// Returns a duration in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Size of a cache, as JSON.
#[derive(Debug, Serialize)]
struct CacheSize {
    traces: u64,
    regions: u64,
    segments: u64,
    bytes: u64,
    users: Vec<UserSize>,
}

#[derive(Debug, Serialize)]
struct UserSize {
    /// `None` for results without a user.
    user: Option<String>,
    bytes: u64,
}

fn stats(args: &CacheStatsArgs) -> CommandResult {
    let cache = cache_walk::open_to_read(&args.cache)?;
    let of_users = cache.users().into_iter().map(|(user, bytes)| UserSize { user, bytes });
    let now = cache.statistics();
    let size = CacheSize {
        traces: now.traces,
        regions: now.blobs,
        segments: now.segments,
        bytes: now.bytes,
        users: of_users.collect(),
    };
    if args.json {
        return print_json(&size);
    }
    let CacheSize { traces, regions, segments, bytes, users } = size;
    print_line(&format!("{traces} traces, {regions} regions, {} in {segments} segments", human(bytes)));
    for UserSize { user, bytes } in users {
        print_line(&format!("  {:<20} {:>10}", plain(user.as_deref().unwrap_or("-")), human(bytes)));
    }
    Ok(())
}
