//! Appearance of one tile as a whole: stain, focus, density and texture.
//!
//! The ranges come from the 22 glioma tiles (14 `gbm40`, 8 `lgg_tcga`) of the project's annotated data: stain vectors
//! by Macenko's method, stain amounts inside and outside the annotated nuclei, counts and areas of the nuclei. They are
//! a little narrower than measured, and adjusted until every tile of 512 px was within the range of the real tiles in
//! mean and deviation of each channel, nuclear density and quartiles of nuclear area (`tests/tissue.rs`).

use super::arithmetic::Draw;
use super::noise::Field;

/// Optical densities of unit hematoxylin in R, G, B: the mean of 11 tiles.
const HAEMATOXYLIN: [f32; 3] = [0.618, 0.735, 0.286];
/// Optical densities of unit eosin in R, G, B: the mean of 11 tiles. Batches of eosin differ more than those of
/// hematoxylin.
const EOSIN: [f32; 3] = [0.30, 0.885, 0.345];
/// Hemoglobin with eosin: almost no absorption of red, so that R/G of a cell passes 5 at amounts around 0.95.
const BLOOD: [f32; 3] = [0.13, 0.87, 0.52];
/// Standard deviations between slides of the components of the three vectors.
const VECTOR_DEVIATIONS: [f32; 3] = [0.012, 0.024, 0.012];

/// Properties of one synthetic slide.
#[derive(Clone, Debug)]
pub(super) struct TileAppearance {
    /// Optical densities in R, G, B of one unit of hematoxylin, eosin and blood.
    pub(super) vectors: [[f32; 3]; 3],
    /// Median hematoxylin of the nuclei.
    pub(super) nuclear_haematoxylin: f32,
    /// Mean hematoxylin of the stroma.
    pub(super) stroma_haematoxylin: f32,
    /// Mean eosin of the stroma.
    pub(super) stroma_eosin: f32,
    /// Relative amplitude of the slow unevenness of each stain.
    pub(super) unevenness: f32,
    /// Median nuclear area, pixels.
    pub(super) area_px: f32,
    /// Standard deviation of the logarithm of nuclear areas.
    pub(super) area_sigma: f32,
    /// Nuclei per 1024 × 1024 pixels.
    pub(super) nuclei_per_mpx: f32,
    /// Share of nuclei placed against an existing nucleus.
    pub(super) clustering: f32,
    /// Share of nuclei with a gap beside them.
    pub(super) gap_share: f32,
    /// Vessels and bleedings per 1024 × 1024 pixels.
    pub(super) vessels_per_mpx: f32,
    /// Small round holes per 1024 × 1024 pixels.
    pub(super) vacuoles_per_mpx: f32,
    /// Threshold of a field of unit deviation above which the tissue opens.
    pub(super) cleft_threshold: f32,
    /// Share of the stroma that is loose and pale, 0 to 1.
    pub(super) looseness: f32,
    /// Visibility of fibers, and alignment of nuclei with them, 0 to 1.
    pub(super) fibrousness: f32,
    /// Standard deviation of the optical blur, pixels.
    pub(super) blur_px: f32,
    /// Standard deviation of the camera's noise, gray levels.
    pub(super) camera_noise: f32,
    /// The course of the fibers.
    pub(super) fibers: Fibers,
    /// Seed of every field except the fibers'.
    pub(super) seed: u32,
}

impl TileAppearance {
    /// Draws the properties of a slide.
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let mut vary = |vector: [f32; 3], deviation: f32| {
            vector.map(|density| density + deviation * draw.normal().clamp(-1.7, 1.7))
        };
        let [haematoxylin, eosin, blood] = VECTOR_DEVIATIONS;
        let vectors = [vary(HAEMATOXYLIN, haematoxylin), vary(EOSIN, eosin), vary(BLOOD, blood)];
        // A thick section holds more of every stain.
        let thickness = draw.range(0.95, 1.06);
        Self {
            vectors,
            nuclear_haematoxylin: thickness * draw.range(0.92, 1.08),
            stroma_haematoxylin: thickness * draw.range(0.11, 0.175),
            stroma_eosin: thickness * draw.range(0.255, 0.375),
            unevenness: draw.range(0.05, 0.10),
            area_px: draw.range(405.0, 495.0),
            area_sigma: draw.range(0.38, 0.46),
            nuclei_per_mpx: draw.range(420.0, 515.0),
            clustering: draw.range(0.05, 0.2),
            gap_share: draw.range(0.15, 0.5),
            vessels_per_mpx: draw.range(3.0, 8.0),
            vacuoles_per_mpx: draw.range(40.0, 300.0),
            cleft_threshold: draw.range(2.25, 3.4),
            looseness: draw.range(0.4, 1.0),
            fibrousness: draw.range(0.25, 1.0),
            blur_px: draw.range(0.75, 1.1),
            camera_noise: draw.range(1.5, 2.6),
            fibers: Fibers::draw(draw),
            seed: draw.bits(),
        }
    }
}

/// The course of the fibers: straight lines, bent by a slow displacement of the plane.
#[derive(Clone, Debug)]
pub(super) struct Fibers {
    direction: [f32; 2],
    bend_px: f32,
    field: Field,
}

impl Fibers {
    /// Distance over which fibers change direction, pixels: about ten nuclei.
    const WAVELENGTH_PX: f32 = 260.0;

    fn draw(draw: &mut Draw) -> Self {
        Self { direction: draw.direction(), bend_px: draw.range(15.0, 45.0), field: Field::new(draw.bits()) }
    }

    /// Returns the position along and across the fibers, pixels.
    pub(super) fn coordinates(&self, x: f32, y: f32) -> [f32; 2] {
        let (u, v) = (x / Self::WAVELENGTH_PX, y / Self::WAVELENGTH_PX);
        // The second sample is far from the first in the same field, so the two components are independent.
        let bent =
            [x + self.bend_px * self.field.at(u, v), y + self.bend_px * self.field.at(u + 517.3, v - 311.7)];
        let [dx, dy] = self.direction;
        [bent[0] * dx + bent[1] * dy, bent[1] * dx - bent[0] * dy]
    }

    /// Returns the direction of the fiber through a point, a unit vector: perpendicular to the gradient of the
    /// coordinate across.
    pub(super) fn tangent(&self, x: f32, y: f32) -> [f32; 2] {
        let [_, here] = self.coordinates(x, y);
        let [_, right] = self.coordinates(x + 1.0, y);
        let [_, below] = self.coordinates(x, y + 1.0);
        let (gx, gy) = (right - here, below - here);
        let length = (gx * gx + gy * gy).sqrt();
        if length > 1e-3 { [gy / length, -gx / length] } else { self.direction }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crosswise_coordinate_is_constant_along_a_fiber() {
        let fibers = Fibers::draw(&mut Draw::new(9, 1));
        for (x, y) in [(10.0, 20.0), (300.0, 40.0), (77.0, 500.0)] {
            let [tx, ty] = fibers.tangent(x, y);
            let [along, across] = fibers.coordinates(x, y);
            let [along_2, across_2] = fibers.coordinates(x + tx, y + ty);
            assert!((across_2 - across).abs() < 0.05, "{across} {across_2}");
            assert!((along_2 - along).abs() > 0.3);
        }
    }
}
