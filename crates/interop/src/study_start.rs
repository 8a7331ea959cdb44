//! A first study file for the images of a folder: tiles or slides, and their reference files.
//!
//! Names of files decide. Only TIFF files are opened, because they are tiles or slides.

use pleach_pathology::image_io::probe;
use pleach_study::slides;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the study file.
pub const STUDY_FILE: &str = "study.toml";

/// Extensions of tiles, in lower case. Those of [`AMBIGUOUS`] are tiles or slides.
const TILES: [&str; 3] = ["png", "jpg", "jpeg"];

/// Extensions of files that are tiles or slides.
const AMBIGUOUS: [&str; 2] = ["tif", "tiff"];

/// Extensions of slides.
const SLIDES: [&str; 6] = ["svs", "ndpi", "scn", "bif", "mrxs", "vms"];

/// Suffix of label maps, which are no tiles.
const LABELS: &str = "_labels";

/// Names of folders whose images are masks and not tiles.
const REFERENCE_FOLDERS: [&str; 8] =
    ["mask", "masks", "label", "labels", "reference", "references", "annotation", "annotations"];

/// Maximum number of folders that are searched, so that a call in a home folder ends.
const MAX_FOLDERS: usize = 200;

/// 10,000 x 10,000: maximum pixels of a tile. Larger images are cut into tiles, which take less memory.
const MAX_TILE_PIXELS: u64 = 100_000_000;

/// Reason why no study can be begun.
#[derive(Debug, Error)]
pub enum StartError {
    /// The study file exists.
    #[error("{}: exists; only a new file is written", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// A folder cannot be read.
    #[error("{}: failed to read: {cause}", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The folder has no images.
    #[error(
        "{}: no image in it or its folders; {}, {} and slides ({}) are allowed, such as those of `pleach tissue --out tiles`",
        folder.display(), TILES.join(", "), AMBIGUOUS.join(", "), SLIDES.join(", ")
    )]
    NoImages {
        /// The folder.
        folder: PathBuf,
    },
}

/// Content of a study file, and the files that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyStart {
    /// Text of the study file.
    pub text: String,
    /// Findings, one a line.
    pub findings: Vec<String>,
}

/// Searches `folder` and its folders, one level deep.
///
/// # Errors
/// [`StartError`] if the study file exists, a folder cannot be read, or no image is found.
pub fn start(folder: &Path) -> Result<StudyStart, StartError> {
    let file = folder.join(STUDY_FILE);
    // Links are not followed: a dangling one occupies the name too.
    if file.symlink_metadata().is_ok() {
        return Err(StartError::Exists { file });
    }
    let found = Found::search(folder)?;
    let name = folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let name = name.unwrap_or_default();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "study" } else { name };
    match (found.tiles.is_empty(), found.slides.is_empty()) {
        (true, true) => Err(StartError::NoImages { folder: folder.to_owned() }),
        (false, _) => Ok(of_tiles(name, &found)),
        (true, false) => Ok(of_slides(name, &found)),
    }
}

/// Images by folder. Folders are relative to the study file, empty for its own.
struct Found {
    tiles: BTreeMap<String, Vec<String>>,
    slides: BTreeMap<String, Vec<String>>,
    /// All files of each folder.
    files: BTreeMap<String, BTreeSet<String>>,
}

impl Found {
    fn search(folder: &Path) -> Result<Self, StartError> {
        let mut found = Self { tiles: BTreeMap::new(), slides: BTreeMap::new(), files: BTreeMap::new() };
        let mut folders = vec![String::new()];
        folders.extend(names(folder, false)?);
        for name in folders.into_iter().take(MAX_FOLDERS) {
            let path = folder.join(&name);
            let files = match names(&path, true) {
                Ok(files) => files,
                // Other folders may be unreadable.
                Err(_) if !name.is_empty() => continue,
                Err(error) => return Err(error),
            };
            let is_reference = REFERENCE_FOLDERS.contains(&name.to_ascii_lowercase().as_str());
            for file in files.iter().filter(|_| !is_reference) {
                let (stem, ending) = split(file);
                let is = |list: &[&str]| list.contains(&ending.as_str());
                let slide = is(&SLIDES) || (is(&AMBIGUOUS) && is_slide(&path.join(file)));
                if slide {
                    found.slides.entry(name.clone()).or_default().push(file.clone());
                } else if (is(&TILES) || is(&AMBIGUOUS)) && !stem.ends_with(LABELS) {
                    found.tiles.entry(name.clone()).or_default().push(file.clone());
                }
            }
            found.files.insert(name, files);
        }
        Ok(found)
    }

