//! Operations of a command: those of the program, and those of the manifests that the command reads.
//!
//! The processes that run external operations belong to the process, not to a study: they stay warm between rounds.

mod code;

use crate::cli::{Command, OperationSource};
use crate::exit::{CommandError, CommandResult};
use pleach_external::{CodeFiles, DIGEST_DIGITS, Pool};
use pleach_workflow::{DISTRIBUTION, Registry, manifests_of_study, manifests_of_workflow, plain_name};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub(crate) use code::CodeFolder;

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

/// Returns the code of the operations that a study's workflow names in manifests.
pub(crate) fn code_of_study(study: &Path, registry: &Registry) -> CommandResult<Vec<CodeFiles>> {
    // Distributions are installed on workers, not sent to them.
    let is_file = |manifest: &PathBuf| !manifest.to_string_lossy().starts_with(DISTRIBUTION);
    let manifests = manifests_of_study(study).into_iter().filter(is_file);
    let code = manifests.map(|manifest| CodeFiles::of(&manifest, registry).map_err(CommandError::input));
    let code = code.collect::<CommandResult<Vec<_>>>()?;
    Ok(code.into_iter().filter(|code| !code.operations.is_empty()).collect())
}

/// Returns the registry with the external operations of these names, with digests, in place of those of other digests.
pub(crate) fn pinned(pins: &[String], registry: &Registry) -> CommandResult<Registry> {
    let mut registry = registry.clone();
    for pin in pins {
        let refuse = |text: &str| Err(CommandError::Input(format!("--pin {pin}: {text}")));
        let plain = plain_name(pin);
        let digest = pin.strip_prefix(plain).and_then(|rest| rest.strip_prefix('@')).unwrap_or_default();
        if digest.len() != DIGEST_DIGITS || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return refuse(&format!("NAME@DIGEST with {DIGEST_DIGITS} hex digits is allowed"));
        }
        let named = registry.names().into_iter().filter(|name| plain_name(name) == plain && *name != plain);
        let versions: Vec<_> = named
            .flat_map(|name| registry.versions(name).into_iter().map(move |version| (name, version)))
            .collect();
        if versions.is_empty() {
            return refuse("the study has no external operation of this name");
        }
        for (name, version) in versions {
            let Some(operation) = registry.get(name, version).cloned() else { continue };
            registry = registry.without(name, version).extended([pleach_external::pinned(&*operation, pin)]);
        }
    }
    Ok(registry)
}

/// Returns the operations of a command: `registry`, and those of the manifests that its study, its workflow or its options name.
pub(crate) fn of_command(command: &Command, registry: &Registry) -> CommandResult<Registry> {
    match command.operations() {
        OperationSource::Program => Ok(registry.clone()),
        OperationSource::Study(study, python) => load(&manifests_of_study(study), python, registry),
        OperationSource::Burst(burst, python) => {
            // The command reports an invalid file.
            let study = crate::burst::study_of(burst);
            load(&study.map(|study| manifests_of_study(&study)).unwrap_or_default(), python, registry)
        }
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
