//! Image operations on H&E tiles: stain normalization, the seven tasks of nuclear segmentation, and the comparison of
//! masks and their objects (hops 6 and 8 of a study). The crate also reads and writes tiles and masks.
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

/// Returns every operation of this crate: `nuclei.normalize`, the seven tasks `nuclei.*`, `compare.masks` and
/// `compare.objects`, and the variants of the last two for windows with a halo, `compare.core-masks` and
/// `compare.owned-objects`, and `nuclei.normalize-fitted`, the first with fitted values.
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
        compare::MASKS,
        compare::OBJECTS,
        compare::CORE_MASKS,
        compare::OWNED_OBJECTS,
    ];
    let typed = operations.into_iter().map(|operation| Arc::new(operation) as Arc<dyn Operation>);
    Registry::new(typed.chain([Arc::new(normalize::Normalize) as Arc<dyn Operation>]))
}
