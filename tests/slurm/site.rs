//! A user's account on a cluster with Slurm: runs the commands of `deploy/slurm/README.md` in a shell, with `~/pleach` in the
//! folder of the study.

use crate::pleach::pleach;
use crate::slurm::{Slurm, free_port, wait_until};
use crate::study::Study;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Bytes of responses in the journal before a test disturbs a study: every worker has buckets, and most of the study remains.
const RESPONSES_BEFORE: u64 = 2000;

/// Options of a job of one worker with 1 GB on a node.
pub(crate) const WORKER: &str = "--nodes=1 --mem=1000M --time=20";

/// A study of two tiles, 10 s of a processor for 60 trajectories. Returns it with its responses in one process.
pub(crate) fn study(trajectories: u32) -> (Study, String) {
    let study = Study::of_tissue(256);
    study.edit(&[("trajectories = 2", &format!("trajectories = {trajectories}"))]);
    pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet"]).done();
    let expected = fs::read_to_string(study.path("alone/responses.csv")).expect("responses");
    (study, expected)
}

/// The account, with the processes that it has started.
pub(crate) struct Site<'a> {
    study: &'a Study,
    pub(crate) slurm: Slurm,
    port: u16,
    http: u16,
    client: Option<Child>,
}

impl<'a> Site<'a> {
    /// Starts Slurm and creates certificates. Returns `None`, and prints the reason, without Slurm.
    pub(crate) fn open(test: &str, study: &'a Study) -> Option<Self> {
        let folder = study.path("slurm");
        fs::create_dir_all(&folder).expect("a folder");
        let slurm = Slurm::start(test, &folder)?;
        fs::create_dir_all(study.path("scratch")).expect("a folder");
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy"), study.path("deploy")).expect("a link");
        let site = Self { study, slurm, port: free_port(), http: free_port(), client: None };
        site.shell(&block("Once", "certs init"));
        Some(site)
    }

    /// `bash` in the folder of the study, where `deploy` is that of the project.
    fn bash(&self, script: &str) -> Command {
        let mut command = self.slurm.command("bash");
        command.args(["-euc", script]).current_dir(self.study.folder()).env("HOME", self.study.folder());
        command.env("PLEACH_PORT", self.port.to_string()).env("PLEACH_HTTP_PORT", self.http.to_string());
        command.env("PLEACH_ADDRESS", "127.0.0.1").env("PLEACH_SCRATCH", self.study.path("scratch"));
        command
    }

    /// Standard output of commands that succeed.
    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.bash(script).output().expect("bash");
        assert!(output.status.success(), "{script}: {output:?}\n{}", self.slurm.state());
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Submits a job by a command of `sbatch` with additional options. Returns its number.
    pub(crate) fn submit(&self, command: &str, options: &str) -> String {
        let answer = self.shell(&command.replacen("sbatch ", &format!("sbatch {options} "), 1));
        answer.rsplit(' ').next().expect("a number").to_owned()
    }

    /// Submits jobs of workers. Returns their number.
    pub(crate) fn workers(&self, options: &str) -> String {
        self.workers_with("", options)
    }

    /// The same, with variables for the script.
    pub(crate) fn workers_with(&self, variables: &str, options: &str) -> String {
        let command = line("Workers", "sbatch deploy/slurm/workers.sbatch");
        self.submit(&format!("{variables} {command}"), options)
    }

    /// Starts the manager on this node. Returns its log.
    pub(crate) fn start_manager(&self) -> PathBuf {
        self.start_manager_by(&block("The manager", "nohup"))
    }

    /// Starts the manager by a command. Returns its log.
    pub(crate) fn start_manager_by(&self, command: &str) -> PathBuf {
        self.shell(command);
        let log = self.study.path("pleach/manager.log");
        self.wait_for_manager(&log, 1);
        log
    }

    /// Waits until the manager has started `times` times.
    pub(crate) fn wait_for_manager(&self, log: &Path, times: usize) {
        wait_until(|| read(log).matches("workers connect to").count() >= times, || self.logs());
    }

    /// Waits until a log contains `text` `times` times.
    pub(crate) fn wait_for(&self, log: &Path, text: &str, times: usize) {
        wait_until(|| read(log).matches(text).count() >= times, || format!("{text} in\n{}", self.logs()));
    }

    /// Starts the command that submits the study, waits for its end and downloads its results.
    pub(crate) fn start_study(&mut self) {
        self.start_client(&block("Studies", "pleach submit"));
    }

    /// Starts a client command.
    pub(crate) fn start_client(&mut self, command: &str) {
        let log = File::create(self.study.path("client.log")).expect("a log");
        let child = self.bash(command).stderr(log).spawn().expect("bash");
        self.client = Some(child);
    }

    /// Waits until some responses are counted. Asserts that the study is still running.
    pub(crate) fn some_responses(&self) {
        let journal = self.study.path("pleach/state/studies/1/results/journal");
        let bytes = || fs::metadata(&journal).map_or(0, |file| file.len());
        let seen = bytes();
        wait_until(|| self.is_complete() || bytes() >= seen + RESPONSES_BEFORE, || self.logs());
        self.is_still_running();
    }

