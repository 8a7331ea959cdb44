//! Opens the accelerators that options name.

use crate::cli::{AcceleratorArgs, ScheduleArg};
use crate::exit::{CommandError, CommandResult};
use pleach_accelerate::{FindError, find};
use pleach_actors::task::Accelerators;
use pleach_dispatch::worker::SchedulePolicy;
use pleach_planner::memory_size::MemorySize;
use pleach_study::PreparedStudy;
use pleach_workflow::plain_name;

/// Accelerators of a process, and the lines that announce them.
pub(crate) struct OpenAccelerators {
    pub(crate) accelerators: Accelerators,
    /// The devices, marked if they are emulated, and those that cannot be used, with reasons.
    pub(crate) remarks: Vec<String>,
}

/// Opens the devices of the options.
///
/// # Errors
/// [`CommandError::Input`] if fewer devices are present than `--accelerators` asks for. It lists those that are present.
pub(crate) fn open(args: &AcceleratorArgs) -> CommandResult<OpenAccelerators> {
    let limit = args.device_memory.map(MemorySize::bytes);
    let found = find(&args.accelerators, limit).map_err(|error| too_few(&error))?;
    let unusable = found.remarks.into_iter().map(|remark| format!("accelerator left out: {remark}"));
    let devices = found.devices.iter().map(|device| match device.emulation() {
        Some(_) => format!("accelerator: {}; its times are not those of a device", device.name()),
        None => format!("accelerator: {}", device.name()),
    });
    let remarks = unusable.chain(devices).collect();
    let accelerators =
        Accelerators::new(found.devices).with_check_rate(args.device_check).with_policy(args.schedule.into());
    Ok(OpenAccelerators { accelerators, remarks })
}

/// Checks that a process with these accelerators can run all operations of a study.
///
/// # Errors
/// [`CommandError::Input`] for an operation that needs an accelerator if there is none.
pub(crate) fn check(prepared: &PreparedStudy, accelerators: &Accelerators) -> CommandResult {
    let mut tasks = prepared.study.workflow.stages.iter().flat_map(|stage| &stage.tasks);
    let needs_one = |operation: &str, version: u32| {
        prepared.registry.get(operation, version).is_some_and(|operation| operation.needs_accelerator())
    };
    match tasks.find(|task| accelerators.is_empty() && needs_one(&task.operation, task.version)) {
        None => Ok(()),
        Some(task) => Err(CommandError::Input(format!(
            "--accelerators: no device is used, and {} needs one; a number of devices, all or emulate:1x is allowed",
            plain_name(&task.operation)
        ))),
    }
}

fn too_few(error: &FindError) -> CommandError {
    let number = match error.present.len() {
        0 => String::new(),
        present => format!(", a number up to {present}"),
    };
    CommandError::Input(format!("--accelerators: {error}; auto, none{number} or emulate:2x is allowed"))
}

impl From<ScheduleArg> for SchedulePolicy {
    fn from(policy: ScheduleArg) -> Self {
        match policy {
            ScheduleArg::Pats => Self::Pats,
            ScheduleArg::Heft => Self::Heft,
            ScheduleArg::Fcfs => Self::Fcfs,
        }
    }
}
