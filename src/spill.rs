//! Opens the spill tiers named on the command line as one store.

mod error;

pub(crate) use error::SpillError;

use crate::tiers::{self, StorageKind, TierList};
use pleach_actors::spill::SpillStore;
use pleach_storage::TierStack;
use pleach_storage::files::private::{self, Claim};
use pleach_study::Defect;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// Spill tiers of a process: two folders, or a file that lists tiers.
#[derive(Clone, Debug)]
pub(crate) struct SpillOptions {
    /// Folder on a disk of this machine.
    pub(crate) ssd: Option<PathBuf>,
    /// Folder on a file system that all workers share.
    pub(crate) lustre: Option<PathBuf>,
    /// File that lists the tiers (TOML).
    pub(crate) tiers: Option<PathBuf>,
}

/// Open spill tiers, with the capacity of each, from fast to slow.
#[derive(Debug)]
pub(crate) struct OpenTiers {
    pub(crate) spill: Arc<SpillStore>,
    pub(crate) sizes: Vec<(String, u64)>,
}

impl OpenTiers {
    /// Returns the total capacity in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

/// Opens the named tiers. `None` without any.
///
/// # Errors
/// [`SpillError`] if one of them cannot be used.
pub(crate) fn open(options: &SpillOptions) -> Result<Option<OpenTiers>, SpillError> {
    // A local folder also serves other uses, such as input files. Regions have a subfolder of their own.
    let ssd = options.ssd.as_deref().filter(|_| options.tiers.is_none()).map(regions_of).transpose()?;
    let list = match &options.tiers {
        Some(file) => TierList::read(file),
        None => {
            let ssd = ssd.as_deref().map(|path| (StorageKind::Ssd, path));
            let lustre = options.lustre.as_deref().map(|path| (StorageKind::Lustre, path));
            TierList::of_folders(&ssd.into_iter().chain(lustre).collect::<Vec<_>>())
        }
    };
    let opened = tiers::open(&list?)?;
    if opened.is_empty() {
        return Ok(None);
    }
    let levels: Vec<_> = opened.into_iter().map(|opened| opened.level).collect();
    let sizes = levels.iter().map(|level| (level.name.clone(), level.tier.capacity_bytes())).collect();
    let spill = Arc::new(SpillStore::new(TierStack::new(levels)).map_err(Defect::new)?);
    Ok(Some(OpenTiers { spill, sizes }))
}

fn regions_of(ssd: &Path) -> Result<PathBuf, SpillError> {
    let path = ssd.join("regions");
    let unusable = |cause| SpillError::Unusable { ssd: ssd.to_owned(), cause };
    if !ssd.is_dir() {
        return Err(SpillError::NoFolder { ssd: ssd.to_owned() });
    }
    match private::claim(&path).map_err(unusable)? {
        Claim::Private => {}
        claim => warn!("--ssd {}: {claim}", path.display()),
    }
    Ok(path)
}
