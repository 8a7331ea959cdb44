//! Members of the result directory: workers with an exchange, announced to each other as they join and leave.

use super::ManagerActor;
use super::connection::{Connection, ConnectionId};
use pleach_dispatch::directory::{Member, MemberChange, MemberId, NodeDigest};
use pleach_dispatch::message::ToWorker;

fn member(connection: &Connection) -> Option<Member> {
    let node = NodeDigest::of(&connection.newcomer.name);
    Some(Member { id: MemberId(connection.incarnation), address: connection.exchange?, node })
}

impl ManagerActor {
    /// Sends all members to a joined worker, and the worker to all others.
    pub(super) fn announce_member(&mut self, newcomer: ConnectionId) {
        let joined = self.connections.get(newcomer).and_then(member);
        let Some(joined) = joined else { return };
        if let Some(connection) = self.connections.get(newcomer) {
            self.member_names.insert(joined.id, connection.newcomer.name.clone());
        }
        let all = self.connections.joined().filter_map(|(_, connection)| member(connection)).collect();
        let to_newcomer = MemberChange { is_complete: true, joined: all, left: Vec::new() };
        let to_others = MemberChange { is_complete: false, joined: vec![joined], left: Vec::new() };
        self.send_members(|id| if id == newcomer { &to_newcomer } else { &to_others });
    }

    /// Announces that a connection has been removed.
    pub(super) fn announce_departure(&mut self, gone: &Connection) {
        let Some(gone) = member(gone) else { return };
        // The same process may have connected again before its earlier connection was found closed.
        let mut members = self.connections.joined().filter_map(|(_, connection)| member(connection));
        if members.any(|member| member.id == gone.id) {
            return;
        }
        drop(members);
        self.member_names.remove(&gone.id);
        let change = MemberChange { is_complete: false, joined: Vec::new(), left: vec![gone.id] };
        self.send_members(|_| &change);
    }

    /// Sends a change to every member.
    fn send_members<'a>(&mut self, change: impl Fn(ConnectionId) -> &'a MemberChange) {
        let members = self.connections.joined().filter(|(_, connection)| connection.exchange.is_some());
        let members: Vec<ConnectionId> = members.map(|(id, _)| id).collect();
        for id in members {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.send(&ToWorker::Members(change(id).clone()));
            }
        }
    }
}
