//! Segments the images of a study with one parameter set.

use crate::geometry::Geometry;
use crate::objects::{ExportedObject, owned_objects};
use pleach_pathology::image_io::{self, ImageFileError};
use pleach_regions::{DataRegion, ElementType, Resolution, ResolutionError, WrongElement};
use pleach_slides::{Slide, SlideError};
use pleach_study::single_run::{self, ReplayError, SingleRun, TaskOutput};
use pleach_study::slides;
use pleach_workflow::{Real, Registry, Study, Value, Workflow};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Image of a study: a tile or a slide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyImage {
    /// Name of its files: letters that every file system allows. Names are unique.
    pub name: String,
    /// The image file.
    pub path: PathBuf,
    /// Whether it is a slide.
    pub is_slide: bool,
    /// Its tiles among those of the study. Empty for a slide without tissue.
    pub tiles: Vec<usize>,
}

/// An image cannot be segmented.
#[derive(Debug, Error)]
pub enum SegmentationError {
    /// The image cannot be read.
    #[error(transparent)]
    Tile(#[from] ImageFileError),
    /// The image has more dimensions than files of segmentations.
    #[error("{}: images of more dimensions are not exported; tiles and slides are allowed", .0.display())]
    Volume(PathBuf),
    /// The slide cannot be read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// A task failed.
    #[error(transparent)]
    Run(#[from] ReplayError),
    /// The segmentation is neither a mask nor a label map.
    #[error(transparent)]
    Region(#[from] WrongElement),
    /// The segmentation has another size than its image.
    #[error(
        "the segmentation has {} x {} px, its image {} x {} px; the size of the image is allowed",
        found[0], found[1], image[0], image[1]
    )]
    Size {
        /// Size of the segmentation.
        found: [u32; 2],
        /// Size of the image.
        image: [u32; 2],
    },
    /// The calibration is out of range.
    #[error(transparent)]
    Calibration(#[from] ResolutionError),
    /// An operation panicked.
    #[error("{0}")]
    Panicked(String),
}

/// Task output to export is unknown.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The workflow has no reference, and no task is named.
    #[error(
        "workflow {workflow} compares nothing with a reference, so a task must be named; {tasks} are allowed"
    )]
    NoReference {
        /// Name of the workflow.
        workflow: String,
        /// Names of the tasks that write masks or label maps.
        tasks: String,
    },
    /// The task is unknown, or writes no mask or label map.
    #[error("{name}: not a task of workflow {workflow} that writes a mask or labels; {tasks} are allowed")]
    NoTask {
        /// The given name.
        name: String,
        /// Name of the workflow.
        workflow: String,
        /// Names of the tasks that write masks or label maps.
        tasks: String,
    },
}

/// Returns the output to export: that of a task, or else the output that is compared with the reference.
///
/// # Errors
/// [`OutputError`] lists the tasks that write masks or label maps.
pub fn output_of(workflow: &Workflow, task: Option<&str>) -> Result<TaskOutput, OutputError> {
    let is_object = |element: ElementType| matches!(element, ElementType::Mask | ElementType::Labels);
    let mut outputs = Vec::new();
    for (stage, declared) in workflow.stages.iter().enumerate() {
        for (place, task) in declared.tasks.iter().enumerate() {
            let mut writes = task.writes.iter();
            if let Some(output) = writes.position(|region| is_object(region.element)) {
                outputs.push((task.name.as_str(), TaskOutput { stage, task: place, output }));
            }
        }
    }
    let tasks = || {
        let mut names: Vec<&str> = Vec::new();
        outputs.iter().for_each(|(name, _)| {
            if !names.contains(name) {
                names.push(name)
            }
        });
        names.join(", ")
    };
    let workflow_name = || workflow.name.clone();
    match (task, &workflow.reference) {
        (Some(name), _) => {
            let found = outputs.iter().find(|(known, _)| *known == name).map(|(_, output)| *output);
            let no_task =
                || OutputError::NoTask { name: name.to_owned(), workflow: workflow_name(), tasks: tasks() };
            found.ok_or_else(no_task)
        }
        (None, Some(own)) => Ok(single_run::of_stage(workflow, own.stage, own.output)),
        (None, None) => Err(OutputError::NoReference { workflow: workflow_name(), tasks: tasks() }),
    }
}

