//! Folders: whether files can be written, how fast, free space, and the kind of the file system.
//!
//! The written file has no name (`O_TMPFILE`), or loses it at once on file systems without such files.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use pleach_planner::memory_size::human;
use pleach_results::cache_walk::is_bucket;
use rustix::fs::{Advice, StatVfs, fadvise, statvfs};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// 8 MiB: more than a request to a disk, and written within a second to a slow one.
const PROBE_BYTES: usize = 8 << 20;

/// Synced writes of one page. Their median is the time of one.
const SYNCS: usize = 3;

/// 100 ms for a synced write. A manager acknowledges a response only after one; a local disk takes up to 20 ms.
const SLOW_SYNC: Duration = Duration::from_millis(100);

/// 1 GB of free space. The regions of one tile of 4096 x 4096 px take some 500 MB.
const FREE_BYTES: u64 = 1_000_000_000;

/// Use of a folder, which decides what its file system should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Files must outlive a restart of the machine.
    Durable,
    /// Files of one process.
    Local,
    /// Files of all workers.
    Shared,
}

pub(super) fn check(args: &DoctorArgs, items: &mut Items) {
    let temporary = std::env::temp_dir();
    let cache = args.cache.as_deref().filter(|cache| !is_bucket(cache));
    let folders = [
        ("--state", args.state.as_deref(), Use::Durable),
        ("--cache", cache, Use::Durable),
        ("--ssd", args.ssd.as_deref(), Use::Local),
        ("--lustre", args.lustre.as_deref(), Use::Shared),
        ("temporary folder", Some(temporary.as_path()), Use::Local),
    ];
    for (name, path, purpose) in folders {
        if let Some(path) = path {
            folder(items, &format!("{name} {}", path.display()), path, purpose);
        }
    }
}

fn folder(items: &mut Items, subject: &str, path: &Path, purpose: Use) {
    let Some(existing) = existing(path) else {
        return items.error(subject, "no folder above it exists", "name another folder");
    };
    if existing != path {
        let found = format!("missing; {} is checked instead", existing.display());
        items.note(subject, found, "nothing: the process that needs it creates it");
    }
    let kind = file_system(&existing);
    match probe(&existing) {
        Ok(speed) => {
            items.ok(subject, format!("{speed}; {}", kind.as_deref().unwrap_or("unknown file system")))
        }
        Err(error) => return items.error(subject, format!("cannot be written to: {error}"), remedy(&error)),
    }
    if let Ok(found) = statvfs(&existing) {
        space(items, subject, &found);
    }
    if let Some((found, remedy)) = kind.and_then(|kind| unsuitable(&kind, purpose)) {
        items.warning(subject, found, remedy);
    }
}

/// Returns the folder, or the nearest folder above it that exists.
fn existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    if path.is_dir() {
        return Some(path.to_owned());
    }
    absolute.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned)
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space, or name a folder of another file system; for a state directory: pleach forget"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "mount the file system writable; one that became read-only by itself has errors: look at dmesg"
        }
        ErrorKind::PermissionDenied => {
            "run the command as the user of the process, or change the owner of the folder"
        }
        _ => "name another folder",
    }
}

fn space(items: &mut Items, subject: &str, found: &StatVfs) {
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    if bytes < FREE_BYTES {
        let found = format!("{} are free", human(bytes));
        items.warning(subject, found, "free space: a full disk suspends studies until there is room");
    }
    // Some file systems state no number of files.
    if found.f_files > 0 && found.f_favail == 0 {
        items.error(subject, "no file can be created: all inodes are in use", "remove files");
    }
}

/// Measured speed of a disk.
struct Speed {
    write_bytes_per_second: f64,
    read_bytes_per_second: f64,
    sync: Duration,
    free_bytes: u64,
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [write, read] =
            [self.write_bytes_per_second, self.read_bytes_per_second].map(|rate| human(rate as u64));
        let sync = self.sync.as_secs_f64() * 1e3;
        let slow = if self.sync > SLOW_SYNC { ", which is slow" } else { "" };
        let free = human(self.free_bytes);
        write!(f, "writes {write}/s, reads {read}/s, syncs in {sync:.1} ms{slow}, {free} free")
    }
}

