//! The processes of a cluster in a folder of their own: start, kill, and stop at the end of the test. `ask` holds the
//! commands of clients.

mod ask;

use crate::place::Place;
use crate::pleach::{Answer, pleach};
use crate::study::Study;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// 150 s: bounds waits that would otherwise be endless, far above the longest.
pub(crate) const DEADLINE: Duration = Duration::from_secs(150);

/// Interval between checks of a condition.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A study of `trajectories` trajectories on two tiles.
pub(crate) fn study(trajectories: u32, size_px: u32) -> Study {
    let study = Study::of_tissue(size_px);
    study.edit(&[("trajectories = 2", &format!("trajectories = {trajectories}"))]);
    fs::remove_dir_all(study.path("labels")).unwrap_or_default();
    study
}

/// The responses of the study, executed in one process.
pub(crate) fn expected(study: &Study) -> String {
    pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet"]).done();
    fs::read_to_string(study.path("alone/responses.csv")).expect("responses")
}

/// A manager and workers as child processes, with the study's folder.
pub(crate) struct Cluster<'a> {
    study: &'a Study,
    folder: tempfile::TempDir,
    manager: Option<Child>,
    /// Additional options of the manager.
    pub(crate) manager_options: Vec<String>,
    /// Address for workers. Clients use `http`.
    pub(crate) listen: String,
    pub(crate) http: String,
    pub(crate) workers: BTreeMap<String, Child>,
    /// The length of the manager's log when each worker started, by name.
    logged_before: BTreeMap<String, usize>,
    /// Address of a proxy that workers connect to instead, if any.
    pub(crate) through: Option<String>,
    /// Hosts and mounts of processes that do not run directly on this machine, by name. The commands of clients run at
    /// `client`.
    pub(crate) places: BTreeMap<String, Place>,
    /// Arguments of processes that tests start in another way, by name.
    pub(crate) called: BTreeMap<String, Vec<String>>,
    /// The state directory, as the test sees it.
    pub(crate) state: PathBuf,
    /// Environment of all processes started from now on.
    pub(crate) environment: BTreeMap<String, String>,
}

impl<'a> Cluster<'a> {
    /// Starts a manager with certificates for all later workers.
    pub(crate) fn new(study: &'a Study) -> Self {
        let mut cluster = Self::to_be(study);
        cluster.start_manager();
        cluster
    }

