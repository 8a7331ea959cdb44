//! Driver `process`: worker processes on the machine of the manager.
//!
//! Each worker is in a process group of its own, so that it outlives the manager and its terminal. It has the owner tag,
//! its pool and its name in its environment. A list reads the environments of all processes: it needs no record, and a
//! process number that the system assigns again is no worker.

use super::{DriverContext, DriverError, ListedWorker, StartError};
use crate::pools::PoolSpec;
use parking_lot::Mutex;
use pleach_actors::transport::certs::{Authority, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_storage::files::private;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Variable of a worker's environment: owner tag, pool and name.
const VARIABLE: &str = "PLEACH_OWNER";

/// 365 days: a worker ends with the studies that need it.
const CERTIFICATE_DAYS: u32 = 365;

/// 35 s from the request to end until the kill: a worker drains for 30 s at most.
const KILL_AFTER: Duration = Duration::from_secs(35);

/// Folders of ended workers to keep, for their logs.
const KEPT_FOLDERS: usize = 20;

/// Worker processes of a pool.
#[derive(Debug)]
pub(super) struct ProcessDriver {
    program: PathBuf,
    /// Owner tag and pool, the first part of the variable's value.
    tag: String,
    cores: u32,
    manager: String,
    options: Vec<String>,
    credentials: WorkerCredentials,
    /// Folder with a folder for each worker.
    folder: PathBuf,
    /// Workers of this start of the manager, which it has to reap, by name.
    children: Mutex<Vec<(String, Child)>>,
    /// Time of the first request to end, by handle.
    asked: Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug)]
enum WorkerCredentials {
    /// The manager issues certificates with the authority of this folder.
    Authority(PathBuf),
    /// Workers join with the token in this file.
    Token(PathBuf),
}

/// Running worker process.
struct Found {
    pid: Pid,
    /// Start time in ticks since the boot. Two processes with one number differ by it.
    start: u64,
    name: String,
}

impl ProcessDriver {
    pub(super) fn new(
        spec: &PoolSpec,
        context: &DriverContext,
        manager: String,
        options: Vec<String>,
        token: Option<PathBuf>,
    ) -> Result<Self, DriverError> {
        let credentials = match (token, &context.authority) {
            (Some(token), _) => WorkerCredentials::Token(token),
            (None, Some(authority)) => WorkerCredentials::Authority(authority.clone()),
            (None, None) => return Err(DriverError::Certificates(spec.name.clone())),
        };
        Ok(Self {
            program: std::env::current_exe().map_err(DriverError::Program)?,
            tag: format!("{} {} ", context.owner_tag(), spec.name),
            cores: spec.cores,
            manager,
            options,
            credentials,
            folder: context.state.join("workers").join(&spec.name),
            children: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    pub(super) fn start(&self, name: &str) -> Result<String, StartError> {
        let refused = |error: &dyn std::fmt::Display| StartError::Refused(error.to_string());
        // Held to the end: the folder of a worker whose process does not exist yet must not be removed.
        let mut children = self.children.lock();
        children.retain_mut(is_running);
        self.remove_old_folders(name, &children);
        let folder = self.folder.join(name);
        private::create_folders(&folder)
            .map_err(|error| refused(&format!("{}: {error}", folder.display())))?;
        let certs = folder.join("certs");
        let mut command = Command::new(&self.program);
        command.args(["worker", "--manager", &self.manager, "--cores", &self.cores.to_string(), "--certs"]);
        command.arg(&certs);
        match &self.credentials {
            WorkerCredentials::Authority(authority) => {
                issue(authority, name, &certs).map_err(StartError::Refused)?;
            }
            WorkerCredentials::Token(token) => _ = command.arg("--token").arg(token).args(["--name", name]),
        }
        let at = folder.display().to_string();
        command
            .args(self.options.iter().map(|option| option.replace("{name}", name).replace("{folder}", &at)));
        let log = private::options().create(true).append(true).open(folder.join("worker.log"));
        let log = log.map_err(|error| refused(&error))?;
        let errors = log.try_clone().map_err(|error| refused(&error))?;
        command.env(VARIABLE, format!("{}{name}", self.tag));
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| refused(&error))?;
        let pid = child.id();
        children.push((name.to_owned(), child));
        match start_time(pid) {
            Some(start) => Ok(handle(pid, start)),
            None => Err(StartError::Unknown("the process has ended".to_owned())),
        }
    }

    pub(super) fn stop(&self, name: &str, handle: &str) -> Result<(), String> {
        self.reap();
        let found = || self.find().into_iter().find(|found| found.name == name && found.handle() == handle);
        let Some(process) = found() else {
            self.asked.lock().remove(handle);
            return Ok(());
        };
        // The descriptor first, so that no other process has the number when the signal is sent.
        let descriptor = pidfd_open(process.pid, PidfdFlags::empty());
        if found().is_none() {
            return Ok(());
        }
        let asked = *self.asked.lock().entry(handle.to_owned()).or_insert_with(Instant::now);
        let sent = descriptor.and_then(|descriptor| {
            if asked.elapsed() < KILL_AFTER {
                return pidfd_send_signal(&descriptor, Signal::TERM);
            }
            // With the processes of its operations.
            let _ = kill_process_group(process.pid, Signal::KILL);
            pidfd_send_signal(&descriptor, Signal::KILL)
        });
        sent.map_err(|error| format!("process {}: {error}", process.pid.as_raw_nonzero()))
    }

    pub(super) fn list(&self) -> Vec<ListedWorker> {
        self.reap();
        let worker = |found: Found| ListedWorker { handle: found.handle(), name: found.name };
        self.find().into_iter().map(worker).collect()
    }

    /// Reaps workers that have ended, so that they are no processes any more.
    fn reap(&self) {
        self.children.lock().retain_mut(is_running);
    }

    /// Returns the running workers of this pool and owner.
    fn find(&self) -> Vec<Found> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers.filter_map(|pid| self.examine(pid)).collect()
    }

    /// Returns the worker with a process number, if it is one.
    fn examine(&self, pid: u32) -> Option<Found> {
        let start = start_time(pid)?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let own = format!("{VARIABLE}={}", self.tag);
        let name = environment.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(own.as_bytes()))?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        // Processes of its operations inherit the environment.
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_worker = arguments.split(|byte| *byte == 0).nth(1) == Some(b"worker");
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        is_worker.then_some(Found { pid, start, name })
    }

