//! `pleach storage`: tiers are measured, listed, checked and cleaned, while no worker has them open.
//!
//! Nothing here says what goes where while studies run.

mod bench;
mod gc;
mod look;

use crate::cli::{StorageCommand, TierArgs};
use crate::exit::{Outcome, Stop};
use crate::tiers::{self, Kind, Opened, TierList};
use std::path::Path;

/// Runs a command.
pub(super) fn execute(command: &StorageCommand) -> Outcome {
    match command {
        StorageCommand::Bench(args) => bench::execute(args),
        StorageCommand::Ls(args) => look::list(args),
        StorageCommand::Verify(args) => look::verify(args),
        StorageCommand::Gc(args) => gc::execute(args),
    }
}

/// Opens the tiers that were named.
fn opened(args: &TierArgs) -> Outcome<Vec<Opened>> {
    let list = match &args.tiers {
        Some(file) => TierList::read(file),
        None => {
            let named = [(Kind::Ssd, &args.ssd), (Kind::Lustre, &args.lustre)];
            let folders: Vec<(Kind, &Path)> =
                named.iter().filter_map(|(kind, path)| Some((*kind, path.as_deref()?))).collect();
            TierList::of_folders(&folders)
        }
    };
    let list = list.map_err(Stop::input)?.found().map_err(Stop::input)?;
    tiers::open(&list).map_err(Stop::input)
}
