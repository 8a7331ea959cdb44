//! Kills a writing process at random moments. The next process finds every region that was reported as stored, whole, and no
//! other region. `PLEACH_KILLS` sets the number of kills (default: 5). `power.rs` tests power losses.

use crate::apart::{child, folder_of_child};
use crate::regions::{AMPLE_BYTES, key, noise, open_with};
use pleach_regions::RegionKey;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Environment variable with the first number of a child.
const FIRST: &str = "PLEACH_STORAGE_TEST_FIRST";

/// Distance between the first numbers of two children.
const APART: u32 = 1 << 16;

/// Threads of a child. No two threads use the same number.
const THREADS: u32 = 2;

/// Writes until the process is killed. Prints each operation before and after. Removes every third region.
#[expect(clippy::print_stdout, reason = "the process that kills this one listens")]
fn write(folder: &Path, open: fn(&Path) -> FolderTier) {
    let first: u32 = std::env::var(FIRST).unwrap().parse().unwrap();
    let tier = &open(folder);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in (first + thread..first + APART).step_by(THREADS as usize) {
                    println!("begun {number} insert");
                    tier.insert(key(number), &noise(number, size_bytes(number))).unwrap();
                    println!("done {number} insert");
                    if number / THREADS % 3 == 2 {
                        println!("begun {number} remove");
                        tier.remove(key(number)).unwrap();
                        println!("done {number} remove");
                    }
                }
            });
        }
    });
}

/// Opens a private durable folder, which packs about 1/3 of the regions.
fn open(folder: &Path) -> FolderTier {
    let settings = FolderSettings::new(FolderKind::Hdd, AMPLE_BYTES).packed();
    open_with(folder, settings)
}

/// Opens a shared folder.
fn open_shared(folder: &Path) -> FolderTier {
    let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES).packed();
    open_with(folder, settings)
}

/// Opens a scratch folder. Its regions survive a kill without any fsync.
fn open_scratch(folder: &Path) -> FolderTier {
    let settings = FolderSettings::new(FolderKind::Hdd, AMPLE_BYTES).packed().scratch();
    open_with(folder, settings)
}

fn size_bytes(number: u32) -> u32 {
    1 + number.wrapping_mul(2_654_435_761) % 200_000
}

/// Operations reported by the children. A doubtful region has an operation in progress.
#[derive(Default)]
struct Said {
    stored: BTreeSet<RegionKey>,
    numbers: HashMap<RegionKey, u32>,
    doubtful: BTreeSet<RegionKey>,
}

impl Said {
    /// Applies a line of output. Returns whether it reports a completed operation.
    fn hear(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let &[when, number, what] = words.as_slice() else { return false };
        let Ok(number) = number.parse() else { return false };
        let key = key(number);
        self.numbers.insert(key, number);
        match (when, what) {
            ("begun", _) => {
                self.doubtful.insert(key);
                return false;
            }
            ("done", "insert") => drop(self.stored.insert(key)),
            ("done", "remove") => drop(self.stored.remove(&key)),
            _ => return false,
        }
        self.doubtful.remove(&key)
    }
}

fn parts(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                parts(&path)
            } else {
                usize::from(path.extension().is_some_and(|end| end == "part" || end == "draft"))
            }
        })
        .sum()
}

#[test]
fn private_folder_survives_kills_at_random_moments() {
    kill_at_random_moments("killed::private_folder_survives_kills_at_random_moments", open);
}

#[test]
fn scratch_folder_survives_kills_at_random_moments() {
    kill_at_random_moments("killed::scratch_folder_survives_kills_at_random_moments", open_scratch);
}

/// A second tier stays open during all kills and must find the same regions.
#[test]
fn shared_folder_survives_kills_at_random_moments() {
    kill_at_random_moments("killed::shared_folder_survives_kills_at_random_moments", open_shared);
}

#[expect(clippy::print_stdout, reason = "says how much was shown")]
fn kill_at_random_moments(test: &str, open: fn(&Path) -> FolderTier) {
    if let Some(folder) = folder_of_child() {
        return write(&folder, open);
    }
    let kills: u32 = std::env::var("PLEACH_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let is_shared = std::ptr::fn_addr_eq(open, open_shared as fn(&Path) -> FolderTier);
    let watcher = is_shared.then(|| open(folder.path()));
    let seeds = RandomState::new();
    let mut said = Said::default();
    let mut left_parts = 0;
    for kill in 0..kills {
        let mut command = child(test, folder.path(), &[]);
        command.env(FIRST, (kill * APART).to_string()).stdout(Stdio::piped());
        let mut writer = command.spawn().unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        let random = seeds.hash_one(kill);
        let mut wanted = random % 12;
        while wanted > 0 {
            wanted -= u64::from(said.hear(&lines.next().expect("it says more before it is killed")));
        }
        // Spins up to a few milliseconds, so that the kill hits the middle of an operation.
        (0..(random >> 32) % 400_000).for_each(|_| std::hint::spin_loop());
        writer.kill().unwrap();
        writer.wait().unwrap();
        // The pipe still holds lines written before the kill.
        for line in lines {
            said.hear(&line);
        }

        left_parts += parts(folder.path());
        if let Some(watcher) = &watcher {
            for (key, number) in said.numbers.iter().filter(|(key, _)| !said.doubtful.contains(key)) {
                let expected = said.stored.contains(key).then(|| noise(*number, size_bytes(*number)));
                assert_eq!(watcher.get(*key).unwrap(), expected, "kill {kill}, number {number}");
            }
        }
        let tier = open(folder.path());
        let found: BTreeSet<RegionKey> = tier.list().unwrap().into_iter().collect();
        let unexplained: Vec<_> = found.symmetric_difference(&said.stored).collect();
        assert!(unexplained.iter().all(|key| said.doubtful.contains(key)), "kill {kill}: {unexplained:?}");
        let watched = watcher.as_ref().map(|watcher| watcher.list().unwrap().into_iter().collect());
        assert!(watched.is_none_or(|watched: BTreeSet<RegionKey>| watched == found), "kill {kill}");
        for key in &found {
            let number = said.numbers[key];
            assert_eq!(tier.get(*key).unwrap(), Some(noise(number, size_bytes(number))));
        }
        // In a shared folder, other processes may still write unfinished files.
        assert!(is_shared || parts(folder.path()) == 0);
        // The state of doubtful regions is known from here on.
        said.stored = found;
        said.doubtful.clear();
    }
    println!("killed {kills} times, {} regions are left, {left_parts} were being written", said.stored.len());
}