/// Returns the images of a study: its tiles, or its slides. Avoids the names in `taken`, and adds those of the images.
#[must_use]
pub fn images_of(study: &Study, taken: &mut Vec<String>) -> Vec<StudyImage> {
    let mut unique = |name: &str| {
        let name = plain(name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.unwrap_or(name);
        taken.push(free.clone());
        free
    };
    match &study.slides {
        None => {
            let tiles = study.tiles.iter().enumerate();
            let image = |(tile, file): (usize, &pleach_workflow::StudyTile)| StudyImage {
                name: unique(&file.name),
                path: file.path.clone(),
                is_slide: false,
                tiles: vec![tile],
            };
            tiles.map(image).collect()
        }
        Some(slides) => {
            let image = |file: &pleach_workflow::StudyTile| StudyImage {
                name: unique(&file.name),
                path: file.path.clone(),
                is_slide: true,
                tiles: (0..study.tiles.len()).filter(|tile| study.tiles[*tile].path == file.path).collect(),
            };
            slides.files.iter().map(image).collect()
        }
    }
}

/// Replaces characters that some file systems reject.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ') { c } else { '_' };
    let name: String = name.chars().map(letter).collect();
    // Neither hidden nor a way to another folder.
    if name.starts_with('.') { format!("_{name}") } else { name }
}

/// One parameter set on the images of a study.
pub struct Segmentation<'a> {
    /// Workflow of the study.
    pub workflow: &'a Workflow,
    /// Operations of the workflow.
    pub registry: &'a Registry,
    /// A value for each parameter of the workflow.
    pub values: &'a [Value],
    /// Mask or label map to export.
    pub output: TaskOutput,
    /// Looks up the output of a task on a tile of the study, for example in a task cache.
    pub cached: &'a (dyn Fn(usize, TaskOutput) -> Option<DataRegion> + Sync),
    /// Counts the tasks that run.
    pub tasks_executed: &'a AtomicU64,
    /// Micrometers per slide pixel, in place of those that the image states.
    pub microns_a_px: Option<f64>,
}

impl Segmentation<'_> {
    /// Returns the size and calibration of an image, from its header.
    ///
    /// # Errors
    /// [`SegmentationError`] if the header cannot be read.
    pub fn geometry(&self, study: &Study, image: &StudyImage) -> Result<Geometry, SegmentationError> {
        if let Some(microns) = self.microns_a_px {
            Resolution::from_microns_per_px(microns)?;
        }
        if study.volumes.is_some() {
            return Err(SegmentationError::Volume(image.path.clone()));
        }
        if !image.is_slide {
            let size = image_io::probe(&image.path)?;
            return Ok(Geometry {
                width_px: size.width_px,
                height_px: size.height_px,
                slide_px_a_px: 1.0,
                microns_a_slide_px: self.microns_a_px,
            });
        }
        let slide = Slide::open(&image.path)?;
        let asked = study.slides.as_ref().and_then(|slides| slides.magnification);
        let scale = slide.scale(asked.map(Real::get))?;
        Ok(Geometry {
            width_px: scale.width_px,
            height_px: scale.height_px,
            slide_px_a_px: slide.levels()[scale.level].downsample * scale.level_px_a_px,
            microns_a_slide_px: self
                .microns_a_px
                .or_else(|| slide.resolution().map(Resolution::microns_per_px)),
        })
    }

    /// Returns the objects that a tile of the study owns.
    ///
    /// # Errors
    /// [`SegmentationError`] if the tile cannot be read, or a task fails.
    pub fn objects(
        &self,
        study: &Study,
        tile: usize,
        with_polygons: bool,
    ) -> Result<Vec<ExportedObject>, SegmentationError> {
        let file = &study.tiles[tile];
        if let Some(region) = (self.cached)(tile, self.output) {
            return Ok(owned_objects(&region, file.slide.as_ref(), with_polygons)?);
        }
        let image = match &file.slide {
            None => image_io::read_bgr(&file.path)?,
            Some(part) => DataRegion::Bgr8(slides::read(&file.path, part)?),
        };
        let size = size_of(&image);
        let run = SingleRun {
            workflow: self.workflow,
            registry: self.registry,
            values: self.values,
            tile: Arc::new(image),
            stain: slides::fit_table(study, tile).map(Arc::new),
            reference: None,
        };
        let known = |place: TaskOutput| (self.cached)(tile, place);
        let regions = run.run_with(&[self.output], &known, |_, _| {
            self.tasks_executed.fetch_add(1, Ordering::Relaxed);
        })?;
        let [region] = &regions[..] else { return Ok(Vec::new()) };
        match (size_of(region), size) {
            (Some(found), Some(image)) if found != image => Err(SegmentationError::Size { found, image }),
            _ => Ok(owned_objects(region, file.slide.as_ref(), with_polygons)?),
        }
    }
}

fn size_of(region: &DataRegion) -> Option<[u32; 2]> {
    match region {
        DataRegion::Labels(map) => Some([map.width_px(), map.height_px()]),
        DataRegion::Mask(raster) | DataRegion::Bgr8(raster) => Some([raster.width_px(), raster.height_px()]),
        _ => None,
    }
}
