//! Slow readers: 1,000 clients repeatedly request metrics, read nothing, and reconnect when the server closes their
//! connection. Meanwhile a probe requests `/healthz`.

use crate::processes::Tls;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const READERS: usize = 1000;

/// Threads that drive the readers.
const THREADS: usize = 2;

/// 200 probes: enough to separate the 99th percentile from the maximum.
const PROBES: usize = 200;

/// 20 ms between probes: all probes together take longer than the readers need to reconnect many times.
const PAUSE: Duration = Duration::from_millis(20);

/// 10 s: longer than any response that counts.
const PATIENCE: Duration = Duration::from_secs(10);

/// 60 s: the time for all readers to connect.
const DEADLINE: Duration = Duration::from_secs(60);

/// Client of one server, with or without TLS.
pub(crate) struct Probe {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Tls>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Probe {
    /// Connects from a loopback address, with a small receive buffer so that unread responses stay in the server.
    fn connect(&self, source: u8) -> std::io::Result<Stream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_recv_buffer_size(4096)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, source], 0)).into())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.connect_timeout(&self.address.into(), PATIENCE)?;
        let socket = TcpStream::from(socket);
        // HTTP clients set TCP_NODELAY: a request must not wait for the acknowledgment of the handshake.
        socket.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let mut stream = tls.over(socket);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Sends one request over a new connection. Returns the time until the response, in ms.
    fn ask(&self) -> f64 {
        let begun = Instant::now();
        let mut stream = self.connect(1).expect("a connection");
        stream.write(b"GET /healthz HTTP/1.1\r\nHost: m\r\n\r\n").expect("it reads");
        let mut answer = [0; 1024];
        let read = stream.read(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        begun.elapsed().as_secs_f64() * 1e3
    }
}

/// Returns the waits of all probes during an attack from `sources` addresses, in ms, in ascending order. The first address
/// is also the probe's own.
pub(crate) fn under_attack(probe: &Probe, sources: u8) -> Vec<f64> {
    let (is_over, came) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (is_over, came) = (&is_over, &came);
            scope.spawn(move || read_slowly(probe, thread, sources, is_over, came));
        }
        // The guard stops the readers even if a probe panics: otherwise the scope would wait for them forever.
        let _over = Over(&is_over);
        let begun = Instant::now();
        while came.load(Ordering::Relaxed) < READERS {
            assert!(begun.elapsed() < DEADLINE, "only {} readers came", came.load(Ordering::Relaxed));
            std::thread::park_timeout(Duration::from_millis(10));
        }
        let ask = |_| {
            std::thread::park_timeout(PAUSE);
            probe.ask()
        };
        let mut waits: Vec<f64> = (0..PROBES).map(ask).collect();
        waits.sort_by(f64::total_cmp);
        waits
    })
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Drives every [`THREADS`]th reader: sends more requests whenever the socket accepts them, and reconnects after the server
/// closes it.
fn read_slowly(probe: &Probe, thread: usize, sources: u8, is_over: &AtomicBool, came: &AtomicUsize) {
    let asks = "GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n".repeat(100);
    let mut readers: Vec<(u8, Option<Stream>)> = (thread..READERS)
        .step_by(THREADS)
        .map(|number| (1 + (number % usize::from(sources)) as u8, None))
        .collect();
    while !is_over.load(Ordering::Relaxed) {
        for (source, stream) in &mut readers {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let is_there = stream.as_mut().is_some_and(|stream| match stream.write(asks.as_bytes()) {
                Ok(()) => true,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            });
            if !is_there {
                // The server may close the new connection at once as well.
                *stream = probe.connect(*source).ok();
                came.fetch_add(1, Ordering::Relaxed);
                if let Some(stream) = stream {
                    let _ = stream.write(asks.as_bytes());
                    let _ = stream.socket().set_nonblocking(true);
                }
            }
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
