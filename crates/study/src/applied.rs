//! Applies the workflow of a study to other images: finds them, cuts slides, and takes parameter values from the command line.

use crate::error::{PrepareError, SlideTilesProblem};
use crate::{builtin, slides};
use pleach_workflow::{AppliedImages, Registry, Slides, Study, Value, Workflow};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Extensions of images that are read whole. A TIFF file may be a slide.
const TILE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "tif", "tiff"];

/// Suffixes of the files of earlier exports and of label maps, which are no images to segment.
const NO_IMAGES: [&str; 3] = ["_labels", "_mask", ".ome"];

/// An image or folder cannot be applied to.
#[derive(Debug, Error)]
pub enum AppliedPathError {
    /// The path cannot be read.
    #[error("{}: cannot be read: {cause}; image files and folders of images are allowed", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The folder has no image.
    #[error(
        "{}: the folder has no image; files that end in png, jpg, jpeg, tif, tiff, svs, ndpi, scn, bif, svslide, mrxs, vms \
         or vmu are images",
        path.display()
    )]
    NoImage {
        /// The folder.
        path: PathBuf,
    },
}

/// Setting of a parameter that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("--set {setting}: {problem}")]
pub struct SettingError {
    /// The setting.
    setting: String,
    /// The problem, and the allowed values.
    problem: String,
}

/// Images of paths, each once and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundImages {
    /// Images that are read whole.
    pub tiles: Vec<PathBuf>,
    /// Slides.
    pub slides: Vec<PathBuf>,
}

/// Finds the images of files and folders. Subfolders, hidden files, label maps and files of exports are left out.
///
/// # Errors
/// [`AppliedPathError`] names the path.
pub fn find_images(paths: &[PathBuf]) -> Result<FoundImages, AppliedPathError> {
    let mut found = FoundImages::default();
    for path in paths {
        let unreadable = |cause| AppliedPathError::Unreadable { path: path.clone(), cause };
        if !fs::metadata(path).map_err(unreadable)?.is_dir() {
            sort_in(path.clone(), &mut found);
            continue;
        }
        let before = found.tiles.len() + found.slides.len();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.is_file() && is_image(&file) {
                sort_in(file, &mut found);
            }
        }
        if before == found.tiles.len() + found.slides.len() {
            return Err(AppliedPathError::NoImage { path: path.clone() });
        }
    }
    for files in [&mut found.tiles, &mut found.slides] {
        files.sort();
        files.dedup();
    }
    Ok(found)
}

fn is_image(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_other = stem.starts_with('.') || NO_IMAGES.iter().any(|suffix| stem.ends_with(suffix));
    !is_other && (slides::has_slide_ending(file) || slides::has_ending(file, &TILE_ENDINGS))
}

fn sort_in(file: PathBuf, found: &mut FoundImages) {
    if slides::is_slide_file(&file) { found.slides.push(file) } else { found.tiles.push(file) }
}

/// Study of other images.
#[derive(Debug)]
pub struct AppliedStudy {
    /// The study, whose tiles are those of the readable images.
    pub study: Study,
    /// File and cause of each slide that cannot be read or cut. Slides without tissue have no tiles and are not listed.
    pub failed: Vec<(PathBuf, String)>,
}

/// Reads a study file for other images. Draws no parameter sets and does not open the images of the file.
///
/// # Errors
/// [`PrepareError`] if the study file is invalid.
pub fn load(file: &Path, images: &AppliedImages, registry: &Registry) -> Result<AppliedStudy, PrepareError> {
    let builtin = |name: &str| builtin::workflow(name, registry);
    let mut study = Study::load_for_images(file, images, registry, builtin, &builtin::BUILT_IN)?;
    let (mut tiles, mut failed) = (Vec::new(), Vec::new());
    if let Some(all) = study.slides.clone() {
        for slide in &all.files {
            let one = Slides { files: vec![slide.clone()], ..all.clone() };
            match slides::cut(file, &study, &one) {
                Ok((cut, _)) => tiles.extend(cut),
                Err(error) if matches!(*error.problem, SlideTilesProblem::NoTissue { .. }) => {}
                Err(error) => failed.push((slide.path.clone(), error.to_string())),
            }
        }
        study.cut(tiles);
    }
    slides::stain::fit(file, &mut study)?;
    Ok(AppliedStudy { study, failed })
}

