//! Slow clients: those that make progress are served, the others are disconnected, and no other client waits for
//! them.

use super::site::{Connection, Reply, Site, connect, reply};
use crate::http::Limits;
use pleach_actors::transport::https::Trust;
use pleach_api::schema::StudyState;
use pleach_api::submission::fixture::submission;
use pleach_client::submit::submit;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

const STUDIES: &str = "/api/v1/studies";
const JSON: &str = "Content-Type: application/json";

/// Requests a result of 800 kB and reads nothing of it yet.
fn ask_for_result(site: &Site) -> Connection {
    let id = submit(&site.client(), &submission("nuclei", Vec::new()), || ()).unwrap();
    site.memory.set(&id, StudyState::Complete, None);
    let mut connection = connect(site.address, &Trust::load(&site.certs("c1")).unwrap());
    // A small buffer, so that the client's system accepts few bytes that the client has not read.
    SockRef::from(&connection.sock).set_recv_buffer_size(16 << 10).unwrap();
    let head =
        format!("GET {STUDIES}/{id}/results/responses.csv HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    connection
}

/// Probes the server's health repeatedly for `time`.
fn meanwhile(site: &Site, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        assert_eq!(site.ask_as("ca", "GET", "/healthz", &[], b"").status, 200);
    }
}

#[test]
fn client_that_stops_reading_is_disconnected() {
    let site = Site::within(Limits { write: Duration::from_millis(300), ..Limits::default() });
    let mut connection = ask_for_result(&site);
    meanwhile(&site, Duration::from_millis(1500));
    let (mut bytes, mut piece) = (0, [0; 16 << 10]);
    loop {
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes += read,
        }
    }
    assert!(bytes < 700_000, "{bytes} bytes came after it had stopped reading");
}

#[test]
fn client_that_reads_slowly_gets_all_of_a_result() {
    let write = Duration::from_secs(1);
    let site = Site::within(Limits { write, ..Limits::default() });
    let mut connection = ask_for_result(&site);
    // The transfer takes longer than a write may stall, but no write stalls for as long.
    let begun = Instant::now();
    let mut slow = Slow { connection: &mut connection, site: &site };
    let answer: Reply = reply(&mut slow);
    assert_eq!((answer.status, answer.body.len()), (200, 50_000 * "s1,responses.csv\n".len()));
    assert!(begun.elapsed() > 2 * write, "it was not slow");
}

/// Slow reader that sends other requests between two pieces.
struct Slow<'a> {
    connection: &'a mut Connection,
    site: &'a Site,
}

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        meanwhile(self.site, Duration::from_millis(60));
        let mut filled = 0;
        while filled < into.len() {
            match self.connection.read(&mut into[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}

#[test]
fn bodies_that_come_slowly_take_no_turn_of_others() {
    let site = Site::new();
    let head = format!(
        "POST {STUDIES} HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer {}\r\n{JSON}\r\nContent-Length: 5000\r\n\r\n{{",
        site.token.as_str()
    );
    let slow: Vec<Connection> = (0..Limits::default().bodies - 1)
        .map(|_| {
            let mut connection = site.connect("ca");
            connection.write_all(head.as_bytes()).unwrap();
            connection
        })
        .collect();
    let body = serde_json::to_vec(&submission("nuclei", Vec::new())).unwrap();
    assert_eq!(site.ask("POST", STUDIES, &[JSON], &body).status, 201, "the same client");
    assert_eq!(site.ask_as("c1", "POST", STUDIES, &[JSON], &body).status, 201, "another one");
    drop(slow);
}

#[test]
fn body_that_trickles_is_refused() {
    let (body, body_bytes) = (Duration::from_millis(200), 1000);
    let site = Site::within(Limits { body, body_bytes, ..Limits::default() });
    let mut connection = site.connect("c1");
    let head = format!("POST {STUDIES} HTTP/1.1\r\nHost: m\r\n{JSON}\r\nContent-Length: 100000\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    connection.sock.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (deadline, mut answer) = (Instant::now() + Duration::from_secs(20), Vec::new());
    // The client sends single bytes, each well within the period.
    while !answer.ends_with(b"}") {
        assert!(Instant::now() < deadline, "{answer:?}");
        let _ = connection.write_all(b" ").and_then(|()| connection.flush());
        let mut piece = [0; 1024];
        match connection.read(&mut piece) {
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        }
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("request body too slow; at least 1000 bytes in 0.2 s"), "{answer}");
}

#[test]
fn client_without_credentials_gets_one_answer() {
    let site = Site::new();
    let three = "GET /healthz HTTP/1.1\r\nHost: m\r\n\r\n".repeat(3);
    let mut answers = String::new();
    let mut connection = site.connect("ca");
    connection.write_all(three.as_bytes()).unwrap();
    let _ = connection.read_to_string(&mut answers);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 1, "{answers}");
    assert!(answers.contains("connection: close"), "{answers}");
    // A client with credentials may send several requests on one connection.
    let mut connection = site.connect("c1");
    connection.write_all(three.as_bytes()).unwrap();
    for _ in 0..3 {
        let answer = reply(&mut Bytewise(&mut connection));
        assert_eq!((answer.status, answer.header("Connection")), (200, None));
    }
}

/// Reader of single bytes, which reads no further than the end of an answer.
struct Bytewise<'a>(&'a mut Connection);

impl Read for Bytewise<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(&mut into[..1])
    }
}

/// A crowd that fills all connections of its network and does not read leaves room for the next client.
#[test]
fn crowd_without_credentials_leaves_room() {
    let limits = Limits { connections: 12, of_network: 8, anonymous: 8, ..Limits::default() };
    let site = Site::within(limits);
    let asks = "GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n".repeat(400);
    let crowd: Vec<Connection> = (0..40)
        .map(|_| {
            let mut connection = site.connect("ca");
            // The server may have closed the connection already.
            let _ = connection.write_all(asks.as_bytes()).and_then(|()| connection.flush());
            connection
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(site.ask_as("ca", "GET", "/healthz", &[], b"").status, 200);
        assert_eq!(site.ask("GET", STUDIES, &[], b"").status, 200);
    }
    drop(crowd);
}
