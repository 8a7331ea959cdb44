//! Memory limit of this process: the machine's memory, its control groups or `ulimit -v`. Also the machine's name.
//!
//! Budgets follow from limits alone. Free memory would give a different budget each time. [`check_room`] also counts the
//! memory that the process uses. Only Linux is supported; other systems have an assumed limit.

use crate::memory_size::human;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// Default budget of a study in percent of the limit. The rest is for memory outside of regions (decoders, plans, tables)
/// and for other processes.
const SHARE_PERCENT: u64 = 60;

/// Assumed memory of a machine without a readable limit: the minimum for work with tissue tiles.
const ASSUMED_BYTES: u64 = 4_000_000_000;

/// Memory limit and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// Source of the limit.
    pub source: Source,
}

/// Source of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// All memory of the machine.
    Machine,
    /// A control group, by its file.
    Cgroup(PathBuf),
    /// The address space of this process (`RLIMIT_AS`).
    AddressSpace,
    /// No limit is readable.
    Assumed,
}

impl MemoryLimit {
    /// Returns the default budget of a study, in bytes.
    pub fn share_bytes(&self) -> u64 {
        self.bytes / 100 * SHARE_PERCENT
    }
}

impl fmt::Display for MemoryLimit {
    /// As in "60 % of …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = human(self.bytes);
        match &self.source {
            Source::Machine => write!(f, "{bytes}, all memory of this machine"),
            Source::Cgroup(file) => write!(f, "{bytes}, the limit in {}", file.display()),
            Source::AddressSpace => write!(f, "{bytes}, the address space of this process (ulimit -v)"),
            Source::Assumed => write!(f, "{bytes}, as this system does not tell its memory"),
        }
    }
}

/// Returns the default of `--memory`: 60 % of [`limit`], in bytes.
pub fn default_memory_bytes() -> u64 {
    limit().share_bytes()
}

/// Returns the name of this machine or container. `None` if unreadable.
pub fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns the tightest memory limit of this process.
pub fn limit() -> MemoryLimit {
    limit_below(Path::new("/"))
}

/// Returns the limit of a system with its files below `root`. The smallest limit wins. Limits of 0 do not count.
fn limit_below(root: &Path) -> MemoryLimit {
    // The first of equal limits wins: a group with as much as the machine is not named.
    let smallest = limits_below(root).into_iter().min_by_key(|limit| limit.bytes);
    // Version 1 writes "no limit" as a number beyond any machine.
    let stated = smallest.filter(|limit| limit.bytes < 1 << 60);
    stated.unwrap_or(MemoryLimit { bytes: ASSUMED_BYTES, source: Source::Assumed })
}

/// Returns all limits, the machine's first.
fn limits_below(root: &Path) -> Vec<MemoryLimit> {
    let machine = machine_bytes(&root.join("proc/meminfo"));
    let machine = machine.map(|bytes| MemoryLimit { bytes, source: Source::Machine });
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let groups = groups.lines().flat_map(group_files).filter_map(|file| {
        let bytes = bytes_in(&root.join(&file))?;
        Some(MemoryLimit { bytes, source: Source::Cgroup(Path::new("/").join(file)) })
    });
    let space = address_space_bytes(&root.join("proc/self/limits"));
    let space = space.map(|bytes| MemoryLimit { bytes, source: Source::AddressSpace });
    machine.into_iter().chain(groups).chain(space).filter(|limit| limit.bytes > 0).collect()
}

/// Returns `MemTotal` of `/proc/meminfo`, in bytes.
fn machine_bytes(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the soft limit of the address space in `/proc/self/limits`, in bytes. `None` if unlimited.
fn address_space_bytes(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the bytes that count against a limit: all mappings for address space, resident memory otherwise.
fn used_bytes(source: &Source) -> u64 {
    // Pages: of the address space, then resident ones. Linux has pages of 4 KiB wherever pleach is built for it.
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let field = usize::from(*source != Source::AddressSpace);
    let pages = text.split_whitespace().nth(field).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(4_096)
}

/// Maximum use in percent of the limit. Estimates cover single tables. Threads, decoders and the allocator take the rest.
const MAX_PERCENT: u64 = 80;

/// Work that needs more memory than this process may still use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{work} take about {} of memory, and {} are left of {MAX_PERCENT} % of {limit}; {advice}",
    human(*needed_bytes),
    human(*remaining_bytes)
)]
pub struct InsufficientMemory {
    /// Noun phrase of the work.
    pub work: String,
    /// Estimate of the work's memory.
    pub needed_bytes: u64,
    /// Memory that the process may still use.
    pub remaining_bytes: u64,
    /// Tightest limit.
    pub limit: MemoryLimit,
    /// Advice on how to make the work smaller.
    pub advice: String,
}

