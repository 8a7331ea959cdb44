//! Checks the mount options of a folder for locks that other machines see.
//!
//! This module takes no lock. Missing lock support shows when a lock is requested.

use crate::TierError;
use std::fs;
use std::path::Path;

/// Mount table (proc(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// Prefixes of file system types, with the mount option that makes their locks local to one machine (mount.lustre(8),
/// nfs(5)). NFS shows `nolock` as `local_lock=all`.
const LOCAL: [(&str, &str); 3] =
    [("lustre", "localflock"), ("nfs", "local_lock=all"), ("nfs", "local_lock=flock")];

/// Returns whether other machines that mount the folder do not see its locks.
///
/// # Errors
/// Returns [`TierError::Io`] if the folder does not exist.
pub fn locks_are_local(folder: &Path) -> Result<bool, TierError> {
    let found = folder.canonicalize();
    let whole =
        found.map_err(|source| TierError::Io { action: "look at", path: folder.to_owned(), source })?;
    // Without a mount table, locks are assumed to work.
    Ok(fs::read_to_string(MOUNTS).is_ok_and(|mounts| are_local(&mounts, &whole)))
}

fn are_local(mounts: &str, folder: &Path) -> bool {
    // "36 35 98:0 / /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue"
    let mount = |line: &str| {
        let (head, tail) = line.split_once(" - ")?;
        // The mount table writes a space in a path as `\040` (proc(5)).
        let place = head.split(' ').nth(4)?.replace("\\040", " ");
        let mut words = tail.split(' ');
        let (kind, options) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
        folder.starts_with(&place).then_some((place.len(), kind, options))
    };
    // Of stacked mounts, the last one counts.
    let Some((_, kind, options)) = mounts.lines().filter_map(mount).max_by_key(|(length, ..)| *length) else {
        return false;
    };
    let has = |wanted: &str| options.split(',').any(|option| option == wanted);
    LOCAL.iter().any(|(begin, option)| kind.starts_with(begin) && has(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_options_show_local_locks() {
        let mounts = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw,localflock\n\
            40 22 0:40 / /scratch rw - lustre 10.0.0.1@tcp:/fs rw,localflock,lazystatfs\n\
            41 40 0:41 / /scratch/all rw - lustre 10.0.0.1@tcp:/fs2 rw,flock,lazystatfs\n\
            42 22 0:42 / /two\\040words rw shared:2 - nfs4 server:/a rw,vers=4.2,local_lock=none\n\
            43 22 0:43 / /old rw - nfs server:/b rw,vers=3,local_lock=all\n\
            44 22 0:44 / /over rw - nfs server:/c rw,local_lock=flock\n\
            45 22 0:45 / /over rw - ext4 /dev/sdb rw\n";
        let local = |path: &str| are_local(mounts, Path::new(path));
        assert_eq!(
            ["/home", "/scratch/all/a", "/two words/a", "/over/a", "/scratchy"].map(local),
            [false; 5]
        );
        assert_eq!(["/scratch", "/scratch/some", "/old/a"].map(local), [true; 3]);
    }

    #[test]
    fn mount_of_an_existing_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        locks_are_local(folder.path()).unwrap();
        assert!(locks_are_local(&folder.path().join("none")).is_err());
    }
}
