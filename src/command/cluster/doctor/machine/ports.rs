//! Ports of a manager: binds them for a moment.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::{Items, Severity};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// Default ports of `pleach manager`: of workers, and of clients.
const WORKERS: u16 = 7117;
const CLIENTS: u16 = 7118;

pub(super) fn check(args: &DoctorArgs, items: &mut Items) {
    let everywhere = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let workers = args.listen.unwrap_or_else(|| everywhere(WORKERS));
    let bound = UdpSocket::bind(workers).map(drop);
    report(items, "UDP", "--listen", workers, args.listen.is_some(), bound);
    let clients = args.http.unwrap_or_else(|| everywhere(CLIENTS));
    let bound = TcpListener::bind(clients).map(drop);
    report(items, "TCP", "--http", clients, args.http.is_some(), bound);
}

/// Reports a port. A default port that is in use is no error: on many machines it is a running manager's.
fn report(
    items: &mut Items,
    protocol: &str,
    option: &str,
    address: SocketAddr,
    is_named: bool,
    bound: io::Result<()>,
) {
    let subject = format!("{protocol} {address}");
    let Err(error) = bound else { return items.ok(subject, "free") };
    let (found, remedy) = match error.kind() {
        ErrorKind::AddrInUse => (
            "in use by another process".to_owned(),
            format!("if that is no manager of yours, stop it, or start the manager with another {option}"),
        ),
        ErrorKind::PermissionDenied => {
            (error.to_string(), format!("name a port above 1023 by {option}: lower ones are root's"))
        }
        ErrorKind::AddrNotAvailable => (
            "no interface of this machine has this address".to_owned(),
            format!("name an address of this machine by {option}, or 0.0.0.0 for all"),
        ),
        _ => (error.to_string(), format!("name another address by {option}")),
    };
    let severity =
        if is_named || error.kind() != ErrorKind::AddrInUse { Severity::Error } else { Severity::Warning };
    items.add(severity, subject, found, remedy);
}
