//! Region templates as folders: `template.json` lists the data regions and their bounds, and each region is a
//! file named after it.
//!
//! A template is written to a temporary folder beside its target and published by a rename.

use crate::folder::publish;
use pleach_regions::{CompressionEffort, DataRegion, RegionEntry, RegionKey, RegionTemplate, SpatialBounds};
use pleach_study::Defect;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};
use thiserror::Error;

/// Name of the file that lists the regions.
const LIST: &str = "template.json";

/// Error of the folder of a region template.
#[derive(Debug, Error)]
pub enum TemplateFolderError {
    /// The folder exists already.
    #[error("--regions {}: already exists; a new folder is allowed", folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder would be created in a missing folder.
    #[error("--regions {}: there is no folder {}", folder.display(), parent.display())]
    NoParent {
        /// The folder.
        folder: PathBuf,
        /// The missing folder.
        parent: PathBuf,
    },
    /// The path does not end with a name.
    #[error("--regions {}: is no name of a folder", folder.display())]
    NoName {
        /// The path.
        folder: PathBuf,
    },
    /// A file of the template cannot be written.
    #[error("--regions {}: {cause}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The list of regions cannot be read.
    #[error("{}: cannot be read: {cause}", file.display())]
    Unreadable {
        /// The list.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The list of regions is invalid.
    #[error("{}: {cause}", file.display())]
    Malformed {
        /// The list.
        file: PathBuf,
        /// Error of the JSON parser.
        #[source]
        cause: serde_json::Error,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Returns the path of a data region of a template.
pub fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.region"))
}

/// Returns whether a folder contains a template.
pub fn exists(folder: &Path) -> bool {
    folder.join(LIST).is_file()
}

/// Checks that a folder can be created, before any work is done.
pub fn check(folder: &Path) -> Result<(), TemplateFolderError> {
    let folder = folder.to_owned();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned);
    match parent {
        _ if folder.exists() => Err(TemplateFolderError::Exists { folder }),
        Some(parent) if !parent.is_dir() => Err(TemplateFolderError::NoParent { folder, parent }),
        _ if folder.file_name().is_none() => Err(TemplateFolderError::NoName { folder }),
        _ => Ok(()),
    }
}

/// Writes a template with its data regions to a new folder. Each region covers the whole template, and its
/// key is the first half of its digest.
pub fn write(
    folder: &Path,
    mut template: RegionTemplate,
    regions: &[(String, Arc<DataRegion>)],
) -> Result<(), TemplateFolderError> {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = folder.with_file_name(name);
    let fail = |cause: io::Error| TemplateFolderError::Write { folder: folder.to_owned(), cause };
    let bounds = *template.bounds();
    let written = fs::create_dir(&part).map_err(fail).and_then(|()| {
        for (name, region) in regions {
            put(&part, &mut template, name, region, &bounds, &fail)?;
        }
        let list = serde_json::to_vec_pretty(&template).map_err(Defect::new)?;
        publish(&part.join(LIST), &list).map_err(fail)?;
        fs::rename(&part, folder).map_err(fail)
    });
    if written.is_err() {
        // Ignores errors: the folder may not exist.
        let _ = fs::remove_dir_all(&part);
    }
    written
}

fn put(
    folder: &Path,
    template: &mut RegionTemplate,
    name: &str,
    region: &DataRegion,
    bounds: &SpatialBounds,
    fail: &impl Fn(io::Error) -> TemplateFolderError,
) -> Result<(), TemplateFolderError> {
    let digest = region.digest();
    let mut key = [0; 16];
    key.copy_from_slice(&digest.0[..16]);
    let entry = RegionEntry { key: RegionKey(key), element: region.element(), bounds: *bounds, version: 1 };
    template.insert(name, entry).map_err(Defect::new)?;
    let (head, body) = region.encode_with(&digest, CompressionEffort::Quick, Some(bounds));
    publish(&file_of(folder, name), &[&head.0, &*body].concat()).map_err(fail)
}

/// Reads the list of a template's data regions.
pub fn read(folder: &Path) -> Result<RegionTemplate, TemplateFolderError> {
    let file = folder.join(LIST);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(cause) => return Err(TemplateFolderError::Unreadable { file, cause }),
    };
    serde_json::from_str(&text).map_err(|cause| TemplateFolderError::Malformed { file, cause })
}
