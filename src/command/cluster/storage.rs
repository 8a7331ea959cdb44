//! `pleach storage`: measures, lists, verifies and cleans tiers that no worker has open.
//!
//! Placement of regions during studies is decided elsewhere.

mod bench;
mod gc;
mod inspect;

use crate::cli::{StorageCommand, TierArgs};
use crate::exit::{CommandError, CommandResult};
use crate::tiers::{self, OpenTier, StorageKind, TierList};
use std::path::Path;

/// Runs a command.
pub(in crate::command) fn execute(command: &StorageCommand) -> CommandResult {
    match command {
        StorageCommand::Bench(args) => bench::execute(args),
        StorageCommand::Ls(args) => inspect::list(args),
        StorageCommand::Verify(args) => inspect::verify(args),
        StorageCommand::Gc(args) => gc::execute(args),
    }
}

/// Opens the tiers of the arguments.
fn opened(args: &TierArgs) -> CommandResult<Vec<OpenTier>> {
    let list = match &args.tiers {
        Some(file) => TierList::read(file),
        None => {
            let named = [(StorageKind::Ssd, &args.ssd), (StorageKind::Lustre, &args.lustre)];
            let folders: Vec<(StorageKind, &Path)> =
                named.iter().filter_map(|(kind, path)| Some((*kind, path.as_deref()?))).collect();
            TierList::of_folders(&folders)
        }
    };
    let list = list.map_err(CommandError::input)?.detect().map_err(CommandError::input)?;
    tiers::open(&list).map_err(CommandError::input)
}
