//! Grammar of the commands that run a process of a cluster, and of `pleach doctor`.

pub(super) mod accelerators;
pub(super) mod doctor;
pub(super) mod pools;

use super::operations::{CodeArgs, NodeOperationArgs};
use super::{CacheArgs, Span, SpillArgs, at_least_one, cache_location, threads};
use crate::log::LogFormat;
use accelerators::AcceleratorArgs;
use clap::{Args, ValueEnum};
use pleach_planner::memory_size::MemorySize;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ManagerProcessArgs {
    /// Address for workers (QUIC over UDP)
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7117")]
    pub(crate) listen: SocketAddr,
    /// Address for clients (HTTPS)
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7118")]
    pub(crate) http: SocketAddr,
    /// State directory: studies, their journals and their results
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// Folder of the manager's certificate and key; with the authority's key (pleach certs init) workers may join with
    /// tokens
    #[arg(long, value_name = "DIR")]
    pub(crate) certs: PathBuf,
    /// File with the clients' token [default: token in --state, created if missing]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Rule that selects one of the ready buckets for a worker
    #[arg(long, value_enum, default_value_t = Placement::Locality)]
    pub(crate) placement: Placement,
    /// Retention of an ended study in days [default: no limit]
    #[arg(long, value_name = "DAYS", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) keep_days: Option<NonZeroU32>,
    /// Maximum size of ended studies and of input files that only they read; the manager removes the oldest study first
    /// [default: no limit]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) keep_size: Option<MemorySize>,
    /// Task cache, the --cache of its workers (read-only): skip tasks of earlier studies
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
    /// Log format on stdout; the variable PLEACH_LOG sets the level: error, warn, info, debug, trace
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Disable metrics, to measure their cost
    #[arg(long, hide = true)]
    pub(crate) no_metrics: bool,
    /// File that lists worker pools (TOML); the manager computes their desired sizes from deadlines and budgets
    #[arg(long, value_name = "FILE")]
    pub(crate) pools: Option<PathBuf>,
    /// Mark surplus workers for removal by Kubernetes: annotate their pods, which have the workers' names, with
    /// controller.kubernetes.io/pod-deletion-cost
    #[arg(long, requires = "pools")]
    pub(crate) pod_deletion_cost: bool,
    /// Folder of the service account that may patch these pods, or scale their deployments: ca.crt,
    /// namespace and token
    #[arg(long, value_name = "DIR", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    pub(crate) service_account: PathBuf,
    #[command(flatten)]
    pub(crate) publish: PublishArgs,
    #[command(flatten)]
    pub(crate) operations: NodeOperationArgs,
}

/// Where a manager writes its addresses.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// Write the manager's addresses into the files address (HOST:PORT, for workers) and url (for clients) of this folder,
    /// once it has locked --state
    #[arg(long, value_name = "DIR")]
    pub(crate) publish: Option<PathBuf>,
    /// Host name or IP address in these files [default: the machine's host name]
    #[arg(long, value_name = "HOST", requires = "publish", value_parser = host)]
    pub(crate) host: Option<String>,
}

/// Parses a host name or an IP address.
fn host(text: &str) -> Result<String, String> {
    let is_name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._".contains(letter))
    };
    match is_name(text) || text.parse::<IpAddr>().is_ok() {
        true => Ok(text.to_owned()),
        false => Err("a host name or an IP address is allowed, without a port".to_owned()),
    }
}

/// Rule that selects one of the ready buckets for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    /// The bucket with the fewest bytes to transfer to the worker
    Locality,
    /// The first bucket in the plan's order
    PlanOrder,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerProcessArgs {
    /// Address of the manager, as HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pub(crate) manager: String,
    /// Folder of the worker's certificate and key; --token stores them there
    #[arg(long, value_name = "DIR")]
    pub(crate) certs: PathBuf,
    /// Token to exchange for a certificate (pleach certs token), or a file that contains it
    #[arg(long, value_name = "TOKEN|FILE", requires = "name")]
    pub(crate) token: Option<String>,
    /// Name of the worker in the certificate
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Maximum number of concurrent tasks, 1 to 1024 [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) cores: Option<NonZeroU32>,
    /// Memory for data regions, as in 600MB or 1.5GiB [default: 60 % of the machine's memory or of its cgroup limit]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<MemorySize>,
    #[command(flatten)]
    pub(crate) accelerators: AcceleratorArgs,
    #[command(flatten)]
    pub(crate) spill: SpillArgs,
    /// Address for other workers, which fetch regions (QUIC over UDP); port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:0")]
    pub(crate) listen: SocketAddr,
    /// Shared-memory folder of the workers on one machine
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub(crate) shm_dir: PathBuf,
    /// Buckets to request in advance: their inputs arrive while other buckets run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefetch_buckets: u32,
    /// Maximum number of concurrent tasks of one bucket, which limits its memory [default: --cores]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) active_paths: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) operations: NodeOperationArgs,
    #[command(flatten)]
    pub(crate) code: CodeArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Time limit of the machine: a time (2026-12-24T18:00:00Z), seconds since 1970, or a duration from now as in 90m;
    /// the worker starts to drain --drain-timeout earlier
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<TimeArg>,
    /// Maximum time to drain; after it, the worker leaves at once
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) drain_timeout: Span,
    /// Address for metrics and probes (HTTP: /metrics, /healthz, /readyz), as in 0.0.0.0:7120 [default: none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Log format on stdout; the variable PLEACH_LOG sets the level: error, warn, info, debug, trace
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// Time argument: a time, or a duration from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeArg {
    At(u64),
    In(Span),
}

impl TimeArg {
    /// Returns the time in seconds since 1970, with `now` in the same unit.
    pub(crate) fn seconds(self, now: u64) -> u64 {
        match self {
            Self::At(seconds) => seconds,
            Self::In(span) => now.saturating_add(span.0.as_secs()),
        }
    }
}

impl std::str::FromStr for TimeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(seconds) = text.parse::<u64>() {
            return Ok(Self::At(seconds));
        }
        if let Ok(span) = text.parse::<Span>() {
            return Ok(Self::In(span));
        }
        let format = &time::format_description::well_known::Rfc3339;
        let moment = time::OffsetDateTime::parse(text, format).ok();
        let seconds = moment.and_then(|moment| u64::try_from(moment.unix_timestamp()).ok());
        seconds.map(Self::At).ok_or_else(|| {
            "a time as in 2026-12-24T18:00:00Z, seconds since 1970, or a duration from now as in 90m is allowed"
                .to_owned()
        })
    }
}
