//! Input store on full disks and after killed processes, and digests as text.

use super::*;
use pleach_api::digest::InvalidDigest;
use proptest::prelude::*;
use std::process::{Command, Output};

fn digest(content: &[u8]) -> InputDigest {
    blake3::hash(content).into()
}

fn store(store: &InputStore, content: &[u8]) -> Result<u64, InputError> {
    let mut receiving = store.receive(digest(content))?;
    content.chunks(1000).try_for_each(|piece| receiving.write(piece))?;
    receiving.finish()
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Runs one test of this file again in a process of its own. The process finds a folder in the variable
/// `PLEACH_TEST_FOLDER`. `around` is the command that runs it.
fn apart(test: &str, folder: &Path, around: &[&str]) -> Output {
    let exe = std::env::current_exe().unwrap();
    let words: Vec<String> = around.iter().map(|&word| word.to_owned()).collect();
    let own = [
        exe.to_str().unwrap(),
        "--exact",
        &format!("{}::{test}", module_path!().split_once("::").unwrap().1),
    ]
    .map(str::to_owned);
    let all: Vec<String> = words.into_iter().chain(own).collect();
    Command::new(&all[0]).args(&all[1..]).env("PLEACH_TEST_FOLDER", folder).output().unwrap()
}

/// Returns the folder within such a process, `None` in the process that starts it.
fn folder_apart() -> Option<PathBuf> {
    std::env::var_os("PLEACH_TEST_FOLDER").map(PathBuf::from)
}

#[test]
fn received_input_is_found_after_reopening() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a/inputs");
    let inputs = InputStore::open(&folder).unwrap();
    let content = vec![7; 12_345];
    assert!(!inputs.has(digest(&content)));
    assert_eq!(store(&inputs, &content).unwrap(), 12_345);
    assert_eq!(store(&inputs, b"").unwrap(), 0, "an empty file is a file");
    let again = InputStore::open(&folder).unwrap();
    for inputs in [&inputs, &again] {
        assert!(inputs.has(digest(&content)) && inputs.has(digest(b"")) && !inputs.has(digest(b"x")));
        assert_eq!(fs::read(inputs.path(digest(&content))).unwrap(), content);
    }
    assert_eq!(files(&folder).len(), 2);
}

/// Changes a byte of a file in place.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_file_counts_as_missing_and_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let content = b"a tile".as_slice();
    let digest = digest(content);
    let inputs = InputStore::open(place.path()).unwrap();
    store(&inputs, content).unwrap();
    // Damaged after an earlier process had verified it, and after this process had.
    let earlier = InputStore::open(place.path()).unwrap();
    for inputs in [&earlier, &inputs] {
        damage(&inputs.path(digest));
        assert!(inputs.names(digest) && !inputs.has(digest));
        assert!(!inputs.names(digest), "nothing takes it for the file any more");
        assert_eq!(files(place.path()), [format!("{digest}.damaged")]);
        store(inputs, content).unwrap();
        assert!(inputs.has(digest));
        assert_eq!(fs::read(inputs.path(digest)).unwrap(), content);
    }
    // Bit rot does not change the looks of a file. Only a reader finds it.
    damage(&inputs.path(digest));
    let same = looks(&inputs.path(digest)).unwrap();
    inputs.verified.lock().insert(digest, same);
    assert!(inputs.has(digest) && !inputs.has_still(digest) && !inputs.has(digest));
}

#[test]
fn good_file_that_replaces_a_damaged_one_is_not_set_aside() {
    let place = tempfile::tempdir().unwrap();
    let inputs = InputStore::open(place.path()).unwrap();
    let digest = digest(b"a tile");
    fs::write(inputs.path(digest), "another").unwrap();
    let damaged = looks(&inputs.path(digest)).unwrap();
    store(&inputs, b"a tile").unwrap();
    inputs.set_aside(digest, damaged, "it was");
    assert!(inputs.has(digest) && files(place.path()).len() == 1);
}

#[test]
fn input_with_wrong_digest_leaves_no_file() {
    let place = tempfile::tempdir().unwrap();
    let inputs = InputStore::open(place.path()).unwrap();
    let mut receiving = inputs.receive(digest(b"expected")).unwrap();
    receiving.write(b"another").unwrap();
    let error = receiving.finish().unwrap_err();
    assert!(matches!(error, InputError::Other { expected, found }
        if expected == digest(b"expected") && found == digest(b"another")));
    let mut cut = inputs.receive(digest(b"expected")).unwrap();
    cut.write(b"expec").unwrap();
    assert_eq!(files(place.path()).len(), 1);
    drop(cut);
    assert!(files(place.path()).is_empty() && !inputs.has(digest(b"expected")));
}

