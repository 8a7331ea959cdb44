//! The grammar of `pleach region`: stored data regions, seen from outside.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    /// Show what a region file holds: type, shape, where it lies, digest, sizes, statistics; or what a template does
    Show {
        /// A file of a storage tier, any other encoding of a data region, or the folder of a region template
        file: PathBuf,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Write what a region file holds as an image, polygons, a table or an array, by the name's extension
    Export {
        /// A file of a storage tier, or any other encoding of a data region
        file: PathBuf,
        /// Where it goes: a name that ends in .png, .tiff, .geojson, .csv or .npy
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}
