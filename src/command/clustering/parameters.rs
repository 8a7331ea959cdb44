//! Parameters of an execution: those of a study, and the options of the command in their place.

use super::candidates::Settings;
use crate::cli::{ClusterArgs, MAX_EXPONENT, MAX_NUMBER, SHAPES, Variation};
use crate::exit::{CommandError, CommandResult};
use pleach_clustering::simulate::{Delay, Overheads, Platform};
use pleach_clustering::{Options, Size, Workflow, WorkflowError};
use pleach_planner::memory_size::MemorySize;
use pleach_workflow::{Accepts, ProgramParameter, Value};
use std::num::NonZeroUsize;

/// Maximum number of jobs of a level: the number of workers in the experiments of the paper.
const MAX_JOBS: usize = 20;
/// Maximum number of workers and of jobs of a level: more than tasks of any workflow that fits into memory.
const MAX_COUNT: i64 = 1_000_000;
/// 2^53: larger integers are no exact numbers of a sample.
const MAX_SEED: i64 = 1 << 53;
/// Maximum bytes of a limit and of a second.
const MAX_BYTES: f64 = 1e15;

/// A parameter of an execution. It has the name of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Queue,
    Engine,
    Clustering,
    Post,
    Weibull,
    Bandwidth,
    Workers,
    Jobs,
    MaxSeconds,
    MaxBytes,
    ScaleData,
    ScaleTime,
    RunTimeVariance,
    Seed,
}

impl Parameter {
    /// All parameters, in the order of their declaration.
    pub(super) const ALL: [Self; 14] = [
        Self::Queue,
        Self::Engine,
        Self::Clustering,
        Self::Post,
        Self::Weibull,
        Self::Bandwidth,
        Self::Workers,
        Self::Jobs,
        Self::MaxSeconds,
        Self::MaxBytes,
        Self::ScaleData,
        Self::ScaleTime,
        Self::RunTimeVariance,
        Self::Seed,
    ];

    /// Returns its name: that of an option.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Engine => "engine",
            Self::Clustering => "clustering",
            Self::Post => "post",
            Self::Weibull => "weibull",
            Self::Bandwidth => "bandwidth",
            Self::Workers => "workers",
            Self::Jobs => "jobs",
            Self::MaxSeconds => "max-seconds",
            Self::MaxBytes => "max-bytes",
            Self::ScaleData => "scale-data",
            Self::ScaleTime => "scale-time",
            Self::RunTimeVariance => "run-time-variance",
            Self::Seed => "seed",
        }
    }

    /// Returns type and allowed values. Sizes are in bytes and delays in seconds.
    pub(super) fn accepts(self) -> Accepts {
        let reals = |low, high| Accepts::Reals { low, high };
        match self {
            Self::Queue | Self::Engine | Self::Clustering | Self::Post => reals(0.0, MAX_NUMBER),
            Self::ScaleData | Self::ScaleTime => reals(0.0, MAX_NUMBER),
            Self::Weibull => reals(*SHAPES.start(), *SHAPES.end()),
            Self::Bandwidth => reals(1.0, MAX_BYTES),
            Self::MaxSeconds => reals(0.001, MAX_NUMBER),
            Self::MaxBytes => reals(0.0, MAX_BYTES),
            Self::RunTimeVariance => reals(0.0, MAX_EXPONENT),
            Self::Workers | Self::Jobs => Accepts::Integers { low: 1, high: MAX_COUNT },
            Self::Seed => Accepts::Integers { low: 0, high: MAX_SEED },
        }
    }

    /// Returns the value of its option. `None` without one: fixed delays, tuned limits, and jobs under `--size`.
    fn option(self, args: &ClusterArgs) -> Option<f64> {
        let platform = &args.platform;
        match self {
            Self::Queue => Some(platform.queue),
            Self::Engine => Some(platform.engine),
            Self::Clustering => Some(platform.clustering),
            Self::Post => Some(platform.post),
            Self::Weibull => platform.weibull,
            Self::Bandwidth => Some(platform.bandwidth.bytes() as f64),
            Self::Workers => Some(platform.workers.get() as f64),
            Self::Jobs => args.size.is_none().then(|| jobs(args) as f64),
            Self::MaxSeconds => args.max_seconds,
            Self::MaxBytes => args.max_bytes.map(|size| size.bytes() as f64),
            Self::ScaleData => Some(args.scale_data),
            Self::ScaleTime => Some(args.scale_time),
            Self::RunTimeVariance => Some(args.run_time_variance),
            Self::Seed => Some(args.seed as f64),
        }
    }
}

fn jobs(args: &ClusterArgs) -> usize {
    args.jobs.map_or(MAX_JOBS, NonZeroUsize::get)
}

