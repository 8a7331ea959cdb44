//! Resource and time limits of connections.
//!
//! Windows and packet sizes are those with the highest measured throughput (`benches/transport.rs` repeats the measurement).
//! Settings depend neither on the study nor on the messages.

use quinn::congestion::CubicConfig;
use quinn::{Connection, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Limits of all connections of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time from a peer's first packet to the end of its first frame. Slower peers are disconnected. Around the globe and
    /// with lost packets, the exchange takes 1 s.
    pub handshake: Duration,
    /// Maximum interval between packets to a peer. Without it, silence would not prove that a peer is gone.
    pub keep_alive: Duration,
    /// Time without packets after which a peer counts as gone: 3 times [`keep_alive`](Self::keep_alive), so that 2 lost
    /// packets do not end a connection. Within this time, the manager reassigns the leases of a lost worker.
    pub idle: Duration,
    /// Time without progress after which a data region, or an orderly close, is abandoned.
    pub stalled: Duration,
    /// Half-open connections above which a new peer must prove its address first. The proof costs the peer one round trip
    /// and this node no memory.
    pub trusting: usize,
    /// Maximum number of half-open connections. Above it, peers are refused. Each takes some tens of kB.
    pub half_open: usize,
    /// Minimum interval between two packets of frames to one peer. Frames sent meanwhile are batched, so that both ends wake
    /// up once per packet. A frame after a pause is sent at once, so only frequent senders wait.
    pub between_frames: Duration,
    /// Limit of bytes of unsent frames to one peer. A peer that stops reading is disconnected.
    pub unsent_bytes: usize,
    /// Limit of bytes of unread frames from one peer. Above it, the peer must wait.
    pub unread_bytes: usize,
    /// Concurrent data regions to one peer, and from one peer. 2 keep the line busy while one of them ends and the next one
    /// begins. More would only share the bandwidth.
    pub regions: u32,
    /// Maximum size of a data region. A region for a tile of 16,384 × 16,384 pixels takes 0.8 GB.
    pub longest_region_bytes: u64,
    /// Budget in bytes for data regions from one peer that arrive or wait for their receiver. One region may always arrive,
    /// even if it exceeds the budget.
    pub arriving_bytes: u64,
    /// Time without requests after which a connection between workers is closed. Opening a connection takes a few
    /// milliseconds. An open one takes some hundred kB of memory.
    pub unused: Duration,
    /// Maximum number of connections that a worker opens to peers, and of connections that peers open to it.
    pub neighbors: usize,
    /// Maximum number of concurrent requests of one worker to another. Above it, the sender refuses a request as busy.
    pub requests: usize,
    /// Regions that a worker fetches at once from all peers. Each stays in memory until its caller takes it.
    pub fetches: usize,
    /// Budget in bytes for regions that a worker prepares and sends at once to all peers. One region may always be sent.
    pub sending_bytes: u64,
    /// Bytes of shared memory that a worker offers to peers on its machine. Beyond it, regions go over the network.
    pub shared_bytes: u64,
    /// Buffer size of sockets, within the system's limit. `None` keeps the system's default. The usual default of 208 KiB
    /// holds 6 of the largest datagrams, and loses and resends 1 in 25 datagrams of a region. Datagrams in a longer queue
    /// delay messages, so only connections for regions get more.
    pub socket_bytes: Option<usize>,
    /// First delay before a worker reconnects to a lost manager.
    pub first_wait: Duration,
    /// Maximum delay. A restarted manager has its workers back within this time.
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

/// Maximum datagram size that path discovery tries between machines. Ethernet's jumbo frames would hold 8,952 bytes, but the
/// system gets 10 packets at once, and their sum must stay below 64 KiB.
const NETWORK_DATAGRAM_BYTES: u16 = 6_400;

/// Limit of unacknowledged bytes of one stream, and half of those that a connection sends ahead. It must cover the product
/// of bandwidth and delay: 10 Gbit/s over 6 ms.
const WINDOW_BYTES: u32 = 8 << 20;

/// Bytes that an unidentified peer may send, enough for its first frame.
const STRANGER_BYTES: u32 = 512 << 10;

/// Initial congestion window. A window smaller than a datagram never opens.
const FIRST_WINDOW_BYTES: u64 = 256 << 10;

impl Settings {
    /// Maximum datagram size that this node receives, and that it sends within one machine, where no wire limits it.
    pub const MAX_DATAGRAM_BYTES: u16 = 32_000;

    /// Buffer size of sockets for regions, see [`socket_bytes`](Self::socket_bytes).
    pub const REGIONS_SOCKET_BYTES: usize = 1 << 20;

    /// Returns quinn's configuration for connections with this peer.
    #[must_use]
    pub fn transport(&self, peer: IpAddr) -> Arc<TransportConfig> {
        let is_local = peer.to_canonical().is_loopback();
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(if is_local { Self::MAX_DATAGRAM_BYTES } else { NETWORK_DATAGRAM_BYTES });
        let mut cubic = CubicConfig::default();
        cubic.initial_window(FIRST_WINDOW_BYTES);
        let mut transport = TransportConfig::default();
        // Beyond the range of QUIC, a duration means no time limit.
        let idle = IdleTimeout::try_from(self.idle).ok();
        transport
            .max_idle_timeout(idle)
            .keep_alive_interval(Some(self.keep_alive))
            // Only the control stream, and no regions until `trust`.
            .max_concurrent_bidi_streams(VarInt::from_u32(1))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            // Refuses unreliable datagrams, which the protocol does not use.
            .datagram_receive_buffer_size(None)
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
            .receive_window(VarInt::from_u32(STRANGER_BYTES))
            .send_window(2 * u64::from(WINDOW_BYTES))
            .mtu_discovery_config(Some(discovery))
            // Off within a machine: 10 datagrams of 32,000 bytes exceed the 64 KiB that the kernel takes at once.
            .enable_segmentation_offload(!is_local)
            .congestion_controller_factory(Arc::new(cubic));
        Arc::new(transport)
    }

    /// Extends the receive window for an identified peer. Streams of regions that wait for the budget keep their received
    /// bytes, each up to its window. The connection's window has space for all of them and the frames, so that waiting
    /// streams block neither the frames nor the region that has budget.
    pub fn trust(&self, connection: &Connection) {
        connection.set_receive_window(VarInt::from_u32(
            // Saturates, because `regions` is configurable and the product may exceed 32 bits.
            WINDOW_BYTES.saturating_mul(self.regions.saturating_add(1)),
        ));
        connection.set_max_concurrent_uni_streams(VarInt::from_u32(self.regions));
    }
}
