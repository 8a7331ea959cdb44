//! Image operations on H&E tiles: stain normalization, the seven tasks of nuclear segmentation, the six of level-set
//! segmentation, and the comparison of masks and their objects (hops 6 and 8 of a study). The crate also reads and writes tiles and masks.
//!
//! Callers find operations by name in the [`registry`] and run them through the [`Operation`] trait. The [`kernels`]
//! are plain functions on planes of pixels. The crate starts no threads and does not depend on studies, workers or keys.
//! It is the only crate that links OpenCV.

pub mod image_io;
pub mod kernels;
pub mod objects;
pub mod outline;
pub mod tissue;

mod compare;
mod features;
mod levelset;
mod normalize;
mod nuclei;
mod typed_operation;

pub use compare::both_empty_column;
pub use normalize::ColorCounts;
use pleach_workflow::{Operation, Registry};
use std::sync::Arc;

/// Descriptors of the reference application, by file name, the workflow's first.
pub const NUCLEI_DESCRIPTORS: [(&str, &str); 5] = [
    ("workflow.json", include_str!("../descriptors/nuclei/workflow.json")),
    ("normalization.json", include_str!("../descriptors/nuclei/normalization.json")),
    ("segmentation.json", include_str!("../descriptors/nuclei/segmentation.json")),
    ("comparison.json", include_str!("../descriptors/nuclei/comparison.json")),
    ("object-comparison.json", include_str!("../descriptors/nuclei/object-comparison.json")),
];

/// Descriptors of level-set segmentation, by file name, the workflow's first. Normalization and comparison are those of
/// [`NUCLEI_DESCRIPTORS`].
pub const LEVELSET_DESCRIPTORS: [(&str, &str); 5] = [
    ("workflow.json", include_str!("../descriptors/levelset/workflow.json")),
    NUCLEI_DESCRIPTORS[1],
    ("segmentation.json", include_str!("../descriptors/levelset/segmentation.json")),
    NUCLEI_DESCRIPTORS[3],
    NUCLEI_DESCRIPTORS[4],
];

/// Descriptors of the reference application with its feature stage, by file name, the workflow's first.
pub const NUCLEI_FEATURES_DESCRIPTORS: [(&str, &str); 7] = [
    ("workflow.json", include_str!("../descriptors/nuclei-features/workflow.json")),
    NUCLEI_DESCRIPTORS[1],
    NUCLEI_DESCRIPTORS[2],
    NUCLEI_DESCRIPTORS[3],
    NUCLEI_DESCRIPTORS[4],
    ("tile-planes.json", include_str!("../descriptors/nuclei-features/tile-planes.json")),
    ("features.json", include_str!("../descriptors/nuclei-features/features.json")),
];

/// Returns every operation of this crate: `nuclei.normalize` and `nuclei.normalize-fitted`, the seven tasks `nuclei.*`, the six tasks `levelset.*`, `compare.masks`
/// and `compare.objects`, the operations `features.*`, and variants of comparisons and summaries for windows with a halo
/// (`compare.core-masks`, `compare.owned-objects`, `features.core-summary`) and for regions of interest (`compare.counted-masks`,
/// `compare.counted-objects`).
#[must_use]
pub fn registry() -> Registry {
    let operations = [
        normalize::FITTED,
        nuclei::BACKGROUND,
        nuclei::RECONSTRUCT,
        nuclei::CANDIDATES,
        nuclei::CANDIDATE_AREA,
        nuclei::NUCLEI,
        nuclei::SEPARATE,
        nuclei::FINAL_AREA,
        levelset::HEMATOXYLIN,
        levelset::THRESHOLD,
        levelset::CONTOUR,
        levelset::MIN_SIZE,
        levelset::DECLUMP,
        levelset::REFINE,
        compare::MASKS,
        compare::OBJECTS,
        compare::CORE_MASKS,
        compare::OWNED_OBJECTS,
        features::CHANNELS_OF_TILE,
        features::GRADIENT,
        features::SOBEL,
        features::CANNY,
        features::LABELS,
        features::SHAPE,
        features::OUTLINES,
        features::RINGS,
        features::NUCLEUS_STATISTICS,
        features::RING_STATISTICS,
        features::TEXTURE,
        features::COLLECT,
        features::SUMMARY,
        features::CORE_SUMMARY,
        compare::COUNTED_MASKS,
        compare::COUNTED_OBJECTS,
    ];
    let typed = operations.into_iter().map(|operation| Arc::new(operation) as Arc<dyn Operation>);
    Registry::new(typed.chain([Arc::new(normalize::Normalize) as Arc<dyn Operation>]))
}
