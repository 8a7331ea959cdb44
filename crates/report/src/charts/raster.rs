//! Renders SVG drawings to PNG.
//!
//! The fonts are part of the program, so that machines without fonts draw the same picture.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::sync::Arc;
use thiserror::Error;

/// Pixels of the picture per unit of the drawing: sharp in print at its usual size.
const PIXELS_A_UNIT: f32 = 2.0;

/// Reason why a drawing cannot be rendered. This is an internal error.
#[derive(Debug, Error)]
pub enum RasterError {
    /// The drawing is no valid SVG.
    #[error("failed to read a drawing: {0}")]
    Drawing(#[from] resvg::usvg::Error),
    /// The drawing has no valid size.
    #[error("failed to draw a picture of {0} × {1} px")]
    Size(u32, u32),
    /// The picture cannot be encoded.
    #[error("failed to encode a picture: {0}")]
    Png(String),
}

/// Renders a drawing to the content of a PNG file.
///
/// # Errors
/// [`RasterError`] if the text is no SVG, has no valid size or cannot be encoded.
pub fn png(svg: &str) -> Result<Vec<u8>, RasterError> {
    let mut options = Options { font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size().scale_by(PIXELS_A_UNIT).unwrap_or(tree.size().to_int_size());
    let (width, height) = (size.width(), size.height());
    let mut picture = Pixmap::new(width, height).ok_or(RasterError::Size(width, height))?;
    resvg::render(&tree, Transform::from_scale(PIXELS_A_UNIT, PIXELS_A_UNIT), &mut picture.as_mut());
    picture.encode_png().map_err(|error| RasterError::Png(error.to_string()))
}
