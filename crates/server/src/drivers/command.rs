//! Driver `command`: programs that start, stop and list workers.
//!
//! Each call runs in a process group of its own, which is killed at the time limit. Output beyond a limit is read and
//! dropped, so that a program that prints much does not block.

use super::{ListedWorker, StartError, is_handle};
use parking_lot::Mutex;
use pleach_actors::transport::identity::NodeName;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 60 s: requests to clouds and schedulers take seconds, and a limit below their own retries would lose answers.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// 1 MiB of output: the list of 10,000 workers.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// 1 s for output after the end of a program. A worker that it has started may keep the pipe open.
const OUTPUT_TIME: Duration = Duration::from_secs(1);

/// Interval between two looks at a running program.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Length of quoted output in a message.
const MAX_QUOTE: usize = 200;

/// Programs of a pool, with their arguments.
#[derive(Debug)]
pub(super) struct CommandDriver {
    pub(super) pool: String,
    pub(super) owner: String,
    pub(super) manager: String,
    pub(super) start: Vec<String>,
    pub(super) stop: Vec<String>,
    pub(super) list: Vec<String>,
}

/// End of a program.
struct Ended {
    status: ExitStatus,
    stdout: Output,
    stderr: Output,
}

#[derive(Clone, Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    is_too_long: bool,
}

/// Reason why a program did not end by itself.
enum CallError {
    /// The program was not started.
    NotStarted(String),
    /// The program did not end in time.
    Silent(String),
}

impl CommandDriver {
    pub(super) fn start(&self, name: &str) -> Result<String, StartError> {
        let ended = self.call(&self.start, name, "").map_err(|error| match error {
            CallError::NotStarted(reason) => StartError::Refused(reason),
            CallError::Silent(reason) => StartError::Unknown(reason),
        })?;
        if ended.status.signal().is_some() {
            return Err(StartError::Unknown(self.failure(&self.start, &ended)));
        }
        if !ended.status.success() {
            return Err(StartError::Refused(self.failure(&self.start, &ended)));
        }
        let text = String::from_utf8_lossy(&ended.stdout.bytes);
        let handle = text.trim();
        if ended.stdout.is_too_long || !is_handle(handle) {
            return Err(StartError::Unknown(format!(
                "{} printed {}; one line with the handle of the worker, up to 256 characters, is allowed",
                self.start[0],
                quote(&text)
            )));
        }
        Ok(handle.to_owned())
    }

    pub(super) fn stop(&self, name: &str, handle: &str) -> Result<(), String> {
        let ended = self.call(&self.stop, name, handle).map_err(CallError::reason)?;
        if ended.status.success() { Ok(()) } else { Err(self.failure(&self.stop, &ended)) }
    }

