//! Region templates as folders: `template.json` lists the data regions and their bounds, and each region is a
//! file named after it.
//!
//! A template is written to a temporary folder beside its target and published by a rename.

use crate::exit::{CommandError, CommandResult};
use crate::output::folder::publish;
use pleach_regions::{CompressionEffort, DataRegion, RegionEntry, RegionKey, RegionTemplate, SpatialBounds};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file that lists the regions.
const LIST: &str = "template.json";

/// Returns the path of a data region of a template.
pub(crate) fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.region"))
}

/// Returns whether a folder contains a template.
pub(crate) fn is_there(folder: &Path) -> bool {
    folder.join(LIST).is_file()
}

/// Checks that a folder can be created, before any work is done.
pub(crate) fn check(folder: &Path) -> CommandResult {
    let fail = |text: &str| Err(CommandError::Input(format!("--regions {}: {text}", folder.display())));
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        _ if folder.exists() => fail("is there already; the name of a new folder is wanted"),
        Some(parent) if !parent.is_dir() => fail(&format!("there is no folder {}", parent.display())),
        _ if folder.file_name().is_none() => fail("is no name of a folder"),
        _ => Ok(()),
    }
}

/// Writes a template with its data regions to a new folder. Each region covers the whole template, and its
/// key is the first half of its digest.
pub(crate) fn write(
    folder: &Path,
    mut template: RegionTemplate,
    regions: &[(String, Arc<DataRegion>)],
) -> CommandResult {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = folder.with_file_name(name);
    let fail =
        |error: std::io::Error| CommandError::writing(format_args!("--regions {}", folder.display()), &error);
    let bounds = *template.bounds();
    let written = fs::create_dir(&part).map_err(fail).and_then(|()| {
        for (name, region) in regions {
            put(&part, &mut template, name, region, &bounds, &fail)?;
        }
        let list = serde_json::to_vec_pretty(&template).map_err(CommandError::defect)?;
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
    fail: &impl Fn(std::io::Error) -> CommandError,
) -> CommandResult {
    let digest = region.digest();
    let mut key = [0; 16];
    key.copy_from_slice(&digest.0[..16]);
    let entry = RegionEntry { key: RegionKey(key), element: region.element(), bounds: *bounds, version: 1 };
    template.insert(name, entry).map_err(CommandError::defect)?;
    let (head, body) = region.encode_with(&digest, CompressionEffort::Quick, Some(bounds));
    publish(&file_of(folder, name), &[&head.0, &*body].concat()).map_err(fail)
}

/// Reads the list of a template's data regions.
pub(crate) fn read(folder: &Path) -> CommandResult<RegionTemplate> {
    let file = folder.join(LIST);
    let fail = |text: String| CommandError::Input(format!("{}: {text}", file.display()));
    let text = fs::read_to_string(&file).map_err(|error| fail(format!("cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
}
