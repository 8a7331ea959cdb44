//! Errors of preparing a study. Each message is one line with the file, the field, the value and the allowed values.

use crate::Defect;
use crate::references::ReferenceError;
use crate::volumes::VolumesError;
use pleach_pathology::image_io::ImageFileError;
use pleach_planner::PlanningError;
use pleach_planner::memory_limit::InsufficientMemory;
use pleach_regions::PartitionError;
use pleach_sensitivity::sampling::SampleError;
use pleach_sensitivity::sampling::fast::FastError;
use pleach_sensitivity::sampling::morris::MorrisError;
use pleach_sensitivity::sampling::points::PointsError;
use pleach_sensitivity::sampling::saltelli::SaltelliError;
use pleach_sensitivity::table::TableError;
use pleach_slides::SlideError;
use pleach_workflow::{Accepts, StudyError, UnitsError, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a study cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The study file is invalid.
    #[error("{0}")]
    File(#[from] StudyError),
    /// The parameter sets of a study are given, but the study draws them itself.
    #[error(
        "--parameter-sets {}: {} has {part}, whose parameter sets are drawn; a study without is allowed",
        table.display(), file.display()
    )]
    DrawsItsOwn {
        /// Table of parameter sets.
        table: PathBuf,
        /// The study file.
        file: PathBuf,
        /// Part of the study file that draws parameter sets.
        part: &'static str,
    },
    /// The parameter sets do not fit into memory.
    #[error("{}: {section}: {cause}", file.display())]
    Memory {
        /// The study file.
        file: PathBuf,
        /// Section of the study file that asks for them.
        section: String,
        /// Needed and remaining memory.
        #[source]
        cause: Box<InsufficientMemory>,
    },
    /// The method cannot draw its parameter sets.
    #[error("{}: {section}: {cause}", file.display())]
    Sampling {
        /// The study file.
        file: PathBuf,
        /// Section of the study file with the method.
        section: String,
        /// Error of the sampling method.
        #[source]
        cause: Box<SamplingError>,
    },
    /// A table of parameter sets cannot be read.
    #[error("{}: failed to read: {cause}", table.display())]
    UnreadableTable {
        /// The table.
        table: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A table of parameter sets is invalid.
    #[error("{}: {cause}", table.display())]
    Table {
        /// The table.
        table: PathBuf,
        /// Location, value and allowed values.
        #[source]
        cause: TableError,
    },
    /// The parameter sets that a client sent differ from those that the method draws.
    #[error("study {study}: its parameter sets are not those of its method and seed")]
    OtherParameterSets {
        /// Name of the study.
        study: String,
    },
    /// An operation refuses a value.
    #[error(
        "{}: evaluation {evaluation}: parameter {parameter} = {value}: operation {operation} accepts {accepted}",
        file.display()
    )]
    Value {
        /// File that defines the parameter sets.
        file: PathBuf,
        /// Number of the evaluation; 0 is the defaults.
        evaluation: usize,
        /// Name of the parameter.
        parameter: String,
        /// Its value.
        value: Value,
        /// Name of the operation.
        operation: String,
        /// Values that the operation accepts.
        accepted: Box<Accepts>,
    },
    /// A stopping rule allows fewer evaluations than the first sample has.
    #[error(
        "{}: phase[{phase}].until.max_evaluations: {given} is not allowed; allowed: {first} or more, the evaluations that \
         the sample begins with",
        file.display()
    )]
    MaxEvaluations {
        /// The study file.
        file: PathBuf,
        /// Number of the phase, from 1.
        phase: usize,
        /// Value of the field.
        given: usize,
        /// Evaluations of the first sample.
        first: usize,
    },
    /// A slide cannot be split into tiles.
    #[error("{0}")]
    Slides(#[from] SlideTilesError),
    /// An image of more dimensions cannot be cut into blocks.
    #[error("{0}")]
    Volumes(#[from] VolumesError),
    /// The stain normalization cannot be fitted.
    #[error("{}: input.{field}: {cause}", file.display())]
    StainFit {
        /// The study file.
        file: PathBuf,
        /// Field of `[input]`.
        field: &'static str,
        /// The image and its problem.
        cause: String,
    },
    /// The tiles do not have the bounds that a stage needs.
    #[error("{}: {cause}", file.display())]
    Units {
        /// The study file.
        file: PathBuf,
        /// The stage, its bounds and the allowed ones.
        #[source]
        cause: Box<UnitsError>,
    },
    /// A slide is listed as a tile.
    #[error(
        "{}: input.tiles: {slide}: is a slide, and no tile; slides = [\"{slide}\"] in place of tiles cuts it into tiles",
        file.display(), slide = slide.display()
    )]
    SlideAsTile {
        /// The study file.
        file: PathBuf,
        /// The slide.
        slide: PathBuf,
    },
    /// A reference cannot be read, or does not match its tile.
    #[error("{0}")]
    Reference(#[from] ImageFileError),
    /// The annotations of a slide cannot be read.
    #[error("{0}")]
    SlideReference(#[from] ReferenceError),
    /// Names of the study select no annotations.
    #[error("{0}")]
    Selection(#[from] SelectionError),
    /// A reference has too many annotations outside its tile.
    #[error("{0}")]
    Annotations(#[from] Box<AnnotationsError>),
    /// The only tile cannot be read.
    #[error("{0}")]
    UnreadableTile(String),
    /// No tile can be read.
    #[error("{first}; none of the {tiles} tiles can be read")]
    UnreadableTiles {
        /// Message about the first tile.
        first: String,
        /// Number of tiles.
        tiles: usize,
    },
    /// The study cannot be planned.
    #[error("{0}")]
    Planning(#[from] PlanningError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Error of a sampling method.
#[derive(Debug, Error)]
pub enum SamplingError {
    /// Error of Morris' method.
    #[error("{0}")]
    Morris(#[from] MorrisError),
    /// Error of a point sequence.
    #[error("{0}")]
    Points(#[from] PointsError),
    /// Error of mapping points to parameter values.
    #[error("{0}")]
    Sample(#[from] SampleError),
    /// Error of the Fourier amplitude sensitivity test.
    #[error("{0}")]
    Fast(#[from] FastError),
    /// Error of Saltelli's design.
    #[error("{0}")]
    Saltelli(#[from] SaltelliError),
}

/// A slide cannot be split into tiles.
#[derive(Debug, Error)]
#[error("{}: input.{}: {problem}", file.display(), problem.field())]
pub struct SlideTilesError {
    /// The study file.
    pub file: PathBuf,
    /// The problem, boxed to keep results small.
    #[source]
    pub problem: Box<SlideTilesProblem>,
}

/// Reason why a slide cannot be split into tiles.
#[derive(Debug, Error)]
pub enum SlideTilesProblem {
    /// A file is no slide.
    #[error("{}: is no slide; SVS, NDPI, SCN, BIF, SVSLIDE, MIRAX, VMS, VMU and tiled pyramidal TIFF are allowed", .0.display())]
    NoSlide(PathBuf),
    /// A slide cannot be read.
    #[error("{0}")]
    Unreadable(#[source] SlideError),
    /// A slide does not have the magnification.
    #[error("{0}")]
    Magnification(#[source] SlideError),
    /// A slide has no level that suffices for an overview.
    #[error("{0}; false is allowed")]
    NoOverview(#[source] SlideError),
    /// The tiles do not fit a slide.
    #[error("{0}")]
    Partition(#[from] PartitionError),
    /// All slides together have too many tiles.
    #[error("{given} is not allowed; allowed: what makes no more than {max} tiles of all slides")]
    TooManyTiles {
        /// Side of a tile in pixels, as given.
        given: u32,
        /// Maximum number of tiles.
        max: u64,
    },
    /// A slide's annotations cannot be read.
    #[error("{0}")]
    Annotations(#[from] ReferenceError),
    /// No slide has a region of interest.
    #[error(
        "no annotation with the class or name {} is on {}", names.join(" or "),
        if *slides == 1 { "the slide".to_owned() } else { format!("any of the {slides} slides") }
    )]
    NoRegions {
        /// Number of slides.
        slides: usize,
        /// Names of the regions.
        names: Vec<String>,
    },
    /// A region of interest is too large for one tile.
    #[error(
        "\"regions\" is not allowed: the region of interest of {}, {} x {} px at ({}, {}), is larger than a tile may be, {max} px a \
         side; a side in pixels is allowed", path.display(), core[2], core[3], core[0], core[1]
    )]
    RegionTooLarge {
        /// The slide.
        path: PathBuf,
        /// Left, top, width and height of its bounding box, pixels.
        core: [u32; 4],
        /// Largest side of a tile, pixels.
        max: u32,
    },
    /// Two tiles of regions of interest would count the same pixels.
    #[error(
        "\"regions\" is not allowed: the bounding boxes of two regions of interest of {} overlap, at ({}, {}) and at ({}, {}); a \
         side in pixels is allowed", path.display(), corners[0][0], corners[0][1], corners[1][0], corners[1][1]
    )]
    RegionsOverlap {
        /// The slide.
        path: PathBuf,
        /// Left and top of both, pixels.
        corners: [[u32; 2]; 2],
    },
    /// No tile shows tissue.
    #[error(
        "no tile of {} of study {study} shows tissue; skip_background = false takes all",
        if *slides == 1 { "the slide".to_owned() } else { format!("the {slides} slides") }
    )]
    NoTissue {
        /// Number of slides.
        slides: usize,
        /// Name of the study.
        study: String,
    },
}

impl SlideTilesProblem {
    /// Returns the field of `[input]` with the problem.
    fn field(&self) -> &'static str {
        match self {
            Self::NoSlide(_) | Self::Unreadable(_) | Self::NoTissue { .. } => "slides",
            Self::Magnification(_) => "magnification",
            Self::NoOverview(_) => "skip_background",
            Self::Partition(_)
            | Self::TooManyTiles { .. }
            | Self::RegionTooLarge { .. }
            | Self::RegionsOverlap { .. } => "tile",
            Self::Annotations(_) => "reference",
            Self::NoRegions { .. } => "annotations.regions",
        }
    }
}

/// A reference has too many annotations outside its tile.
#[derive(Debug, Error)]
#[error(
    "{}: input.annotations_outside: {}: {outside} of {objects} annotations ({}) lie outside {of} {}{}; up to {} of a file \
     are allowed; annotations_outside = {allowing} in [input] allows these",
    file.display(), reference.display(), percent(*outside as f64 / (*objects).max(1) as f64), tile.display(),
    others_text(*others), percent(*allowed)
)]
pub struct AnnotationsError {
    /// The study file.
    pub file: PathBuf,
    /// The first such reference.
    pub reference: PathBuf,
    /// `tile` or `slide`.
    pub of: &'static str,
    /// Its tile or slide.
    pub tile: PathBuf,
    /// Its annotations outside the tile.
    pub outside: usize,
    /// All its annotations.
    pub objects: usize,
    /// Number of further references with too many.
    pub others: usize,
    /// Allowed share, from 0 to 1.
    pub allowed: f64,
    /// Smallest share that allows all references of the study, from 0 to 1.
    pub allowing: f64,
}

/// The annotations of all files have none of a name.
#[derive(Debug, Error)]
pub enum SelectionError {
    /// A class or region that no annotation has.
    #[error(
        "{}: input.annotations.{field}: no annotation has the {} \"{name}\"; the classes of all files are {}",
        file.display(), if *field == "classes" { "class" } else { "class or name" }, classes_text(classes)
    )]
    NoSuchClass {
        /// The study file.
        file: PathBuf,
        /// `classes` or `regions`.
        field: &'static str,
        /// The name.
        name: String,
        /// Number of annotations of each class. Those without a class have an empty name.
        classes: BTreeMap<String, usize>,
    },
    /// No tile has a region of interest.
    #[error(
        "{}: input.annotations.regions: none of the {tiles} tiles has a pixel within {}",
        file.display(), names.join(", ")
    )]
    NoRegions {
        /// The study file.
        file: PathBuf,
        /// Number of tiles.
        tiles: usize,
        /// Names of the regions.
        names: Vec<String>,
    },
}

/// Maximum number of classes in a message.
const MAX_CLASSES: usize = 20;

fn classes_text(classes: &BTreeMap<String, usize>) -> String {
    if classes.is_empty() {
        return "none: no file has an annotation with an area".to_owned();
    }
    let text = |(name, count): (&String, &usize)| match name.as_str() {
        "" => format!("no class ({count})"),
        name => format!("\"{name}\" ({count})"),
    };
    let mut texts: Vec<String> = classes.iter().take(MAX_CLASSES).map(text).collect();
    if classes.len() > MAX_CLASSES {
        texts.push(format!("{} more", classes.len() - MAX_CLASSES));
    }
    texts.join(", ")
}

fn others_text(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(", and {others} more files have too many"),
    }
}

/// Returns a share as text in percent.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e3).round() / 10.0)
}
