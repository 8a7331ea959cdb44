//! Tier lists: TOML files with storage tiers from fast to slow, validated before any tier is opened.
//!
//! ```toml
//! [[tier]]
//! kind = "ssd"            # "ssd", "hdd", "lustre", "s3", in this order. --memory sets the memory above them
//! path = "scratch"        # relative to the file; of "s3" there are bucket, endpoint, region and prefix instead
//! capacity = "20GB"
//! reserve = "1GB"         # stays free of the disk
//! policy = "cost-benefit" # or "lru", or "none"
//! write = "back"          # or "through"
//! durable = false         # of "ssd" and "hdd": whether each region waits for the medium, to survive a loss of power
//! ```
//!
//! `pleach-storage` decides the placement of regions.

mod error;
mod open;
mod validate;

pub(crate) use error::TierListError;
pub(crate) use open::{OpenTier, open};

use error::Problem;
use pleach_objects::S3Location;
use pleach_planner::memory_size::MemorySize;
use pleach_storage::files::OsFileSystem;
use pleach_storage::lustre::Striping;
use pleach_storage::{Durability, EvictionPolicy, FolderKind, FolderTier, TierError, WriteMode};
use pleach_workflow::toml_fields::{Document, FieldResult, Section};
use std::path::{Path, PathBuf};

/// Location of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TierTarget {
    /// Existing folder. `striping` applies to Lustre.
    Folder { kind: FolderKind, path: PathBuf, durability: Durability, reserve_bytes: u64, striping: Striping },
    /// Object storage.
    Bucket(S3Location),
}

/// Tier of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TierEntry {
    pub(crate) kind: StorageKind,
    pub(crate) target: TierTarget,
    pub(crate) capacity_bytes: u64,
    pub(crate) policy: EvictionPolicy,
    pub(crate) write: WriteMode,
}

/// Kinds of tiers, from fast to slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StorageKind {
    Ssd,
    Hdd,
    Lustre,
    S3,
}

impl StorageKind {
    const ALL: [Self; 4] = [Self::Ssd, Self::Hdd, Self::Lustre, Self::S3];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ssd => "ssd",
            Self::Hdd => "hdd",
            Self::Lustre => "lustre",
            Self::S3 => "s3",
        }
    }

    /// Returns whether other nodes can read the tier.
    pub(crate) fn is_shared(self) -> bool {
        self >= Self::Lustre
    }

    /// Returns the default durability of a folder's regions. Regions on a node's own disk need not survive
    /// power loss, because they are of no use after their process has ended.
    fn durability(self) -> Durability {
        if self.is_shared() { Durability::PowerLoss } else { Durability::Process }
    }

    fn folder(self) -> FolderKind {
        match self {
            Self::Ssd | Self::S3 => FolderKind::Ssd,
            Self::Hdd => FolderKind::Hdd,
            Self::Lustre => FolderKind::Lustre,
        }
    }
}

/// Validated tiers, from fast to slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TierList(pub(crate) Vec<TierEntry>);

impl TierList {
    /// Reads and validates a file. Inspects the folders but opens no tier.
    ///
    /// # Errors
    /// [`TierListError`] names the file, the number of the tier, the field, its value and the allowed values.
    pub(crate) fn read(file: &Path) -> Result<Self, TierListError> {
        let document = Document::read(file)?;
        let root = document.root();
        let unknown =
            |field: &str| TierListError::UnknownTable { file: file.to_owned(), field: field.to_owned() };
        if let Some(field) = root.keys().find(|field| *field != "tier") {
            return Err(unknown(field));
        }
        let tiers = root.sections("tier", "", [" ", ": "]).map_err(|_| unknown("tier"))?.unwrap_or_default();
        let mut entries: Vec<TierEntry> = Vec::new();
        for tier in &tiers {
            let entry = entry(tier)?;
            tier.end()?;
            validate::check(&entries, &entry)
                .map_err(|(field, problem)| TierListError::at(tier.at(field), problem))?;
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err(TierListError::NoTier { file: file.to_owned() });
        }
        Ok(Self(entries))
    }

    /// Creates a list of folders named on the command line.
    ///
    /// # Errors
    /// [`TierListError`] if one of them is invalid.
    pub(crate) fn of_folders(folders: &[(StorageKind, &Path)]) -> Result<Self, TierListError> {
        let mut entries = Vec::new();
        for (number, (kind, path)) in folders.iter().enumerate() {
            let failed = |(field, problem)| {
                TierListError::at(("command line".into(), format!("tier {}: {field}", number + 1)), problem)
            };
            let disk = validate::disk_space(path).map_err(failed)?;
            let target = TierTarget::Folder {
                kind: kind.folder(),
                path: (*path).to_owned(),
                durability: kind.durability(),
                reserve_bytes: 0,
                striping: Striping::default(),
            };
            let (policy, write) = (EvictionPolicy::Lru, WriteMode::Back);
            let entry = TierEntry { kind: *kind, target, capacity_bytes: disk.total_bytes, policy, write };
            validate::check(&entries, &entry).map_err(failed)?;
            entries.push(entry);
        }
        Ok(Self(entries))
    }

