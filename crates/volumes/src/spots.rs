//! Generated z-stacks over time: bright spots that move steadily, on a noisy background.
//!
//! The same seed and sides give the same numbers on every platform: only exact operations of arithmetic are used.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Sides along x, y and z of the cells that have a spot each, pixels: spots do not touch at first.
const CELL_PX: [u32; 3] = [24, 24, 8];

/// Radii of a spot along x, y and z, pixels.
const RADIUS_PX: [f64; 3] = [5.0, 5.0, 2.0];

/// Maximum movement along x, y and z between two times, pixels: far less than the distance of spots.
const STEP_PX: [f64; 3] = [1.5, 1.5, 0.25];

/// Peak of a spot above the background.
const PEAK: f64 = 4000.0;

/// Background, to which noise of 0 to 63 is added.
const BACKGROUND: u16 = 200;

/// A spot at the first time, and its movement between times, pixels.
struct Spot {
    start: [f64; 3],
    step: [f64; 3],
}

/// Spots in a box of pixels.
pub struct MovingSpots {
    seed: u64,
    sides: [u32; 4],
    spots: Vec<Spot>,
}

impl MovingSpots {
    /// Draws the spots of an image with these sides along x, y, z and time: one in each whole cell of 24 × 24 × 8 px.
    #[must_use]
    pub fn new(seed: u64, sides: [u32; 4]) -> Self {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        let cells = [0, 1, 2].map(|axis| sides[axis] / CELL_PX[axis]);
        let mut spots = Vec::new();
        for z in 0..cells[2] {
            for y in 0..cells[1] {
                for x in 0..cells[0] {
                    let at = [x, y, z];
                    // In the middle half of the cell.
                    let start = [0, 1, 2].map(|axis| {
                        let side = f64::from(CELL_PX[axis]);
                        f64::from(at[axis]) * side + side * (0.25 + 0.5 * share(&mut source))
                    });
                    let step = STEP_PX.map(|most| most * (2.0 * share(&mut source) - 1.0));
                    spots.push(Spot { start, step });
                }
            }
        }
        Self { seed, sides, spots }
    }

    /// Returns the number of spots at the first time.
    #[must_use]
    pub fn count(&self) -> usize {
        self.spots.len()
    }

    /// Returns a plane row by row.
    #[must_use]
    pub fn plane(&self, z: u32, t: u32) -> Vec<u16> {
        let [width, height, ..] = self.sides.map(|side| side as usize);
        let mut source = ChaCha8Rng::seed_from_u64(self.seed);
        source.set_stream((u64::from(t) << 32 | u64::from(z)) + 1);
        // 8 numbers of noise of each drawn one.
        let mut plane = Vec::with_capacity(width * height);
        while plane.len() < width * height {
            let drawn = source.next_u64().to_le_bytes();
            plane.extend(drawn.map(|byte| BACKGROUND + u16::from(byte >> 2)));
        }
        plane.truncate(width * height);
        for spot in &self.spots {
            let center = [0, 1, 2].map(|axis| spot.start[axis] + f64::from(t) * spot.step[axis]);
            let along_z = square((f64::from(z) - center[2]) / RADIUS_PX[2]);
            let range = |axis: usize, side: usize| {
                let low = (center[axis] - RADIUS_PX[axis]).max(0.0) as usize;
                // A negative number becomes 0, an empty range.
                low..((center[axis] + RADIUS_PX[axis] + 1.0) as usize).min(side)
            };
            for y in range(1, height) {
                for x in range(0, width) {
                    let across = square((x as f64 - center[0]) / RADIUS_PX[0])
                        + square((y as f64 - center[1]) / RADIUS_PX[1]);
                    let fall = (1.0 - across - along_z).max(0.0);
                    let value = &mut plane[y * width + x];
                    *value = value.saturating_add((PEAK * fall * fall) as u16);
                }
            }
        }
        plane
    }
}

fn square(value: f64) -> f64 {
    value * value
}

/// Draws a number from 0 to below 1.
fn share(source: &mut ChaCha8Rng) -> f64 {
    f64::from(source.next_u32()) / 4_294_967_296.0
}
