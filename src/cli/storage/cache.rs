//! Grammar of the commands that read a task cache.

use crate::cli::cache_location;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List results by operation, parameter values, study and user, the last written first
    Search(CacheSearchArgs),
    /// Show the size of a task cache, and of each user's results
    Stats(CacheStatsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CacheSearchArgs {
    /// Task cache, the --cache of pleach run or of workers (read-only)
    #[arg(value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: PathBuf,
    /// Only results of this operation, as in nuclei.candidates
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,
    /// Only results with this value of an operation's parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) parameter: Vec<(String, String)>,
    /// Only results that were computed for this study, by name or by its number on the manager
    #[arg(long, value_name = "STUDY")]
    pub(crate) study: Option<String>,
    /// Only results that were computed for studies of this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheStatsArgs {
    /// Task cache, the --cache of pleach run or of workers (read-only)
    #[arg(value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: PathBuf,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a name and a value are allowed, as in G1=80")?;
    Ok((name.to_owned(), value.to_owned()))
}
