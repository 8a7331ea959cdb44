//! Grammar of `pleach region`, which shows and exports stored data regions.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    /// Show the content of a region file: type, shape, bounds, digest, sizes, statistics; or that of a region template
    Show {
        /// A file of a storage tier, any other encoding of a data region, or the folder of a region template
        file: PathBuf,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Write a region file as an image, polygons, a table or an array, by the name's extension
    Export {
        /// A file of a storage tier, or any other encoding of a data region
        file: PathBuf,
        /// Output file: a name that ends in .png, .tiff, .geojson, .csv or .npy
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}