    /// Returns the list with the durability of existing tier folders as found, so that maintenance does not
    /// change it.
    ///
    /// # Errors
    /// [`TierError`] if a folder cannot be inspected.
    pub(crate) fn detect(mut self) -> Result<Self, TierError> {
        for entry in &mut self.0 {
            if let TierTarget::Folder { path, durability, .. } = &mut entry.target {
                *durability = FolderTier::durability_of(&OsFileSystem, path)?.unwrap_or(*durability);
            }
        }
        Ok(self)
    }
}

const KINDS: &str =
    "\"ssd\", \"hdd\", \"lustre\" and \"s3\" are allowed; --memory sets the memory above them";

/// Reads one table of the file.
fn entry(tier: &Section<'_>) -> Result<TierEntry, TierListError> {
    let name = tier.needed_text("kind", KINDS)?;
    let Some(kind) = StorageKind::ALL.into_iter().find(|kind| kind.name() == name) else {
        return tier.not_allowed("kind", name, KINDS);
    };
    let capacity = size(tier, "capacity")?;
    let capacity_bytes = tier.needed("capacity", capacity, "a size is needed, as in \"20GB\"")?.bytes();
    let policies = "\"lru\", \"cost-benefit\" and \"none\" are allowed";
    let known = [EvictionPolicy::Lru, EvictionPolicy::CostBenefit, EvictionPolicy::None];
    let policy = tier.value("policy", policies, |value| {
        known.into_iter().find(|policy| Some(policy.name()) == value.as_str())
    })?;
    let policy = policy.unwrap_or(EvictionPolicy::CostBenefit);
    let modes = "\"back\" and \"through\" are allowed";
    let write = match tier.text("write", modes)? {
        None | Some("back") => WriteMode::Back,
        Some("through") => WriteMode::Through,
        Some(other) => return tier.not_allowed("write", other, modes),
    };
    let target = match kind {
        StorageKind::S3 => TierTarget::Bucket(bucket(tier)?),
        StorageKind::Ssd | StorageKind::Hdd | StorageKind::Lustre => {
            let allowed = "the path of a folder is needed";
            let path = tier.needed("path", text(tier, "path", allowed)?, allowed)?;
            let striping = if kind == StorageKind::Lustre { striping(tier)? } else { Striping::default() };
            let reserve_bytes = size(tier, "reserve")?.map_or(0, MemorySize::bytes);
            // Shared tiers are always durable, because other nodes read them.
            let durable =
                if kind.is_shared() { None } else { tier.boolean("durable", "true and false are allowed")? };
            let durability = match durable {
                None => kind.durability(),
                Some(true) => Durability::PowerLoss,
                Some(false) => Durability::Process,
            };
            let path = tier.path(path);
            TierTarget::Folder { kind: kind.folder(), path, durability, reserve_bytes, striping }
        }
    };
    Ok(TierEntry { kind, target, capacity_bytes, policy, write })
}

/// Reads a text without NUL, which system calls reject in paths and names.
fn text<'a>(tier: &Section<'a>, field: &str, allowed: &str) -> FieldResult<&'a str> {
    tier.value(field, allowed, |value| value.as_str().filter(|text| !text.contains('\0')))
}

fn size(tier: &Section<'_>, field: &str) -> Result<Option<MemorySize>, TierListError> {
    let Some(text) = text(tier, field, "a size in quotes is allowed, as in \"20GB\"")? else {
        return Ok(None);
    };
    let wrong = |source| TierListError::at(tier.at(field), Problem::Size { value: text.to_owned(), source });
    text.parse().map(Some).map_err(wrong)
}

fn striping(tier: &Section<'_>) -> Result<Striping, TierListError> {
    let counts = "-1 (all targets) or 1 to 2000 is allowed";
    let count = tier.value("stripe_count", counts, |value| match value.as_integer() {
        // The pattern bounds the count, so the cast cannot truncate.
        Some(count @ (-1 | 1..=2000)) => Some(count as i32),
        _ => None,
    })?;
    let size_bytes = size(tier, "stripe_size")?.map(MemorySize::bytes);
    if let Some(bytes) = size_bytes.filter(|bytes| !bytes.is_multiple_of(64 << 10)) {
        return tier.not_allowed("stripe_size", &bytes.to_string(), "multiples of 64KiB are allowed");
    }
    Ok(Striping { count, size_bytes })
}

fn bucket(tier: &Section<'_>) -> Result<S3Location, TierListError> {
    let names = "the name of a bucket is needed: 3 to 63 lower-case letters, digits, dots and hyphens";
    let name = tier.needed_text("bucket", names)?;
    if !S3Location::is_name(name) {
        return tier.not_allowed("bucket", name, names);
    }
    let endpoints = "an address with http:// or https:// is allowed";
    let endpoint = text(tier, "endpoint", endpoints)?;
    if let Some(endpoint) =
        endpoint.filter(|text| !(text.starts_with("http://") || text.starts_with("https://")))
    {
        return tier.not_allowed("endpoint", endpoint, endpoints);
    }
    let prefixes = "at most 200 letters, digits, dots, hyphens, underscores and single slashes are allowed, \
                    without a part \"..\"";
    let prefix = tier.text("prefix", prefixes)?.unwrap_or_default();
    if !S3Location::is_prefix(prefix) {
        return tier.not_allowed("prefix", prefix, prefixes);
    }
    let region = text(tier, "region", "the name of a region is allowed")?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(S3Location {
        name: name.to_owned(),
        endpoint: owned(endpoint),
        region: owned(region),
        prefix: prefix.to_owned(),
    })
}

#[cfg(test)]
mod tests;
