//! `pleach doctor` on a machine: every check passes, and fails for a reason that a test can give it.

use crate::mounted::Disk;
use crate::pleach::{Answer, answer, pleach};
use pleach_actors::transport::certs::{Authority, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Ports that no other process of the tests has for longer than a moment.
const FREE: [&str; 4] = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];

fn doctor(folder: &Path, args: &[&str]) -> Answer {
    pleach(folder, &[&["doctor"], &FREE[..], args].concat())
}

/// The severity, the finding and the remedy of a subject.
fn item(answer: &Answer, subject: &str) -> (String, String, Option<String>) {
    let document: Value = serde_json::from_str(&answer.stdout).expect("one JSON document");
    let items = document["machine"].as_array().expect("items");
    let item = items.iter().rfind(|item| item["subject"] == subject);
    let item = item.unwrap_or_else(|| panic!("{subject}: {document:#}"));
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    (text("severity").expect("a severity"), text("found").expect("a finding"), text("remedy"))
}

fn found(answer: &Answer, subject: &str) -> (String, String) {
    let (severity, found, remedy) = item(answer, subject);
    assert_eq!(severity == "ok", remedy.is_none(), "{subject}: {found}: {remedy:?}");
    (severity, found)
}

fn two(severity: &str, found: &str) -> (String, String) {
    (severity.to_owned(), found.to_owned())
}

#[test]
fn sound_machine_is_listed() {
    let place = tempfile::tempdir().expect("a folder");
    let said = doctor(place.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    let version = format!("ok       pleach: version {}, protocol ", env!("CARGO_PKG_VERSION"));
    assert!(said.stdout.starts_with(&version), "{said:?}");
    for start in ["ok       OpenCV: ", "ok       OpenSlide: ", "ok       cores: ", "ok       clock: 20"] {
        assert!(said.stdout.lines().any(|line| line.starts_with(start)), "{start}: {said:?}");
    }
    assert!(said.stdout.contains("libopencv_imgproc.so.4"), "{said:?}");
    assert!(
        said.stdout.contains("ok       UDP 127.0.0.1:0: free\nok       TCP 127.0.0.1:0: free\n"),
        "{said:?}"
    );
    let last = said.stdout.lines().last().expect("lines");
    assert!(last.starts_with("machine: ") && last.contains("; errors: 0, warnings: "), "{said:?}");
    let json = doctor(place.path(), &["--json"]);
    assert_eq!(found(&json, "memory files"), two("ok", "can be sealed"));
    let document: Value = serde_json::from_str(&json.stdout).expect("one JSON document");
    assert_eq!(document["state"], Value::Null);
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0);
}

#[test]
fn occupied_ports_are_found() {
    let place = tempfile::tempdir().expect("a folder");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (workers, clients) =
        (udp.local_addr().expect("bound").to_string(), tcp.local_addr().expect("bound").to_string());
    let said = pleach(place.path(), &["doctor", "--json", "--listen", &workers, "--http", &clients]);
    assert_eq!((said.code, said.stderr.as_str()), (3, "warning: 2 checks of this machine failed\n"));
    for (subject, option) in [(format!("UDP {workers}"), "--listen"), (format!("TCP {clients}"), "--http")] {
        let remedy =
            format!("if that is no manager of yours, stop it, or start the manager with another {option}");
        let expected = ("error".to_owned(), "in use by another process".to_owned(), Some(remedy));
        assert_eq!(item(&said, &subject), expected);
    }
    // An address for documentation (RFC 5737), which no machine has.
    let said =
        pleach(place.path(), &["doctor", "--json", "--listen", "192.0.2.1:7117", "--http", "127.0.0.1:0"]);
    let absent = two("error", "no interface of this machine has this address");
    assert_eq!((said.code, found(&said, "UDP 192.0.2.1:7117")), (3, absent));
}