/// Replaces values by those of settings, as in `G1=60`.
///
/// # Errors
/// [`SettingError`] names the setting and the allowed values.
pub fn set_values(
    values: &mut [Value],
    settings: &[String],
    workflow: &Workflow,
    registry: &Registry,
) -> Result<(), SettingError> {
    for setting in settings {
        let fail = |problem: String| SettingError { setting: setting.clone(), problem };
        let Some((name, text)) = setting.split_once('=') else {
            return Err(fail("NAME=VALUE is allowed, as in G1=60".to_owned()));
        };
        let Some(index) = workflow.parameters.iter().position(|parameter| parameter.name == name) else {
            let known: Vec<_> = workflow.parameters.iter().map(|p| p.name.as_str()).collect();
            return Err(fail(format!("parameter \"{name}\" is unknown; known are {}", known.join(", "))));
        };
        let value = Value::parse(text, workflow.parameters[index].value_type);
        values[index] = value.map_err(|error| fail(error.to_string()))?;
        check_value(values, index, workflow, registry).map_err(fail)?;
    }
    Ok(())
}

/// Checks that all operations accept the value of a parameter.
fn check_value(
    values: &[Value],
    index: usize,
    workflow: &Workflow,
    registry: &Registry,
) -> Result<(), String> {
    for (stage, task) in workflow.stages.iter().flat_map(|s| s.tasks.iter().map(move |t| (s, t))) {
        let Some(operation) = registry.get(&task.operation, task.version) else { continue };
        for (argument, parameter) in operation.arguments().iter().zip(stage.task_parameters(task)) {
            if parameter == index && !argument.accepts.contains(values[index]) {
                return Err(format!("{} is allowed", argument.accepts));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_for_images_and_files_taken_as_given() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["b.png", "a.JPG", "a_labels.png", ".c.png", "notes.txt", "s.svs", "t.tif", "odd.dat"] {
            fs::write(path(name), "no image").unwrap();
        }
        let found = find_images(&[place.path().to_owned(), path("b.png"), path("odd.dat")]).unwrap();
        assert_eq!(found.tiles, ["a.JPG", "b.png", "odd.dat", "t.tif"].map(path));
        assert_eq!(found.slides, [path("s.svs")]);
        let empty = tempfile::tempdir().unwrap();
        let error = find_images(&[empty.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("the folder has no image; files that end in png"), "{error}");
        let error = find_images(&[path("missing")]).unwrap_err().to_string();
        assert!(error.contains("missing: cannot be read"), "{error}");
    }

    #[test]
    fn settings_name_parameter_and_allowed_values() {
        let registry = builtin::registry();
        let workflow = builtin::workflow("nuclei", &registry).unwrap().unwrap();
        let mut values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let mut set = |setting: &str| set_values(&mut values, &[setting.to_owned()], &workflow, &registry);
        assert_eq!(set("G1=60"), Ok(()));
        assert!(set("G1").unwrap_err().to_string().starts_with("--set G1: NAME=VALUE is allowed"));
        assert!(set("H=1").unwrap_err().to_string().contains("parameter \"H\" is unknown; known are "));
        assert!(set("G1=x").is_err() && set("G1=-1").is_err());
        let place = workflow.parameters.iter().position(|parameter| parameter.name == "G1").unwrap();
        assert_eq!(values[place], Value::Integer(-1));
    }

    #[test]
    fn study_of_missing_images_applies_to_others() {
        let place = tempfile::tempdir().unwrap();
        let study = place.path().join("study.toml");
        let text = "[study]\nname = \"s\"\nworkflow = \"nuclei\"\n[input]\ntiles = [\"gone/*.png\"]\nreference = \"gone\"\n\
                    normalize = false\n[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 4\n[response]\nmetric = \"dice\"\n\
                    [parameters.G1]\nrange = [60, 100]\n";
        fs::write(&study, text).unwrap();
        let image = place.path().join("x.png");
        fs::write(&image, "").unwrap();
        let applied = load(&study, &AppliedImages::Tiles(vec![image.clone()]), &builtin::registry()).unwrap();
        assert_eq!(applied.study.tiles.iter().map(|tile| &tile.path).collect::<Vec<_>>(), [&image]);
        assert_eq!(applied.study.switched_off, ["normalize"]);
        // A slide that is none fails alone.
        let slides = AppliedImages::Slides {
            files: vec![image],
            magnification: None,
            tile_px: Some(512),
            halo_px: None,
        };
        let applied = load(&study, &slides, &builtin::registry()).unwrap();
        assert_eq!((applied.study.tiles.len(), applied.failed.len()), (0, 1));
        assert!(applied.failed[0].1.contains("x.png"), "{:?}", applied.failed);
    }
}