    /// Creates the files of a cluster and starts no process.
    pub(crate) fn to_be(study: &'a Study) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let cluster = Self {
            study,
            folder,
            manager: None,
            manager_options: Vec::new(),
            listen: String::new(),
            http: String::new(),
            workers: BTreeMap::new(),
            logged_before: BTreeMap::new(),
            through: None,
            places: BTreeMap::new(),
            called: BTreeMap::new(),
            state,
            environment: BTreeMap::new(),
        };
        cluster.call(&["certs", "init", "--dir", "ca"]).done();
        cluster.certify("boss", "manager");
        cluster.certify("me", "client");
        cluster
    }

    /// Starts a manager and workers w0, w1, ….
    pub(crate) fn of(study: &'a Study, workers: usize) -> Self {
        let mut cluster = Self::new(study);
        cluster.start_workers(0..workers);
        cluster
    }

    pub(crate) fn start_workers(&mut self, numbers: std::ops::Range<usize>) {
        numbers.for_each(|number| self.start_worker(&format!("w{number}"), &[]));
    }

    /// Waits until a study is complete. Looks at a file first: `status` would start a process for each look.
    pub(crate) fn wait_for_completion(&self, id: &str) {
        self.wait_until(|cluster| cluster.has_ended(id));
        self.wait_until(|cluster| cluster.state_of(id) == "complete");
    }

    /// Waits until a study is complete. Returns its responses.
    pub(crate) fn completed(&self, id: &str) -> String {
        self.wait_for_completion(id);
        self.responses(id)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `pleach` in the cluster's folder.
    pub(crate) fn call(&self, args: &[&str]) -> Answer {
        pleach(self.folder.path(), args)
    }

    fn certify(&self, name: &str, role: &str) {
        let out = format!("ca/{name}");
        self.call(&["certs", "issue", "--dir", "ca", "--name", name, "--role", role, "--out", &out]).done();
    }

    fn place(&self, name: &str) -> Place {
        self.places.get(name).cloned().unwrap_or_default()
    }

    /// The command of the process with this name, at its place.
    fn command(&self, name: &str) -> Command {
        let mut command = self.place(name).command(assert_cmd::cargo::cargo_bin!("pleach"));
        command.current_dir(self.folder.path()).envs(&self.environment);
        command
    }

    pub(crate) fn manager_command(&self) -> Command {
        let mut command = self.command("manager");
        if let Some(args) = self.called.get("manager") {
            command.args(args);
            return command;
        }
        let place = self.place("manager");
        let at = |address: &String| if address.is_empty() { place.lasting_port() } else { address.clone() };
        command.args(["manager", "--state", "state", "--certs", "ca/boss"]);
        command.args(["--listen", &at(&self.listen), "--http", &at(&self.http)]);
        command.args(&self.manager_options);
        command
    }

    /// Starts the manager, at its previous addresses if it had any.
    pub(crate) fn start_manager(&mut self) {
        let log = File::options().create(true).append(true).open(self.path("manager.log")).expect("a log");
        let before = fs::read_to_string(self.path("manager.log")).unwrap_or_default().len();
        self.manager =
            Some(self.manager_command().stdout(log).stderr(Stdio::inherit()).spawn().expect("it starts"));
        self.wait_until(|cluster| cluster.log("manager")[before..].contains("workers connect to"));
        let log = self.log("manager");
        let line = log[before..].lines().find(|line| line.contains("workers connect to")).expect("said");
        let (_, rest) = line.split_once("connect to ").expect("an address");
        let (listen, http) = rest.split_once(", clients to https://").expect("two");
        (self.listen, self.http) = (listen.to_owned(), http.to_owned());
    }

    /// Starts the manager. On failure, returns its exit code and its output.
    pub(crate) fn try_start_manager(&mut self) -> Result<(), (Option<i32>, String)> {
        let log = File::create(self.path("manager.log")).expect("a log");
        let errors = log.try_clone().expect("a log");
        let mut child = self.manager_command().stdout(log).stderr(errors).spawn().expect("it starts");
        let begun = Instant::now();
        while !self.log("manager").contains("workers connect to") {
            if let Some(status) = child.try_wait().expect("a child") {
                return Err((status.code(), self.log("manager")));
            }
            assert!(begun.elapsed() < DEADLINE, "it does not start: {}", self.log("manager"));
            std::thread::park_timeout(LOOK_AGAIN);
        }
        self.manager = Some(child);
        Ok(())
    }

    pub(crate) fn kill_manager(&mut self) {
        let mut manager = self.manager.take().expect("it runs");
        manager.kill().expect("it is ours");
        manager.wait().expect("it ends");
    }

    /// Sends SIGTERM to the manager and waits for its end.
    pub(crate) fn end_manager(&mut self) -> ExitStatus {
        let mut manager = self.manager.take().expect("it runs");
        terminate(manager.id());
        manager.wait().expect("it ends")
    }

    /// Starts a worker with one slot.
    pub(crate) fn start_worker(&mut self, name: &str, options: &[&str]) {
        if let Some(args) = self.called.get(name) {
            let mut command = self.command(name);
            command.args(args);
            return self.spawn_worker(name, command);
        }
        let certs = format!("ca/{name}");
        if !self.path(&certs).exists() {
            self.certify(name, "worker");
        }
        let manager = self.through.clone().unwrap_or_else(|| self.listen.clone());
        let mut command = self.command(name);
        command.args(["worker", "--manager", &manager, "--certs", &certs]);
        // The folder is within the cluster's folder: a killed worker removes nothing.
        let given = options.iter().position(|option| *option == "--ssd").map(|place| options[place + 1]);
        let ssd = given.map_or_else(|| format!("{name}-ssd"), str::to_owned);
        fs::create_dir_all(self.path(&ssd)).expect("a folder");
        command.args(["--listen", &self.place(name).any_port(), "--cores", "1"]).args(options);
        if given.is_none() {
            command.args(["--ssd", &ssd]);
        }
        if !options.contains(&"--memory") {
            command.args(["--memory", "1GB"]);
        }
        self.spawn_worker(name, command);
    }

    fn spawn_worker(&mut self, name: &str, mut command: Command) {
        self.logged_before.insert(name.to_owned(), self.log("manager").len());
        let log = File::options().create(true).append(true).open(self.path(&format!("{name}.log")));
        let child = command.stdout(log.expect("a log")).stderr(Stdio::inherit()).spawn().expect("it starts");
        assert!(self.workers.insert(name.to_owned(), child).is_none(), "{name} runs");
    }

    /// Waits until all workers have joined. On a busy machine, a study may otherwise end before some of them do.
    pub(crate) fn wait_for_workers(&self) {
        self.wait_until(|cluster| {
            let log = cluster.log("manager");
            let has_joined = |name: &String| {
                let since = log.get(cluster.logged_before[name]..).unwrap_or(&log);
                since.contains(&format!("worker {name} joined with"))
            };
            cluster.workers.keys().all(has_joined)
        });
    }

    /// Kills a worker with SIGKILL.
    pub(crate) fn kill_worker(&mut self, name: &str) {
        let mut worker = self.workers.remove(name).expect("it runs");
        worker.kill().expect("it is ours");
        worker.wait().expect("it ends");
    }

    /// Sends SIGTERM to a worker, which drains.
    pub(crate) fn ask_to_leave(&self, name: &str) {
        terminate(self.workers[name].id());
    }

    /// Waits for the end of a draining worker.
    pub(crate) fn left(&mut self, name: &str) -> ExitStatus {
        let begun = Instant::now();
        loop {
            let worker = self.workers.get_mut(name).expect("it runs");
            if let Some(status) = worker.try_wait().expect("a child") {
                self.workers.remove(name);
                return status;
            }
            assert!(begun.elapsed() < DEADLINE, "{name} does not leave: {}", self.log(name));
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Removes and returns workers that have ended, with their exit status.
    pub(crate) fn ended(&mut self) -> Vec<(String, ExitStatus)> {
        let looked = self.workers.iter_mut().filter_map(|(name, worker)| {
            let status = worker.try_wait().expect("a child")?;
            Some((name.clone(), status))
        });
        let ended: Vec<_> = looked.collect();
        ended.iter().for_each(|(name, _)| _ = self.workers.remove(name));
        ended
    }

    pub(crate) fn log(&self, name: &str) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(self.path(&format!("{name}.log"))) {
            file.read_to_string(&mut text).expect("UTF-8");
        }
        text
    }

    /// Waits until the condition holds. Looks take a third of the time at most: most of them start a process.
    pub(crate) fn wait_until(&self, happened: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        let mut looked = Instant::now();
        while !happened(self) {
            let pause = LOOK_AGAIN.max(2 * looked.elapsed());
            assert!(
                begun.elapsed() < DEADLINE,
                "it does not happen; the manager said:\n{}\n{}",
                self.log("manager"),
                self.status()
            );
            std::thread::park_timeout(pause);
            looked = Instant::now();
        }
    }

    /// Waits for `time`, for events that must not happen.
    pub(crate) fn let_pass(&self, time: Duration) {
        let begun = Instant::now();
        self.wait_until(|_| begun.elapsed() >= time);
    }

    /// Waits until no worker holds bytes or leases.
    pub(crate) fn nothing_is_left(&self) {
        self.wait_until(|cluster| {
            let workers = cluster.status()["workers"].as_array().cloned().unwrap_or_default();
            workers.iter().all(|worker| worker["bytes"] == 0 && worker["running"] == 0)
        });
    }
}

fn terminate(process: u32) {
    // The shell's built-in `kill`: a bare machine has no other.
    let status = Command::new("bash").args(["-c", &format!("kill -TERM {process}")]).status().expect("bash");
    assert!(status.success());
}

impl Drop for Cluster<'_> {
    #[expect(clippy::print_stderr, reason = "a test that fails shows what its processes said")]
    fn drop(&mut self) {
        for child in self.workers.values_mut().chain(&mut self.manager) {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let names: Vec<String> = self.workers.keys().cloned().collect();
            for name in ["manager".to_owned()].iter().chain(&names) {
                eprintln!("--- {name}\n{}", self.log(name));
            }
        }
    }
}
