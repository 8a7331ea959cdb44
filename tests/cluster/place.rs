//! Where a process of a cluster is: simply here, or somewhere that other words lead to.

use std::ffi::OsStr;
use std::process::Command;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// A command that goes there and becomes the one that follows.
    pub(crate) way: Vec<String>,
    /// The address that it has there.
    pub(crate) address: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { way: Vec::new(), address: "127.0.0.1".to_owned() }
    }
}

impl Place {
    /// Here, by a way that changes something else than the address.
    pub(crate) fn by<const N: usize>(way: [&str; N]) -> Self {
        Self { way: way.map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// A program that runs there.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.way.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }

    /// Any port of it.
    pub(crate) fn any_port(&self) -> String {
        format!("{}:0", self.address)
    }
}
