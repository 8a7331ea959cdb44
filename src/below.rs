//! The tiers below memory that a process was given on its command line, as one store.

use crate::cli::BelowArgs;
use crate::exit::{Outcome, Stop};
use crate::tiers::{self, Kind, TierList};
use pleach_actors::below::Below;
use pleach_storage::TierStack;
use pleach_storage::files::private::{self, Claim};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// Tiers, opened, and what each may hold, the fastest first.
#[derive(Debug)]
pub(crate) struct Tiers {
    pub(crate) below: Arc<Below>,
    pub(crate) sizes: Vec<(String, u64)>,
}

impl Tiers {
    /// What can be stored in all of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

/// Opens the tiers that were named; none, where none was.
///
/// # Errors
/// [`Stop::Input`] when one of them cannot be used.
pub(crate) fn open(args: &BelowArgs) -> Outcome<Option<Tiers>> {
    // A folder of this machine is shared with other uses, such as input files: regions have one of their own in it.
    let ssd = args.ssd.as_deref().filter(|_| args.tiers.is_none()).map(regions_of).transpose()?;
    let list = match &args.tiers {
        Some(file) => TierList::read(file),
        None => {
            let ssd = ssd.as_deref().map(|path| (Kind::Ssd, path));
            let lustre = args.lustre.as_deref().map(|path| (Kind::Lustre, path));
            TierList::of_folders(&ssd.into_iter().chain(lustre).collect::<Vec<_>>())
        }
    };
    let opened = tiers::open(&list.map_err(Stop::input)?);
    let opened = opened.map_err(|error| Stop::caused(&error, error.to_string()))?;
    if opened.is_empty() {
        return Ok(None);
    }
    let levels: Vec<_> = opened.into_iter().map(|opened| opened.level).collect();
    let sizes = levels.iter().map(|level| (level.name.clone(), level.tier.capacity_bytes())).collect();
    let below = Arc::new(Below::new(TierStack::new(levels)).map_err(Stop::defect)?);
    Ok(Some(Tiers { below, sizes }))
}

fn regions_of(ssd: &Path) -> Outcome<PathBuf> {
    let path = ssd.join("regions");
    let unusable = |error| Stop::writing(format_args!("--ssd {}", ssd.display()), &error);
    if !ssd.is_dir() {
        return Err(Stop::Input(format!("--ssd {}: a folder that exists is needed", ssd.display())));
    }
    match private::claim(&path).map_err(unusable)? {
        Claim::Private => {}
        claim => warn!("--ssd {}: {claim}", path.display()),
    }
    Ok(path)
}
