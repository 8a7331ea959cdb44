//! Arguments of `pleach classify`.

use super::MethodArgs;
use crate::cli::operations::PythonArgs;
use clap::Args;
use pleach_workflow::MethodSpec;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// Study file (.toml)
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Results of the study: a folder with samples.csv and responses.csv
    #[arg(long, value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Labels: a CSV file with the columns tile, label and optionally group, as a slide or patient
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// Use only this response as a feature; may be repeated [default: all that do not compare with a reference]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) feature: Vec<String>,
    /// Number of clusters of k-means [default: the number of labels]
    #[arg(long, value_name = "N")]
    pub(crate) clusters: Option<u32>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    /// Write groups.csv, assignments.csv, responses.csv, indices.csv and classification.json to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl ClassifyArgs {
    /// Returns the method of the arguments.
    pub(crate) fn recipe(&self) -> MethodSpec {
        self.method.recipe()
    }
}
