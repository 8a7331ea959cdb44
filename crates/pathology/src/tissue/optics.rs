//! Converts amounts of stain to pixels: absorption, optical blur, sensor noise.
//!
//! Absorption precedes the blur, so the blur acts on intensities, not on amounts of stain.

use super::appearance::TileAppearance;
use super::arithmetic::{exp2, exp10};
use super::layout::Layout;
use super::noise::white;
use super::paint::{Area, Band, Stains};
use pleach_regions::{Raster, ShapeError};

/// Rows painted at a time: limits memory to a few MB for the largest tile, while halos stay a tenth of the work.
const BAND_ROWS: usize = 64;
/// Half width of the blur, pixels: 2.7 times the largest standard deviation of [`TileAppearance::blur_px`].
const BLUR_REACH: usize = 3;
const TAPS: usize = 2 * BLUR_REACH + 1;
/// Optical density of glass and mounting medium: empty areas of real slides read about 245, not 255.
const GLASS: f32 = 0.016;

/// Renders the image of a tile, B, G, R. The blur repeats the pixels of the border.
pub(super) fn render(recipe: &TileAppearance, layout: &Layout, size_px: u32) -> Result<Raster, ShapeError> {
    let side = size_px as usize;
    let area = Area { left: 0, top: 0, width: side, height: side };
    Raster::new(size_px, size_px, 3, render_area(recipe, layout, area, 0, |_, _| 1.0))
}

/// Renders an area of a slide, B, G, R. A pixel does not depend on the area: the blur sees the pixels around it.
pub(super) fn render_part(
    recipe: &TileAppearance,
    layout: &Layout,
    area: Area,
    coverage: impl Fn(f32, f32) -> f32,
) -> Vec<u8> {
    render_area(recipe, layout, area, BLUR_REACH, coverage)
}

/// Renders an area whose blur sees `margin` columns on both sides of it.
fn render_area(
    recipe: &TileAppearance,
    layout: &Layout,
    area: Area,
    margin: usize,
    coverage: impl Fn(f32, f32) -> f32,
) -> Vec<u8> {
    let taps = gaussian(recipe.blur_px);
    let mut data = Vec::with_capacity(3 * area.width * area.height);
    for row in (0..area.height).step_by(BAND_ROWS) {
        let rows = BAND_ROWS.min(area.height - row);
        let shown = Area { top: area.top + row as i32, height: rows, ..area };
        let painted = Area {
            left: area.left - margin as i32,
            top: shown.top - BLUR_REACH as i32,
            width: area.width + 2 * margin,
            height: rows + 2 * BLUR_REACH,
        };
        let band = Band::paint(recipe, layout, painted, &coverage);
        let light: Vec<[f32; 3]> = band.stains.iter().map(|stains| transmit(recipe, stains)).collect();
        expose(recipe, &blur_rows(&light, painted.width, margin, &taps), shown, &taps, &mut data);
    }
    data
}

/// Returns the transmitted light by Beer and Lambert's law: B, G, R, 0 to 255.
fn transmit(recipe: &TileAppearance, stains: &Stains) -> [f32; 3] {
    [2, 1, 0].map(|channel| {
        let density: f32 =
            stains.iter().zip(&recipe.vectors).map(|(amount, vector)| amount * vector[channel]).sum();
        255.0 * exp10(-(density + GLASS))
    })
}

/// Returns the weights of a Gaussian, which sum to 1.
fn gaussian(sigma_px: f32) -> [f32; TAPS] {
    let mut taps = [0.0; TAPS];
    for (i, tap) in taps.iter_mut().enumerate() {
        let distance = (i as f32 - BLUR_REACH as f32) / sigma_px;
        *tap = exp2(-0.5 * std::f32::consts::LOG2_E * distance * distance);
    }
    let sum: f32 = taps.iter().sum();
    taps.map(|tap| tap / sum)
}

/// Blurs each row, and drops `margin` columns on both sides. The border repeats its pixel.
fn blur_rows(light: &[[f32; 3]], width: usize, margin: usize, taps: &[f32; TAPS]) -> Vec<[f32; 3]> {
    let mut blurred = Vec::with_capacity(light.len());
    for row in light.chunks_exact(width) {
        for x in margin..width - margin {
            let mut sum = [0.0; 3];
            for (i, tap) in taps.iter().enumerate() {
                let pixel = row[(x + i).saturating_sub(BLUR_REACH).min(width - 1)];
                (0..3).for_each(|c| sum[c] += tap * pixel[c]);
            }
            blurred.push(sum);
        }
    }
    blurred
}

/// Blurs columns, adds noise and rounds. `light` has [`BLUR_REACH`] more rows above and below
/// than the area.
fn expose(
    recipe: &TileAppearance,
    light: &[[f32; 3]],
    Area { left, top, width, height }: Area,
    taps: &[f32; TAPS],
    data: &mut Vec<u8>,
) {
    // The blue channel of a sensor is the noisiest, the green the least noisy.
    let sources =
        [(11, 1.3), (12, 0.9), (13, 1.0)].map(|(n, gain)| (recipe.seed ^ n, gain * recipe.camera_noise));
    for y in 0..height {
        for x in 0..width {
            let mut sum = [0.0; 3];
            for (i, tap) in taps.iter().enumerate() {
                let pixel = light[(y + i) * width + x];
                (0..3).for_each(|c| sum[c] += tap * pixel[c]);
            }
            for (value, (seed, deviation)) in sum.into_iter().zip(sources) {
                let noise = deviation * white(left + x as i32, top + y as i32, seed);
                data.push((value + noise + 0.5).clamp(0.0, 255.0) as u8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blur_keeps_the_mean_and_flat_places() {
        let taps = gaussian(0.9);
        assert!((taps.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        let flat = vec![[10.0, 20.0, 30.0]; 12];
        for pixel in blur_rows(&flat, 4, 0, &taps) {
            assert!((pixel[2] - 30.0).abs() < 1e-3);
        }
    }
}
