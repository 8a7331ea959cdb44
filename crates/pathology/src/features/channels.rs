//! Channels of a tile: B, G, R, and hematoxylin by color deconvolution.
//!
//! Color deconvolution: A. C. Ruifrok and D. A. Johnston, Quantification of histochemical staining by color deconvolution, 2001.
//! The vector of hematoxylin and the scale are those of the reference application: 255 is no stain, 0 the most.

use super::CHANNELS;

/// Weights of B, G, R in the amount of hematoxylin.
const HEMATOXYLIN_BGR: [f64; 3] = [-1.555_438_11, 0.278_019_72, 1.887_076_8];

/// Returns B, G, R and hematoxylin of each pixel.
pub(super) fn channels(bgr: &[u8]) -> Vec<u8> {
    let scale = 255.0 / 255_f64.ln();
    // Optical density of each level, from 0 for 254 to 255 for 0, times the weight of the channel.
    let density: [[f64; 256]; 3] = HEMATOXYLIN_BGR
        .map(|weight| std::array::from_fn(|level| -weight * scale * ((level as f64 + 1.0) / 255.0).ln()));
    let (pixels, _) = bgr.as_chunks::<3>();
    let mut channels = Vec::with_capacity(pixels.len() * CHANNELS);
    for &[blue, green, red] in pixels {
        let amount =
            density[0][usize::from(blue)] + density[1][usize::from(green)] + density[2][usize::from(red)];
        let level = ((255.0 - amount) / scale).exp().min(255.0);
        channels.extend_from_slice(&[blue, green, red, (level + 0.5) as u8]);
    }
    channels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hematoxylin_darkens_its_channel_and_eosin_does_not() {
        let level = |bgr: [u8; 3]| channels(&bgr)[3];
        assert_eq!(channels(&[1, 2, 3])[..3], [1, 2, 3]);
        assert_eq!(level([254; 3]), 255);
        // Blue-violet nuclei absorb red most, pink cytoplasm absorbs green.
        let (nucleus, cytoplasm) = (level([140, 70, 80]), level([200, 150, 230]));
        assert!(nucleus < 120 && cytoplasm > 200, "{nucleus} {cytoplasm}");
    }
}
