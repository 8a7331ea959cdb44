//! Sensitivity table: how the choice of a method depends on overheads, bandwidth, data size and workers.

use std::num::NonZeroUsize;

use super::candidates::{Candidate, Ranking, rank};
use crate::simulate::{Delay, Platform, PlatformError};
use crate::workflow::Workflow;

/// Values of each parameter. The table has a row for each combination. A parameter without values keeps that of the platform, or
/// a factor of 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    /// Factors of all file sizes.
    pub data_factors: Vec<f64>,
    /// Numbers of workers.
    pub workers: Vec<NonZeroUsize>,
    /// Bandwidths in bytes per second.
    pub bytes_per_second: Vec<f64>,
    /// Fixed queue delays in seconds.
    pub queue_seconds: Vec<f64>,
}

/// A row of the table: the candidates under one combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct SensitivityRow {
    /// Factor of all file sizes.
    pub data_factor: f64,
    /// The platform.
    pub platform: Platform,
    /// Makespans of all candidates. Its best one is the choice.
    pub ranking: Ranking,
}

/// Returns the rows of a grid, data factors outermost, queue delays innermost.
///
/// `candidates` clusters the workflow with scaled files for a platform. It is called for each row, since tuned methods depend on
/// the platform, and the number of jobs of a level may follow the workers.
///
/// # Errors
/// If a bandwidth is not above 0, or a queue delay is not a finite number of 0 or more.
pub fn sensitivity(
    workflow: &Workflow,
    platform: &Platform,
    grid: &Grid,
    seed: u64,
    mut candidates: impl FnMut(&Workflow, &Platform) -> Vec<Candidate>,
) -> Result<Vec<SensitivityRow>, PlatformError> {
    let platforms = platforms(platform, grid)?;
    let mut rows = Vec::new();
    for data_factor in or_else(&grid.data_factors, 1.0) {
        let scaled = workflow.clone().with_scaled_files(data_factor);
        for platform in &platforms {
            let ranking = rank(&scaled, &candidates(&scaled, platform), platform, seed);
            rows.push(SensitivityRow { data_factor, platform: *platform, ranking });
        }
    }
    Ok(rows)
}

fn platforms(platform: &Platform, grid: &Grid) -> Result<Vec<Platform>, PlatformError> {
    let mut platforms = Vec::new();
    for workers in or_else(&grid.workers, platform.workers()) {
        for bytes_per_second in or_else(&grid.bytes_per_second, platform.bytes_per_second()) {
            let delays: Vec<Delay> =
                grid.queue_seconds.iter().map(|seconds| Delay::Fixed(*seconds)).collect();
            for queue in or_else(&delays, platform.overheads().queue) {
                let mut overheads = platform.overheads();
                overheads.queue = queue;
                platforms.push(Platform::new(workers, bytes_per_second, overheads)?);
            }
        }
    }
    Ok(platforms)
}

fn or_else<T: Copy>(values: &[T], default: T) -> Vec<T> {
    if values.is_empty() { vec![default] } else { values.to_vec() }
}
