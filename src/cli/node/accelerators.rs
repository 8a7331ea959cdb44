//! Arguments for accelerators: devices, memory, schedule policy, and comparison of results.

use clap::{Args, ValueEnum};
use pleach_accelerate::DeviceSpec;
use pleach_planner::memory_size::MemorySize;

#[derive(Clone, Debug, Args)]
pub(crate) struct AcceleratorArgs {
    /// Accelerators: auto (all graphics cards and the like, or none), none, all (processors with an OpenCL driver as well),
    /// a number, or emulated devices as in emulate:2x
    #[arg(
        long,
        value_name = "DEVICES",
        default_value = "auto",
        env = "PLEACH_ACCELERATORS",
        hide_env_values = true
    )]
    pub(crate) accelerators: DeviceSpec,
    /// Maximum size of the buffers on each accelerator, as in 8GiB [default: the memory of the device]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) device_memory: Option<MemorySize>,
    /// Policy that assigns tasks to cores and accelerators
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = ScheduleArg::Pats)]
    pub(crate) schedule: ScheduleArg,
    /// Share of the tasks on accelerators, 0 to 1, that run on a core as well to compare the bits
    #[arg(long, value_name = "RATE", default_value_t = CHECK_RATE, value_parser = rate, allow_negative_numbers = true)]
    pub(crate) device_check: f64,
}

/// 1 %: with a gain of 10 a comparison costs a core as much as ten tasks cost the device, a tenth of its work.
const CHECK_RATE: f64 = 0.01;

/// Policy that assigns tasks to cores and accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleArg {
    /// Accelerators take the tasks with the greatest gain, cores those with the least
    Pats,
    /// Each task is queued at the device that is expected to finish it first
    Heft,
    /// An idle device takes the task that became ready first
    Fcfs,
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    number.ok_or("a number from 0 to 1 is allowed")
}