    /// Removes the folders of workers that have ended, except for the newest ones and that of `name`.
    ///
    /// The system shows the environment of a new process a moment after its start, so `children` run although
    /// [`find`](Self::find) may miss them.
    fn remove_old_folders(&self, name: &str, children: &[(String, Child)]) {
        let started = children.iter().map(|(name, _)| name.clone());
        let running: Vec<String> = self.find().into_iter().map(|found| found.name).chain(started).collect();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut ended: Vec<(SystemTime, PathBuf)> = entries
            .filter(|entry| {
                let other = entry.file_name().to_string_lossy().into_owned();
                other != name && !running.contains(&other)
            })
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        ended.sort();
        for (_, folder) in ended.iter().rev().skip(KEPT_FOLDERS) {
            // A folder that stays takes little room.
            let _ = fs::remove_dir_all(folder);
        }
        for (_, folder) in &ended {
            let _ = fs::remove_dir_all(folder.join("certs"));
        }
    }
}

impl Found {
    fn handle(&self) -> String {
        handle(self.pid.as_raw_nonzero().get().unsigned_abs(), self.start)
    }
}

/// Returns whether a child has not ended. Reaps it otherwise.
fn is_running((_, child): &mut (String, Child)) -> bool {
    matches!(child.try_wait(), Ok(None))
}

fn handle(pid: u32, start: u64) -> String {
    format!("{pid}-{start}")
}

/// Returns the start time of a process that is no zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain any character.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    // Field 22 of proc(5); the iterator is at field 4.
    fields.nth(18)?.parse().ok()
}

/// Issues the certificate of a worker.
fn issue(authority: &Path, name: &str, certs: &Path) -> Result<(), String> {
    let identity = name.parse().map_err(|error| format!("{name}: {error}"))?;
    let identity = NodeIdentity { name: identity, role: Role::Worker };
    let validity = Validity::days(CERTIFICATE_DAYS, SystemClock.now()).map_err(|error| error.to_string())?;
    let issued = Authority::open(authority).and_then(|authority| authority.issue(&identity, validity, certs));
    issued.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first worker's process shows no variables, as a new process does for a moment.
    #[test]
    fn next_start_keeps_the_certificates_of_a_worker_that_is_not_found_yet() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        fs::write(&program, "#!/bin/sh\nexec env -i sleep 60\n").expect("written");
        let mode = Command::new("chmod").arg("755").arg(&program).status();
        assert!(mode.expect("chmod").success());
        let driver = ProcessDriver {
            program,
            tag: "0 pool ".to_owned(),
            cores: 1,
            manager: String::new(),
            options: Vec::new(),
            credentials: WorkerCredentials::Token(PathBuf::from("token")),
            folder: folder.path().join("workers"),
            children: Mutex::default(),
            asked: Mutex::default(),
        };
        let certs = |name: &str| driver.folder.join(name).join("certs");
        driver.start("first").expect("it starts");
        fs::create_dir(certs("first")).expect("certificates");
        // The shell has replaced itself once its variables are gone.
        let begun = Instant::now();
        while !driver.list().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the variables stay");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        driver.start("second").expect("it starts");
        assert!(certs("first").exists());

        for (_, child) in driver.children.lock().iter_mut() {
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        }
        fs::create_dir(certs("second")).expect("certificates");
        driver.start("third").expect("it starts");
        assert!(!certs("first").exists() && !certs("second").exists());
        driver.children.lock().iter_mut().for_each(|(_, child)| {
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        });
    }
}
