//! Reads workflows: Pegasus DAX 2.1, DAG lines and WfCommons WfFormat 1.5, plain or in gzip.
//!
//! The content decides about the format, not the name of the file. Names in a workflow are names only: no file that it names is
//! opened. Errors name the file, the line where the format has one, the id, the field, the value and the allowed values.

mod dag;
mod dax;
mod draft;
mod error;
mod options;
mod wfformat;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use error::{Located, Place};
pub use error::{ReadError, ReadProblem};
pub use options::ReadOptions;

use crate::format::Format;
use crate::workflow::Workflow;

/// First bytes of compressed files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the workflow of a file. A workflow without a name has that of the file, without folders and extensions.
///
/// # Errors
/// If the file cannot be read, is longer than the limit, is in another format, or has a defect that [`ReadProblem`] lists.
pub fn read(path: &Path, options: ReadOptions) -> Result<Workflow, ReadError> {
    let name = path.to_string_lossy();
    let loaded = File::open(path).map_err(unreadable).and_then(|file| load(BufReader::new(file), options));
    parse(&name, loaded, options)
}

/// Reads a workflow from the content of a file. `name` is the name of the file, for messages.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(name: &str, bytes: &[u8], options: ReadOptions) -> Result<Workflow, ReadError> {
    parse(name, load(bytes, options), options)
}

fn unreadable(error: io::Error) -> Located {
    ReadProblem::Unreadable(error).at(Place::File)
}

/// Returns the decompressed content.
fn load(mut reader: impl BufRead, options: ReadOptions) -> Result<Vec<u8>, Located> {
    let max_bytes = options.max_bytes;
    // One byte beyond the limit shows that there is more.
    let limit = max_bytes.saturating_add(1);
    let mut content = Vec::new();
    let is_gzip = reader.fill_buf().map_err(unreadable)?.starts_with(&GZIP);
    let length = if is_gzip {
        MultiGzDecoder::new(reader).take(limit).read_to_end(&mut content)
    } else {
        reader.take(limit).read_to_end(&mut content)
    };
    if length.map_err(unreadable)? as u64 > max_bytes {
        return Err(ReadProblem::TooLarge { max_bytes }.at(Place::File));
    }
    Ok(content)
}

fn parse(name: &str, loaded: Result<Vec<u8>, Located>, options: ReadOptions) -> Result<Workflow, ReadError> {
    let located = |located| ReadError::new(name, located);
    let content = loaded.map_err(located)?;
    let text = std::str::from_utf8(&content)
        .map_err(|error| located(ReadProblem::Encoding { position: error.valid_up_to() }.at(Place::File)))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let workflow = match detect(text) {
        Some(Format::Dax) => dax::parse(stem(name), text, options),
        Some(Format::Dag) => dag::parse(stem(name), text, options),
        Some(Format::WfFormat) => wfformat::parse(stem(name), text, options),
        None => Err(ReadProblem::Format.at(Place::File)),
    };
    workflow.map_err(located)
}

/// Returns the format of a text by its first characters.
fn detect(text: &str) -> Option<Format> {
    match text.trim_start().chars().next()? {
        '<' => Some(Format::Dax),
        '{' => Some(Format::WfFormat),
        _ => dag::is_dag(text).then_some(Format::Dag),
    }
}

/// Returns the name of a file without folders and extensions.
#[must_use]
pub fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_have_no_folders_and_extensions() {
        assert_eq!(stem("/data/dax/Montage_1000.xml.gz"), "Montage_1000");
        assert_eq!(stem("Montage_25.dag"), "Montage_25");
        assert_eq!(stem(".hidden"), ".hidden");
    }

    #[test]
    fn content_decides_about_the_format() {
        assert_eq!(detect(" \n<?xml"), Some(Format::Dax));
        assert_eq!(detect("{"), Some(Format::WfFormat));
        assert_eq!(detect("\nTASK a b 1"), Some(Format::Dag));
        assert_eq!(detect("FILES a"), None);
        assert_eq!(detect("  "), None);
    }
}
