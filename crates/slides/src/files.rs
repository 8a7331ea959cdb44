//! Lists the files of a slide. Most slides are one file. In some formats the named file lists the files with the
//! pixels.
//!
//! - MIRAX: `X.mrxs`, and in the folder `X` a `Slidedat.ini`, which names an index and data files.
//! - VMS and VMU (Hamamatsu): a text that names images, a map and possibly more files in the same folder.
//!
//! Only files named by these texts are listed, because the reader opens no other files. Their contents are not checked.

use crate::error::SlideError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// 1 MiB: maximum length of a text that names files. OpenSlide reads no longer `Slidedat.ini`.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Maximum files of a slide. Scanners write some tens.
const MAX_FILES: usize = 10_000;

/// Returns the files of a slide, the named one first, the remaining ones sorted by name. A file of any other format
/// is the only one, regardless of its contents.
///
/// # Errors
/// [`SlideError::Files`] if the text cannot be read, is incomplete, or names a file in another folder. Listed files
/// may be missing.
pub fn files_of(path: &Path) -> Result<Vec<PathBuf>, SlideError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let (folder, names) = match extension {
        "mrxs" => {
            let folder = path.with_extension("");
            let names = mirax(path, &folder.join(SLIDEDAT))?;
            (folder, names)
        }
        "vms" | "vmu" => (path.with_file_name(""), hamamatsu(path)?),
        _ => return Ok(vec![path.to_owned()]),
    };
    if names.len() > MAX_FILES {
        return Err(wrong(path, format!("{} files; up to {MAX_FILES} are allowed", names.len())));
    }
    let others = names.into_iter().map(|name| folder.join(name));
    Ok(std::iter::once(path.to_owned()).chain(others).collect())
}

const SLIDEDAT: &str = "Slidedat.ini";

/// Returns the files named by a MIRAX slide's text, itself included.
fn mirax(path: &Path, text: &Path) -> Result<BTreeSet<String>, SlideError> {
    let keys = read(path, text)?;
    let value = |section: &str, key: &str| {
        let value = keys.get(&(section.to_owned(), key.to_owned()));
        value.ok_or_else(|| wrong(path, format!("{SLIDEDAT} has no {key} in [{section}]")))
    };
    let count = value("DATAFILE", "FILE_COUNT")?;
    let count = count.parse().ok().filter(|count| *count <= MAX_FILES);
    let count = count.ok_or_else(|| {
        wrong(path, format!("invalid FILE_COUNT in {SLIDEDAT}; up to {MAX_FILES} files are allowed"))
    })?;
    let mut names = BTreeSet::from([SLIDEDAT.to_owned(), name(path, value("HIERARCHICAL", "INDEXFILE")?)?]);
    for number in 0..count {
        names.insert(name(path, value("DATAFILE", &format!("FILE_{number}"))?)?);
    }
    Ok(names)
}

/// Returns the files named by the text of a VMS or VMU slide.
fn hamamatsu(path: &Path) -> Result<BTreeSet<String>, SlideError> {
    let keys = read(path, path)?;
    let is_file = |key: &str| {
        key == "ImageFile" || key.starts_with("ImageFile(") || matches!(key, "MapFile" | "MacroImage")
    };
    let mut names = BTreeSet::new();
    for ((_, key), value) in &keys {
        // The file is optional. It only speeds up region reads.
        let is_index = key == "OptimisationFile" && path.with_file_name(value).is_file();
        if !value.is_empty() && (is_file(key) || is_index) {
            names.insert(name(path, value)?);
        }
    }
    if names.is_empty() {
        return Err(wrong(path, "no ImageFile".to_owned()));
    }
    Ok(names)
}

/// Checks that a name denotes a file in its own folder on every platform.
fn name(path: &Path, name: &str) -> Result<String, SlideError> {
    let is_plain = |c: char| !matches!(c, '/' | '\\') && !c.is_control();
    if name.is_empty() || matches!(name, "." | "..") || !name.chars().all(is_plain) {
        return Err(wrong(path, format!("invalid file name {name:?}; files in the same folder are allowed")));
    }
    Ok(name.to_owned())
}

/// Returns the values by section and key. The last value of a key counts.
fn read(path: &Path, text: &Path) -> Result<BTreeMap<(String, String), String>, SlideError> {
    let mut bytes = Vec::new();
    let unreadable = |cause| wrong(path, format!("{}: {cause}", text.display()));
    // Checked before opening: opening a pipe waits for a writer.
    let metadata = text.metadata().map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > MAX_TEXT_BYTES {
        return Err(wrong(
            path,
            format!("{}: not a regular file of up to {MAX_TEXT_BYTES} bytes", text.display()),
        ));
    }
    File::open(text)
        // The file may grow after the check of its length.
        .and_then(|file| file.take(MAX_TEXT_BYTES).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut keys, mut section) = (BTreeMap::new(), String::new());
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            keys.insert((section.clone(), key.trim().to_owned()), value.trim().to_owned());
        }
    }
    Ok(keys)
}

fn wrong(path: &Path, cause: String) -> SlideError {
    SlideError::Files { path: path.to_owned(), cause }
}