/// Refuses work that would take the process beyond 80 % of a memory limit.
///
/// # Errors
/// [`InsufficientMemory`], named by `work` and with `advice` on how to make it smaller.
pub fn check_room(needed_bytes: u64, work: &str, advice: &str) -> Result<(), InsufficientMemory> {
    let room =
        |limit: &MemoryLimit| (limit.bytes / 100 * MAX_PERCENT).saturating_sub(used_bytes(&limit.source));
    // The least room decides, not the least limit: an address space counts mapped pages, the others resident ones.
    let tightest = limits_below(Path::new("/")).into_iter().min_by_key(room);
    let Some(limit) = tightest.filter(|limit| room(limit) < needed_bytes) else { return Ok(()) };
    Err(InsufficientMemory {
        work: work.to_owned(),
        needed_bytes,
        remaining_bytes: room(&limit),
        limit,
        advice: advice.to_owned(),
    })
}

/// Returns the limit files of a group, named by a line of `/proc/self/cgroup` (`number:controllers:path`), and of every
/// group above it, relative to the root of the file system.
fn group_files(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        // A process of a hybrid system has lines of both versions. Version 1 lists controllers, version 2 none.
        version_1 if version_1.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    // A process outside its namespace's root has a path that climbs out of it (`/../other`): only the root is known.
    let climbs = Path::new(path).components().any(|part| part == Component::ParentDir);
    let group = Path::new(mount).join(if climbs { "" } else { path.trim_start_matches('/') });
    group.ancestors().take_while(|group| group.starts_with(mount)).map(|group| group.join(file)).collect()
}

