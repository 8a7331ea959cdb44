//! A private Slurm in a folder: `munged` with a key and a socket of its own, `slurmctld`, and a `slurmd` for each node, all on
//! this machine and on ports of their own. No process reads or writes `/etc/slurm` or `/run/munge`. All of them, and all
//! processes of jobs, have the path of this Slurm's configuration in their environment, so the end of the test finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// 150 s: bounds waits that would otherwise be endless, far above the longest.
const DEADLINE: Duration = Duration::from_secs(150);

/// Interval between checks of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Nodes of the cluster: one for the manager's job, or for the script of a job of workers, and two that can fail.
pub(crate) const NODES: [&str; 3] = ["n0", "n1", "n2"];

/// Daemons and commands that the tests need.
const PROGRAMS: [&str; 7] = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol"];

/// Runs `happened` until it holds. Panics with `state` after [`DEADLINE`].
pub(crate) fn wait_until(mut happened: impl FnMut() -> bool, state: impl Fn() -> String) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < DEADLINE, "it does not happen: {}", state());
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

/// The daemons, by name.
pub(crate) struct Slurm {
    folder: PathBuf,
    daemons: BTreeMap<String, Child>,
}

impl Slurm {
    /// Starts Slurm in a new folder. Returns `None`, and prints the reason, if Slurm or MUNGE is not installed.
    #[expect(clippy::print_stderr, reason = "a skipped test prints its reason")]
    pub(crate) fn start(test: &str, folder: &Path) -> Option<Self> {
        let path = path();
        let missing = |name: &&&str| !std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        if let Some(name) = PROGRAMS.iter().find(missing) {
            eprintln!("SKIPPED {test}: there is no Slurm: {name} is not installed");
            return None;
        }
        let mut slurm = Self { folder: folder.to_owned(), daemons: BTreeMap::new() };
        slurm.configure();
        let at = |name: &str| folder.join(name).display().to_string();
        let munged =
            ["--foreground", "--force", "--key-file", &at("munge.key"), "--socket", &at("munge.sock")];
        let files =
            ["--pid-file", &at("munged.pid"), "--log-file", &at("munge.log"), "--seed-file", &at("seed")];
        slurm.spawn("munged", "munged", &[&munged[..], &files[..]].concat());
        wait_until(|| folder.join("munge.sock").exists(), || slurm.log("munged"));
        slurm.spawn("slurmctld", "slurmctld", &["-D", "-c"]);
        NODES.iter().for_each(|node| slurm.start_node(node));
        slurm.wait_until(|slurm| {
            slurm.nodes().values().filter(|state| *state == "idle").count() == NODES.len()
        });
        Some(slurm)
    }

