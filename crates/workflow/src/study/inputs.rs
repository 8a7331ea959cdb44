//! Input files of a study: tiles found by pattern, and their reference files.

use super::annotations::AnnotationRules;
use super::images::volumes::{VOLUME_METADATA, VolumeBlock};
use super::slides::SlideTile;
use super::wording::{TEXT, fail, needed_texts};
use super::{StudyError, StudyProblem};
use crate::toml_fields::Section;
use glob::MatchOptions;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A tile of the study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyTile {
    /// Name in tables: the file name without extension if it is unique, else the path relative to the study file.
    pub name: String,
    /// The image file.
    pub path: PathBuf,
    /// Part of the file, if it is a slide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slide: Option<SlideTile>,
    /// Part of the file, if it is an image of more dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<VolumeBlock>,
    /// Index among the fits of the study's [`Normalization`](super::Normalization), if it has fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<usize>,
}

/// Source of the reference that results are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceSource {
    /// The output at default parameters: evaluation 0.
    Defaults,
    /// One file per tile, in the tiles' order: an image of labels or of a mask, or polygons in GeoJSON. All tiles of a
    /// slide have the slide's file. Until [`Study::cut`](super::Study::cut), one file per slide.
    Masks(Vec<PathBuf>),
}

/// Suffix of label maps, which are in the same folder as their tiles. Patterns do not match them as tiles.
const LABELS: &str = "_labels";

/// Ending of label maps.
const LABELS_PNG: &str = "_labels.png";

/// Endings of files of annotations: GeoJSON, plain or compressed.
const ANNOTATIONS: [&str; 2] = [".geojson", ".geojson.gz"];

/// Returns the distinct files that match the patterns of a list, in order of their paths.
pub(super) fn found(input: &Section<'_>, key: &str) -> Result<Vec<StudyTile>, StudyError> {
    let patterns = needed_texts(input, key)?;
    if patterns.is_empty() {
        return input.not_allowed(key, "an empty list", "at least one file or pattern");
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for pattern in patterns {
        let path = input.path(pattern);
        if is_input(&path, key) {
            paths.push(path);
            continue;
        }
        if !pattern.contains(['*', '?', '[']) {
            let wanted = if path.is_dir() { wanted_for_folder(key) } else { "no such file" };
            return fail(input, key, StudyProblem::NotThere { path, wanted });
        }
        let before = paths.len();
        let bad = |message: String| StudyProblem::BadPattern { pattern: pattern.to_owned(), message };
        if let Err(error) = glob::Pattern::new(pattern) {
            return fail(input, key, bad(format!("{} at character {}", error.msg, error.pos + 1)));
        }
        let Some(text) = whole_pattern(input.folder(), pattern) else {
            return fail(input, key, bad("the folder name is not UTF-8".to_owned()));
        };
        // As in a shell, `*` does not match the names of hidden files.
        let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
        match glob::glob_with(&text, options) {
            Err(error) => return fail(input, key, bad(error.to_string())),
            Ok(found) => {
                for path in found {
                    match path {
                        Ok(path) if is_input(&path, key) && !stem(&path).ends_with(LABELS) => {
                            paths.push(path)
                        }
                        Ok(_) => {}
                        Err(error) => return fail(input, key, bad(error.to_string())),
                    }
                }
            }
        }
        if paths.len() == before {
            return fail(input, key, StudyProblem::NoMatch(pattern.to_owned()));
        }
    }
    // Sorted, so that the numbers of tiles do not depend on the order of the patterns.
    paths.sort();
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(place(path)));
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    stems.iter().for_each(|stem| *counts.entry(stem).or_default() += 1);
    let unique = |stem: &String| counts[stem.as_str()] == 1;
    let named = paths.iter().zip(&stems).map(|(path, stem)| StudyTile {
        name: if unique(stem) {
            stem.clone()
        } else {
            path.strip_prefix(input.folder()).unwrap_or(path).display().to_string()
        },
        path: path.clone(),
        slide: None,
        block: None,
        fit: None,
    });
    Ok(named.collect())
}

/// Returns the problem of a folder among files.
fn wanted_for_folder(key: &str) -> &'static str {
    match key {
        "images" => "a folder without zarr.json; OME-Zarr folders, OME-TIFF files or patterns are allowed",
        "slides" => "a folder; files or a pattern such as \"slides/*.svs\" are allowed",
        _ => "a folder; files or a pattern such as \"tiles/*.png\" are allowed",
    }
}

/// Returns whether a path is a file or, among images, a folder of the Zarr format: by its metadata, or by its name.
fn is_input(path: &Path, key: &str) -> bool {
    let is_zarr = || path.join(VOLUME_METADATA).is_file() || path.extension().is_some_and(|of| of == "zarr");
    path.is_file() || (key == "images" && path.is_dir() && is_zarr())
}

/// Returns a pattern in a folder, whose name is escaped: only the user's text is a pattern. `None` if the name is not
/// UTF-8.
fn whole_pattern(folder: &Path, pattern: &str) -> Option<String> {
    let folder = glob::Pattern::escape(folder.to_str()?);
    Some(Path::new(&folder).join(pattern).to_str()?.to_owned())
}

/// Returns the reference of these tiles or slides. Slides and selected annotations have files of annotations only.
pub(super) fn reference(
    input: &Section<'_>,
    tiles: &[StudyTile],
    is_of_slides: bool,
    rules: &AnnotationRules,
) -> Result<ReferenceSource, StudyError> {
    let named = input.text("reference", TEXT)?.unwrap_or("defaults");
    if named == "defaults" {
        return Ok(ReferenceSource::Defaults);
    }
    let folder = input.path(named);
    if !folder.is_dir() {
        let wanted = "no such folder; a folder of masks or \"defaults\" is allowed";
        return fail(input, "reference", StudyProblem::NotThere { path: folder, wanted });
    }
    let mut masks = Vec::new();
    let mut taken = HashSet::new();
    for tile in tiles {
        let stem = stem(&tile.path);
        // The most detailed reference comes first: objects by label or outline, then pixels.
        let endings: &[&str] = match is_of_slides || !rules.is_default() {
            true => &ANNOTATIONS,
            false => &[LABELS_PNG, ANNOTATIONS[0], ANNOTATIONS[1], ".png"],
        };
        let candidates = endings.iter().map(|ending| folder.join(format!("{stem}{ending}")));
        // In a folder of tiles and label maps, the tile itself is not its own reference.
        let mut candidates = candidates.filter(|mask| mask.is_file() && !same_file(mask, &tile.path));
        let mask = candidates.next();
        match mask {
            // Tiles with one name in several folders: the mask can belong to only one of them.
            Some(mask) if !taken.insert(mask.clone()) => {
                return fail(input, "reference", StudyProblem::SharedMask { mask, stem });
            }
            Some(mask) => masks.push(mask),
            None => {
                let tile = tile.path.clone();
                let problem = match endings.len() {
                    2 => StudyProblem::NoAnnotations { folder, tile, stem },
                    _ => StudyProblem::NoMask { folder, tile, stem },
                };
                return fail(input, "reference", problem);
            }
        }
    }
    Ok(ReferenceSource::Masks(masks))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the identity of a file, independent of the spelling of its folder. A link to it is a different file.
fn place(path: &Path) -> (Option<PathBuf>, Option<OsString>) {
    let folder = path.parent().and_then(|folder| folder.join(".").canonicalize().ok());
    (folder, path.file_name().map(OsString::from))
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
