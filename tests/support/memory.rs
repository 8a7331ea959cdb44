//! File system in memory with a log of changes. It can be restored to any state that a power loss at any point of the log
//! may leave.
//!
//! A name is durable only after an fsync of its folder, and a byte only after an fsync of its file. Names and contents are
//! independent, as in POSIX: a name may survive without its content, a later change without an earlier one, and one half of
//! a rename between folders.

#[path = "memory/image.rs"]
mod image;

use image::{Change, Content, Image, Node};
use pleach_files::{DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Cursor, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// Allocation unit of files. A folder takes one block.
const BLOCK_BYTES: u64 = 4096;

#[derive(Debug)]
struct State {
    /// State of the medium when the log began, with all nodes created since, which are empty.
    medium: Image,
    now: Image,
    log: Vec<Change>,
    locks: HashMap<PathBuf, LockMode>,
    /// Files locked through an open handle, with the number of the handle.
    locked: HashMap<Node, u64>,
    opened: u64,
    /// Changes until every operation fails, as in a killed process. `None` means no limit.
    left: Option<usize>,
}

/// A file system. Clones refer to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Mutex<State>>);

impl Default for Memory {
    /// A file system with one empty folder, which is on the medium.
    fn default() -> Self {
        let tier = Path::new(Self::TIER).file_name().unwrap().to_str().unwrap().to_owned();
        let root = Content::Folder([(tier, 1)].into());
        Self::of(Image(vec![root, Content::Folder(BTreeMap::new())]))
    }
}

impl Memory {
    /// The initial folder.
    pub(crate) const TIER: &str = "/tier";

    fn of(image: Image) -> Self {
        let (medium, now) = (image.clone(), image);
        let (log, locks, locked) = (Vec::new(), HashMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(State { medium, now, log, locks, locked, opened: 0, left: None })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Number of changes so far.
    pub(crate) fn changes(&self) -> usize {
        self.state().log.len()
    }

    /// Allows this many more changes, then fails. `None` removes the limit.
    pub(crate) fn kill_after(&self, changes: Option<usize>) {
        self.state().left = changes;
    }

    /// A state that a power loss after `changes` changes may leave. `random` chooses the fate of each change that was not
    /// synced.
    pub(crate) fn after_power_loss(&self, changes: usize, mut random: impl FnMut() -> u32) -> Self {
        let state = self.state();
        let log = &state.log[..changes];
        let mut synced: HashMap<Node, usize> = HashMap::new();
        for (place, change) in log.iter().enumerate() {
            if let Change::Sync { node } = change {
                synced.insert(*node, place);
            }
        }
        let mut image = state.medium.clone();
        for (place, change) in log.iter().enumerate() {
            let is_sure = synced.get(&change.node()).is_some_and(|sync| *sync > place);
            let mut change = change.clone();
            if !is_sure {
                let fate = random();
                match &mut change {
                    Change::Write { bytes, .. } if fate.is_multiple_of(3) => {
                        bytes.truncate(fate as usize / 3 % (bytes.len() + 1))
                    }
                    Change::Write { bytes, .. } if fate % 3 == 1 && !bytes.is_empty() => {
                        let place = fate as usize / 3 % bytes.len();
                        bytes[place] ^= 0x20;
                    }
                    _ if fate.is_multiple_of(2) => continue,
                    _ => {}
                }
            }
            image.apply(&change);
        }
        Self::of(image)
    }
}

impl State {
    fn node(&self, path: &Path) -> io::Result<Node> {
        let mut node = 0;
        for part in path.components().filter(|part| *part != Component::RootDir) {
            let Content::Folder(names) = &self.now.0[node] else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            node = *names.get(part.as_os_str().to_str().unwrap()).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// The folder of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(Node, String)> {
        let folder = self.node(path.parent().unwrap())?;
        Ok((folder, path.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    fn found(&self, node: Node) -> FileMeta {
        let (is_folder, length_bytes) = match &self.now.0[node] {
            Content::Folder(_) => (true, BLOCK_BYTES),
            Content::File(bytes) => (false, bytes.len() as u64),
        };
        let disk_bytes = length_bytes.next_multiple_of(BLOCK_BYTES);
        // Later nodes have later times.
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(node as u64);
        FileMeta { is_folder, length_bytes, disk_bytes, modified }
    }

    fn alive(&self) -> io::Result<()> {
        if self.left == Some(0) { Err(io::Error::other("the process has been killed")) } else { Ok(()) }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.alive()?;
        self.left = self.left.map(|left| left - 1);
        self.now.apply(&change);
        self.log.push(change);
        Ok(())
    }

    fn add(&mut self, path: &Path, content: Content) -> io::Result<Node> {
        let (folder, name) = self.place(path)?;
        if self.node(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = self.now.0.len();
        self.change(Change::Name { folder, name, node: Some(node) })?;
        self.medium.0.push(content.clone());
        self.now.0.push(content);
        Ok(node)
    }
}

impl FileSystem for Memory {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        let state = self.state();
        state.alive()?;
        let Content::Folder(names) = &state.now.0[state.node(folder)?] else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        Ok(names.iter().map(|(name, node)| (name.clone(), state.found(*node))).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        let state = self.state();
        state.alive()?;
        Ok(state.found(state.node(path)?))
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.state().add(folder, Content::Folder(BTreeMap::new())).map(drop)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        let node = self.state().add(path, Content::File(Vec::new()))?;
        Ok(Box::new(MemoryNew { files: self.clone(), node, length: 0 }))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let state = self.state();
        state.alive()?;
        match &state.now.0[state.node(path)?] {
            Content::File(bytes) => Ok((Box::new(Cursor::new(bytes.clone())), bytes.len() as u64)),
            Content::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.state();
        state.alive()?;
        let is_new = how == OpenMode::Create;
        let node = if is_new { state.add(path, Content::File(Vec::new()))? } else { state.node(path)? };
        if matches!(state.now.0[node], Content::Folder(_)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.opened += 1;
        let (number, may_write) = (state.opened, how != OpenMode::Read);
        Ok(Box::new(MemoryFile { files: self.clone(), node, number, may_write }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.node(from)?;
        let ((folder, from), (target, to)) = (state.place(from)?, state.place(to)?);
        if folder == target {
            return state.change(Change::Rename { folder, from, to, node });
        }
        state.change(Change::Name { folder: target, name: to, node: Some(node) })?;
        state.change(Change::Name { folder, name: from, node: None })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.node(path)?;
        let (folder, name) = state.place(path)?;
        state.change(Change::Name { folder, name, node: None })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.node(folder)?;
        state.change(Change::Sync { node })
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        let mut state = self.state();
        if state.node(path).is_err() {
            state.add(path, Content::File(Vec::new()))?;
        }
        match state.locks.get(path) {
            Some(held) if *held == LockMode::Exclusive || sharing == LockMode::Exclusive => return Ok(None),
            _ => state.locks.insert(path.to_owned(), sharing),
        };
        Ok(Some(Box::new(MemoryLock { files: self.clone(), path: path.to_owned() })))
    }

    fn space(&self, _: &Path) -> io::Result<DiskSpace> {
        self.state().alive()?;
        Ok(DiskSpace { total_bytes: u64::MAX / 2, free_bytes: u64::MAX / 2, block_bytes: BLOCK_BYTES })
    }
}

#[derive(Debug)]
struct MemoryNew {
    files: Memory,
    node: Node,
    length: usize,
}

impl Write for MemoryNew {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (node, offset) = (self.node, self.length);
        self.files.state().change(Change::Write { node, offset, bytes: bytes.to_vec() })?;
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewFile for MemoryNew {
    fn sync(&mut self) -> io::Result<()> {
        self.files.state().change(Change::Sync { node: self.node })
    }
}

/// Open handle of a file.
#[derive(Debug)]
struct MemoryFile {
    files: Memory,
    node: Node,
    number: u64,
    may_write: bool,
}

impl MemoryFile {
    fn change(&self, change: Change) -> io::Result<()> {
        if self.may_write {
            self.files.state().change(change)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let mut state = self.files.state();
        if state.locked.get(&self.node) == Some(&self.number) {
            state.locked.remove(&self.node);
        }
    }
}

impl OpenFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        let state = self.files.state();
        state.alive()?;
        Ok(state.found(self.node).length_bytes)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.files.state();
        state.alive()?;
        let Content::File(content) = &state.now.0[self.node] else { panic!("a folder among files") };
        let rest = content.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (node, offset) = (self.node, offset as usize);
        self.change(Change::Write { node, offset, bytes: bytes.to_vec() })
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        self.set_length(length_bytes)
    }

    /// Space is unlimited, so preallocation has no effect.
    fn reserve_behind(&self, _: u64) -> io::Result<()> {
        self.files.state().alive()
    }

    /// Has no effect: unsynced bytes may reach the medium or not.
    fn begin_sync(&self, _: u64, _: u64) -> io::Result<()> {
        self.files.state().alive()
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.change(Change::Cut { node: self.node, length: length_bytes as usize })
    }

    fn sync(&self) -> io::Result<()> {
        self.files.state().change(Change::Sync { node: self.node })
    }

    /// Fails instead of waiting: in these tests a held lock is an error.
    fn lock(&self) -> io::Result<()> {
        if self.try_lock()? { Ok(()) } else { Err(io::Error::other("somebody else has the lock")) }
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.files.state();
        state.alive()?;
        Ok(*state.locked.entry(self.node).or_insert(self.number) == self.number)
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.files.state();
        if state.locked.get(&self.node) == Some(&self.number) {
            state.locked.remove(&self.node);
        }
        Ok(())
    }
}

/// Releases the lock when dropped. Shared holders are not counted, because tests hold one lock at a time.
#[derive(Debug)]
struct MemoryLock {
    files: Memory,
    path: PathBuf,
}

impl FileLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.files.state().locks.remove(&self.path);
    }
}
