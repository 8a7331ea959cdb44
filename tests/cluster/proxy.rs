//! UDP proxy between workers and their manager: loses, delays and reorders packets, or blocks them. A seed makes runs
//! repeatable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Loss and delay of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Lost packets per thousand.
    pub(crate) lost_of_1000: u64,
    /// Minimum delay of a packet. The random maximum is twice as long, so packets overtake each other.
    pub(crate) delay: Duration,
}

/// Proxy with one thread, which ends when the value is dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    cut: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// 1 ms: wait for a packet before the check for due packets.
const PATIENCE: Duration = Duration::from_millis(1);

impl Proxy {
    /// Starts a proxy before `manager`.
    pub(crate) fn before(manager: &str, weather: Weather, seed: u64) -> Self {
        let manager: SocketAddr = manager.parse().expect("an address");
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        near.set_nonblocking(true).expect("a socket");
        let address = near.local_addr().expect("an address");
        let (cut, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (is_cut, has_ended) = (Arc::clone(&cut), Arc::clone(&end));
        let thread = std::thread::spawn(move || carry(&near, manager, weather, seed, &is_cut, &has_ended));
        Self { address, cut, end, thread: Some(thread) }
    }

    /// Blocks all packets, or passes them again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.cut.store(is_cut, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// A packet in transit: due time, number, worker, whether it goes to the manager, and content.
type Packet = (Instant, u64, SocketAddr, bool, Vec<u8>);

fn carry(
    near: &UdpSocket,
    manager: SocketAddr,
    weather: Weather,
    seed: u64,
    cut: &AtomicBool,
    end: &AtomicBool,
) {
    let mut chance = seed | 1;
    let mut random = move |bound: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        (chance >> 11) % bound.max(1)
    };
    let mut far: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut under_way: BinaryHeap<Reverse<Packet>> = BinaryHeap::new();
    let mut buffer = vec![0; 65_536];
    let mut count = 0;
    while !end.load(Ordering::Relaxed) {
        let mut arrived: Vec<(SocketAddr, bool, Vec<u8>)> = Vec::new();
        while let Ok((length, from)) = near.recv_from(&mut buffer) {
            arrived.push((from, true, buffer[..length].to_vec()));
        }
        for (worker, socket) in &far {
            while let Ok(length) = socket.recv(&mut buffer) {
                arrived.push((*worker, false, buffer[..length].to_vec()));
            }
        }
        let is_idle = arrived.is_empty();
        for (worker, up, bytes) in arrived {
            far.entry(worker).or_insert_with(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                socket.connect(manager).expect("a socket");
                socket.set_nonblocking(true).expect("a socket");
                socket
            });
            if cut.load(Ordering::Relaxed) || random(1000) < weather.lost_of_1000 {
                continue;
            }
            let more = random(1 + weather.delay.as_micros() as u64);
            count += 1;
            let due = Instant::now() + weather.delay + Duration::from_micros(more);
            under_way.push(Reverse((due, count, worker, up, bytes)));
        }
        while under_way.peek().is_some_and(|Reverse(packet)| packet.0 <= Instant::now()) {
            let Some(Reverse((_, _, worker, up, bytes))) = under_way.pop() else { break };
            // UDP may lose packets, so a failed send counts as a loss.
            let _ = if up { far[&worker].send(&bytes) } else { near.send_to(&bytes, worker) };
        }
        if is_idle {
            std::thread::park_timeout(PATIENCE);
        }
    }
}
