//! Recognition of probes at a plain server by the first bytes of their connection.

use super::Bounds;
use std::time::Duration;
use tokio::net::TcpStream;

/// 64 bytes: far more than the request line of a probe, and little to copy for every newcomer.
const LINE_BYTES: usize = 64;

/// Bounds of connections without first bytes. Clients send these with the handshake or just after it. Each connection
/// costs one socket, and the operating system may have accepted as many meanwhile.
pub(super) const NEWCOMERS: Bounds = Bounds {
    connections: 1024,
    of_network: 512,
    anonymous: 1024,
    anonymous_time: Duration::from_secs(2),
    head: Duration::from_secs(2),
    write: Duration::from_secs(2),
};

/// Paths of probe requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probes(pub(crate) &'static [&'static str]);

impl Probes {
    /// Waits for the first bytes of a connection without consuming them, and returns whether they begin the request
    /// of a probe. `None` if none arrive.
    pub(super) async fn asks(self, socket: &TcpStream) -> Option<bool> {
        let mut line = [0; LINE_BYTES];
        let bytes = socket.peek(&mut line).await.ok().filter(|bytes| *bytes > 0)?;
        Some(self.is_asked(&line[..bytes]))
    }

    /// Returns whether these bytes begin the request of a probe. A request line that arrives in pieces counts as no
    /// probe.
    fn is_asked(self, line: &[u8]) -> bool {
        let path = line.strip_prefix(b"GET ").and_then(|rest| rest.split(|byte| *byte == b' ').next());
        path.is_some_and(|path| self.0.iter().any(|probe| probe.as_bytes() == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_of_probes_are_theirs() {
        let probes = Probes(&["/healthz", "/readyz"]);
        for line in ["GET /healthz HTTP/1.1\r\nHost: m\r\n", "GET /readyz HTTP/1.0\r\n"] {
            assert!(probes.is_asked(line.as_bytes()), "{line}");
        }
        for line in [
            "GET /metrics HTTP/1.1",
            "GET /healthzz HTTP/1.1",
            "POST /healthz HTTP/1.1",
            "GET /h",
            "\u{16}\u{3}",
        ] {
            assert!(!probes.is_asked(line.as_bytes()), "{line}");
        }
    }
}
