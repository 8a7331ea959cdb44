//! Grammar of the commands that connect to a manager.

use super::operations::{PinArgs, PythonArgs};
use super::{PlanOptionArgs, Span, TimeArg, cache_location};
use clap::Args;
use pleach_client::ClientOptions;
use pleach_client::address::ManagerUrl;
use std::path::PathBuf;

/// Address of the manager and credentials of the client.
#[derive(Clone, Debug, Args)]
pub(crate) struct ManagerArgs {
    /// The manager's address, as in https://HOST:PORT
    #[arg(long, value_name = "URL", env = "PLEACH_MANAGER", hide_env_values = true)]
    pub(crate) manager: ManagerUrl,
    /// Folder of a client's certificate and key, or, with a token, of the authority's certificate (ca.pem)
    #[arg(long, value_name = "DIR", env = "PLEACH_CERTS", hide_env_values = true)]
    pub(crate) certs: PathBuf,
    /// File with the manager's token, instead of a client's certificate; PLEACH_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Time to retry while the manager does not respond, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) timeout: Span,
}

impl ManagerArgs {
    /// Returns the options for a client.
    pub(crate) fn options(&self) -> ClientOptions {
        ClientOptions {
            manager: self.manager.clone(),
            certs: self.certs.clone(),
            token_file: self.token_file.clone(),
            timeout: self.timeout.0,
        }
    }
}

/// As [`ManagerArgs`], for a command that may connect to a manager.
#[derive(Clone, Debug, Args)]
pub(crate) struct OptionalManagerArgs {
    /// For a manager's study: the manager's address, as in https://HOST:PORT
    #[arg(long, value_name = "URL", env = "PLEACH_MANAGER", hide_env_values = true)]
    manager: Option<ManagerUrl>,
    /// Folder of a client's certificate and key, or, with a token, of the authority's certificate (ca.pem)
    #[arg(long, value_name = "DIR", env = "PLEACH_CERTS", hide_env_values = true)]
    certs: Option<PathBuf>,
    /// File with the manager's token, instead of a client's certificate; PLEACH_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Time to retry while the manager does not respond, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
}

impl OptionalManagerArgs {
    /// Returns the arguments of a connection. `None` without an address or a folder of certificates.
    pub(crate) fn given(&self) -> Option<ManagerArgs> {
        let (manager, certs) = (self.manager.clone()?, self.certs.clone()?);
        Some(ManagerArgs { manager, certs, token_file: self.token_file.clone(), timeout: self.timeout })
    }
}

/// Amount of money, in any currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostArg(pub(crate) f64);

impl std::str::FromStr for CostArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cost = text.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost >= 0.0);
        cost.map(Self).ok_or_else(|| "a number, 0 or more, is allowed".to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    #[command(flatten)]
    pub(crate) pin: PinArgs,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
    /// Wait until the study has ended
    #[arg(long)]
    pub(crate) wait: bool,
    /// Folder for the results; implies --wait
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plan: PlanOptionArgs,
    /// Deadline of the study: a time (2026-12-24T18:00:00Z), seconds since 1970, or a duration from now as in 90m; the
    /// manager computes the number of workers
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<TimeArg>,
    /// Maximum cost of the study's workers, in the currency of the manager's pools
    #[arg(long, value_name = "COST", allow_hyphen_values = true)]
    pub(crate) budget: Option<CostArg>,
    /// Write a task's images of the evaluations in the report to previews/ in the results; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) preview: Vec<String>,
    /// Evaluate the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else: the study's id, or the study after --wait
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Show only this study [default: all studies]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Watch only this study [default: all open studies]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// The study's id
    pub(crate) id: String,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The study's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Ids of the studies; each study must have ended
    #[arg(required = true, value_name = "STUDY")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// The worker's name
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) manager: ManagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// The study: its id on a manager, or the study file (TOML) of a study in --cache
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// Stage that gives the objects
    #[arg(long, value_name = "S")]
    pub(crate) stage: String,
    /// Its output: a mask, labels, points, polygons or objects
    #[arg(long, value_name = "O")]
    pub(crate) output: String,
    /// The evaluation: its number in samples.csv; 0 is that of the default values
    #[arg(long, value_name = "N")]
    pub(crate) evaluation: usize,
    /// A tile, or a slide for all its tiles; needed in a study of several images
    #[arg(long, value_name = "NAME")]
    pub(crate) tile: Option<String>,
    /// Objects whose bounding box meets this box: X0,Y0,X1,Y1
    #[arg(
        long = "box",
        value_name = "X0,Y0,X1,Y1",
        allow_hyphen_values = true,
        required_unless_present = "nearest"
    )]
    pub(crate) within: Option<String>,
    /// Objects whose centroid is nearest to this point: X,Y
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true, conflicts_with = "within")]
    pub(crate) nearest: Option<String>,
    /// Maximum number of objects, 1 to 2000
    #[arg(long, value_name = "K", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub(crate) count: u32,
    /// Coordinates of --box and --nearest are micrometers, not pixels of the slide's first level
    #[arg(long)]
    pub(crate) um: bool,
    #[command(flatten)]
    pub(crate) manager: OptionalManagerArgs,
    /// Task cache of the study, a folder or s3://BUCKET/PREFIX (read-only)
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
    /// Results of the study, for --cache and evaluations other than 0 [default: the study's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
