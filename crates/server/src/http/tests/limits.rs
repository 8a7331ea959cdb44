//! Limits on the time, memory and connections of clients.

use super::site::{Site, reply};
use crate::http::Limits;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const STUDIES: &str = "/api/v1/studies";
const JSON: &str = "Content-Type: application/json";

fn authorized(site: &Site, request: &str) -> String {
    format!("{request}\r\nHost: m\r\nAuthorization: Bearer {}\r\n{JSON}\r\n", site.token.as_str())
}

/// Waits until the input store has `files` files, complete or partial. Each check sends a request to the server,
/// which makes progress meanwhile.
fn until_inputs(site: &Site, files: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_dir(site.certs("inputs")).unwrap().count() != files {
        assert!(Instant::now() < deadline, "there never are {files} input files");
        site.ask("GET", "/healthz", &[], b"");
    }
}

#[test]
fn body_beyond_its_limit_is_refused() {
    let site = Site::within(Limits { submission_bytes: 100, input_bytes: 1000, ..Limits::default() });
    let reply = site.ask("POST", STUDIES, &[JSON], &[b' '; 101]);
    assert_eq!(reply.status, 413);
    assert_eq!(reply.detail(), "request body too long; at most 100 bytes are allowed");
    // A body without an announced length is read up to the limit.
    let chunk = format!("32\r\n{}\r\n", " ".repeat(0x32));
    let head = "Transfer-Encoding: chunked\r\n\r\n";
    for (chunks, status) in [(2, 400), (3, 413)] {
        let mut connection = site.connect("ca");
        let request = authorized(&site, "POST /api/v1/studies HTTP/1.1");
        let body = chunk.repeat(chunks);
        connection
            .write_all(format!("{request}Connection: close\r\n{head}{body}0\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(super::site::reply(&mut connection).status, status, "{chunks} chunks");
    }
    let content = vec![1; 1001];
    let digest = blake3::hash(&content);
    assert_eq!(site.ask("PUT", &format!("/api/v1/inputs/{digest}"), &[], &content).status, 413);
    let content = vec![1; 1000];
    let digest = blake3::hash(&content);
    assert_eq!(site.ask("PUT", &format!("/api/v1/inputs/{digest}"), &[], &content).status, 201);
}

#[test]
fn stalled_body_times_out() {
    let brief = Duration::from_millis(100);
    let site = Site::within(Limits { body: brief, ..Limits::default() });
    let digest = "0".repeat(64);
    for request in
        ["POST /api/v1/studies HTTP/1.1".to_owned(), format!("PUT /api/v1/inputs/{digest} HTTP/1.1")]
    {
        let mut connection = site.connect("ca");
        let head = authorized(&site, &request);
        connection.write_all(format!("{head}Content-Length: 50\r\n\r\n{{\"version\"").as_bytes()).unwrap();
        let reply = reply(&mut connection);
        assert_eq!((reply.status, reply.header("Connection")), (408, Some("close")), "{request}");
    }
    assert_eq!(std::fs::read_dir(site.certs("inputs")).unwrap().count(), 0, "nothing is left behind");
}

/// A file whose client disconnects during the upload leaves nothing in the store.
#[test]
fn truncated_upload_leaves_no_file() {
    let site = Site::new();
    let digest = blake3::hash(&[7; 5_000_000]);
    let mut connection = site.connect("ca");
    let head = authorized(&site, &format!("PUT /api/v1/inputs/{digest} HTTP/1.1"));
    connection.write_all(format!("{head}Content-Length: 5000000\r\n\r\n").as_bytes()).unwrap();
    connection.write_all(&[7; 3_000_000]).unwrap();
    until_inputs(&site, 1);
    drop(connection);
    until_inputs(&site, 0);
    assert_eq!(site.ask("PUT", &format!("/api/v1/inputs/{digest}"), &[], &[7; 5_000_000]).status, 201);
}

/// A client whose file cannot be stored gets the reason, although it sends the whole file first.
#[test]
fn failed_upload_returns_the_cause() {
    let site = Site::new();
    std::fs::remove_dir(site.certs("inputs")).unwrap();
    let content = vec![5; 3_000_000];
    let reply = site.ask("PUT", &format!("/api/v1/inputs/{}", blake3::hash(&content)), &[], &content);
    assert_eq!(reply.status, 500);
    assert!(reply.detail().ends_with("No such file or directory (os error 2)"), "{reply:?}");
}

/// More connections than allowed, silent or with an incomplete request, are ended, and a client with a complete
/// request gets an answer.
#[test]
fn idle_connections_are_closed_for_new_ones() {
    // The server's clock advances in steps of 500 ms.
    let head = Duration::from_millis(1500);
    let site = Site::within(Limits { connections: 4, head, ..Limits::default() });
    let mut idle: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(site.address).unwrap()).collect();
    let mut slow: Vec<_> = (0..2).map(|_| site.connect("ca")).collect();
    let reply = site.ask("GET", "/healthz", &[], b"");
    assert_eq!(reply.status, 200);
    for connection in &mut slow {
        // A TLS handshake and an incomplete head.
        let begun = connection.write_all(b"GET /healthz HTTP/1.1\r\nHost:");
        let mut answer = Vec::new();
        let _ = begun.and_then(|()| connection.read_to_end(&mut answer));
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    for connection in &mut idle {
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
    }
    assert_eq!(site.ask("GET", "/healthz", &[], b"").status, 200);
}

/// Noise within TLS gets an error or a closed connection, and the server continues.
#[test]
fn noise_does_no_harm() {
    let site = Site::new();
    for noise in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"POST /api/v1/studies HTTP/1.1\r\nHost: m\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/studies HTTP/1.1\r\nHost: m\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /api/v1/studies HTTP/1.1\r\nHost: m\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /api/v1/studies HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ] {
        let mut connection = site.connect("c1");
        connection.write_all(noise).unwrap();
        connection.flush().unwrap();
        let mut answer = [0; 12];
        let read = connection.read(&mut answer).unwrap_or(0);
        assert!(read == 0 || answer.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&answer));
    }
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(300_000));
    let mut connection = site.connect("c1");
    let mut answer = Vec::new();
    let _ = connection.write_all(long.as_bytes()).and_then(|()| connection.read_to_end(&mut answer));
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&answer));
    assert_eq!(site.memory.kept().submissions, 0);
    assert_eq!(site.ask("GET", "/healthz", &[], b"").status, 200);
}

/// A server that stops finishes the request in progress and accepts nothing new.
#[test]
fn stopping_server_finishes_running_requests() {
    let mut site = Site::new();
    let content = vec![9; 2_000_000];
    let digest = blake3::hash(&content);
    let mut connection = site.connect("ca");
    let head = authorized(&site, &format!("PUT /api/v1/inputs/{digest} HTTP/1.1"));
    connection.write_all(format!("{head}Content-Length: 2000000\r\n\r\n").as_bytes()).unwrap();
    connection.write_all(&content[..1_500_000]).unwrap();
    connection.flush().unwrap();
    until_inputs(&site, 1);
    let server = site.server.take().unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    connection.write_all(&content[1_500_000..]).unwrap();
    assert_eq!(reply(&mut connection).status, 201);
    stopping.join().unwrap();
    assert!(TcpStream::connect(site.address).is_err(), "nobody listens any more");
    site.start();
    assert_eq!(site.ask("GET", "/healthz", &[], b"").status, 200);
}
