//! Several hosts on one machine: network namespaces with one address each, connected by a switch without an address. The
//! switch counts the bytes of each host.

use crate::place::Place;
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The network ends at the switch, so other networks may use the same addresses.
const NETWORK: &str = "10.77.0";

/// Hosts at one switch. Dropping the value removes them.
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Name prefix of the namespaces, unique on this machine: tests run concurrently.
    prefix: String,
}

impl Hosts {
    /// Returns `None` if the system denies network namespaces.
    pub(crate) fn of<const N: usize>(names: [&str; N]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("pleach-{}-{number}-", std::process::id());
        let hosts = Self { names: names.map(str::to_owned).to_vec(), prefix };
        let switch = hosts.namespace("switch");
        if !ip(&["netns", "add", &switch]) {
            return None;
        }
        let set_up = ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"])
            && ip(&["-n", &switch, "link", "set", "switch", "up"])
            && hosts.names.iter().enumerate().all(|(at, name)| hosts.plug_in(at, name));
        set_up.then_some(hosts)
    }

    /// Adds a host with a cable to the switch. The switch port has the host's name.
    fn plug_in(&self, at: usize, name: &str) -> bool {
        let (switch, host) = (self.namespace("switch"), self.namespace(name));
        let address = format!("{}/24", self.address(at));
        ip(&["netns", "add", &host])
            && ip(&[
                "-n", &switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", &host,
            ])
            && ip(&["-n", &switch, "link", "set", name, "master", "switch", "up"])
            && ip(&["-n", &host, "address", "add", &address, "dev", "eth0"])
            && ip(&["-n", &host, "link", "set", "lo", "up"])
            && ip(&["-n", &host, "link", "set", "eth0", "up"])
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn address(&self, at: usize) -> String {
        format!("{NETWORK}.{}", at + 1)
    }

    /// The place of a host's processes.
    pub(crate) fn place(&self, name: &str) -> Place {
        let at = self.names.iter().position(|known| known == name).expect("a host");
        let way = ["ip", "netns", "exec", &self.namespace(name)].map(str::to_owned).to_vec();
        Place { way, address: self.address(at) }
    }

    /// Plugs a host's cable in or out.
    pub(crate) fn plug(&self, name: &str, is_in: bool) {
        let state = if is_in { "up" } else { "down" };
        assert!(ip(&["-n", &self.namespace("switch"), "link", "set", name, state]), "{name} is not {state}");
    }

    /// Bytes that a host sent and received.
    pub(crate) fn traffic(&self, name: &str) -> (u64, u64) {
        let show = ["-n", &self.namespace("switch"), "-s", "-j", "link", "show", "dev", name];
        let output = Command::new("ip").args(show).output().expect("ip starts");
        let links: Value = serde_json::from_slice(&output.stdout).expect("a list");
        let bytes = |way: &str| links[0]["stats64"][way]["bytes"].as_u64().expect("a number");
        (bytes("rx"), bytes("tx"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().map(String::as_str).chain(["switch"]) {
            // A cable is deleted with its namespaces. After an error some may not exist.
            ip(&["netns", "delete", &self.namespace(name)]);
        }
    }
}

/// Whether `ip` succeeded.
fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|output| output.status.success())
}
