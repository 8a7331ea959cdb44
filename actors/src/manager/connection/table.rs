//! Table of a manager's connections, by connection and by worker.
//!
//! Invariants:
//! - A connection number is never used again. A late frame of a closed connection therefore reaches no other worker.
//! - A connection has joined exactly if its worker refers to it.

use super::{Connection, ConnectionId};
use pleach_dispatch::WorkerId;
use std::collections::{BTreeMap, HashMap};

/// Connections of a manager.
#[derive(Default)]
pub(in crate::manager) struct ConnectionTable {
    connections: BTreeMap<ConnectionId, Connection>,
    of_worker: HashMap<WorkerId, ConnectionId>,
    next: u32,
}

impl ConnectionTable {
    /// Adds a connection that has not joined.
    pub(super) fn insert(&mut self, connection: Connection) -> ConnectionId {
        assert!(connection.worker.is_none(), "a connection joins after its first message");
        let id = ConnectionId(self.next);
        self.next += 1;
        let previous = self.connections.insert(id, connection);
        assert!(previous.is_none(), "the number of a connection is never used again");
        id
    }

    /// Records that a connection has joined as `worker`.
    pub(in crate::manager) fn join(&mut self, id: ConnectionId, worker: WorkerId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        assert!(connection.worker.is_none(), "a connection joins once");
        connection.worker = Some(worker);
        let previous = self.of_worker.insert(worker, id);
        assert!(previous.is_none(), "{worker} has one connection");
    }

    /// Removes a connection, and its worker if it has joined.
    pub(in crate::manager) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        if let Some(worker) = connection.worker {
            let removed = self.of_worker.remove(&worker);
            assert_eq!(removed, Some(id), "{worker} refers to its connection");
        }
        Some(connection)
    }

    pub(in crate::manager) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id)
    }

    pub(in crate::manager) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Returns the connection of a worker.
    pub(in crate::manager) fn of_worker(&self, worker: WorkerId) -> Option<&Connection> {
        self.connections.get(self.of_worker.get(&worker)?)
    }

    /// Returns the connection of a worker.
    pub(in crate::manager) fn of_worker_mut(&mut self, worker: WorkerId) -> Option<&mut Connection> {
        self.connections.get_mut(self.of_worker.get(&worker)?)
    }

    /// Iterates over all connections in order, joined or not.
    pub(in crate::manager) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter().map(|(id, connection)| (*id, connection))
    }

    /// Iterates over all connections in order, joined or not.
    pub(in crate::manager) fn values_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.connections.values_mut()
    }

    /// Iterates over the connections that have joined, in order.
    pub(in crate::manager) fn joined(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.iter().filter(|(_, connection)| connection.worker.is_some())
    }
}
