//! Amount of hematoxylin by color deconvolution (Ruifrok and Johnston, 2001), with the stain vectors of the reference application.

/// Hematoxylin's row of the inverse stain matrix, for R, G, B.
const UNMIX: [f64; 3] = [1.8870768, 0.27801972, -1.55543811];

/// Weighted optical densities of the levels of R, G and B.
///
/// A channel v has the optical density −255·ln((v + 1)/255)/ln 255. The weighted sum of the densities is converted back to light.
pub(crate) struct Hematoxylin {
    densities: [[f64; 256]; 3],
    log_255: f64,
}

impl Hematoxylin {
    pub(crate) fn new() -> Self {
        let log_255 = 255_f64.ln();
        let density = |weight: f64| {
            std::array::from_fn(|v| weight * (-255.0 * ((v as f64 + 1.0) / 255.0).ln() / log_255))
        };
        Self { densities: UNMIX.map(density), log_255 }
    }

    /// Returns the light that hematoxylin lets through in a pixel of B, G, R: 0 (dark) to 255, rounded half up.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    pub(crate) fn light(&self, [b, g, r]: [u8; 3]) -> u8 {
        let [red, green, blue] = &self.densities;
        let sum = red[usize::from(r)] + green[usize::from(g)] + blue[usize::from(b)];
        let light = (-(sum - 255.0) * self.log_255 / 255.0).exp();
        (light.min(255.0) + 0.5).floor() as u8
    }
}
