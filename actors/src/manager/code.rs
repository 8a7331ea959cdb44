//! External operations of workers, and code packages for workers that lack those of a study.

use super::ManagerActor;
use super::connection::ConnectionId;
use super::view::CodeView;
use pleach_dispatch::WorkerId;
use pleach_dispatch::message::{CodePackage, ExternalOperation, ToWorker};
use std::collections::{BTreeMap, BTreeSet};
use tracing::{info, warn};

/// External operations of a worker, from its last report.
#[derive(Debug, Default)]
pub(super) struct WorkerCode {
    pub(super) operations: Vec<ExternalOperation>,
    pub(super) accepts_code: bool,
    /// Digests of the code packages that it has been sent.
    sent: BTreeSet<[u8; 32]>,
    /// Causes of its refusals, by the digest of the code package.
    refusals: BTreeMap<[u8; 32], String>,
}

impl ManagerActor {
    /// Handles the list of a worker's external operations.
    pub(super) fn receive_operations(
        &mut self,
        (id, worker): (ConnectionId, WorkerId),
        operations: Vec<ExternalOperation>,
        accepts_code: bool,
    ) {
        let names = operations.iter().map(|operation| (operation.name.clone(), operation.version)).collect();
        if let Some(connection) = self.connections.get_mut(id) {
            let (name, count) = (&connection.newcomer.name, operations.len());
            info!(worker = name, accepts_code, "worker {name} has {count} external operations");
            connection.code.operations = operations;
            connection.code.accepts_code = accepts_code;
        }
        self.core.handle_operations(worker, names);
        self.send_code(id);
    }

    /// Handles a worker's refusal of a code package.
    pub(super) fn receive_refusal(&mut self, id: ConnectionId, package: [u8; 32], cause: String) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let name = &connection.newcomer.name;
        warn!(worker = name, "worker {name} refuses the code of a study: {cause}");
        connection.code.refusals.insert(package, cause);
    }

    /// Sends a worker the code packages of running studies whose operations it lacks, if it accepts code. Each once.
    pub(super) fn send_code(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.code.accepts_code)
        else {
            return;
        };
        let facts = connection.worker().and_then(|worker| self.core.worker_info(worker));
        let Some(known) = facts.and_then(|facts| facts.operations.as_ref()) else { return };
        let is_missing =
            |operation: &ExternalOperation| !known.contains(&(operation.name.clone(), operation.version));
        let packages = self.studies.values().flat_map(|study| &study.code);
        let needed: Vec<CodePackage> =
            packages.filter(|package| package.operations.iter().any(is_missing)).cloned().collect();
        for package in needed {
            if connection.code.sent.insert(package.manifest.digest_of_all()) {
                let name = &connection.newcomer.name;
                info!(worker = name, "sending the code of {} to worker {name}", package.manifest.path);
                connection.send(&ToWorker::LoadCode { package });
            }
        }
    }

    /// Sends the code of a new study to the workers that need it.
    pub(super) fn send_code_to_all(&mut self) {
        let joined: Vec<ConnectionId> = self.connections.joined().map(|(id, _)| id).collect();
        joined.into_iter().for_each(|id| self.send_code(id));
    }

    /// Returns the external operations of a worker, and why it has refused the code of running studies.
    pub(super) fn code_view(&self, code: &WorkerCode) -> CodeView {
        let packages = self.studies.values().flat_map(|study| &study.code);
        let present: BTreeSet<[u8; 32]> = packages.map(|package| package.manifest.digest_of_all()).collect();
        let refusals = code.refusals.iter().filter(|(digest, _)| present.contains(*digest));
        CodeView {
            operations: code.operations.clone(),
            accepts_code: code.accepts_code,
            refusals: refusals.map(|(_, cause)| cause.clone()).collect(),
        }
    }
}
