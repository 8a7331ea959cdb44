//! Arguments of the commands that write segmentations for other programs.

use crate::cli::operations::PythonArgs;
use crate::cli::{ManagerArgs, Span, at_least_one, cache_location, threads};
use clap::Args;
use pleach_client::address::ManagerUrl;
use pleach_export::ExportFormat;
use pleach_results::chosen::EvaluationChoice;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    #[command(flatten)]
    pub(crate) parameters: ParameterArgs,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Task cache of the study, a folder or s3://BUCKET/PREFIX, for segmentations that it has (read-only)
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The study file (TOML): its workflow, and its cutting of slides
    pub(crate) study: PathBuf,
    /// Images, slides, and folders of them (without subfolders)
    #[arg(value_name = "IMAGE", required = true)]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    #[command(flatten)]
    pub(crate) parameters: ParameterArgs,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Magnification of slides [default: that of the study file, or the slide's own]
    #[arg(long, value_name = "X")]
    pub(crate) magnification: Option<f64>,
    /// Side of a slide's tiles in pixels [default: that of the study file, or 4096]
    #[arg(long, value_name = "PX", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) tile: Option<NonZeroU32>,
    /// Pixels around a tile's core [default: those of the study file, or 64]
    #[arg(long, value_name = "PX")]
    pub(crate) halo: Option<u32>,
    #[command(flatten)]
    pub(crate) cluster: ApplyClusterArgs,
}

/// Cluster that segments the images.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApplyClusterArgs {
    /// Segment on the workers of the manager at this address, as in https://HOST:PORT [default: in this process]
    #[arg(long, value_name = "URL", requires_all = ["certs", "cache"])]
    manager: Option<ManagerUrl>,
    /// Task cache of the workers, a folder or s3://BUCKET/PREFIX, from which this process takes their results
    #[arg(long, value_name = "DIR|URL", value_parser = cache_location, requires = "manager")]
    cache: Option<PathBuf>,
    /// Folder of a client's certificate and key, or, with a token, of the authority's certificate (ca.pem)
    #[arg(long, value_name = "DIR", env = "PLEACH_CERTS", hide_env_values = true)]
    certs: Option<PathBuf>,
    /// File with the manager's token, instead of a client's certificate; PLEACH_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE", requires = "manager")]
    token_file: Option<PathBuf>,
    /// Time to retry while the manager does not respond, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
}

impl ApplyClusterArgs {
    /// Returns the connection and the task cache. `None` without a manager.
    pub(crate) fn given(&self) -> Option<(ManagerArgs, PathBuf)> {
        let (manager, certs) = (self.manager.clone()?, self.certs.clone()?);
        let connection =
            ManagerArgs { manager, certs, token_file: self.token_file.clone(), timeout: self.timeout };
        Some((connection, self.cache.clone()?))
    }
}

/// Parameter set of a segmentation.
#[derive(Debug, Args)]
pub(crate) struct ParameterArgs {
    /// The evaluation: its number in samples.csv, default, or a role such as best or worst [default: default]
    #[arg(long, value_name = "N|ROLE")]
    pub(crate) evaluation: Option<EvaluationChoice>,
    /// Results of the study, for --evaluation [default: the study's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Response whose best or worst evaluation is meant [default: the first of the study]
    #[arg(long, value_name = "NAME")]
    pub(crate) response: Option<String>,
    /// Parameter value in place of that of the evaluation, as in G1=60; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Task whose mask or labels are written [default: the one that is compared with the reference]
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,
}

/// Files to write.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Formats: masks, labels, geojson, csv, parquet, ome-zarr, ome-tiff, spatialdata; several with commas
    #[arg(long = "as", value_name = "FORMAT", required = true, value_delimiter = ',')]
    pub(crate) formats: Vec<ExportFormat>,
    /// Folder for the files, new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Class of the objects
    #[arg(long, value_name = "NAME", default_value = "Nucleus")]
    pub(crate) class: String,
    /// Compress GeoJSON (.geojson.gz)
    #[arg(long)]
    pub(crate) gzip: bool,
    /// Micrometers per pixel of the image files [default: those that a slide states]
    #[arg(long, value_name = "MICROMETERS")]
    pub(crate) mpp: Option<f64>,
    /// Number of tiles segmented at once, 1 to 1024 [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) workers: Option<NonZeroU32>,
    /// Continue the export in --out: finished images are not segmented again
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace the export in --out
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}
