//! Volumes of equal sides: sampling, interpolation and reduction.

use pleach_regions::{ArrayError, DataRegion, DenseArray};
use thiserror::Error;

/// Sides are multiples of this number: four halvings give five resolutions.
const SIDE_STEP: u32 = 16;

/// An array that is no volume.
#[derive(Debug, Error)]
pub(super) enum VolumeError {
    #[error("sides {0:?} are no volume; three equal sides are allowed")]
    Sides(Vec<u32>),
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// Voxels of a cube.
pub(super) struct Volume<'a> {
    side: usize,
    voxels: &'a [f32],
}

/// Returns the side of the volume for an image.
pub(super) fn side_for(pixels: u64) -> usize {
    let mut side = SIDE_STEP;
    while u64::from(side + SIDE_STEP).pow(3) <= pixels {
        side += SIDE_STEP;
    }
    side as usize
}

/// Returns the position of a voxel's center along an axis.
pub(super) fn position(voxel: usize, side: usize) -> f64 {
    (voxel as f64 + 0.5) / side as f64 - 0.5
}

impl<'a> Volume<'a> {
    pub(super) fn of(array: &'a DenseArray) -> Result<Self, VolumeError> {
        match *array.extents() {
            [x, y, z] if x == y && y == z && array.channels() == 1 => {
                Ok(Self { side: x as usize, voxels: array.samples::<f32>()? })
            }
            _ => Err(VolumeError::Sides(array.extents().to_vec())),
        }
    }

    /// Creates a volume from the density at the center of each voxel.
    pub(super) fn sampled(side: usize, density: impl Fn([f64; 3]) -> f64) -> Result<DataRegion, VolumeError> {
        let mut voxels = Vec::with_capacity(side.pow(3));
        for z in 0..side {
            for y in 0..side {
                for x in 0..side {
                    voxels.push(density([x, y, z].map(|voxel| position(voxel, side))) as f32);
                }
            }
        }
        region(side, voxels)
    }

    pub(super) fn side(&self) -> usize {
        self.side
    }

    /// Returns the voxels with their positions.
    pub(super) fn voxels(&self) -> impl Iterator<Item = ([f64; 3], f64)> + '_ {
        let side = self.side;
        self.voxels.iter().enumerate().map(move |(number, voxel)| {
            let place = [number % side, number / side % side, number / side / side];
            (place.map(|voxel| position(voxel, side)), f64::from(*voxel))
        })
    }

    /// Returns the center of gravity.
    pub(super) fn center(&self) -> [f64; 3] {
        let (mut sum, mut weighted) = (f64::MIN_POSITIVE, [0.0; 3]);
        for (position, voxel) in self.voxels() {
            sum += voxel;
            (0..3).for_each(|axis| weighted[axis] += voxel * position[axis]);
        }
        weighted.map(|weighted| weighted / sum)
    }

    /// Returns the mean of each 2 × 2 × 2 voxels.
    pub(super) fn halved(&self) -> Result<DataRegion, VolumeError> {
        let side = (self.side / 2).max(1);
        let at = |x: usize, y: usize, z: usize| self.voxels[(z * self.side + y) * self.side + x];
        let mut voxels = Vec::with_capacity(side.pow(3));
        for z in 0..side {
            for y in 0..side {
                for x in 0..side {
                    let mut sum = 0.0;
                    for corner in 0..8 {
                        let inside =
                            |place: usize, bit: usize| (2 * place + (corner >> bit & 1)).min(self.side - 1);
                        sum += at(inside(x, 0), inside(y, 1), inside(z, 2));
                    }
                    voxels.push(sum / 8.0);
                }
            }
        }
        region(side, voxels)
    }

    /// Returns the density at a position, by trilinear interpolation, and its gradient. `None` outside of the voxels' centers.
    pub(super) fn interpolate(&self, position: [f64; 3]) -> Option<(f64, [f64; 3])> {
        let side = self.side as f64;
        let (mut first, mut share) = ([0; 3], [0.0; 3]);
        for axis in 0..3 {
            let voxel = (position[axis] + 0.5) * side - 0.5;
            if !(0.0..=side - 1.0).contains(&voxel) || self.side < 2 {
                return None;
            }
            first[axis] = (voxel as usize).min(self.side - 2);
            share[axis] = voxel - first[axis] as f64;
        }
        let (mut density, mut gradient) = (0.0, [0.0; 3]);
        for corner in 0..8_usize {
            let bits = [corner & 1, corner >> 1 & 1, corner >> 2];
            let at = ((first[2] + bits[2]) * self.side + first[1] + bits[1]) * self.side + first[0] + bits[0];
            let voxel = f64::from(self.voxels[at]);
            let weight = |axis: usize| if bits[axis] == 1 { share[axis] } else { 1.0 - share[axis] };
            let weights = [weight(0), weight(1), weight(2)];
            density += voxel * weights[0] * weights[1] * weights[2];
            for axis in 0..3 {
                let sign = if bits[axis] == 1 { side } else { -side };
                gradient[axis] += voxel * sign * weights[(axis + 1) % 3] * weights[(axis + 2) % 3];
            }
        }
        Some((density, gradient))
    }
}

fn region(side: usize, voxels: Vec<f32>) -> Result<DataRegion, VolumeError> {
    Ok(DataRegion::Array(DenseArray::new(&[side as u32; 3], 1, voxels.into())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_density_is_interpolated_exactly() {
        let region = Volume::sampled(8, |[x, y, z]| 1.0 + x - 2.0 * y + 3.0 * z).unwrap();
        let volume = Volume::of(region.array(pleach_regions::ElementType::ArrayF32).unwrap()).unwrap();
        let (density, gradient) = volume.interpolate([0.1, -0.2, 0.3]).unwrap();
        assert!((density - 2.4).abs() < 1e-5);
        for (found, expected) in gradient.iter().zip([1.0, -2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-4);
        }
        assert!(volume.interpolate([0.5, 0.0, 0.0]).is_none());
        let half = volume.halved().unwrap();
        let half = Volume::of(half.array(pleach_regions::ElementType::ArrayF32).unwrap()).unwrap();
        assert_eq!(half.side(), 4);
        assert!((half.interpolate([0.1, -0.2, 0.3]).unwrap().0 - 2.4).abs() < 1e-5);
    }

    #[test]
    fn the_tile_bounds_the_volume() {
        assert_eq!(
            [1, 16 * 16 * 16, 32_767, 32_768, 110_592, 1 << 22].map(side_for),
            [16, 16, 16, 32, 48, 160]
        );
    }
}
