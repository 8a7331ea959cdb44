//! Cluster of one manager: an authority, certificates, a server, and clients.

use super::memory::Memory;
use crate::http::{Limits, Server, Setup, serve};
use crate::input_store::InputStore;
use pleach_actors::transport::certs::{Authority, Credentials, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::{self, Trust};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_api::token::ApiToken;
use pleach_client::ClientOptions;
use pleach_client::{Client, InterruptibleWait};
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any answer takes, unless the server hangs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) type Connection = StreamOwned<ClientConnection, TcpStream>;

pub(super) struct Site {
    pub(super) place: TempDir,
    pub(super) memory: Arc<Memory>,
    pub(super) inputs: Arc<InputStore>,
    pub(super) token: ApiToken,
    pub(super) address: SocketAddr,
    pub(super) server: Option<Server>,
    limits: Limits,
}

/// Answer as received.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap().to_owned()
    }
}

impl Site {
    pub(super) fn new() -> Self {
        Self::within(Limits::default())
    }

    pub(super) fn within(limits: Limits) -> Self {
        let place = tempfile::tempdir().unwrap();
        let authority = Authority::init(&place.path().join("ca"), SystemClock.now()).unwrap();
        for (name, role) in [("m1", Role::Manager), ("c1", Role::Client), ("w1", Role::Worker)] {
            issue(&authority, &place, name, role);
        }
        let inputs = Arc::new(InputStore::open(&place.path().join("inputs")).unwrap());
        let memory = Arc::new(Memory::new(place.path(), Arc::clone(&inputs)));
        let token = ApiToken::read_or_make(&place.path().join("token")).unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let mut site = Self { place, memory, inputs, token, address, server: None, limits };
        site.start();
        site
    }

    /// Starts the server, at its previous address if it ran before.
    pub(super) fn start(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        self.address = listener.local_addr().unwrap();
        let credentials = Credentials::load(&self.place.path().join("m1")).unwrap();
        let memory = Arc::clone(&self.memory);
        self.server = Some(
            serve(Setup {
                listener,
                tls: https::server(&credentials, &clock()).unwrap(),
                control: memory,
                token: self.token.clone(),
                inputs: Arc::clone(&self.inputs),
                limits: self.limits,
            })
            .unwrap(),
        );
    }

    /// Returns the folder of a node's credentials, or of the authority (`ca`).
    pub(super) fn certs(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Returns the arguments of a command, with a client certificate and without retries.
    pub(super) fn args(&self) -> ClientOptions {
        ClientOptions {
            manager: format!("https://{}", self.address).parse().unwrap(),
            certs: self.certs("c1"),
            token_file: None,
            timeout: Duration::ZERO,
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.args(), None, InterruptibleWait::until_killed().unwrap()).unwrap()
    }

    /// Opens a TLS connection with the credentials in a folder.
    pub(super) fn connect(&self, certs: &str) -> Connection {
        connect(self.address, &Trust::load(&self.certs(certs)).unwrap())
    }

    /// Sends a request with the token.
    pub(super) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let authorization = format!("Authorization: Bearer {}", self.token.as_str());
        self.ask_as("ca", method, path, &[&[authorization.as_str()], headers].concat(), body)
    }

    /// Sends a request with the credentials in a folder and without the token.
    pub(super) fn ask_as(
        &self,
        certs: &str,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Reply {
        let mut connection = self.connect(certs);
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        // The headers of a test may contain another length.
        let length = match headers.contains("Content-Length: ") {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let always = "Host: manager.pleach\r\nConnection: close\r\n";
        let head = format!("{method} {path} HTTP/1.1\r\n{always}{length}{headers}\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        // A server that refuses the body may have closed the connection.
        let _ = connection.write_all(body).and_then(|()| connection.flush());
        reply(&mut connection)
    }
}

/// Issues credentials into a folder with the node's name.
fn issue(authority: &Authority, place: &TempDir, name: &str, role: Role) {
    let identity = NodeIdentity { name: name.parse().unwrap(), role };
    let validity = Validity::days(1, SystemClock.now()).unwrap();
    authority.issue(&identity, validity, &place.path().join(name)).unwrap();
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

pub(super) fn connect(address: SocketAddr, trust: &Trust) -> Connection {
    let (config, name) = https::client(trust, &clock()).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

/// Reads an answer: the head and a body of the length in the head.
pub(super) fn reply(connection: &mut impl Read) -> Reply {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            let body = bytes[end + 4..].to_vec();
            let mut reply = Reply { status, head, body };
            let length: usize = reply.header("Content-Length").expect("a length").parse().unwrap();
            while reply.body.len() < length {
                let read = connection.read(&mut piece).unwrap();
                assert!(read > 0, "cut short: {reply:?}");
                reply.body.extend_from_slice(&piece[..read]);
            }
            assert_eq!(reply.body.len(), length, "{reply:?}");
            return reply;
        }
        let read = connection.read(&mut piece).unwrap();
        assert!(read > 0, "no head: {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..read]);
    }
}
