//! Statistics of the pixels of each object, over all planes of the tile.

use super::columns::PER_CHANNEL;
use super::counts::{ByteStatistics, Entropy, Histogram};
use super::{CHANNELS, OBJECTS, invalid, plane, rows};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;
use std::ops::Range;

/// Statistics of the nuclei.
pub(crate) const NUCLEUS_STATISTICS: TypedOperation = TypedOperation {
    name: "features.nucleus-statistics",
    version: 1,
    arguments: &[],
    inputs: &[OBJECTS, plane("channels"), plane("gradient"), plane("sobel"), plane("edges")],
    outputs: &[port("nucleus_statistics", ElementType::RaggedF64)],
    nanoseconds_a_pixel: 20.0,
    bytes_a_pixel: 0.34,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run: nuclei,
};

/// Statistics of the cytoplasm around the nuclei.
pub(crate) const RING_STATISTICS: TypedOperation = TypedOperation {
    name: "features.ring-statistics",
    inputs: &[
        port("rings", ElementType::RaggedI32),
        plane("channels"),
        plane("gradient"),
        plane("sobel"),
        plane("edges"),
    ],
    outputs: &[port("ring_statistics", ElementType::RaggedF64)],
    bytes_a_pixel: 0.28,
    run: rings,
    ..NUCLEUS_STATISTICS
};

fn nuclei(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let mut meter = Meter::new(inputs)?;
    let mut values = Vec::with_capacity(objects.count() * CHANNELS * PER_CHANNEL);
    for object in 0..objects.count() {
        meter.measure(objects.pixels_of(object), &mut values);
    }
    Ok(vec![DataRegion::Ragged(rows(CHANNELS * PER_CHANNEL, values)?)])
}

fn rings(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let rings = inputs.ragged(0)?;
    let ends: &[i32] = rings.values().get().ok_or_else(|| invalid("rings of another number type"))?;
    let pixels = inputs.width() * inputs.height();
    let mut meter = Meter::new(inputs)?;
    let mut values = Vec::with_capacity(rings.len() * CHANNELS * PER_CHANNEL);
    for ring in (0..rings.len()).filter_map(|ring| rings.row(ring)) {
        let (runs, rest) = ends[ring].as_chunks::<2>();
        if !rest.is_empty() || !runs.iter().all(|run| is_within(run, pixels)) {
            return Err(invalid("a run beyond the image"));
        }
        meter.measure(runs.iter().map(|[start, end]| *start as usize..*end as usize), &mut values);
    }
    Ok(vec![DataRegion::Ragged(rows(CHANNELS * PER_CHANNEL, values)?)])
}

/// Returns whether a run has pixels, all of them of the image.
fn is_within([start, end]: &[i32; 2], pixels: usize) -> bool {
    0 <= *start && start < end && *end as usize <= pixels
}

/// Planes of the tile, and the histograms of the object at hand.
struct Meter<'a> {
    /// Intensity, gradient, Sobel, edges.
    planes: [&'a [[u8; CHANNELS]]; 4],
    /// The object's pixels of each plane. Rows of a nucleus are far from each other in a plane, and a copy waits for several of them
    /// at once, which counting does not.
    gathered: [Vec<[u8; CHANNELS]>; 4],
    /// All are empty between objects.
    histograms: [[Histogram; CHANNELS]; 3],
}

impl<'a> Meter<'a> {
    fn new(inputs: &Inputs<'a>) -> Result<Self, OperationError> {
        let pixels = |index: usize| Ok::<_, OperationError>(inputs.array(index, CHANNELS)?.as_chunks().0);
        let planes = [pixels(1)?, pixels(2)?, pixels(3)?, pixels(4)?];
        let histograms = std::array::from_fn(|_| [const { Histogram::EMPTY }; CHANNELS]);
        Ok(Self { planes, gathered: Default::default(), histograms })
    }

    /// Appends the numbers of one object, [`PER_CHANNEL`] per channel.
    fn measure(&mut self, runs: impl Iterator<Item = Range<usize>>, values: &mut Vec<f64>) {
        let (mut pixels, mut edge_pixels) = (0_u64, [0_u64; CHANNELS]);
        self.gathered.iter_mut().for_each(Vec::clear);
        for run in runs {
            pixels += run.len() as u64;
            for (plane, gathered) in self.planes.iter().zip(&mut self.gathered) {
                gathered.extend_from_slice(&plane[run.clone()]);
            }
        }
        let [of_histograms @ .., edges] = &self.gathered;
        for (plane, [blue, green, red, hematoxylin]) in of_histograms.iter().zip(&mut self.histograms) {
            for pixel in plane {
                let [b, g, r, h] = pixel.map(usize::from);
                blue.0[b] += 1;
                green.0[g] += 1;
                red.0[r] += 1;
                hematoxylin.0[h] += 1;
            }
        }
        count_edges(edges, &mut edge_pixels);
        let entropy = Entropy::of_total(pixels as f64);
        for (channel, edges) in edge_pixels.iter().enumerate() {
            let [intensity, gradient, sobel] =
                [0, 1, 2].map(|plane| self.histograms[plane][channel].take(pixels, entropy));
            values.extend([intensity.max, intensity.min]);
            for statistics in [intensity, gradient, sobel] {
                values.extend(of_any(&statistics));
            }
            let edges = *edges as f64;
            let mean = if pixels == 0 { 0.0 } else { 255.0 * edges / pixels as f64 };
            values.extend([edges, mean]);
        }
    }
}

/// Adds the pixels that are not 0, of each channel.
fn count_edges(edges: &[[u8; CHANNELS]], counts: &mut [u64; CHANNELS]) {
    // Counts of up to 255 pixels fit in bytes, one for each channel.
    for part in edges.chunks(255) {
        let nonzero = |pixel: &[u8; CHANNELS]| {
            let word = u32::from_le_bytes(*pixel);
            (((word & 0x7f7f_7f7f) + 0x7f7f_7f7f) | word) >> 7 & 0x0101_0101
        };
        let sums: u32 = part.iter().map(nonzero).sum();
        for (count, sum) in counts.iter_mut().zip(sums.to_le_bytes()) {
            *count += u64::from(sum);
        }
    }
}

/// Returns the numbers in the order of [`STATISTICS`](super::columns::STATISTICS).
fn of_any(statistics: &ByteStatistics) -> [f64; 7] {
    let ByteStatistics { mean, median, sd, entropy, energy, skewness, kurtosis, .. } = *statistics;
    [mean, median, sd, entropy, energy, skewness, kurtosis]
}