#[test]
fn two_clients_send_the_same_input_at_once() {
    let place = tempfile::tempdir().unwrap();
    let inputs = InputStore::open(place.path()).unwrap();
    let mut both = [(); 2].map(|()| inputs.receive(digest(b"the same")).unwrap());
    for piece in [&b"the "[..], b"same"] {
        both.iter_mut().for_each(|receiving| receiving.write(piece).unwrap());
    }
    for receiving in both {
        receiving.finish().unwrap();
    }
    assert_eq!(files(place.path()), [digest(b"the same").to_string()]);
}

#[test]
fn incomplete_input_of_a_killed_process_is_removed() {
    if let Some(folder) = folder_apart() {
        let inputs = InputStore::open(&folder).unwrap();
        store(&inputs, b"whole").unwrap();
        let mut receiving = inputs.receive(digest(b"expected")).unwrap();
        receiving.write(b"expec").unwrap();
        std::process::abort();
    }
    let place = tempfile::tempdir().unwrap();
    let killed = apart("incomplete_input_of_a_killed_process_is_removed", place.path(), &[]);
    assert!(killed.status.code().is_none(), "{killed:?}");
    assert_eq!(files(place.path()).len(), 2, "it was killed while it received");
    fs::write(place.path().join("notes.txt"), "").unwrap();
    let inputs = InputStore::open(place.path()).unwrap();
    assert_eq!(files(place.path()), [digest(b"whole").to_string(), "notes.txt".to_owned()]);
    assert!(!inputs.has(digest(b"expected")) && inputs.has(digest(b"whole")));
}

/// A full file system of 64 kB leaves no partial file. The test mounts it in a mount namespace of its own, which ends
/// with the process.
#[test]
fn full_disk_leaves_no_incomplete_input() {
    if let Some(folder) = folder_apart() {
        let inputs = InputStore::open(&folder).unwrap();
        store(&inputs, &[1; 30_000]).unwrap();
        let error = store(&inputs, &[2; 60_000]).unwrap_err();
        assert!(matches!(&error, InputError::Full(at) if *at == folder), "{error}");
        assert_eq!(files(&folder), [digest(&[1; 30_000]).to_string()]);
        store(&inputs, &[3; 30_000]).unwrap();
        fs::write(folder.join("done"), "").unwrap();
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=64k none \"$PLEACH_TEST_FOLDER\" || exit 77
        \"$@\" && test -e \"$PLEACH_TEST_FOLDER/done\"";
    // Root needs no user namespace and may be allowed none. Other users cannot mount without one.
    for flags in ["-m", "-rm"] {
        let around = ["unshare", flags, "sh", "-c", mount, "sh"];
        let ended = apart("full_disk_leaves_no_incomplete_input", place.path(), &around);
        if ended.status.success() {
            assert!(files(place.path()).is_empty(), "nothing was mounted where others see it");
            return;
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let has_run = String::from_utf8_lossy(&ended.stdout).contains("running 1 test");
        assert!(!has_run, "{said}{}", String::from_utf8_lossy(&ended.stdout));
    }
    println!(
        "SKIPPED full_disk_leaves_no_incomplete_input: no file system can be mounted here, not even in a namespace"
    );
}

proptest! {
    #[test]
    fn digests_round_trip(content in prop::collection::vec(any::<u8>(), 0..50)) {
        let digest = digest(&content);
        prop_assert_eq!(digest.to_string().parse(), Ok(digest));
        prop_assert_eq!(digest.to_string().to_uppercase().parse::<InputDigest>().is_ok(),
            digest.to_string().bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn invalid_digest_texts_are_refused(text in "\\PC{0,70}|[0-9a-f]{63}|[0-9a-f]{65}|[0-9a-g]{60}../.") {
        prop_assume!(text.len() != 64 || text.bytes().any(|byte| !byte.is_ascii_hexdigit()));
        prop_assert_eq!(text.parse::<InputDigest>(), Err(InvalidDigest));
    }
}
