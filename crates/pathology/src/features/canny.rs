//! Canny's edges of interleaved channels, by OpenCV.

use super::CHANNELS;
use crate::kernels::morphology::one_thread;
use opencv::core::Mat;
use opencv::imgproc;

/// Thresholds of the hysteresis on the sum of both absolute differences, and the side of Sobel's kernels.
const LOW: f64 = 70.0;
const HIGH: f64 = 90.0;
const APERTURE_PX: i32 = 5;

/// Returns 255 at edge pixels of each channel, else 0.
///
/// # Errors
/// Returns OpenCV's error, for example when memory runs out.
pub(super) fn edges(plane: &[u8], width: usize) -> opencv::Result<Vec<u8>> {
    one_thread()?;
    let pixels = plane.len() / CHANNELS;
    let side = |length: usize| {
        i32::try_from(length)
            .map_err(|_| opencv::Error::new(opencv::core::StsOutOfRange, "side beyond 31 bits"))
    };
    let (rows, columns) = (side(pixels / width)?, side(width)?);
    let mut edges = vec![0; plane.len()];
    let (mut channel, mut found) = (vec![0; pixels], vec![0; pixels]);
    for index in 0..CHANNELS {
        for (value, pixel) in channel.iter_mut().zip(plane.chunks_exact(CHANNELS)) {
            *value = pixel[index];
        }
        let from = Mat::new_rows_cols_with_bytes::<u8>(rows, columns, &channel)?;
        let mut to = Mat::new_rows_cols_with_bytes_mut::<u8>(rows, columns, &mut found)?;
        imgproc::canny(&from, &mut to, LOW, HIGH, APERTURE_PX, false)?;
        drop(to);
        for (pixel, value) in edges.chunks_exact_mut(CHANNELS).zip(&found) {
            pixel[index] = *value;
        }
    }
    Ok(edges)
}
