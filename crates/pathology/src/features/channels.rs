//! Channels of a tile: B, G, R, and hematoxylin by color deconvolution, where 255 is no stain and 0 the most.

use super::CHANNELS;
use crate::kernels::hematoxylin::Hematoxylin;

/// Returns B, G, R and hematoxylin of each pixel.
pub(super) fn channels(bgr: &[u8]) -> Vec<u8> {
    let hematoxylin = Hematoxylin::new();
    let (pixels, _) = bgr.as_chunks::<3>();
    let mut channels = Vec::with_capacity(pixels.len() * CHANNELS);
    for &[blue, green, red] in pixels {
        channels.extend_from_slice(&[blue, green, red, hematoxylin.light([blue, green, red])]);
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
