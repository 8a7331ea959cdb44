//! The shape of one nucleus: an ellipse whose outline is perturbed by a low-order Fourier series.
//!
//! No angles are computed: the harmonics of a direction are the powers of its unit vector as a complex number.

use super::arithmetic::Draw;

/// Number of harmonics: orders 2 to 5. Order 1 would shift the center, higher orders look like noise at this size.
const HARMONICS: usize = 4;
/// Limits of the outline as multiples of the ellipse, so that it has a finite reach and is star-shaped.
const OUTLINE: (f32, f32) = (0.72, 1.28);

/// One nucleus: position, outline and stain uptake.
#[derive(Clone, Debug)]
pub(super) struct Nucleus {
    /// Center, pixels. Pixel (i, j) has its center at (i, j).
    pub(super) center: [f32; 2],
    /// Direction of the long axis, a unit vector.
    pub(super) axis: [f32; 2],
    /// Long and short half axes, pixels.
    pub(super) half_axes_px: [f32; 2],
    harmonics: [[f32; 2]; HARMONICS],
    /// Stain uptake.
    pub(super) look: StainUptake,
}

/// Stain uptake of one nucleus.
#[derive(Clone, Debug)]
pub(super) struct StainUptake {
    /// Hematoxylin in the interior, optical density along the stain vector.
    pub(super) haematoxylin: f32,
    /// Half width of the edge, pixels: small in focus, large out of focus.
    pub(super) softness_px: f32,
    /// Amplitude of the chromatin texture, relative.
    pub(super) chromatin: f32,
    /// Excess of stain along the membrane, relative.
    pub(super) rim: f32,
    /// Nucleoli: offset from the center in half axes, and radius in pixels (0: none).
    pub(super) nucleoli: [([f32; 2], f32); 2],
    /// Gap where the tissue has shrunk away from the nucleus.
    pub(super) gap: ShrinkageGap,
    /// Excess of eosin in the surrounding cytoplasm, relative.
    pub(super) cytoplasm: f32,
    /// Seed of the texture.
    pub(super) seed: u32,
}

/// A crescent beside a nucleus where the tissue has shrunk away. The cytoplasm is on the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShrinkageGap {
    /// Direction of its middle, a unit vector.
    pub(super) direction: [f32; 2],
    /// Maximum width, pixels. 0 is no gap.
    pub(super) width_px: f32,
    /// Share of the tissue that is missing in the gap.
    pub(super) strength: f32,
}

impl Nucleus {
    /// Reach of the cytoplasm beyond the outline, pixels.
    pub(super) const CYTOPLASM_PX: f32 = 11.0;

    /// Draws a nucleus of this area (pixels), elongation (long over short axis) and irregularity (0: an ellipse).
    pub(super) fn draw(
        draw: &mut Draw,
        area_px: f32,
        elongation: f32,
        irregularity: f32,
        axis: [f32; 2],
        look: StainUptake,
    ) -> Self {
        // Relative amplitudes of the orders: kidney and egg shapes are common, lobes rare.
        let harmonics = [0.06, 0.045, 0.02, 0.01].map(|amplitude| {
            let scale = amplitude * irregularity;
            [scale * draw.normal(), scale * draw.normal()]
        });
        // Parseval: the perturbation adds half its squared amplitudes to the area.
        let excess: f32 = harmonics.iter().map(|[c, s]| 0.5 * (c * c + s * s)).sum();
        let square = area_px / (std::f32::consts::PI * (1.0 + excess));
        let half_axes_px = [(square * elongation).sqrt(), (square / elongation).sqrt()];
        Self { center: [0.0, 0.0], axis, half_axes_px, harmonics, look }
    }

    /// Returns the position relative to the center, in half axes along the long and the short axis.
    pub(super) fn local(&self, x: f32, y: f32) -> [f32; 2] {
        let (dx, dy) = (x - self.center[0], y - self.center[1]);
        let [ax, ay] = self.axis;
        [(dx * ax + dy * ay) / self.half_axes_px[0], (dy * ax - dx * ay) / self.half_axes_px[1]]
    }

    /// Returns the depth inside the outline, pixels, to first order. Negative outside.
    pub(super) fn depth_px(&self, x: f32, y: f32) -> f32 {
        let [u, v] = self.local(x, y);
        let rho = (u * u + v * v).sqrt();
        if rho < 1e-3 {
            return self.half_axes_px[1] * OUTLINE.0;
        }
        let [a, b] = self.half_axes_px;
        let slope = ((u / a) * (u / a) + (v / b) * (v / b)).sqrt() / rho;
        (self.outline([u / rho, v / rho]) - rho) / slope
    }

    /// Returns the distance from the center to the outline in a direction (a unit vector), pixels.
    pub(super) fn radius_px(&self, direction: [f32; 2]) -> f32 {
        let [u, v] = self.local(self.center[0] + direction[0], self.center[1] + direction[1]);
        let rho = (u * u + v * v).sqrt();
        self.outline([u / rho, v / rho]) / rho
    }

    /// Returns the distance from the center that contains outline and soft edge, pixels.
    pub(super) fn reach_px(&self) -> f32 {
        self.half_axes_px[0] * OUTLINE.1 + self.look.softness_px + 1.0
    }

    /// Returns the outline's multiple of the ellipse in a direction of local coordinates.
    fn outline(&self, [c, s]: [f32; 2]) -> f32 {
        let mut power = [c, s];
        let mut sum = 1.0;
        for [cosine, sine] in self.harmonics {
            power = [power[0] * c - power[1] * s, power[0] * s + power[1] * c];
            sum += cosine * power[0] + sine * power[1];
        }
        sum.clamp(OUTLINE.0, OUTLINE.1)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tissue) fn plain() -> StainUptake {
        StainUptake {
            haematoxylin: 1.0,
            softness_px: 1.0,
            chromatin: 0.0,
            rim: 0.0,
            nucleoli: [([0.0, 0.0], 0.0); 2],
            gap: ShrinkageGap { direction: [1.0, 0.0], width_px: 0.0, strength: 0.0 },
            cytoplasm: 0.0,
            seed: 0,
        }
    }

    #[test]
    fn covers_the_area_asked_for() {
        let mut draw = Draw::new(3, 0);
        for _ in 0..20 {
            let axis = draw.direction();
            let nucleus = Nucleus::draw(&mut draw, 500.0, 1.6, 1.0, axis, plain());
            let covered = (-60..60)
                .flat_map(|y| (-60..60).map(move |x| (x, y)))
                .filter(|(x, y)| nucleus.depth_px(*x as f32, *y as f32) > 0.0)
                .count();
            assert!((450..550).contains(&covered), "{covered}");
        }
    }

    #[test]
    fn depth_vanishes_on_the_outline() {
        let mut draw = Draw::new(4, 0);
        let axis = draw.direction();
        let nucleus = Nucleus::draw(&mut draw, 600.0, 1.5, 1.0, axis, plain());
        for _ in 0..50 {
            let d = draw.direction();
            let radius = nucleus.radius_px(d);
            assert!(nucleus.depth_px(d[0] * radius, d[1] * radius).abs() < 0.01);
            assert!(radius < nucleus.reach_px());
        }
    }
}
