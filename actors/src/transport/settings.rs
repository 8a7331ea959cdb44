//! What a connection may take and how long anything may last, in one place.
//!
//! Windows and packet sizes are those that moved most bytes when measured (`benches/transport.rs` measures them again).
//! Nothing here depends on the study or on what is said.

use quinn::congestion::CubicConfig;
use quinn::{Connection, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Limits of all connections of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time from a peer's first packet to the end of its first frame. Slower peers are disconnected. Around the globe and with
    /// lost packets, it takes 1 s.
    pub handshake: Duration,
    /// Maximum interval between packets to a peer, so that silence has a meaning.
    pub keep_alive: Duration,
    /// A peer that has not been heard for this long is gone: three times [`keep_alive`](Self::keep_alive), so that two
    /// lost packets do not end a connection. What a worker had is given to others within this time.
    pub idle: Duration,
    /// Time without progress after which a data region, or an orderly close, is abandoned.
    pub stalled: Duration,
    /// Connections that may be half-open before a peer has to show that its address is its own, which costs it a round
    /// trip and the node no memory.
    pub trusting: usize,
    /// Connections that may be half-open at once; more are refused. Each takes some tens of kB.
    pub half_open: usize,
    /// Between two packets of frames to one peer: what is to be sent meanwhile goes together, and wakes both ends once. What
    /// comes after a pause goes at once, so that only those wait who talk all the time.
    pub between_frames: Duration,
    /// Bytes of frames that may wait to be sent to one peer. A peer that stops reading is disconnected.
    pub unsent_bytes: usize,
    /// Bytes of unread frames from one peer. Above it, the peer must wait.
    pub unread_bytes: usize,
    /// Data regions on their way at once, to one peer and from one peer. Two keep the line busy while one of them ends
    /// and the next one begins; more would only share it.
    pub regions: u32,
    /// The largest data region. That of a tile of 16,384 × 16,384 pixels takes 0.8 GB.
    pub longest_region_bytes: u64,
    /// Bytes of data regions from one peer that may be held while they arrive or wait to be taken. One region may
    /// always arrive, whatever it takes.
    pub arriving_bytes: u64,
    /// A connection between workers over which nothing has been asked for so long is closed: opening one takes a few
    /// milliseconds, and what one keeps in memory is some hundred kB.
    pub unused: Duration,
    /// Workers that a worker is connected to for what it needs, and as many again that come for what it has.
    pub neighbors: usize,
    /// Regions that a worker may ask another one for at once; of more, it is told that too much is under way.
    pub requests: usize,
    /// Regions that a worker fetches at once from all peers. Each is held until its caller takes it.
    pub fetches: usize,
    /// Bytes of regions that a worker prepares and sends at once, to all others. One region always may.
    pub sending_bytes: u64,
    /// Bytes of shared memory that a worker lends to others on its machine; beyond, regions go over the network.
    pub shared_bytes: u64,
    /// What a socket may hold until it is read, where the system allows it; its own measure without. The usual 208 KiB hold
    /// half a dozen of the largest datagrams, and of those of a region one in 25 is lost and sent again. But what waits
    /// there holds up messages: more is for connections that are there for regions.
    pub socket_bytes: Option<usize>,
    /// The first wait before a lost manager is tried again.
    pub first_wait: Duration,
    /// The longest one. A restarted manager has its workers back within this time.
    pub longest_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            keep_alive: Duration::from_millis(700),
            idle: Duration::from_millis(2100),
            stalled: Duration::from_secs(10),
            trusting: 32,
            half_open: 512,
            between_frames: Duration::from_millis(1),
            unsent_bytes: 64 << 20,
            unread_bytes: 32 << 20,
            regions: 4,
            longest_region_bytes: 4 << 30,
            arriving_bytes: 256 << 20,
            unused: Duration::from_secs(60),
            neighbors: 128,
            requests: 64,
            fetches: 16,
            sending_bytes: 512 << 20,
            shared_bytes: 512 << 20,
            socket_bytes: None,
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(2),
        }
    }
}

/// The largest datagram that is tried between machines. Ethernet's jumbo frames would hold 8,952 bytes, but ten packets
/// are handed to the system at once, and all of them together must stay below 64 KiB.
const NETWORK_DATAGRAM_BYTES: u16 = 6_400;

/// What may be on its way unacknowledged on one stream, and what a connection sends ahead. It has to cover the product of
/// bandwidth and delay: 10 Gbit/s over 6 ms.
const WINDOW_BYTES: u32 = 8 << 20;

/// Bytes that an unidentified peer may send: its first frame.
const STRANGER_BYTES: u32 = 512 << 10;

/// What is sent before the first acknowledgement. A window smaller than a datagram never opens.
const FIRST_WINDOW_BYTES: u64 = 256 << 10;

impl Settings {
    /// The largest datagram received, and sent within one machine, where no wire limits it.
    pub const MAX_DATAGRAM_BYTES: u16 = 32_000;

    /// What sockets hold that are there for regions, see [`socket_bytes`](Self::socket_bytes).
    pub const REGIONS_SOCKET_BYTES: usize = 1 << 20;

    /// What quinn needs to know of connections with this peer.
    #[must_use]
    pub fn transport(&self, peer: IpAddr) -> Arc<TransportConfig> {
        let is_local = peer.to_canonical().is_loopback();
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(if is_local { Self::MAX_DATAGRAM_BYTES } else { NETWORK_DATAGRAM_BYTES });
        let mut cubic = CubicConfig::default();
        cubic.initial_window(FIRST_WINDOW_BYTES);
        let mut transport = TransportConfig::default();
        // A duration beyond what QUIC can say is none.
        let idle = IdleTimeout::try_from(self.idle).ok();
        transport
            .max_idle_timeout(idle)
            .keep_alive_interval(Some(self.keep_alive))
            .max_concurrent_bidi_streams(VarInt::from_u32(1))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .datagram_receive_buffer_size(None)
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
            .receive_window(VarInt::from_u32(STRANGER_BYTES))
            .send_window(2 * u64::from(WINDOW_BYTES))
            .mtu_discovery_config(Some(discovery))
            .enable_segmentation_offload(!is_local)
            .congestion_controller_factory(Arc::new(cubic));
        Arc::new(transport)
    }

    /// Lets a peer that is no stranger any more send as much as it may. Streams of regions that wait for room keep what
    /// has arrived of them, each up to its window; the frames and the region that has room must get through all the same.
    pub fn trust(&self, connection: &Connection) {
        connection.set_receive_window(VarInt::from_u32(
            WINDOW_BYTES.saturating_mul(self.regions.saturating_add(1)),
        ));
        connection.set_max_concurrent_uni_streams(VarInt::from_u32(self.regions));
    }
}