/// Writes, syncs and reads a file.
fn probe(folder: &Path) -> io::Result<Speed> {
    let mut file = tempfile::tempfile_in(folder)?;
    // Not zeros, which some file systems do not store.
    let content: Vec<u8> = (0..PROBE_BYTES).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 16) as u8).collect();
    let start = Instant::now();
    file.write_all(&content)?;
    file.sync_all()?;
    let write = start.elapsed();
    // The cache of the system would be read instead of the disk. Advice may be ignored.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    file.rewind()?;
    let mut read_back = Vec::with_capacity(PROBE_BYTES);
    let start = Instant::now();
    file.read_to_end(&mut read_back)?;
    let read = start.elapsed();
    if read_back != content {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "the content read differs from the content written",
        ));
    }
    let mut syncs = (0..SYNCS).map(|_| synced_write(&mut file)).collect::<io::Result<Vec<_>>>()?;
    syncs.sort_unstable();
    let rate = |time: Duration| PROBE_BYTES as f64 / time.as_secs_f64().max(1e-9);
    let free_bytes = statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
    Ok(Speed {
        write_bytes_per_second: rate(write),
        read_bytes_per_second: rate(read),
        sync: syncs[SYNCS / 2],
        free_bytes,
    })
}

fn synced_write(file: &mut File) -> io::Result<Duration> {
    let start = Instant::now();
    file.write_all(&[7; 4096])?;
    file.sync_all()?;
    Ok(start.elapsed())
}

/// Returns the kind of the file system that holds a folder, such as `ext4`.
fn file_system(folder: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_of(&mounts, &folder).map(str::to_owned)
}

/// Returns the kind of the mount that holds `folder`, by the text of `/proc/PID/mountinfo` (proc(5)). Of mounts on one another,
/// the last is in effect.
fn kind_of<'m>(mounts: &'m str, folder: &Path) -> Option<&'m str> {
    let holding = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        // The kernel writes a blank as \040.
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        folder.starts_with(&point).then_some((point.len(), after.split(' ').next()?))
    });
    // The last of equal maxima.
    holding.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// Returns why a file system does not suit a use, and what to do.
fn unsuitable(kind: &str, purpose: Use) -> Option<(String, &'static str)> {
    let is_memory = matches!(kind, "tmpfs" | "ramfs");
    let is_remote =
        kind.starts_with("nfs") || matches!(kind, "lustre" | "cifs" | "smb3" | "ceph" | "beegfs" | "gpfs");
    let found = |why: &str| format!("{kind}: {why}");
    match purpose {
        Use::Durable if is_memory => {
            Some((found("its files are lost at a restart"), "name a folder on a disk"))
        }
        Use::Durable if kind == "overlay" => {
            Some((found("its files are lost with the container"), "mount a volume there"))
        }
        Use::Local if is_memory => {
            Some((found("its files take memory"), "name a folder on a disk, or count them in --memory"))
        }
        Use::Local if is_remote => {
            Some((found("a file system of the network"), "name a folder on a local disk"))
        }
        Use::Shared if is_memory || kind == "overlay" => Some((
            found("no other machine has its files"),
            "name a folder on a file system that all workers share",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deepest_and_last_mount_holds_a_folder() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda rw\n\
                      2 1 0:5 / /mnt/a\\040b rw shared:1 - nfs4 server:/ rw\n\
                      3 1 0:6 / /mnt rw - tmpfs tmpfs rw\n\
                      4 3 0:7 / /mnt rw - overlay overlay rw\n";
        let kind = |path: &str| kind_of(mounts, Path::new(path));
        assert_eq!(kind("/mnt/a b/c"), Some("nfs4"));
        assert_eq!(kind("/mnt/c"), Some("overlay"));
        assert_eq!(kind("/mnts"), Some("ext4"));
    }

    #[test]
    fn file_systems_suit_their_use() {
        assert!(unsuitable("ext4", Use::Durable).is_none());
        assert!(unsuitable("nfs4", Use::Shared).is_none());
        let unsuited = [
            ("tmpfs", Use::Durable),
            ("overlay", Use::Durable),
            ("tmpfs", Use::Local),
            ("nfs4", Use::Local),
            ("overlay", Use::Shared),
        ];
        assert!(unsuited.iter().all(|(kind, purpose)| unsuitable(kind, *purpose).is_some()));
    }
}