/// Returns the number in a group's file. `None` for `max` or a missing file.
fn bytes_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// The files of a system, by path and content.
    fn system(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn limit_of(files: &[(&str, &str)]) -> (u64, Option<String>) {
        let limit = limit_below(system(files).path());
        let file = match limit.source {
            Source::Cgroup(file) => Some(file.display().to_string()),
            Source::Machine => Some("machine".to_owned()),
            Source::AddressSpace => Some("address space".to_owned()),
            Source::Assumed => None,
        };
        (limit.bytes, file)
    }

    fn of(bytes: u64, source: &str) -> (u64, Option<String>) {
        (bytes, Some(source.to_owned()))
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        8000000 kB\nMemFree:          100 kB\n");
    const MACHINE: u64 = 8_192_000_000;

    #[test]
    fn limit_without_cgroups_is_the_memory_of_the_machine() {
        assert_eq!(limit_of(&[MEMINFO]), of(MACHINE, "machine"));
        let root = ("proc/self/cgroup", "0::/\n");
        assert_eq!(limit_of(&[MEMINFO, root]), of(MACHINE, "machine"));
        let share = limit_below(system(&[MEMINFO]).path()).share_bytes();
        assert_eq!(share, 4_915_200_000);
    }

    #[test]
    fn smallest_cgroup_v2_limit_on_the_path_counts() {
        let group = ("proc/self/cgroup", "0::/user.slice/job.scope\n");
        let own = "sys/fs/cgroup/user.slice/job.scope/memory.max";
        let above = "sys/fs/cgroup/user.slice/memory.max";
        let limit =
            |own_limit, above_limit| limit_of(&[MEMINFO, group, (own, own_limit), (above, above_limit)]);
        assert_eq!(limit("1000000000\n", "max\n"), of(1_000_000_000, &format!("/{own}")));
        assert_eq!(limit("max\n", "2000000000\n"), of(2_000_000_000, &format!("/{above}")));
        assert_eq!(limit("3000000000\n", "2000000000\n"), of(2_000_000_000, &format!("/{above}")));
        assert_eq!(limit("max\n", "max\n"), of(MACHINE, "machine"));
        // More than there is is no limit.
        assert_eq!(limit("max\n", "9000000000000\n"), of(MACHINE, "machine"));
        // A container sees its own group as the root.
        let root = ("sys/fs/cgroup/memory.max", "500000000\n");
        assert_eq!(
            limit_of(&[MEMINFO, ("proc/self/cgroup", "0::/\n"), root]),
            of(500_000_000, "/sys/fs/cgroup/memory.max")
        );
        let outside = ("proc/self/cgroup", "0::/../../other\n");
        assert_eq!(limit_of(&[MEMINFO, outside, root]), of(500_000_000, "/sys/fs/cgroup/memory.max"));
        // The groups of other processes do not matter.
        let other = ("sys/fs/cgroup/other/memory.max", "1000\n");
        assert_eq!(limit_of(&[MEMINFO, group, other]), of(MACHINE, "machine"));
    }

    #[test]
    fn cgroup_v1_limit_counts_beside_v2() {
        let lines = "9:name=systemd:/\n4:cpu,memory:/docker/a:b\n3:cpuset:/x\n0::/\n";
        let group = ("proc/self/cgroup", lines);
        let own = "sys/fs/cgroup/memory/docker/a:b/memory.limit_in_bytes";
        let root = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        let unlimited = "9223372036854771712\n";
        assert_eq!(
            limit_of(&[MEMINFO, group, (own, "700000000\n"), (root, unlimited)]),
            of(700_000_000, &format!("/{own}"))
        );
        // In a container the group's path is not there, and the root is the container's.
        assert_eq!(limit_of(&[MEMINFO, group, (root, "600000000")]), of(600_000_000, &format!("/{root}")));
        assert_eq!(limit_of(&[MEMINFO, group, (own, unlimited), (root, unlimited)]), of(MACHINE, "machine"));
    }

    #[test]
    fn address_space_of_process_counts() {
        let limits = |soft: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space  {soft}  unlimited  bytes\n")
        };
        let file = |soft: &str| limit_of(&[MEMINFO, ("proc/self/limits", &limits(soft))]);
        assert_eq!(file("1073741824"), of(1_073_741_824, "address space"));
        assert_eq!(file("unlimited"), of(MACHINE, "machine"));
        assert_eq!(file("9000000000000"), of(MACHINE, "machine"));
    }

    #[test]
    fn work_beyond_the_limit_is_refused_with_the_numbers() {
        assert_eq!(check_room(0, "nothing", "less"), Ok(()));
        let refused = check_room(u64::MAX / 2, "9 rows", "fewer rows are needed").unwrap_err().to_string();
        assert!(refused.starts_with("9 rows take about 9.22 EB of memory, and "), "{refused}");
        assert!(
            refused.contains(" left of 80 % of ") && refused.ends_with("; fewer rows are needed"),
            "{refused}"
        );
        assert!(
            used_bytes(&Source::Machine) > 1 << 20
                && used_bytes(&Source::AddressSpace) > used_bytes(&Source::Machine)
        );
    }

    #[test]
    fn invalid_cgroup_limits_are_ignored() {
        assert_eq!(limit_of(&[]), (ASSUMED_BYTES, None));
        let group = ("proc/self/cgroup", "0::/\n\n::::\nnothing\n4:memory\n");
        for text in ["", "-1", "0", "1.5", "lots", "99999999999999999999999"] {
            assert_eq!(
                limit_of(&[MEMINFO, group, ("sys/fs/cgroup/memory.max", text)]),
                of(MACHINE, "machine"),
                "{text}"
            );
            let meminfo = ("proc/meminfo", format!("MemTotal: {text} kB\n"));
            let (path, text) = (meminfo.0, meminfo.1.as_str());
            assert_eq!(limit_of(&[(path, text), group]), (ASSUMED_BYTES, None), "{text}");
        }
        // Version 1's "no limit" says nothing about a machine that says nothing itself.
        let lines = ("proc/self/cgroup", "4:memory:/\n");
        let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit_of(&[lines, unlimited]), (ASSUMED_BYTES, None));
    }

    #[test]
    fn display_names_the_source_of_the_limit() {
        let limit = |source| MemoryLimit { bytes: 2_000_000_000, source }.to_string();
        assert_eq!(limit(Source::Machine), "2.00 GB, all memory of this machine");
        let file = PathBuf::from("/sys/fs/cgroup/memory.max");
        assert_eq!(limit(Source::Cgroup(file)), "2.00 GB, the limit in /sys/fs/cgroup/memory.max");
        let space = "2.00 GB, the address space of this process (ulimit -v)";
        assert_eq!(limit(Source::AddressSpace), space);
        assert_eq!(limit(Source::Assumed), "2.00 GB, as this system does not tell its memory");
    }

    #[test]
    fn default_memory_is_a_share_of_the_limit() {
        assert!(default_memory_bytes() > 1 << 20, "{:?}", limit());
        assert_eq!(default_memory_bytes(), limit().share_bytes());
    }
}