/// Writes the certificate of worker w1, valid for `days` from `then`.
fn issue(authority: &Authority, folder: &Path, days: u32, then: Duration) {
    let identity = NodeIdentity { name: "w1".parse().expect("a name"), role: Role::Worker };
    authority.issue(&identity, Validity::days(days, then).expect("days"), folder).expect("issued");
}

#[test]
fn certificates_are_checked() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let now = SystemClock.now();
    let authority = Authority::init(&folder.join("ca"), now).expect("an authority");
    let other = Authority::init(&folder.join("other"), now).expect("an authority");
    let old = Authority::init(&folder.join("old"), now - DAY * 3700).expect("an authority");
    for (name, days, then) in [
        ("sound", 365, now),
        ("soon", 5, now),
        ("expired", 5, now - DAY * 10),
        ("early", 5, now + DAY * 3),
        ("mixed", 365, now),
        ("open", 365, now),
        ("torn", 365, now),
    ] {
        issue(&authority, &folder.join(name), days, then);
    }
    issue(&other, &folder.join("foreign"), 365, now);
    issue(&old, &folder.join("outlived"), 365, now);
    let copy = |from: &str, to: &str| fs::copy(folder.join(from), folder.join(to)).expect("copied");
    copy("sound/node-key.pem", "mixed/node-key.pem");
    fs::write(folder.join("torn/node.pem"), "-----BEGIN").expect("written");
    fs::set_permissions(folder.join("open/node-key.pem"), fs::Permissions::from_mode(0o644))
        .expect("changed");
    // The certificate of one authority before that of another.
    let part = |name: &str, number: usize| {
        let text = fs::read_to_string(folder.join(name)).expect("a chain");
        text.split_inclusive("-----END CERTIFICATE-----\n").nth(number).expect("a part").to_owned()
    };
    let chain = part("foreign/node.pem", 0) + &part("sound/node.pem", 1);
    fs::write(folder.join("foreign/node.pem"), chain).expect("written");
    fs::create_dir(folder.join("empty")).expect("a folder");
    symlink("/missing", folder.join("empty/node.pem")).expect("a link");
    let check = |name: &str, code: i32| {
        let said = doctor(folder, &["--json", "--certs", name]);
        assert_eq!(said.code, code, "{said:?}");
        said
    };
    let valid =
        |days: u32| format!("worker w1, valid for {days} days, signed by its authority, with its key");
    for (name, code, severity, text) in [
        ("sound", 0, "ok", valid(364)),
        ("soon", 0, "warning", format!("{}; the certificate expires soon", valid(4))),
        ("expired", 3, "error", "worker w1: the certificate has expired".to_owned()),
        ("early", 3, "error", "worker w1: the certificate is not valid yet".to_owned()),
        ("mixed", 3, "error", "worker w1: the key does not belong to the certificate".to_owned()),
        ("outlived", 3, "error", "worker w1: the authority's certificate has expired".to_owned()),
        (
            "foreign",
            3,
            "error",
            "worker w1: the authority in the same file has not issued the certificate".to_owned(),
        ),
        (
            "torn",
            3,
            "error",
            "torn/node.pem: not the certificates of a node and its authority; a file written by `pleach certs \
             issue` is allowed"
                .to_owned(),
        ),
        ("empty", 3, "error", "empty/node.pem: No such file or directory (os error 2)".to_owned()),
        ("missing", 3, "error", "missing/ca.pem: No such file or directory (os error 2)".to_owned()),
    ] {
        assert_eq!(found(&check(name, code), &format!("--certs {name}")), two(severity, &text), "{name}");
    }
    let said = check("open", 3);
    assert_eq!(found(&said, "--certs open"), two("ok", &valid(364)));
    let open = two("error", "other users have access (mode 0644)");
    assert_eq!(found(&said, "open/node-key.pem"), open);
    assert_eq!(found(&check("ca", 0), "--certs ca: authority"), two("ok", "complete"));
    fs::remove_file(folder.join("ca/token-key")).expect("removed");
    let broken = two("error", "ca/token-key: No such file or directory (os error 2)");
    assert_eq!(found(&check("ca", 3), "--certs ca: authority"), broken);
}