    /// Returns the folder with a reference of each tile, or the folder with the most of them, and their number.
    fn reference(&self) -> Option<(String, usize)> {
        let tiles: Vec<(&String, &String)> = self
            .tiles
            .iter()
            .flat_map(|(folder, files)| files.iter().map(move |file| (folder, file)))
            .collect();
        let count = |(name, files): (&String, &BTreeSet<String>)| {
            let has = |(folder, tile): &&(&String, &String)| {
                let (stem, _) = split(tile);
                let mask = format!("{stem}.png");
                // In a folder of tiles, the tile itself is not its own reference.
                let is_mask = files.contains(&mask) && (*folder != name || **tile != mask);
                let is_mask = is_mask && REFERENCE_FOLDERS.contains(&name.to_ascii_lowercase().as_str());
                files.contains(&format!("{stem}{LABELS}.png"))
                    || files.contains(&format!("{stem}.geojson"))
                    || is_mask
            };
            (name.clone(), tiles.iter().filter(has).count())
        };
        let counts = self.files.iter().map(count).filter(|(_, count)| *count > 0);
        // The first of equals: folders are sorted.
        counts.reduce(|best, other| if other.1 > best.1 { other } else { best })
    }
}

/// Returns whether a TIFF file is a slide: it cannot be read as a tile, or has more pixels than one.
fn is_slide(file: &Path) -> bool {
    match probe(file) {
        Ok(tile) => u64::from(tile.width_px) * u64::from(tile.height_px) > MAX_TILE_PIXELS,
        Err(error) => slides::is_slide(file, &error),
    }
}

