//! Opens a folder: checks the marker, takes the lock, indexes the regions, and cleans up after a crash.
//!
//! Opening reads names and sizes, never the content of regions. Everything found present or missing is synced before it is
//! reported: the process that wrote or removed it may have been killed before its own sync.

use super::accounting::{FolderAccounting, ShardUsage};
use super::layout::{
    FANOUT, FileKind, LEAVES, LOCK_NAME, LOST_AND_FOUND, Layout, MARKER, MARKER_NAME, PACK_NAME,
    QUARANTINE_NAME, is_marker_part, named,
};
use super::pack::{self, Pack};
use super::{FolderSettings, FolderTier, failed, incomplete, scratch};
use crate::{Durability, TierError};
use parking_lot::Mutex;
use pleach_files::{FileLock, FileSystem, LockMode};
use pleach_regions::RegionKey;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, SystemTime};

/// 1 h: minimum age, by the file system's clock, of an abandoned unfinished file in a shared folder. A younger file may
/// belong to another process, and no write takes 1 h.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(3600);

/// Longer than any marker. Of a foreign file, at most these bytes are read and shown.
const MARKER_LIMIT_BYTES: u64 = 64;

impl FolderTier {
    /// Opens the tier in an existing folder, or creates one if the folder is empty.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the path is not a folder, the folder holds something else, cannot be written to, is
    /// private and open elsewhere, or has no space for regions.
    pub fn open(
        files: Arc<dyn FileSystem>,
        path: &Path,
        settings: FolderSettings,
    ) -> Result<Self, TierError> {
        let durability = if settings.kind.is_shared() { Durability::PowerLoss } else { settings.durability };
        let settings = FolderSettings { durability, ..settings };
        let layout = Layout::new(path);
        let unique = RandomState::new().hash_one(path);
        let is_folder = files.metadata(path).map_err(failed("open the tier", path))?.is_folder;
        if !is_folder {
            return Err(TierError::NotAFolder { path: path.to_owned() });
        }
        // Before the lock: taking it creates a file, and a folder with other content must stay unchanged.
        let is_new = find(&*files, &layout)?;
        let lock = lock(&*files, &layout, settings)?;
        let now = mark(&*files, &layout, settings, is_new, unique)?;
        make_folders(&*files, &layout)?;
        // After `make_folders`: emptying a former scratch folder lists every leaf.
        let files = scratch::begin(files, &layout, settings)?;
        let block_bytes = files.space(path).map_err(failed("look for room in", path))?.block_bytes.max(1);
        let mut books = FolderAccounting::new(overhead_bytes(&*files, &layout)?);
        let mut empty_bytes = books.bytes();
        for leaf in 0..LEAVES {
            let ShardScan { mut found, parts, drafts } = scan(&*files, &layout, leaf)?;
            for (part, modified) in parts {
                if is_left_over(settings, now, modified) {
                    remove_left_over(&*files, &part)?;
                }
            }
            for (key, draft) in drafts {
                incomplete::recover(&*files, &layout, key, &draft, &mut found)?;
            }
            // One sync covers the removals, the recovered drafts, and the renames of a killed process.
            sync(&*files, &layout.leaf(leaf))?;
            empty_bytes += found.other_bytes;
            books.replace(leaf, found);
        }
        let segment_bytes = pack::segment_bytes(settings.capacity_bytes);
        let is_shared = settings.kind.is_shared();
        let pack = Pack::open(Arc::clone(&files), &layout, segment_bytes, is_shared, unique)?;
        pack.with_disk_usage(|bytes| books.set_packed(bytes));
        if settings.capacity_bytes <= empty_bytes {
            let (capacity_bytes, overhead_bytes) = (settings.capacity_bytes, empty_bytes);
            return Err(TierError::Capacity { path: path.to_owned(), capacity_bytes, overhead_bytes });
        }
        Ok(Self {
            files,
            layout,
            settings,
            block_bytes,
            books: Mutex::new(books),
            pack,
            leaves: (0..LEAVES).map(|_| Mutex::new(())).collect(),
            // Wraps, since `unique` is random. The number itself already names the unfinished marker.
            unique: AtomicU64::new(unique.wrapping_add(1)),
            stopped: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

/// Returns whether the folder is new. Fails if it holds something else.
fn find(files: &dyn FileSystem, layout: &Layout) -> Result<bool, TierError> {
    let path = &layout.root;
    let names = files.list(path).map_err(failed("open the tier", path))?;
    let marker = layout.named(MARKER_NAME);
    // Another process may be creating the tier: a listing can contain its folders but not the marker, which is older.
    if names.iter().any(|(name, _)| name == MARKER_NAME) || files.metadata(&marker).is_ok() {
        let (file, _) = files.open(&marker).map_err(failed("read", &marker))?;
        let mut bytes = Vec::new();
        file.take(MARKER_LIMIT_BYTES).read_to_end(&mut bytes).map_err(failed("read", &marker))?;
        let found = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
        if found == MARKER {
            return Ok(false);
        }
        return Err(TierError::Version { path: path.clone(), found, allowed: MARKER });
    }
    // Files of an opening that was killed before it wrote the marker, and the initial content of a file system.
    let is_ours = |name: &str| name == LOCK_NAME || name == LOST_AND_FOUND || is_marker_part(name);
    match names.into_iter().find(|(name, _)| !is_ours(name)) {
        Some((found, _)) => Err(TierError::NotATier { path: path.clone(), found }),
        None => Ok(true),
    }
}

fn lock(
    files: &dyn FileSystem,
    layout: &Layout,
    settings: FolderSettings,
) -> Result<Option<Box<dyn FileLock>>, TierError> {
    let path = layout.named(LOCK_NAME);
    let sharing = if settings.kind.is_shared() { LockMode::Shared } else { LockMode::Exclusive };
    match files.lock(&path, sharing) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(TierError::InUse { path: layout.root.clone() }),
        // Lustre has locks only if it was mounted with them. Only the check for a second opener depends on this lock.
        Err(error) if error.kind() == io::ErrorKind::Unsupported && sharing == LockMode::Shared => Ok(None),
        Err(error) => Err(failed("lock", &path)(error)),
    }
}

/// Writes the marker if it is missing. Returns the time by the file system's clock. Fails if no file can be created. An
/// existing tier opens even on a full disk, so that regions can be removed.
fn mark(
    files: &dyn FileSystem,
    layout: &Layout,
    settings: FolderSettings,
    is_new: bool,
    unique: u64,
) -> Result<SystemTime, TierError> {
    let (root, part, marker) = (&layout.root, layout.marker_part(unique), layout.named(MARKER_NAME));
    let write = || -> io::Result<SystemTime> {
        let mut file = files.create(&part)?;
        if is_new {
            file.write_all(format!("{MARKER}\n").as_bytes())?;
            file.sync()?;
        }
        Ok(files.metadata(&part)?.modified)
    };
    let now = write().map_err(failed("write", &part))?;
    if is_new {
        files.rename(&part, &marker).map_err(failed("publish", &marker))?;
    } else {
        files.remove(&part).map_err(failed("remove", &part))?;
    }
    for (name, about) in files.list(root).map_err(failed("list", root))? {
        if is_marker_part(&name) && is_left_over(settings, now, about.modified) {
            remove_left_over(files, &layout.named(&name))?;
        }
    }
    // Synced before anything else is created: a folder with content but no marker cannot be opened again.
    sync(files, root)?;
    Ok(now)
}

/// Creates the missing folders and syncs their names.
fn make_folders(files: &dyn FileSystem, layout: &Layout) -> Result<(), TierError> {
    let make = |path: &Path| match files.create_folder(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("make", path)(error)),
        _ => Ok(()),
    };
    make(&layout.named(QUARANTINE_NAME))?;
    make(&layout.named(PACK_NAME))?;
    for branch in 0..FANOUT {
        make(&layout.branch(branch))?;
    }
    sync(files, &layout.root)?;
    for leaf in 0..LEAVES {
        make(&layout.leaf(leaf))?;
        // One sync per branch instead of one per leaf: its leaves are created in a row.
        if leaf % FANOUT == FANOUT - 1 {
            sync(files, &layout.branch(leaf / FANOUT))?;
        }
    }
    Ok(())
}

pub(super) fn sync(files: &dyn FileSystem, folder: &Path) -> Result<(), TierError> {
    files.sync_folder(folder).map_err(failed("sync", folder))
}

/// Returns the disk usage outside of the leaves: parent folders and other files.
fn overhead_bytes(files: &dyn FileSystem, layout: &Layout) -> Result<u64, TierError> {
    let root = &layout.root;
    let listed = |folder: &Path| -> Result<u64, TierError> {
        let all = files.list(folder).map_err(failed("list", folder))?;
        Ok(all.iter().map(|(_, about)| about.disk_bytes).sum())
    };
    let root_bytes = files.metadata(root).map_err(failed("look at", root))?.disk_bytes;
    Ok(root_bytes + listed(root)? + listed(&layout.named(QUARANTINE_NAME))?)
}

/// Content of a leaf, with its unfinished files.
pub(super) struct ShardScan {
    pub(super) found: ShardUsage,
    parts: Vec<(PathBuf, SystemTime)>,
    drafts: Vec<(RegionKey, PathBuf)>,
}

/// Scans a leaf.
pub(super) fn scan(files: &dyn FileSystem, layout: &Layout, leaf: usize) -> Result<ShardScan, TierError> {
    let path = layout.leaf(leaf);
    let other_bytes = files.metadata(&path).map_err(failed("look at", &path))?.disk_bytes;
    let mut found = ShardUsage { other_bytes, ..ShardUsage::default() };
    let (mut parts, mut drafts) = (Vec::new(), Vec::new());
    for (name, about) in files.list(&path).map_err(failed("list", &path))? {
        match named(leaf, &name) {
            FileKind::Region(key) if !about.is_folder => {
                found.regions.insert(key, about.disk_bytes);
            }
            // Its writer has reserved space for it.
            FileKind::Part => parts.push((path.join(&name), about.modified)),
            FileKind::Draft(key) if !about.is_folder => drafts.push((key, path.join(&name))),
            FileKind::Region(_) | FileKind::Draft(_) | FileKind::Other => {
                found.other_bytes += about.disk_bytes
            }
        }
    }
    Ok(ShardScan { found, parts, drafts })
}

/// Returns whether an unfinished file has been abandoned. A private folder has no other writers.
fn is_left_over(settings: FolderSettings, now: SystemTime, modified: SystemTime) -> bool {
    !settings.kind.is_shared() || now.duration_since(modified).unwrap_or_default() >= LEFT_OVER_AFTER
}

/// Removes a file. A missing file is not an error.
pub(super) fn remove_left_over(files: &dyn FileSystem, path: &Path) -> Result<(), TierError> {
    match files.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}