    /// Waits until each of these workers has executed a task.
    pub(crate) fn all_execute(&self, names: &[String]) {
        let has_all = || {
            // Without a record of a task there are no totals yet.
            let totals = self.json("pleach explain 1 --json");
            let workers = totals["workers"].as_array().map_or(&[][..], Vec::as_slice);
            names.iter().all(|name| workers.iter().any(|worker| worker["worker"] == name.as_str()))
        };
        wait_until(|| self.is_complete() || has_all(), || self.logs());
        self.is_still_running();
    }

    fn is_complete(&self) -> bool {
        self.study.path("pleach/state/studies/1/ended.json").exists()
    }

    pub(crate) fn is_still_running(&self) {
        assert!(!self.is_complete(), "the study was too short to see anything\n{}", self.logs());
    }

    /// Responses of the study, which has been complete when the client ended.
    pub(crate) fn responses(&mut self) -> String {
        let mut client = self.client.take().expect("a client");
        let mut status = None;
        wait_until(
            || {
                status = client.try_wait().expect("a child");
                status.is_some()
            },
            || self.logs(),
        );
        assert!(status.expect("an end").success(), "{}", self.logs());
        fs::read_to_string(self.study.path("results/responses.csv")).expect("responses")
    }

    /// Standard output of a client command.
    pub(crate) fn client(&self, command: &str) -> String {
        self.shell(&format!("{}\n{command}", line("Studies", "export")))
    }

    fn json(&self, command: &str) -> Value {
        serde_json::from_str(&self.client(command)).expect("JSON")
    }

    /// Waits for `count` active workers. Returns their numbers of cores by name.
    pub(crate) fn active(&self, count: usize) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        let look = || {
            let status = self.json("pleach status --json");
            let workers = status["workers"].as_array().expect("workers");
            let active = workers.iter().filter(|worker| worker["state"] == "active");
            let name = |worker: &Value| worker["name"].as_str().expect("a name").to_owned();
            found =
                active.map(|worker| (name(worker), worker["cores"].as_u64().expect("a number"))).collect();
            found.len() == count
        };
        wait_until(look, || self.logs());
        found
    }

    /// Waits until the manager knows that `count` workers of its pool have joined.
    pub(crate) fn have_joined(&self, count: u64) {
        let pool = || self.json("pleach status --json")["scaling"]["pools"][0]["provisioned"].take();
        wait_until(|| pool()["joined"] == count, || self.logs());
    }

    /// The cost of the study, once its workers have ended.
    pub(crate) fn final_cost(&self) -> Value {
        let cost = || self.json("pleach status --json")["studies"][0]["cost"].take();
        wait_until(|| cost()["is_final"] == true, || self.logs());
        cost()
    }

    /// Numbers of tasks that each worker executed, and the number of instances lost with workers.
    pub(crate) fn executed(&self) -> (BTreeMap<String, u64>, u64) {
        let totals = self.json("pleach explain 1 --json");
        let workers = totals["workers"].as_array().expect("workers").iter();
        let pair =
            |worker: &Value| Some((worker["worker"].as_str()?.to_owned(), worker["executed"].as_u64()?));
        (workers.filter_map(pair).collect(), totals["instances_lost"].as_u64().expect("a number"))
    }

    /// Name of the worker of a job on one node.
    pub(crate) fn worker(&self, job: &str) -> String {
        format!("{}-{}", self.slurm.job(job, "NodeList"), self.slurm.job(job, "JobId"))
    }

    /// The log of a job.
    pub(crate) fn log(&self, kind: &str, job: &str) -> PathBuf {
        self.study.path(&format!("pleach-{kind}-{job}.log"))
    }

    /// Asserts that workers have removed their files.
    pub(crate) fn scratch_is_empty(&self) {
        let left: Vec<_> = fs::read_dir(self.study.path("scratch")).expect("a folder").collect();
        assert!(left.is_empty(), "{left:?}");
    }

    pub(crate) fn logs(&self) -> String {
        let entries = fs::read_dir(self.study.folder()).expect("a folder");
        let mut logs: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
        logs.push(self.study.path("pleach/manager.log"));
        let text = logs.iter().map(|path| format!("--- {}\n{}\n", path.display(), read(path)));
        text.collect::<String>() + &self.slurm.state()
    }
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The only code block under a heading of the README that contains `text`.
pub(crate) fn block(heading: &str, text: &str) -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/slurm/README.md"));
    let readme = readme.expect("UTF-8");
    let (_, section) = readme.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split("\n## ").next().expect("a section");
    let mut blocks = section.split("```").skip(1).step_by(2).filter(|block| block.contains(text));
    let found = blocks.next().unwrap_or_else(|| panic!("{text} under {heading}")).trim().to_owned();
    assert!(blocks.next().is_none(), "{text} twice under {heading}");
    found
}

/// The line of such a block that starts with `text`, without its comment.
pub(crate) fn line(heading: &str, text: &str) -> String {
    let block = block(heading, text);
    let found =
        block.lines().find(|line| line.starts_with(text)).unwrap_or_else(|| panic!("{text} in {block}"));
    found.split('#').next().expect("a command").trim_end().to_owned()
}
