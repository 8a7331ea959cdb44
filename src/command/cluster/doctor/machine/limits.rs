//! Limits of the process: open files, memory, memory files, and shared memory.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use pleach_planner::memory_limit;
use pleach_planner::memory_size::human;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create, statvfs};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// 1024 open files, the usual soft limit of Linux: a manager serves up to 1000 connections of clients.
const FILES: u64 = 1024;

/// 256 open files. A process has some 20, a task cache and a tier some 100 segments.
const LEAST_FILES: u64 = 256;

/// 1 GB: its 60 % are 600 MB, the least budget for a tile of 4096 x 4096 px in `benches/RESULTS.md`.
const MEMORY_BYTES: u64 = 1_000_000_000;

/// 256 MiB: a few regions of a tile of 4096 x 4096 px, with up to 50 MB each. Docker gives a container 64 MiB.
const SHARED_BYTES: u64 = 256 << 20;

/// Folder of shared memory, the default of `--shm-dir`.
const SHARED: &str = "/dev/shm";

pub(super) fn check(_: &DoctorArgs, items: &mut Items) {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    open_files(items, soft_limit(&limits, "Max open files"));
    let limit = memory_limit::limit();
    if limit.bytes < MEMORY_BYTES {
        items.warning(
            "memory",
            limit.to_string(),
            "raise the limit to 1 GB or more: less does not hold the regions of one large tile",
        );
    } else {
        items.ok("memory", limit.to_string());
    }
    match sealed_file() {
        Ok(()) => items.ok("memory files", "can be sealed"),
        Err(error) => items.warning(
            "memory files",
            format!("cannot be created and sealed: {error}"),
            "allow memfd_create in the container's seccomp profile: operations in Python and commands need it",
        ),
    }
    shared_memory(items, Path::new(SHARED));
}

/// Returns a soft limit of `/proc/self/limits`: `None` if the line is missing, [`u64::MAX`] for `unlimited`.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn open_files(items: &mut Items, limit: Option<u64>) {
    let remedy = format!("raise it to {FILES} or more: ulimit -n, or LimitNOFILE= of a systemd unit");
    match limit {
        None => items.note("open files", "this system does not state the limit", "nothing"),
        Some(u64::MAX) => items.ok("open files", "unlimited"),
        Some(limit) if limit < LEAST_FILES => {
            items.error("open files", format!("at most {limit}; {LEAST_FILES} are needed"), remedy);
        }
        Some(limit) if limit < FILES => items.warning("open files", format!("at most {limit}"), remedy),
        Some(limit) => items.ok("open files", format!("at most {limit}")),
    }
}

/// Creates and seals a memory file, as operations in Python get them.
fn sealed_file() -> io::Result<()> {
    let mut file = File::from(memfd_create(c"doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(b"region")?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(())
}

fn shared_memory(items: &mut Items, folder: &Path) {
    let subject = folder.display().to_string();
    match statvfs(folder) {
        Err(error) => items.warning(
            subject,
            error.to_string(),
            "mount a tmpfs there: without it, workers of one machine give each other regions over the network",
        ),
        Ok(found) => {
            let bytes = found.f_blocks.saturating_mul(found.f_frsize);
            if bytes < SHARED_BYTES {
                items.warning(
                    subject,
                    format!("{} of shared memory", human(bytes)),
                    "raise it to 256 MiB or more (Docker: --shm-size): regions that do not fit go over the network",
                );
            } else {
                items.ok(subject, format!("{} of shared memory", human(bytes)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cluster::items::Severity;

    #[test]
    fn soft_limit_is_the_first_number() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 524288               files     \n\
                    Max address space         unlimited            unlimited            bytes     \n";
        assert_eq!(soft_limit(text, "Max open files"), Some(1024));
        assert_eq!(soft_limit(text, "Max address space"), Some(u64::MAX));
        assert_eq!(soft_limit(text, "Max locked memory"), None);
    }

    #[test]
    fn missing_shared_memory_is_a_warning() {
        let mut items = Items::default();
        shared_memory(&mut items, Path::new("/missing"));
        assert_eq!(items.count(Severity::Warning), 1);
    }
}
