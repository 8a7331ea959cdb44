//! Ends a process group whose pleach was killed.
//!
//! A watcher is a shell that leads the group and waits for the end of a pipe. Only pleach has the other end, so the kernel
//! closes it when pleach ends, however it ends. `PR_SET_PDEATHSIG` reaches one process only, a watcher the whole group. The
//! watcher is in the group from its start to its end, so no other group has the number meanwhile. Children that have left the
//! group are found by their [mark](super::mark).

use super::mark::{Mark, VARIABLE, WALKS};
use rustix::process::Pid;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Kills the marked processes, then the group with the shell. The first argument is the variable with its value, the second the maximum of
/// walks. Signals to the group that a function sends do not end the shell. Without `grep`, only the group ends.
const SCRIPT: &str = r#"trap '' HUP INT TERM
read -r _
while [ "$2" -gt 0 ]; do
  set -- "$1" $(($2 - 1))
  found=$(grep -ls "$1" /proc/[0-9]*/environ 2>&-)
  [ "$found" ] || break
  for file in $found; do file=${file#/proc/}; kill -9 "${file%/*}" 2>&-; done
done
kill -9 0"#;

/// Leader of a process group.
#[derive(Debug)]
pub(super) struct Watcher {
    child: Child,
    group: Pid,
    /// Closed by the end of this process.
    _open: PipeWriter,
}

impl Watcher {
    /// Starts a watcher with a group of its own, whose processes will have a mark.
    ///
    /// # Errors
    /// Returns the system's error, such as that of a missing shell.
    pub(super) fn start(mark: &Mark) -> io::Result<Self> {
        let (reader, open) = io::pipe()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "watcher", &format!("{VARIABLE}={mark}"), &WALKS.to_string()]);
        command.env_clear().current_dir("/").process_group(0);
        command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let named = |error: io::Error| io::Error::new(error.kind(), format!("/bin/sh: {error}"));
        let child = command.spawn().map_err(named)?;
        let group = Pid::from_child(&child);
        Ok(Self { child, group, _open: open })
    }

    /// Returns the number of the group, which is that of the watcher.
    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Waits for the end of a killed watcher.
    pub(super) fn reap(&mut self) {
        let _ = self.child.wait();
    }
}
