//! Files of a cluster are private to its user, and later workers remove the files of killed ones.

use crate::cluster::{self, Cluster};
use crate::place::Place;
use crate::skipped;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// User id that owns no files by convention.
const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// All paths below a folder, without following links.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let with_below = |path: PathBuf| {
        let within = if path.is_dir() && !path.is_symlink() { below(&path) } else { Vec::new() };
        [path].into_iter().chain(within)
    };
    entries.flat_map(with_below).collect()
}

/// Asserts that everything below a folder is private to its owner. Returns the number of files.
fn all_private(folder: &Path) -> usize {
    let all = below(folder);
    for path in all.iter().filter(|path| !path.is_symlink()) {
        assert_eq!(mode(path) & 0o077, 0, "{} has mode {:04o}", path.display(), mode(path));
    }
    all.iter().filter(|path| path.is_file()).count()
}

/// Whether another user can run this command. Returns `None` if the system denies the change of user.
fn nobody_can(args: &[&str]) -> Option<bool> {
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(drop).args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    run(&["true"]).then(|| run(args))
}

/// Scratch folders of workers.
fn scratch(cluster: &Cluster<'_>) -> Vec<PathBuf> {
    let found =
        fs::read_dir(cluster.path("tmp")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut found: Vec<PathBuf> = found.filter(|path| name(path).starts_with("pleach-worker-")).collect();
    found.sort();
    found
}

/// Starts a worker without a disk option and waits until it is connected.
fn start_without_disk(cluster: &mut Cluster<'_>, name: &str) {
    let certs = format!("ca/{name}");
    let issue = ["certs", "issue", "--dir", "ca", "--name", name, "--role", "worker", "--out", &certs];
    cluster.call(&issue).done();
    let listen = cluster.listen.clone();
    let args = ["worker", "--manager", &listen, "--certs", &certs, "--listen", "127.0.0.1:0"];
    let args = [&args[..], &["--cores", "1", "--memory", "1GB"]].concat();
    cluster.called.insert(name.to_owned(), args.into_iter().map(str::to_owned).collect());
    cluster.start_worker(name, &[]);
    cluster.wait_until(|cluster| cluster.log(name).contains("connected to manager"));
}

/// Makes a cluster's folder accessible to all users, and its temporary folder shared.
fn open_to_others(cluster: &mut Cluster<'_>) {
    set_mode(&cluster.path(""), 0o755);
    fs::create_dir(cluster.path("tmp")).expect("a folder");
    set_mode(&cluster.path("tmp"), 0o1777);
    let tmp = cluster.path("tmp").display().to_string();
    cluster.environment.insert("TMPDIR".to_owned(), tmp);
}

#[test]
fn cluster_files_are_their_owners_whatever_the_umask() {
    let test = "cluster_files_are_their_owners_whatever_the_umask";
    let study = cluster::study(2, 64);
    for umask in ["0", "022"] {
        let mut cluster = Cluster::to_be(&study);
        open_to_others(&mut cluster);
        for name in ["manager", "w0", "w1"] {
            let way = ["sh", "-c", r#"umask "$0" && exec "$@""#, umask];
            cluster.places.insert(name.to_owned(), Place::by(way));
        }
        cluster.start_manager();
        start_without_disk(&mut cluster, "w0");
        let Some(id) = cluster.submit_from_elsewhere() else {
            return skipped(test, "the system does not let us mount");
        };
        cluster.start_worker("w1", &[]);
        cluster.wait_for_completion(&id);
        let [scratch] = &scratch(&cluster)[..] else { panic!("one worker has no disk") };
        assert_eq!((mode(&cluster.state), mode(scratch)), (0o700, 0o700));
        assert!(all_private(&cluster.state.join("inputs")) == 2, "two tiles were sent");
        assert!(all_private(&cluster.state) > 8, "and there are results");
        let of_w0 = all_private(scratch);
        let of_w1 = all_private(&cluster.path("w1-ssd"));
        assert!(of_w0 > 1 && of_w1 > 1, "{of_w0} and {of_w1} files: tiles and locks");
        // Output that a user requests follows the umask, as in any program.
        fs::write(cluster.path("open"), "").expect("a file");
        set_mode(&cluster.path("open"), 0o644);
        let path = |name: &str| cluster.path(name).display().to_string();
        match nobody_can(&["cat", &path("open")]) {
            Some(true) => {}
            _ => return skipped(test, "the system does not let us be another user"),
        }
        let tile = below(&cluster.state.join("inputs")).remove(0).display().to_string();
        let kept =
            below(scratch).into_iter().find(|path| path.is_file()).expect("a file").display().to_string();
        for denied in [
            &["cat", &tile][..],
            &["cat", &kept],
            &["ls", &path("state")],
            &["flock", "-n", &path("state/lock"), "true"],
        ] {
            assert_eq!(nobody_can(denied), Some(false), "umask {umask}: {denied:?}");
        }
    }
}

#[test]
fn state_folder_open_to_others_is_restricted_or_refused() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    cluster.submit(&[]);
    cluster.kill_manager();
    assert!(!cluster.log("manager").contains("open to other users"));
    for path in below(&cluster.state).into_iter().chain([cluster.state.clone()]) {
        set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    cluster.start_manager();
    assert_eq!(mode(&cluster.state), 0o700);
    assert!(all_private(&cluster.state) > 3);
    let said = cluster.log("manager");
    assert!(
        said.contains("--state state: was open to other users (mode 0755); restricted to its owner"),
        "{said}"
    );
    cluster.kill_manager();
    if chown(&cluster.state, Some(NOBODY), None).is_err() {
        let test = "state_folder_open_to_others_is_restricted_or_refused";
        return skipped(test, "the system does not let us give files away");
    }
    let refused = cluster.manager_command().output().expect("it starts");
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("error: --state state: belongs to user 65534, but this process runs as user "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn scratch_of_a_killed_worker_is_removed_by_the_next() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    open_to_others(&mut cluster);
    cluster.start_manager();
    start_without_disk(&mut cluster, "w0");
    let [dead] = &scratch(&cluster)[..] else { panic!("one folder") };
    fs::write(dead.join("inputs/tile"), "theirs").expect("a file");
    start_without_disk(&mut cluster, "w1");
    let alive = scratch(&cluster).into_iter().find(|path| path != dead).expect("another folder");
    cluster.kill_worker("w0");
    assert!(dead.join("inputs/tile").exists(), "a killed process removes nothing");
    start_without_disk(&mut cluster, "w2");
    let left = scratch(&cluster);
    assert!(!dead.exists() && alive.join("inputs").is_dir() && left.len() == 2, "{left:?}");
    assert!(cluster.log("w2").contains(&format!("removed {}", dead.display())), "{}", cluster.log("w2"));
    // The live worker continues and removes its own folder.
    cluster.ask_to_leave("w1");
    assert!(cluster.left("w1").success());
    assert!(!alive.exists() && scratch(&cluster).len() == 1);
}