#[test]
fn disks_are_measured_and_judged() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(disk) = Disk::tmpfs(&place.path().join("small"), 4) else {
        return crate::skipped("disks_are_measured_and_judged", "the system does not let us mount");
    };
    let program = assert_cmd::cargo::cargo_bin!("pleach");
    let inside = |script: &str| {
        let way = disk.way();
        let mut command = Command::new(&way[0]);
        answer(command.args(&way[1..]).args(["sh", "-c", script, "sh"]).arg(program))
    };
    let check = "\"$1\" doctor --json --listen 127.0.0.1:0 --http 127.0.0.1:0";
    // 4 MB are less than the file that is written.
    let said = inside(&format!("{check} --ssd small"));
    let full = two("error", "cannot be written to: No space left on device (os error 28)");
    assert_eq!((said.code, found(&said, "--ssd small")), (3, full));
    let said = inside(&format!("mount -o remount,ro small && {check} --lustre small"));
    let read_only = two("error", "cannot be written to: Read-only file system (os error 30)");
    assert_eq!((said.code, found(&said, "--lustre small")), (3, read_only));
    let said =
        inside(&format!("mount -o remount,rw,size=64m small && {check} --cache small --ssd small/new"));
    assert_eq!(said.code, 0, "{said:?}");
    let (severity, text) = found(&said, "--cache small");
    assert_eq!((severity.as_str(), text.as_str()), ("warning", "tmpfs: its files are lost at a restart"));
    assert_eq!(found(&said, "--ssd small/new"), two("warning", "tmpfs: its files take memory"));
    let listed = inside("\"$1\" doctor --listen 127.0.0.1:0 --http 127.0.0.1:0 --cache small");
    let measured = listed.stdout.lines().find(|line| line.starts_with("ok       --cache small: writes "));
    assert!(measured.is_some_and(|line| line.ends_with(" free; tmpfs")), "{listed:?}");
    assert!(listed.stdout.contains("warning  --cache small: 67.1 MB are free\n"), "{listed:?}");
    assert_eq!(fs::read_dir(disk.seen()).expect("a folder").count(), 0, "no file is left");
}

/// Calls `pleach doctor --json` in a shell, after these commands.
fn after(folder: &Path, commands: &str) -> Answer {
    let script = format!("{commands} && \"$0\" doctor --json --listen 127.0.0.1:0 --http 127.0.0.1:0");
    let program = assert_cmd::cargo::cargo_bin!("pleach");
    answer(Command::new("sh").current_dir(folder).args(["-c", &script]).arg(program))
}

#[test]
fn low_limits_are_found() {
    let place = tempfile::tempdir().expect("a folder");
    let said = after(place.path(), "ulimit -n 100");
    let few = two("error", "at most 100; 256 are needed");
    assert_eq!((said.code, found(&said, "open files")), (3, few));
    let said = after(place.path(), "ulimit -n 512");
    assert_eq!((said.code, found(&said, "open files")), (0, two("warning", "at most 512")));
    let said = after(place.path(), "export LC_ALL=C TMPDIR=/missing/folder");
    assert_eq!((said.code, found(&said, "locale")), (0, two("note", "C, which is not UTF-8")));
    let missing = two("note", "missing; / is checked instead");
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let items = document["machine"].as_array().expect("items");
    let temporary =
        items.iter().find(|item| item["subject"] == "temporary folder /missing/folder").expect("an item");
    assert_eq!(
        (temporary["severity"].as_str(), temporary["found"].as_str()),
        (Some(&*missing.0), Some(&*missing.1))
    );
}