/// Returns the names in a folder without hidden ones: of files, or of folders.
fn names(folder: &Path, of_files: bool) -> Result<BTreeSet<String>, StartError> {
    let unreadable = |cause| StartError::Unreadable { folder: folder.to_owned(), cause };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with('.') && path.is_file() == of_files && path.is_dir() != of_files {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Returns the name without extension, and the extension in lower case.
fn split(file: &str) -> (String, String) {
    let path = Path::new(file);
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    (part(path.file_stem()), part(path.extension()).to_ascii_lowercase())
}

/// Returns patterns that match exactly these files of a folder: one for each extension if no other image has it, else the
/// files.
fn patterns(found: &Found, images: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut patterns = Vec::new();
    for (folder, files) in images {
        let place = if folder.is_empty() { String::new() } else { format!("{}/", glob_escaped(folder)) };
        let endings: BTreeSet<&str> =
            files.iter().filter_map(|file| file.rsplit_once('.')).map(|(_, end)| end).collect();
        for ending in endings {
            let has = |file: &&String| file.rsplit_once('.').is_some_and(|(_, end)| end == ending);
            let others =
                found.files[folder].iter().filter(has).filter(|file| !split(file).0.ends_with(LABELS));
            if others.count() == files.iter().filter(has).count() {
                patterns.push(format!("{place}*.{ending}"));
            } else {
                let path =
                    |file: &String| if folder.is_empty() { file.clone() } else { format!("{folder}/{file}") };
                patterns.extend(files.iter().filter(has).map(path));
            }
        }
    }
    patterns
}

fn glob_escaped(folder: &str) -> String {
    folder.chars().map(|c| if "*?[]".contains(c) { format!("[{c}]") } else { c.to_string() }).collect()
}

fn quoted(text: &str) -> String {
    // JSON strings without control characters are TOML strings.
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    serde_json::Value::from(plain).to_string()
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn list(patterns: &[String]) -> String {
    format!("[{}]", patterns.iter().map(|pattern| quoted(pattern)).collect::<Vec<_>>().join(", "))
}

fn of_tiles(name: &str, found: &Found) -> StudyStart {
    let count: usize = found.tiles.values().map(Vec::len).sum();
    let patterns = patterns(found, &found.tiles);
    let mut findings = vec![format!("{}: {}", counted(count, "tile"), patterns.join(", "))];
    let slides: usize = found.slides.values().map(Vec::len).sum();
    if slides > 0 {
        findings.push(format!("{} left out: a study has tiles or slides", counted(slides, "slide")));
    }
    let folder = |name: &str| if name.is_empty() { ".".to_owned() } else { name.to_owned() };
    let reference = match found.reference() {
        Some((name, of)) if of == count => {
            findings.push(format!("references of all tiles: {}", folder(&name)));
            format!(
                "# The folder with a reference of each tile: NAME_labels.png, NAME.geojson or NAME.png.\nreference = {}",
                quoted(&folder(&name))
            )
        }
        other => {
            let partly =
                other.map(|(name, of)| format!("references of {of} of {count} tiles: {}", folder(&name)));
            findings.extend(partly.map(|text| format!("{text}; a study needs one of each tile")));
            "# The result at default values. Or the folder with a reference of each tile: NAME_labels.png,\n\
             # NAME.geojson or NAME.png.\nreference = \"defaults\""
                .to_owned()
        }
    };
    let input = format!(
        "# {}. A pattern, or a list of files.\ntiles = {}\n{reference}",
        counted(count, "tile"),
        list(&patterns)
    );
    StudyStart { text: study(name, &input), findings }
}

fn of_slides(name: &str, found: &Found) -> StudyStart {
    let count: usize = found.slides.values().map(Vec::len).sum();
    let patterns = patterns(found, &found.slides);
    let findings = vec![format!("{}: {}", counted(count, "slide"), patterns.join(", "))];
    let mut input = format!("# {}, cut into tiles.\nslides = {}\n", counted(count, "slide"), list(&patterns));
    let _ = write!(
        input,
        "# Magnification to read them at. Without it, the slide's own.\n# magnification = 20\n\
         # Side of a tile in pixels.\ntile = 1024\n\
         # Minimum share of tissue in a tile.\ntissue.min_fraction = 0.5\n\
         # The result at default values.\nreference = \"defaults\""
    );
    StudyStart { text: study(name, &input), findings }
}

/// Returns the text of a screening of the built-in workflow.
fn study(name: &str, input: &str) -> String {
    format!(
        "#:schema ./study.schema.json
# A study of the parameters of nuclear segmentation. docs/studies.md of pleach describes all keys, and
# `pleach schema` prints the schema that editors complete them by.

[study]
# Name of the default folder of results.
name = {}
# The built-in workflow, or the path of a workflow file (`pleach workflow new`).
workflow = \"nuclei\"
# All random numbers follow from it.
seed = 1

[input]
{input}

[method]
# Morris' screening: one parameter at a time, for a ranking of all 15 parameters. Others: \"vbd\", \"fast\",
# \"correlation\", \"regression\", \"pawn\", \"delta\", \"rbd-fast\", \"table\".
kind = \"moat\"
# 16 evaluations each.
trajectories = 10
levels = 20

[response]
# The measured result, or a list: \"dice\", \"jaccard\", \"pixel-difference\", \"object-dice\", \"object-jaccard\",
# \"object-pair-dice\", \"object-recall\", \"nuclei\", \"mean-area\".
metric = \"dice\"

# Other ranges than those of the workflow (`pleach workflow show nuclei`):
# [parameters.G1]
# range = [40, 80]
# step = 5
",
        quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    /// Returns `[input]` without remarks, and the findings.
    fn started(files: &[&str]) -> (String, String) {
        let folder = folder(files);
        let started = start(folder.path()).unwrap();
        let (_, input) = started.text.split_once("[input]\n").unwrap();
        let (input, _) = input.split_once("\n\n[method]").unwrap();
        let input = input.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        (input, started.findings.join("; "))
    }

    #[test]
    fn tiles_are_found_with_their_references() {
        let (input, found) = started(&["a.png", "b.jpg", "masks/a.png", "masks/b.png", ".hidden/x.png"]);
        assert_eq!(input, "tiles = [\"*.jpg\", \"*.png\"]\nreference = \"masks\"");
        assert_eq!(found, "2 tiles: *.jpg, *.png; references of all tiles: masks");
        let (input, found) = started(&["t[1]/a.PNG", "t[1]/a_labels.png", "u/b.tif", "t[1]/b.geojson"]);
        assert_eq!(input, "tiles = [\"t[[]1[]]/*.PNG\", \"u/*.tif\"]\nreference = \"t[1]\"");
        assert_eq!(found, "2 tiles: t[[]1[]]/*.PNG, u/*.tif; references of all tiles: t[1]");
        // A second folder of images is no reference.
        let (input, found) = started(&["one/a.png", "two/a.png"]);
        assert_eq!(input, "tiles = [\"one/*.png\", \"two/*.png\"]\nreference = \"defaults\"");
        assert_eq!(found, "2 tiles: one/*.png, two/*.png");
    }

    #[test]
    fn references_of_some_tiles_are_reported() {
        let (input, found) = started(&["a.png", "b.png", "a.geojson", "x.svs"]);
        assert_eq!(input, "tiles = [\"*.png\"]\nreference = \"defaults\"");
        let wanted = "2 tiles: *.png; 1 slide left out: a study has tiles or slides; references of 1 of 2 tiles: .; a study \
                      needs one of each tile";
        assert_eq!(found, wanted);
    }

    #[test]
    fn slides_are_cut_into_tiles() {
        let (input, found) = started(&["slides/a.svs", "slides/b.svs", "slides/notes.txt"]);
        let wanted =
            "slides = [\"slides/*.svs\"]\ntile = 1024\ntissue.min_fraction = 0.5\nreference = \"defaults\"";
        assert_eq!(input, wanted);
        assert_eq!(found, "2 slides: slides/*.svs");
    }

    #[test]
    fn folders_without_images_and_with_a_study_are_refused() {
        let message = |files: &[&str]| {
            let folder = folder(files);
            let said = start(folder.path()).unwrap_err().to_string();
            said.replace(&folder.path().display().to_string(), "DIR")
        };
        assert!(message(&["a.txt", "masks/a.png"]).starts_with("DIR: no image in it or its folders; png, "));
        assert_eq!(message(&["a.png", "study.toml"]), "DIR/study.toml: exists; only a new file is written");
    }
}
