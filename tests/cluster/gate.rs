//! Proxy of a manager's HTTP interface: passes a number of response bytes, then stalls or closes connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Proxy with a thread pair per connection. The threads end with their connections or with the process.
pub(crate) struct Gate {
    /// Address of the manager through the proxy.
    pub(crate) address: String,
    state: Arc<State>,
}

struct State {
    manager: String,
    passed_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    is_stalled: AtomicBool,
    is_cut: AtomicBool,
}

/// 1 KiB per forwarded piece: the results of a small study are several pieces.
const PIECE_BYTES: usize = 1024;

impl Gate {
    /// Starts a proxy before the HTTP interface of a manager.
    pub(crate) fn before(manager: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(State {
            manager: manager.to_owned(),
            passed_bytes: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            is_stalled: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || state.carry(client));
            }
        });
        Self { address, state }
    }

    /// Passes `bytes` more response bytes. Requests pass without limit.
    pub(crate) fn open(&self, bytes: u64) {
        self.state.is_cut.store(false, Ordering::SeqCst);
        self.state.is_stalled.store(false, Ordering::SeqCst);
        let limit = self.state.passed_bytes.load(Ordering::SeqCst).saturating_add(bytes);
        self.state.limit_bytes.store(limit, Ordering::SeqCst);
    }

    /// Whether a client waits for more bytes.
    pub(crate) fn is_stalled(&self) -> bool {
        self.state.is_stalled.load(Ordering::SeqCst)
    }

    /// Response bytes passed so far.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.state.passed_bytes.load(Ordering::SeqCst)
    }

    /// Closes stalled connections and all new ones.
    pub(crate) fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn carry(&self, client: TcpStream) {
        let Ok(manager) = TcpStream::connect(&self.manager) else { return };
        let (mut asks, mut hears) =
            (client.try_clone().expect("a socket"), manager.try_clone().expect("one"));
        std::thread::spawn(move || {
            // The copy ends when either side closes.
            let _ = std::io::copy(&mut asks, &mut hears);
            let _ = hears.shutdown(Shutdown::Both);
        });
        self.answer(&manager, &client);
        let _ = client.shutdown(Shutdown::Both);
        let _ = manager.shutdown(Shutdown::Both);
    }

    fn answer(&self, mut manager: &TcpStream, mut client: &TcpStream) {
        let mut piece = [0; PIECE_BYTES];
        while let Ok(read @ 1..) = manager.read(&mut piece) {
            while self.passed_bytes.load(Ordering::SeqCst) >= self.limit_bytes.load(Ordering::SeqCst) {
                self.is_stalled.store(true, Ordering::SeqCst);
                if self.is_cut.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::park_timeout(Duration::from_millis(5));
            }
            self.passed_bytes.fetch_add(read as u64, Ordering::SeqCst);
            if self.is_cut.load(Ordering::SeqCst) || client.write_all(&piece[..read]).is_err() {
                return;
            }
        }
    }
}