    pub(super) fn list(&self) -> Result<Vec<ListedWorker>, String> {
        let ended = self.call(&self.list, "", "").map_err(CallError::reason)?;
        if !ended.status.success() {
            return Err(self.failure(&self.list, &ended));
        }
        let allowed = "lines with the name of a worker, a space and its handle are allowed";
        if ended.stdout.is_too_long {
            return Err(format!("{} printed more than 1 MiB; {allowed}", self.list[0]));
        }
        let text = String::from_utf8_lossy(&ended.stdout.bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let worker = |line: &str| {
            let (name, handle) = line.split_once(char::is_whitespace)?;
            let handle = handle.trim();
            let is_worker = name.parse::<NodeName>().is_ok() && is_handle(handle);
            is_worker.then(|| ListedWorker { name: name.to_owned(), handle: handle.to_owned() })
        };
        let parsed =
            |line| worker(line).ok_or_else(|| format!("{} printed {}; {allowed}", self.list[0], quote(line)));
        lines.map(parsed).collect()
    }

    /// Returns the reason of a program that failed: the last line that it wrote to its standard error.
    fn failure(&self, arguments: &[String], ended: &Ended) -> String {
        let text = String::from_utf8_lossy(&ended.stderr.bytes);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match last {
            Some(line) => format!("{}: {}", arguments[0], quote(line)),
            None => format!("{}: {}", arguments[0], ended.status),
        }
    }

    fn call(&self, arguments: &[String], name: &str, handle: &str) -> Result<Ended, CallError> {
        let fill = |argument: &String| {
            let filled = argument.replace("{pool}", &self.pool).replace("{owner}", &self.owner);
            let filled = filled.replace("{manager}", &self.manager).replace("{name}", name);
            filled.replace("{handle}", handle)
        };
        let arguments: Vec<String> = arguments.iter().map(fill).collect();
        run(&arguments, TIME_LIMIT)
    }
}

impl CallError {
    fn reason(self) -> String {
        match self {
            Self::NotStarted(reason) | Self::Silent(reason) => reason,
        }
    }
}

/// Runs a program to its end.
fn run(arguments: &[String], limit: Duration) -> Result<Ended, CallError> {
    let program = &arguments[0];
    let mut command = Command::new(program);
    command.args(&arguments[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn();
    let mut child = child.map_err(|error| CallError::NotStarted(format!("{program}: {error}")))?;
    let readers = (reader(child.stdout.take()), reader(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < limit => std::thread::park_timeout(LOOK_EVERY),
            Ok(None) => {
                kill(&mut child);
                let seconds = limit.as_secs();
                return Err(CallError::Silent(format!(
                    "{program} did not end within {seconds} s and was killed"
                )));
            }
            Err(error) => {
                kill(&mut child);
                return Err(CallError::Silent(format!("{program}: {error}")));
            }
        }
    };
    let (stdout, stderr) = (take(readers.0), take(readers.1));
    Ok(Ended { status, stdout, stderr })
}

fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The group has ended already, or is killed.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

type Reader = (Arc<Mutex<Output>>, Option<std::thread::JoinHandle<()>>);

/// Starts a thread that reads a pipe to its end.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Reader {
    let output: Arc<Mutex<Output>> = Arc::default();
    let (shared, Some(mut pipe)) = (Arc::clone(&output), pipe) else { return (output, None) };
    let read = move || {
        let mut block = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut block) {
            let mut output = shared.lock();
            let free = MAX_OUTPUT_BYTES - output.bytes.len();
            output.bytes.extend_from_slice(&block[..count.min(free)]);
            output.is_too_long |= count > free;
        }
    };
    let thread = std::thread::Builder::new().name("pleach-driver".to_owned()).spawn(read).ok();
    (output, thread)
}

/// Returns the output of a program that has ended.
fn take((output, thread): Reader) -> Output {
    let begun = Instant::now();
    while thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begun.elapsed() < OUTPUT_TIME {
        std::thread::park_timeout(LOOK_EVERY);
    }
    output.lock().clone()
}

fn quote(text: &str) -> String {
    let short: String = text.trim_end().chars().take(MAX_QUOTE).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(script: &str) -> CommandDriver {
        let shell = |script: &str| ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
        CommandDriver {
            pool: "spot".to_owned(),
            owner: "00ff".to_owned(),
            manager: "host:7117".to_owned(),
            start: shell(script),
            stop: shell(script),
            list: shell(script),
        }
    }

    #[test]
    fn programs_get_name_pool_owner_manager_and_handle() {
        let driver = driver("echo '{name}' {pool} {owner} {manager} '{handle}'");
        assert_eq!(driver.start("spot-1").unwrap(), "spot-1 spot 00ff host:7117");
        assert_eq!(driver.stop("spot-1", "17"), Ok(()));
    }

    #[test]
    fn handle_is_known_although_the_worker_keeps_the_pipe() {
        let driver = driver("sleep 30 & echo $!");
        let handle = driver.start("spot-1").unwrap();
        let pid = Pid::from_raw(handle.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }

    #[test]
    fn refusals_have_the_last_line_of_stderr() {
        let refused = |script: &str| driver(script).start("spot-1").unwrap_err();
        assert_eq!(
            refused("echo begin >&2; echo quota reached >&2; echo >&2; false"),
            StartError::Refused("sh: \"quota reached\"".to_owned())
        );
        assert_eq!(
            driver("echo credentials expired >&2; exit 3").stop("a", "1").unwrap_err(),
            "sh: \"credentials expired\""
        );
        let missing = CommandDriver { start: vec!["/nowhere/start".to_owned()], ..driver("") };
        let StartError::Refused(reason) = missing.start("a").unwrap_err() else { panic!("unknown") };
        assert!(reason.starts_with("/nowhere/start: "), "{reason}");
    }

    #[test]
    fn garbage_and_killed_programs_leave_the_start_unknown() {
        for script in [
            "",
            "echo; echo",
            "echo a; echo b",
            "printf '\\033[1m'",
            "head -c 2000000 /dev/zero",
            "kill -9 $$",
        ] {
            let found = driver(script).start("spot-1");
            assert!(matches!(found, Err(StartError::Unknown(_))), "{script}: {found:?}");
        }
    }

    #[test]
    fn lists_are_lines_of_name_and_handle() {
        let workers = driver("echo 'spot-1  17 a'; echo; echo 'spot-2 18'").list().unwrap();
        let worker =
            |name: &str, handle: &str| ListedWorker { name: name.to_owned(), handle: handle.to_owned() };
        assert_eq!(workers, [worker("spot-1", "17 a"), worker("spot-2", "18")]);
        assert_eq!(driver("true").list().unwrap(), []);
        for script in ["echo spot-1", "echo 'Spot 1'", "echo '<html> 1'", "yes 'spot-1 1' | head -c 2000000"]
        {
            let reason = driver(script).list().unwrap_err();
            assert!(reason.contains("lines with the name of a worker"), "{reason}");
        }
    }

    #[test]
    fn program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let arguments = ["sh", "-c", &script].map(str::to_owned);
        let found = run(&arguments, Duration::from_millis(500));
        assert!(matches!(found, Err(CallError::Silent(_))));
        let child = std::fs::read_to_string(&file).unwrap();
        // A killed child ends a moment later, and may be a zombie until its new parent reaps it.
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while runs() {
            assert!(Instant::now() < deadline, "the child runs");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}