/// Returns the parameters that a study may declare. Their values outside the study are those of the options.
pub(super) fn declared(args: &ClusterArgs) -> Vec<ProgramParameter> {
    let of = |parameter: &Parameter| {
        let accepts = parameter.accepts();
        let default = parameter.option(args).and_then(|number| Value::from_f64(number, accepts.value_type()));
        ProgramParameter { name: parameter.name(), accepts, default }
    };
    Parameter::ALL.iter().map(of).collect()
}

/// Values of a point, as bits: equal keys have equal values.
pub(super) type Key = Vec<Option<u64>>;

/// Values of the parameters that a study declares. All others, and all of the default point, have the values of the options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point([Option<f64>; Parameter::ALL.len()]);

impl Point {
    /// Creates a point from declared parameters and a row of a sample.
    pub(super) fn new(parameters: &[Parameter], row: &[Value]) -> Self {
        let mut point = Self::default();
        for (parameter, value) in parameters.iter().zip(row) {
            point.0[*parameter as usize] = Some(value.as_f64());
        }
        point
    }

    /// Returns the value of a declared parameter.
    fn get(&self, parameter: Parameter) -> Option<f64> {
        self.0[parameter as usize]
    }

    /// Returns the values of some parameters as a key.
    pub(super) fn key(&self, parameters: &[Parameter]) -> Key {
        parameters.iter().map(|parameter| self.get(*parameter).map(f64::to_bits)).collect()
    }
}

/// Returns the options of an execution at a point.
pub(super) fn settings(args: &ClusterArgs, point: &Point) -> CommandResult<Settings> {
    let count = |parameter| point.get(parameter).map(|number| number as usize);
    let size = match (count(Parameter::Jobs), args.size) {
        (Some(jobs), _) => Size::Jobs(jobs),
        (None, Some(tasks)) => Size::Tasks(tasks.get()),
        (None, None) => Size::Jobs(jobs(args)),
    };
    let seed = point.get(Parameter::Seed).map_or(args.seed, |seed| seed as u64);
    let options = Options { size, candidates: args.candidates.into(), seed, ..Options::default() };
    let bytes = point.get(Parameter::MaxBytes).map(|bytes| bytes as u64);
    Ok(Settings {
        platform: platform(args, point)?,
        options,
        max_seconds: point.get(Parameter::MaxSeconds).or(args.max_seconds),
        max_bytes: bytes.or(args.max_bytes.map(MemorySize::bytes)),
        seeds: args.seeds,
        jobs_follow_workers: args.size.is_none()
            && args.jobs.is_none()
            && args.sensitivity.iter().any(|of| matches!(of, Variation::Workers(_))),
    })
}

fn platform(args: &ClusterArgs, point: &Point) -> CommandResult<Platform> {
    let given = &args.platform;
    let delay = |parameter, seconds| Delay::Fixed(point.get(parameter).unwrap_or(seconds));
    let fixed = Overheads {
        engine: delay(Parameter::Engine, given.engine),
        queue: delay(Parameter::Queue, given.queue),
        clustering: delay(Parameter::Clustering, given.clustering),
        post: delay(Parameter::Post, given.post),
    };
    let shape = point.get(Parameter::Weibull).or(given.weibull);
    let overheads = shape.map_or(fixed, |shape| fixed.weibull(shape));
    let workers = point.get(Parameter::Workers).and_then(|workers| NonZeroUsize::new(workers as usize));
    let bandwidth = point.get(Parameter::Bandwidth).unwrap_or(given.bandwidth.bytes() as f64);
    Platform::new(workers.unwrap_or(given.workers), bandwidth, overheads).map_err(CommandError::input)
}

/// Returns a workflow with the sizes and run times of a point.
pub(super) fn scaled(
    workflow: Workflow,
    args: &ClusterArgs,
    point: &Point,
) -> Result<Workflow, WorkflowError> {
    let value = |parameter, given| point.get(parameter).unwrap_or(given);
    workflow
        .with_scaled_files(value(Parameter::ScaleData, args.scale_data))
        .with_scaled_seconds(value(Parameter::ScaleTime, args.scale_time))?
        .with_run_time_variance(value(Parameter::RunTimeVariance, args.run_time_variance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_values_follow_the_list() {
        for (position, parameter) in Parameter::ALL.into_iter().enumerate() {
            assert_eq!(parameter as usize, position);
        }
        let values = [Value::Integer(7), Value::Integer(3)];
        let point = Point::new(&[Parameter::Seed, Parameter::Workers], &values);
        let of = [Parameter::Workers, Parameter::Queue];
        assert_eq!(point.key(&of), [Some(3.0_f64.to_bits()), None]);
        assert_eq!(point.get(Parameter::Seed), Some(7.0));
    }
}
