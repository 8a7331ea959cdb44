//! The six tasks of level-set segmentation, l1 to l6, as operations.
//!
//! The method is that of Gao, Ratner, Zhu, Diprima, Kurc, Tannenbaum & Saltz, "Hierarchical nucleus segmentation in digital
//! pathology images" (2016). Each task is one file, and pixel loops are [kernels](crate::kernels). Differences from the
//! published program, chosen so that no order of pixels matters, are stated where they are.
//!
//! Otsu's level of l2 and the largest force of l3 and l6 are those of the whole image. A window of a slide therefore gives
//! another mask than the slide as one image.

mod contour;
mod declump;
mod hematoxylin;
mod min_size;
mod refine;
mod threshold;

pub(crate) use contour::CONTOUR;
pub(crate) use declump::DECLUMP;
pub(crate) use hematoxylin::HEMATOXYLIN;
pub(crate) use min_size::MIN_SIZE;
pub(crate) use refine::REFINE;
pub(crate) use threshold::THRESHOLD;

use crate::typed_operation::{argument, port};
use pleach_regions::ElementType;
use pleach_workflow::{Accepts, Argument, Port};

/// The gray image of hematoxylin that l2, l3 and l6 read.
const HEMATOXYLIN_IMAGE: Port = port("hematoxylin", ElementType::Gray8);

/// Weight of the curvature in l3 and l6. Forces are scaled by their largest, so weights far above 1 hide the image.
const CURVATURE_WEIGHT: Argument = argument("curvatureWeight", Accepts::Reals { low: 0.0, high: 1000.0 });

/// Side of a pixel, micrometers: 0.001 to 1,000 spans every microscope.
const MPP: Argument = argument("mpp", Accepts::Reals { low: 1e-3, high: 1e3 });

/// Accepts an area in square micrometers: up to 1,000 mm².
const AREA_UM2: Accepts = Accepts::Reals { low: 0.0, high: 1e9 };
