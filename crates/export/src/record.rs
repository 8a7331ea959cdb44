//! Folder of an export: `export.json` with the request, `images.jsonl` with a line for each finished image, `failed.csv`, and
//! `submissions.json` with the studies of an export on a cluster.
//!
//! A later process continues an export of the same request. A line is written after the files of its image, so an image with a line
//! is complete. The last line may be torn.

use crate::image_export::{ExportOptions, ExportedImage};
use pleach_results::folder::publish;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

const REQUEST: &str = "export.json";
const IMAGES: &str = "images.jsonl";
const FAILED: &str = "failed.csv";

/// Record of the studies of an export on a cluster.
pub(crate) const SUBMISSIONS: &str = "submissions.json";

/// Request of an export: all that its files depend on, except the images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// Name of the study.
    pub study: String,
    /// Name of the workflow.
    pub workflow: String,
    /// Number of the evaluation. `None` for parameters that are no evaluation.
    pub evaluation: Option<usize>,
    /// Values of all parameters.
    pub parameters: BTreeMap<String, Json>,
    /// Parts of the workflow that the study turned off.
    pub switched_off: Vec<String>,
    /// Task whose output is exported. `None`: the output that is compared with the reference.
    pub task: Option<String>,
    /// Cutting of slides: magnification, side of tiles, halo and tissue rule.
    pub slides: Json,
    /// Micrometers per pixel, in place of those of the images.
    pub microns_per_px: Option<f64>,
    /// Files.
    #[serde(flatten)]
    pub options: ExportOptions,
}

/// Image without files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedImage {
    /// Name of the image.
    pub image: String,
    /// Cause.
    pub cause: String,
}

/// Treatment of an earlier export in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It is refused.
    Refuse,
    /// It is continued.
    Resume,
    /// Its files are removed.
    Overwrite,
}

/// The folder of an export cannot be used.
#[derive(Debug, Error)]
pub enum FolderStateError {
    /// The folder has other files.
    #[error("--out {}: holds other files, such as {name}; a new or empty folder is allowed", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// A file.
        name: String,
    },
    /// The folder has an export.
    #[error("--out {}: holds an export; --resume continues it, and --overwrite replaces it", folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has an export of another request.
    #[error("--out {}: holds an export with another {field}; another folder or --overwrite is allowed", folder.display())]
    Differs {
        /// The folder.
        folder: PathBuf,
        /// Field of `export.json`.
        field: String,
    },
    /// The request is unreadable.
    #[error("--out {}: {REQUEST} is corrupt: {cause}; another folder or --overwrite is allowed", folder.display())]
    Corrupt {
        /// The folder.
        folder: PathBuf,
        /// Error of the parser.
        cause: serde_json::Error,
    },
    /// The system refuses.
    #[error("{}: failed to read or write: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
}

/// Folder that an export may write to.
#[derive(Debug)]
pub struct ExportFolder {
    path: PathBuf,
    finished: Vec<ExportedImage>,
}

impl ExportFolder {
    /// Claims a folder for a request. Creates it if it is missing.
    ///
    /// # Errors
    /// [`FolderStateError`] if it holds other files, or the export of another request.
    pub fn claim(path: &Path, request: &ExportRequest, earlier: Earlier) -> Result<Self, FolderStateError> {
        let at = |file: &Path| {
            let file = file.to_owned();
            move |cause| FolderStateError::File { file, cause }
        };
        let folder = || path.to_owned();
        fs::create_dir_all(path).map_err(at(path))?;
        let mut claimed = Self { path: path.to_owned(), finished: Vec::new() };
        let (request_file, images_file) = (path.join(REQUEST), path.join(IMAGES));
        let text = match fs::read(&request_file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(at(&request_file)(error)),
        };
        match (text, earlier) {
            (None, _) => {
                let mut files = fs::read_dir(path).map_err(at(path))?;
                if let Some(Ok(file)) = files.next() {
                    let name = file.file_name().to_string_lossy().into_owned();
                    return Err(FolderStateError::Occupied { folder: folder(), name });
                }
            }
            (Some(_), Earlier::Refuse) => return Err(FolderStateError::Exists { folder: folder() }),
            (Some(text), Earlier::Resume) => {
                let known: ExportRequest = serde_json::from_slice(&text)
                    .map_err(|cause| FolderStateError::Corrupt { folder: folder(), cause })?;
                if let Some(field) = difference(&known, request) {
                    return Err(FolderStateError::Differs { folder: folder(), field });
                }
                claimed.finished = read_finished(&images_file).map_err(at(&images_file))?;
                let is_there =
                    |image: &ExportedImage| image.files.iter().all(|file| path.join(file).exists());
                claimed.finished.retain(is_there);
            }
            (Some(_), Earlier::Overwrite) => {
                remove(&path.join(SUBMISSIONS));
                for image in read_finished(&images_file).map_err(at(&images_file))? {
                    image.files.iter().for_each(|file| remove(&path.join(file)));
                }
            }
        }
        remove(&path.join(FAILED));
        // First: without the request, a later process could not tell the folder from one of other files.
        let mut text = serde_json::to_vec_pretty(request)
            .map_err(|cause| FolderStateError::Corrupt { folder: folder(), cause })?;
        text.push(b'\n');
        publish(&request_file, &text).map_err(at(&request_file))?;
        // Rewrites the lines: without a torn one, and without images whose files were removed.
        let lines: Vec<u8> = claimed.finished.iter().flat_map(line).collect();
        publish(&images_file, &lines).map_err(at(&images_file))?;
        Ok(claimed)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the images that are complete.
    #[must_use]
    pub fn complete(&self) -> &[ExportedImage] {
        &self.finished
    }

    /// Records a complete image.
    ///
    /// # Errors
    /// [`FolderStateError::File`].
    pub fn finished(&mut self, image: &ExportedImage) -> Result<(), FolderStateError> {
        let file = self.path.join(IMAGES);
        let written = OpenOptions::new().append(true).create(true).open(&file).and_then(|mut opened| {
            opened.write_all(&line(image))?;
            opened.sync_data()
        });
        written.map_err(|cause| FolderStateError::File { file, cause })?;
        self.finished.push(image.clone());
        Ok(())
    }

    /// Writes the list of failed images, and returns its path.
    ///
    /// # Errors
    /// [`FolderStateError::File`].
    pub fn write_failed(&self, failed: &[FailedImage]) -> Result<PathBuf, FolderStateError> {
        let file = self.path.join(FAILED);
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = String::from("image,cause\n");
        for FailedImage { image, cause } in failed {
            text.push_str(&format!("{},{}\n", quoted(image), quoted(&cause.replace('\n', " "))));
        }
        publish(&file, text.as_bytes())
            .map_err(|cause| FolderStateError::File { file: file.clone(), cause })?;
        Ok(file)
    }
}

/// Returns the first field of two requests that differs.
fn difference(one: &ExportRequest, other: &ExportRequest) -> Option<String> {
    let [one, other] = [one, other].map(|request| serde_json::to_value(request).unwrap_or_default());
    let fields = other.as_object()?;
    fields.iter().find(|(name, value)| one.get(name) != Some(value)).map(|(name, _)| name.clone())
}

fn line(image: &ExportedImage) -> Vec<u8> {
    // Serializing text and numbers cannot fail.
    let mut line = serde_json::to_vec(image).unwrap_or_default();
    line.push(b'\n');
    line
}

fn read_finished(file: &Path) -> io::Result<Vec<ExportedImage>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect())
}

/// Removes a file or a folder. A missing one is no error.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
