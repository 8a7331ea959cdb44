//! Operations of a command: those of the program, and those of the manifests that the command reads.
//!
//! The processes that run external operations belong to the process, not to a study: they stay warm between rounds.

use crate::cli::{Command, OperationSource};
use crate::exit::{CommandError, CommandResult};
use pleach_external::Pool;
use pleach_workflow::{Registry, manifests_of_study, manifests_of_workflow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

static PROCESSES: LazyLock<Arc<Pool>> = LazyLock::new(Pool::new);

/// Returns the resident bytes of the processes that run external operations.
pub(crate) fn process_bytes() -> u64 {
    LazyLock::get(&PROCESSES).map_or(0, |pool| pool.resident_bytes())
}

/// Part of a worker's memory that processes of external operations may have: half. Regions and tasks need the rest.
const PROCESS_SHARE: u64 = 2;

/// Limits the processes that run external operations, on a worker with `memory_bytes`.
pub(crate) fn limit_processes(memory_bytes: u64) {
    PROCESSES.set_limit_bytes(memory_bytes / PROCESS_SHARE);
}

/// Ends the idle processes that run external operations.
pub(crate) fn end_processes() {
    if let Some(pool) = LazyLock::get(&PROCESSES) {
        pool.clear();
    }
}

/// Returns the operations of a command: `registry`, and those of the manifests that its study, its workflow or its options name.
pub(crate) fn of_command(command: &Command, registry: &Registry) -> CommandResult<Registry> {
    match command.operations() {
        OperationSource::Program => Ok(registry.clone()),
        OperationSource::Study(study, python) => load(&manifests_of_study(study), python, registry),
        OperationSource::Workflow(workflow, python) => {
            load(&manifests_of_workflow(workflow), python, registry)
        }
        OperationSource::Manifests(manifests, python) => load(manifests, python, registry),
    }
}

fn load(manifests: &[PathBuf], python: Option<&Path>, registry: &Registry) -> CommandResult<Registry> {
    let mut registry = registry.clone();
    for manifest in manifests {
        let loaded = pleach_external::load(manifest, python, &PROCESSES).map_err(CommandError::input)?;
        registry = registry.extended(loaded.into_iter().map(|external| external.operation));
    }
    Ok(registry)
}
