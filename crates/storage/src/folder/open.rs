//! Opening a folder: whose it is, who else has it open, what is in it, and what a crash has left.
//!
//! No region is read for that: names and sizes are enough. What is found, and what is found gone, is synced before anybody is told
//! of it: whoever wrote or removed it may have been killed just before doing so.

use super::accounting::{FolderAccounting, ShardUsage};
use super::layout::{
    FANOUT, FileKind, LEAVES, LOCK_NAME, LOST_AND_FOUND, Layout, MARKER, MARKER_NAME, PACK_NAME,
    QUARANTINE_NAME, is_marker_part, named,
};
use super::pack::{self, Pack};
use super::{FolderSettings, FolderTier, failed, incomplete, scratch};
use crate::{Durability, TierError};
use pleach_files::{FileLock, FileSystem, LockMode};
use pleach_regions::RegionKey;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A file that is being written in a shared folder may be another process's. Nobody writes a region for an hour: what has
/// not been touched for so long, by the clock of the file system, is left over.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(3600);

/// Longer than any marker; of a file that is something else, no more than this is read and shown.
const MARKER_LIMIT_BYTES: u64 = 64;

impl FolderTier {
    /// Opens the tier in a folder that exists, or begins one if it is empty.
    ///
    /// # Errors
    /// [`TierError`] when it is no folder, holds something else, cannot be written to, is open elsewhere though it is
    /// private, or has no room for regions.
    pub fn open(
        files: Arc<dyn FileSystem>,
        path: &Path,
        settings: FolderSettings,
    ) -> Result<Self, TierError> {
        let durability = if settings.kind.is_shared() { Durability::PowerLoss } else { settings.durability };
        let settings = FolderSettings { durability, ..settings };
        let layout = Layout::new(path);
        let unique = RandomState::new().hash_one(path);
        let is_folder = files.look(path).map_err(failed("open the tier", path))?.is_folder;
        if !is_folder {
            return Err(TierError::NotAFolder { path: path.to_owned() });
        }
        let is_new = find(&*files, &layout)?;
        let lock = lock(&*files, &layout, settings)?;
        let now = mark(&*files, &layout, settings, is_new, unique)?;
        make_folders(&*files, &layout)?;
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
            sync(&*files, &layout.leaf(leaf))?;
            empty_bytes += found.other_bytes;
            books.replace(leaf, found);
        }
        let segment_bytes = pack::segment_bytes(settings.capacity_bytes);
        let is_shared = settings.kind.is_shared();
        let pack = Pack::open(Arc::clone(&files), &layout, segment_bytes, is_shared, unique)?;
        pack.tell_taken(|bytes| books.set_packed(bytes));
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
            unique: AtomicU64::new(unique.wrapping_add(1)),
            stopped: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

/// Whether the folder is a new one; it is refused if it is somebody else's.
fn find(files: &dyn FileSystem, layout: &Layout) -> Result<bool, TierError> {
    let path = &layout.root;
    let names = files.list(path).map_err(failed("open the tier", path))?;
    let marker = layout.named(MARKER_NAME);
    // Another process may just have begun the tier: a list that has its folders may lack the marker, which is older.
    if names.iter().any(|(name, _)| name == MARKER_NAME) || files.look(&marker).is_ok() {
        let (file, _) = files.open(&marker).map_err(failed("read", &marker))?;
        let mut bytes = Vec::new();
        file.take(MARKER_LIMIT_BYTES).read_to_end(&mut bytes).map_err(failed("read", &marker))?;
        let found = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
        if found == MARKER {
            return Ok(false);
        }
        return Err(TierError::Version { path: path.clone(), found, allowed: MARKER });
    }
    // What an opening leaves that was killed before the folder was marked, and what a file system begins with.
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
        // Lustre has locks only where it was mounted with them. Nothing but this refusal depends on them.
        Err(error) if error.kind() == io::ErrorKind::Unsupported && sharing == LockMode::Shared => Ok(None),
        Err(error) => Err(failed("lock", &path)(error)),
    }
}

/// Writes the marker if there is none, and says what time it is by the clock of the file system. Fails where no file can be
/// made; of a folder that is a tier already, a full disk is no hindrance: something may be removed.
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
        Ok(files.look(&part)?.modified)
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
    // Before there is anything else: a folder without a marker is not opened again if something lies in it.
    sync(files, root)?;
    Ok(now)
}

/// Makes the folders that are not there, and syncs their names.
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
        if leaf % FANOUT == FANOUT - 1 {
            sync(files, &layout.branch(leaf / FANOUT))?;
        }
    }
    Ok(())
}

pub(super) fn sync(files: &dyn FileSystem, folder: &Path) -> Result<(), TierError> {
    files.sync_folder(folder).map_err(failed("sync", folder))
}

/// What is taken by everything that is not in a leaf: the folders around them, and what lies beside them.
fn overhead_bytes(files: &dyn FileSystem, layout: &Layout) -> Result<u64, TierError> {
    let root = &layout.root;
    let listed = |folder: &Path| -> Result<u64, TierError> {
        let all = files.list(folder).map_err(failed("list", folder))?;
        Ok(all.iter().map(|(_, about)| about.taken_bytes).sum())
    };
    let root_bytes = files.look(root).map_err(failed("look at", root))?.taken_bytes;
    Ok(root_bytes + listed(root)? + listed(&layout.named(QUARANTINE_NAME))?)
}

/// What a leaf holds, and the files in it that are being written, or were.
pub(super) struct ShardScan {
    pub(super) found: ShardUsage,
    parts: Vec<(PathBuf, SystemTime)>,
    drafts: Vec<(RegionKey, PathBuf)>,
}

/// Looks at a leaf.
pub(super) fn scan(files: &dyn FileSystem, layout: &Layout, leaf: usize) -> Result<ShardScan, TierError> {
    let path = layout.leaf(leaf);
    let other_bytes = files.look(&path).map_err(failed("look at", &path))?.taken_bytes;
    let mut found = ShardUsage { other_bytes, ..ShardUsage::default() };
    let (mut parts, mut drafts) = (Vec::new(), Vec::new());
    for (name, about) in files.list(&path).map_err(failed("list", &path))? {
        match named(leaf, &name) {
            FileKind::Region(key) if !about.is_folder => {
                found.regions.insert(key, about.taken_bytes);
            }
            // Whoever writes it has room reserved for it.
            FileKind::Part => parts.push((path.join(&name), about.modified)),
            FileKind::Draft(key) if !about.is_folder => drafts.push((key, path.join(&name))),
            FileKind::Region(_) | FileKind::Draft(_) | FileKind::Other => {
                found.other_bytes += about.taken_bytes
            }
        }
    }
    Ok(ShardScan { found, parts, drafts })
}

/// Whether a file that was being written is so no more: in a private folder nobody else writes.
fn is_left_over(settings: FolderSettings, now: SystemTime, modified: SystemTime) -> bool {
    !settings.kind.is_shared() || now.duration_since(modified).unwrap_or_default() >= LEFT_OVER_AFTER
}

/// Removes a file; that it is gone is no error.
pub(super) fn remove_left_over(files: &dyn FileSystem, path: &Path) -> Result<(), TierError> {
    match files.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}