#[test]
fn python_is_checked() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let said = doctor(folder, &["--json", "--python", "nowhere"]);
    let expected = "nowhere: no Python here; the folder of a virtual environment or an interpreter is allowed (--python)";
    assert_eq!((said.code, found(&said, "Python")), (3, two("error", expected)));
    fs::write(folder.join("python"), "#!/bin/sh\necho '{\"too_old\": \"3.8.1\"}'\n").expect("written");
    fs::set_permissions(folder.join("python"), fs::Permissions::from_mode(0o755)).expect("changed");
    let said = doctor(folder, &["--json", "--python", "python"]);
    let (severity, text) = found(&said, "Python");
    assert!(
        severity == "error" && text.ends_with("python: Python 3.8.1; 3.10 or later is allowed"),
        "{text}"
    );
    // A search path without Python.
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
    let said = answer(
        command
            .current_dir(folder)
            .args(["doctor", "--json"])
            .args(FREE)
            .env("PATH", "/missing")
            .env_remove("VIRTUAL_ENV"),
    );
    assert_eq!((said.code, found(&said, "Python").0.as_str()), (0, "note"));
}

#[test]
fn missing_opencl_is_a_note() {
    let place = tempfile::tempdir().expect("a folder");
    // The loader looks for the library in this folder only, and a file in it is none.
    fs::write(place.path().join("libOpenCL.so.1"), "").expect("written");
    let library = format!(
        "export LD_LIBRARY_PATH='{0}' OPENCL_DYLIB_PATH='{0}/libOpenCL.so.1'",
        place.path().display()
    );
    let said = after(place.path(), &library);
    let (severity, text) = found(&said, "OpenCL");
    assert_eq!((said.code, severity.as_str()), (0, "note"), "{text}");
}

#[test]
fn unreachable_manager_is_an_error() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    pleach(folder, &["certs", "init", "--dir", "ca"]).done();
    pleach(folder, &["certs", "issue", "--dir", "ca", "--name", "me", "--role", "client"]).done();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let manager = format!("https://{closed}");
    let said = doctor(folder, &["--json", "--manager", &manager, "--certs", "ca/me", "--timeout", "0s"]);
    let (severity, text) = found(&said, &format!("manager {manager}"));
    assert_eq!((said.code, severity.as_str()), (3, "error"), "{text}");
    let said = doctor(folder, &["--json", "--manager", &manager]);
    assert_eq!(found(&said, &format!("manager {manager}")), two("warning", "not asked, without --certs"));
}

/// A manager, which is killed with the value.
struct Manager(std::process::Child);

impl Drop for Manager {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn running_manager_is_asked_for_its_clock() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    for authority in ["ca", "other"] {
        pleach(folder, &["certs", "init", "--dir", authority]).done();
        pleach(folder, &["certs", "issue", "--dir", authority, "--name", "me", "--role", "client"]).done();
    }
    pleach(folder, &["certs", "issue", "--dir", "ca", "--name", "m1", "--role", "manager"]).done();
    let mut manager = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
    manager.current_dir(folder).args(["manager", "--state", "state", "--certs", "ca/m1"]).args(FREE);
    let mut manager = Manager(manager.stdout(Stdio::piped()).spawn().expect("pleach starts"));
    let mut log = BufReader::new(manager.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let line = log.find(|line| line.contains("https://")).expect("the manager states its address");
    let (_, address) = line.split_once("https://").expect("an address");
    let end = address.find(|letter: char| !(letter.is_ascii_digit() || ".:".contains(letter)));
    let address = format!("https://{}", &address[..end.unwrap_or(address.len())]);
    let subject = format!("manager {address}");
    let said = doctor(folder, &["--json", "--manager", &address, "--certs", "ca/me"]);
    let agrees = two("ok", "accepts the credentials; its clock agrees with this one");
    assert_eq!((said.code, found(&said, &subject)), (0, agrees));
    let said = doctor(folder, &["--json", "--manager", &address, "--certs", "other/me"]);
    assert_eq!((said.code, found(&said, &subject).0.as_str()), (3, "error"), "{said:?}");
    // With a manager at work, its state directory can be checked, too.
    let said = doctor(folder, &["--state", "state"]);
    assert!(said.stdout.contains("\nnote: state: a manager is running; "), "{said:?}");
    assert!(said.stdout.contains("ok       --state state: writes "), "{said:?}");
}
