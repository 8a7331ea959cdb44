//! Statistics of the pixels of each object, over all planes of the tile.

use super::columns::PER_CHANNEL;
use super::histogram::{ByteStatistics, Histogram};
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
        let runs: Option<Vec<Range<usize>>> = runs.iter().map(|ends| checked(ends, pixels)).collect();
        let runs = runs.filter(|_| rest.is_empty()).ok_or_else(|| invalid("a run beyond the image"))?;
        meter.measure(runs.into_iter(), &mut values);
    }
    Ok(vec![DataRegion::Ragged(rows(CHANNELS * PER_CHANNEL, values)?)])
}

/// Returns the pixels of a run. `None` if it is empty or beyond the image.
fn checked([start, end]: &[i32; 2], pixels: usize) -> Option<Range<usize>> {
    let (start, end) = (usize::try_from(*start).ok()?, usize::try_from(*end).ok()?);
    (start < end && end <= pixels).then_some(start..end)
}

/// Planes of the tile, and the histograms of the object at hand.
struct Meter<'a> {
    /// Intensity, gradient, Sobel.
    planes: [&'a [[u8; CHANNELS]]; 3],
    edges: &'a [[u8; CHANNELS]],
    histograms: [[Histogram; CHANNELS]; 3],
}

impl<'a> Meter<'a> {
    fn new(inputs: &Inputs<'a>) -> Result<Self, OperationError> {
        let pixels = |index: usize| Ok::<_, OperationError>(inputs.array(index, CHANNELS)?.as_chunks().0);
        let planes = [pixels(1)?, pixels(2)?, pixels(3)?];
        let histograms = std::array::from_fn(|_| [const { Histogram::EMPTY }; CHANNELS]);
        Ok(Self { planes, edges: pixels(4)?, histograms })
    }

    /// Appends the numbers of one object, [`PER_CHANNEL`] per channel.
    fn measure(&mut self, runs: impl Iterator<Item = Range<usize>>, values: &mut Vec<f64>) {
        let (mut pixels, mut edge_pixels) = (0_u64, [0_u64; CHANNELS]);
        for run in runs {
            pixels += run.len() as u64;
            for (plane, histograms) in self.planes.iter().zip(&mut self.histograms) {
                for pixel in &plane[run.clone()] {
                    for (level, histogram) in pixel.iter().zip(histograms.iter_mut()) {
                        histogram.0[usize::from(*level)] += 1;
                    }
                }
            }
            for pixel in &self.edges[run] {
                for (edge, count) in pixel.iter().zip(&mut edge_pixels) {
                    *count += u64::from(*edge != 0);
                }
            }
        }
        for (channel, edges) in edge_pixels.iter().enumerate() {
            let [intensity, gradient, sobel] = [0, 1, 2].map(|plane| {
                let histogram = &mut self.histograms[plane][channel];
                let statistics = histogram.statistics();
                *histogram = Histogram::EMPTY;
                statistics
            });
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

/// Returns the numbers in the order of [`STATISTICS`](super::columns::STATISTICS).
fn of_any(statistics: &ByteStatistics) -> [f64; 7] {
    let ByteStatistics { mean, median, sd, entropy, energy, skewness, kurtosis, .. } = *statistics;
    [mean, median, sd, entropy, energy, skewness, kurtosis]
}
