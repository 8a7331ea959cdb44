//! Worker whose answers a test decides. It repeats the exchange's messages here, so that a change of the wire format fails
//! tests.

use crate::cluster::Cluster;
use pleach_actors::transport::Link;
use pleach_actors::transport::codec;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{Peer, Server, ServerSetup};
use pleach_regions::{Head, RegionKey};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::net::SocketAddr;
use tokio::sync::mpsc::Receiver;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum HolderMessage {
    Here { port: u16, place: Option<(String, u64, u64)> },
    Ask { key: RegionKey, way: u32 },
    NotGiven { key: RegionKey, why: u32 },
    Lent { key: RegionKey, slot: u32, file: Option<String>, bytes: u64, head: ByteBuf },
    Opened { slot: u32 },
    Returned { slot: u32, is_read: bool },
    Withdrawn { slot: u32 },
}

pub(crate) struct Holder {
    pub(crate) server: Server,
    peers: Receiver<Peer>,
}

/// Peer that has requested a region.
pub(crate) struct TransferRequest {
    pub(crate) peer: Peer,
}

impl Holder {
    pub(crate) fn new(cluster: &Cluster, name: &str) -> Self {
        let setup =
            ServerSetup { credentials: cluster.credentials(name, Role::Worker, 30), ..cluster.setup() };
        let (server, peers) = cluster.listen(setup);
        Self { server, peers }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Waits until a peer connects and sends a request.
    pub(crate) async fn asked(&mut self) -> TransferRequest {
        let peer = self.peers.recv().await.expect("somebody comes");
        let mut asked = TransferRequest { peer };
        asked.hears(|said| matches!(said, HolderMessage::Ask { .. })).await;
        asked
    }
}

impl TransferRequest {
    /// Reads messages up to the first of this kind.
    pub(crate) async fn hears(&mut self, kind: impl Fn(&HolderMessage) -> bool) -> HolderMessage {
        loop {
            let frame = self.peer.incoming.recv().await.expect("it goes on");
            let said: HolderMessage = codec::decode(&frame).expect("a message of an exchange");
            if kind(&said) {
                return said;
            }
        }
    }

    /// Offers a file with any content.
    pub(crate) fn lend(&mut self, key: RegionKey, file: Option<String>, bytes: u64, head: Head) {
        let lent = HolderMessage::Lent { key, slot: 0, file, bytes, head: ByteBuf::from(head.0) };
        let frame = codec::encode(&lent).expect("a message");
        self.peer.link.send(frame).expect("it listens");
    }
}
