//! Place of a cluster's process: directly on this machine, or reached through another command.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Place of a process: a command prefix and an address.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Command prefix that enters the place and then executes its arguments. Empty for this machine.
    pub(crate) way: Vec<String>,
    /// Address of this machine at the place.
    pub(crate) address: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { way: Vec::new(), address: "127.0.0.1".to_owned() }
    }
}

impl Place {
    /// A place on this machine's address, entered through a command prefix.
    pub(crate) fn by<const N: usize>(way: [&str; N]) -> Self {
        Self { way: way.map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// A command that runs the program at the place.
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

    /// The address with port 0, for any free port.
    pub(crate) fn any_port(&self) -> String {
        format!("{}:0", self.address)
    }

    /// The address with a port below those that the system gives to connections: a process that is started again finds it free.
    pub(crate) fn lasting_port(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            // Other test programs of this machine begin elsewhere.
            let number =
                std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = (16_384 + number % 16_384) as u16;
            let here = (Ipv4Addr::UNSPECIFIED, port);
            if TcpListener::bind(here).is_ok() && UdpSocket::bind(here).is_ok() {
                return format!("{}:{port}", self.address);
            }
        }
    }
}