    /// Writes `slurm.conf` and the key of MUNGE.
    fn configure(&self) {
        let folder = self.folder.display();
        fs::create_dir_all(self.folder.join("state")).expect("a folder");
        // 128 bytes, as `mungekey` writes.
        let mut key = [0; 128];
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).expect("random bytes");
        fs::write(self.folder.join("munge.key"), key).expect("written");
        let mode = Command::new("chmod").arg("400").arg(self.folder.join("munge.key")).status();
        assert!(mode.expect("chmod").success());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim().split('.').next().expect("a first label");
        let user = Command::new("id").arg("-un").output().expect("id");
        let user = String::from_utf8(user.stdout).expect("UTF-8");
        let user = user.trim();
        let ports = free_ports(1 + NODES.len());
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nCredType=cred/munge\n\
             StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/%n\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/%n.pid\n\
             SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/%n.log\n",
            ports[0]
        );
        // A requeued job starts when the credentials of its previous start have expired: after 5 s, not 120.
        text += &format!("AuthInfo=socket={folder}/munge.sock,cred_expire=5\n");
        // The nodes claim 4 processors each, whatever this machine has. Neither control groups nor accounts.
        text += "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
                 SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nSlurmdParameters=config_overrides\n\
                 JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
                 SchedulerParameters=sched_interval=1,batch_sched_delay=0\nReturnToService=2\n";
        // A node is down a few seconds after its last answer. WaitTime is of sites that end a step after its first task.
        text += "SlurmdTimeout=3\nKillWait=5\nWaitTime=2\n";
        for (node, port) in NODES.iter().zip(&ports[1..]) {
            text += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000\n"
            );
        }
        text += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
        fs::write(self.configuration(), text).expect("written");
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// A command with this Slurm in its environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["SLURM_", "SBATCH_", "PLEACH_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.env("PATH", path()).env("SLURM_CONF", self.configuration());
        command
    }

    fn spawn(&mut self, name: &str, program: &str, args: &[&str]) {
        let log = File::create(self.folder.join(format!("{name}.out"))).expect("a log");
        let errors = log.try_clone().expect("a log");
        let child = self.command(program).args(args).stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        self.daemons.insert(name.to_owned(), child.unwrap_or_else(|error| panic!("{program}: {error}")));
    }

    /// Starts the `slurmd` of a node.
    pub(crate) fn start_node(&mut self, node: &str) {
        self.spawn(node, "slurmd", &["-D", "-N", node]);
    }

    /// Ends a node as a power failure does: its `slurmd`, the daemons of its job steps, and their tasks get SIGKILL.
    pub(crate) fn fail_node(&mut self, node: &str) {
        let mut daemon = self.daemons.remove(node).expect("it runs");
        daemon.kill().expect("it is ours");
        daemon.wait().expect("it ends");
        let mark = format!("SLURMD_NODENAME={node}");
        let tasks: Vec<u32> =
            self.processes().into_iter().filter(|process| has_variable(*process, &mark)).collect();
        let steps: BTreeSet<u32> = tasks.iter().filter_map(|task| step_daemon(*task)).collect();
        assert!(!steps.is_empty(), "no job runs on {node}");
        // The daemons of steps first: they would report the ends of their tasks.
        signal_kill(steps.iter().chain(&tasks));
    }

    /// Processes of this Slurm and of its jobs.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("SLURM_CONF={}", self.configuration().display());
        let numbers = fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_str()?.parse().ok()
        });
        numbers.filter(|process| has_variable(*process, &mark)).collect()
    }

    /// Standard output of a command of Slurm that succeeds.
    pub(crate) fn ask(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program).args(args).output().expect("it starts");
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// State of each node, as in `idle` and `down*`. Empty while the controller does not answer.
    pub(crate) fn nodes(&self) -> BTreeMap<String, String> {
        let output = self.command("sinfo").args(["-h", "-N", "-o", "%N %t"]).output().expect("it starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(node, state)| (node.to_owned(), state.to_owned())).collect()
    }

    /// A field of a job, as in `JobState`. A job of an array is `ARRAY_INDEX`.
    pub(crate) fn job(&self, job: &str, field: &str) -> String {
        let text = self.ask("scontrol", &["-o", "show", "job", job]);
        let mark = format!("{field}=");
        let value = text.split_whitespace().find_map(|word| word.strip_prefix(&mark));
        value.unwrap_or_else(|| panic!("{field} in {text}")).to_owned()
    }

    /// Waits until a job has ended. Returns its state.
    pub(crate) fn ended(&self, job: &str) -> String {
        self.wait_until(|slurm| {
            !["PENDING", "RUNNING", "COMPLETING"].contains(&slurm.job(job, "JobState").as_str())
        });
        self.job(job, "JobState")
    }

    /// Waits until the condition holds.
    pub(crate) fn wait_until(&self, happened: impl Fn(&Self) -> bool) {
        wait_until(|| happened(self), || self.state());
    }

    fn log(&self, name: &str) -> String {
        let read = |ending: &str| {
            fs::read_to_string(self.folder.join(format!("{name}.{ending}"))).unwrap_or_default()
        };
        format!("{}\n{}", read("out"), read("log"))
    }

    /// Nodes, jobs and the log of the controller, for messages.
    pub(crate) fn state(&self) -> String {
        let jobs = self.command("squeue").output().expect("it starts");
        format!("{:?}\n{}\n{}", self.nodes(), String::from_utf8_lossy(&jobs.stdout), self.log("slurmctld"))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Repeated until none is left: a process may start a child meanwhile.
        let begun = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || begun.elapsed() > DEADLINE {
                break;
            }
            signal_kill(&left);
            std::thread::park_timeout(LOOK_AGAIN);
        }
        self.daemons.values_mut().for_each(|daemon| _ = daemon.wait());
    }
}

/// The search path with the tested `pleach` first, and with the folders of daemons.
fn path() -> std::ffi::OsString {
    let pleach = Path::new(env!("CARGO_BIN_EXE_pleach")).parent().expect("a folder").to_owned();
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(pleach).chain(std::env::split_paths(&given));
    std::env::join_paths(folders.chain(["/usr/sbin".into(), "/sbin".into()])).expect("a path")
}

fn has_variable(process: u32, mark: &str) -> bool {
    // The process may have ended, or belong to another user.
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// The `slurmstepd` that started a task. `None` if another process did.
fn step_daemon(task: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned();
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    name.starts_with("slurmstepd").then(|| parent.parse().expect("a number"))
}

fn signal_kill<'a>(processes: impl IntoIterator<Item = &'a u32>) {
    let numbers: Vec<String> = processes.into_iter().map(u32::to_string).collect();
    // The shell's built-in `kill`: a bare machine has no other. Some processes may have ended already.
    let script = format!("kill -KILL {} 2>/dev/null || true", numbers.join(" "));
    assert!(Command::new("bash").args(["-c", &script]).status().expect("bash").success());
}

/// Ports of TCP that nothing uses: all of them are bound at the same time.
fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<TcpListener> =
        std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").expect("a port")).take(count).collect();
    bound.iter().map(|listener| listener.local_addr().expect("an address").port()).collect()
}

/// A port that nothing uses, neither with TCP nor with UDP.
pub(crate) fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| free_ports(1)[0]);
    ports.find(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok()).expect("a port")
}
