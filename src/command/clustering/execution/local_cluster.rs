//! A manager and workers as processes of this machine, in a folder of their own, for the time of an execution.
//!
//! They are a process group with a watcher, a shell that waits for the end of a pipe. Only this process has the other end: the kernel
//! closes it even if the command gets SIGKILL, and the watcher then removes the folder and kills the group.

use crate::exit::{CommandError, CommandResult};
use pleach_actors::transport::certs::{Authority, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_api::schema::WorkerState;
use pleach_client::{Client, ClientOptions, InterruptibleWait};
use std::fs::{self, File};
use std::io::PipeWriter;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum number of workers: processes of one machine.
pub(super) const MAX_WORKERS: usize = 64;

/// Maximum time until the manager and all workers have started: a loaded machine takes a few seconds.
const START_TIME: Duration = Duration::from_secs(60);

/// Interval between looks at the log of the manager, or at its workers.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Memory of a worker, twice the maximum size of all files.
const MEMORY: &str = "2GiB";

/// Variables that configure the processes of a user's own cluster.
const VARIABLES: [&str; 4] = ["PLEACH_LOG", "PLEACH_TOKEN", "PLEACH_MANAGER", "PLEACH_CERTS"];

/// Parts of the manager's line about its addresses: before the one for workers, and between both.
const ADDRESSES: (&str, &str) = ("workers connect to ", ", clients to ");

/// Ends a cluster whose command was killed. The first argument is its folder. The shell is in the group: it ends last, with the group.
/// The signals of a terminal or of a service do not end it, so that it outlives the command.
const WATCHER: &str = r#"trap '' HUP INT TERM
read -r _
rm -rf -- "$1"
kill -9 0"#;

/// Processes of a cluster. They are killed, and their folder is removed, on drop.
#[derive(Debug)]
pub(super) struct LocalCluster {
    processes: Vec<Child>,
    workers: usize,
    manager: String,
    watcher: Watcher,
    folder: TempDir,
}

/// Leader of the process group.
#[derive(Debug)]
struct Watcher {
    child: Child,
    /// Closed by the end of this process.
    _open: PipeWriter,
}

/// Creates a private folder that is removed on drop.
pub(super) fn scratch() -> CommandResult<TempDir> {
    let created = tempfile::Builder::new().prefix("pleach-cluster-").tempdir();
    created.map_err(|error| CommandError::writing("--execute: failed to create a temporary folder", &error))
}

impl LocalCluster {
    /// Starts a manager and workers with one slot each.
    pub(super) fn start(workers: usize, waiting: &InterruptibleWait) -> CommandResult<Self> {
        let folder = scratch()?;
        // First, so that each process is watched from its start.
        let watcher = Watcher::start(folder.path()).map_err(|error| {
            CommandError::writing("--execute: failed to start a shell that ends the workers", &error)
        })?;
        let (processes, manager) = (Vec::new(), String::new());
        let mut cluster = Self { processes, workers, manager, watcher, folder };
        cluster.issue_certificates()?;
        cluster.spawn(
            "manager",
            &[
                "--state",
                "state",
                "--http",
                "127.0.0.1:0",
                "--listen",
                "127.0.0.1:0",
                "--certs",
                "certs/manager",
            ],
        )?;
        let (for_workers, for_clients) = cluster.addresses(waiting)?;
        cluster.manager = for_clients;
        for number in 0..workers {
            let certs = format!("certs/w{number}");
            let shared = ["--listen", "127.0.0.1:0", "--cores", "1", "--memory", MEMORY];
            let own = ["--manager", &for_workers, "--certs", &certs];
            cluster.spawn("worker", &[&own[..], &shared].concat())?;
        }
        Ok(cluster)
    }

    /// Connects to the manager, and waits for all workers.
    pub(super) fn connect(&self, waiting: InterruptibleWait) -> CommandResult<Client> {
        let options = ClientOptions {
            manager: self.manager.parse().map_err(CommandError::defect)?,
            certs: self.path("certs/client"),
            token_file: None,
            timeout: START_TIME,
        };
        let client = Client::new(&options, None, waiting)?;
        let start = Instant::now();
        loop {
            let workers = client.workers()?;
            let active = workers.iter().filter(|worker| worker.state == WorkerState::Active).count();
            if active == self.workers {
                return Ok(client);
            }
            if start.elapsed() > START_TIME {
                return Err(CommandError::Refused(format!(
                    "--execute: {active} of {} workers have started within {} s; fewer --workers may start sooner",
                    self.workers,
                    START_TIME.as_secs()
                )));
            }
            client.waiting().pause(LOOK_EVERY).map_err(|error| CommandError::of(&error))?;
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue_certificates(&self) -> CommandResult {
        let now = SystemClock.now();
        let authority = Authority::init(&self.path("authority"), now).map_err(CommandError::defect)?;
        fs::create_dir(self.path("certs")).map_err(CommandError::defect)?;
        let of_workers = (0..self.workers).map(|number| (format!("w{number}"), Role::Worker));
        let others = [("manager".to_owned(), Role::Manager), ("client".to_owned(), Role::Client)];
        for (name, role) in of_workers.chain(others) {
            let folder = self.path("certs").join(&name);
            let identity = NodeIdentity { name: name.parse().map_err(CommandError::defect)?, role };
            let validity = Validity::days(1, now).map_err(CommandError::defect)?;
            authority.issue(&identity, validity, &folder).map_err(CommandError::defect)?;
        }
        Ok(())
    }

    /// Starts a process of this program, with its output in the log of the command.
    fn spawn(&mut self, command: &str, args: &[&str]) -> CommandResult {
        let failed = |error: std::io::Error| {
            CommandError::writing(format_args!("--execute: failed to start pleach {command}"), &error)
        };
        let log = log(&self.path(command)).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut process = Command::new(program);
        process.arg(command).args(args).current_dir(self.folder.path());
        // A group of its own: the signals of a terminal reach the command only, which then ends its processes.
        process.process_group(self.watcher.group());
        VARIABLES.iter().for_each(|variable| _ = process.env_remove(variable));
        let process = process.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().map_err(failed)?;
        self.processes.push(process);
        Ok(())
    }

    /// Waits until the manager has logged its addresses: for workers and for clients.
    fn addresses(&mut self, waiting: &InterruptibleWait) -> CommandResult<(String, String)> {
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(self.path("manager.log")).unwrap_or_default();
            // An unfinished line may lack a part of the address.
            let line =
                text.lines().zip(text.matches('\n')).find_map(|(line, _)| line.split_once(ADDRESSES.0));
            if let Some((workers, clients)) = line.and_then(|(_, rest)| rest.split_once(ADDRESSES.1)) {
                return Ok((workers.to_owned(), clients.trim().to_owned()));
            }
            let has_ended = self.processes.iter_mut().any(|process| !matches!(process.try_wait(), Ok(None)));
            if has_ended || start.elapsed() > START_TIME {
                let last = text.lines().last().unwrap_or("no output").to_owned();
                return Err(CommandError::Refused(format!("--execute: the manager has not started: {last}")));
            }
            waiting.pause(LOOK_EVERY).map_err(|error| CommandError::of(&error))?;
        }
    }
}

impl Watcher {
    fn start(folder: &Path) -> std::io::Result<Self> {
        let (reader, open) = std::io::pipe()?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WATCHER, "watcher"]).arg(folder).current_dir("/").process_group(0);
        let child = shell.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { child, _open: open })
    }

    /// Returns the number of the group. Process numbers are positive and below 2²².
    fn group(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(path: &Path) -> std::io::Result<File> {
    File::options().create(true).append(true).open(path.with_extension("log"))
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        // Workers first: without a manager they would wait for it. An error means that the process has ended.
        for mut process in self.processes.drain(..).rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
