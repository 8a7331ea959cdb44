//! Calls of the real binary.

use std::path::Path;
use std::process::Command;

/// Exit code and streams of one call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `pleach` in `folder`, so that paths in arguments and messages are short.
pub(crate) fn pleach(folder: &Path, args: &[&str]) -> Answer {
    answer(Command::new(assert_cmd::cargo::cargo_bin!("pleach")).current_dir(folder).args(args))
}

/// Runs a command that executes `pleach`.
pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().expect("pleach starts");
    Answer {
        code: output.status.code().expect("pleach ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
}

impl Answer {
    /// Asserts success without messages on standard error. Returns standard output. The progress line of each ten seconds is
    /// let through: a busy machine takes that long.
    pub(crate) fn done(self) -> String {
        let messages = self.stderr.lines().filter(|line| !line.contains(" elapsed"));
        assert_eq!((self.code, messages.collect::<String>().as_str()), (0, ""), "{self:?}");
        self.stdout
    }
}
