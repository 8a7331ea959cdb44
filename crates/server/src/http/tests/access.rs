//! Authentication by token and by certificate: accepted and rejected requests.

use super::site::{Site, connect, reply};
use pleach_actors::transport::certs::{Authority, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::Trust;
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_api::submission::fixture::submission;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const STUDIES: &str = "/api/v1/studies";

#[test]
fn only_the_exact_token_is_accepted() {
    let site = Site::new();
    let token = site.token.as_str().to_owned();
    let status = |header: &str| site.ask_as("ca", "GET", STUDIES, &[header], b"").status;
    assert_eq!(status(&format!("Authorization: Bearer {token}")), 200);
    assert_eq!(status(&format!("authorization: bearer   {token} ")), 200);
    let upper = token.to_uppercase();
    for wrong in ["", "Bearer", "Bearer ", "Basic abc", &token, &format!("Bearer {upper}"), "Bearer ä"] {
        assert_eq!(status(&format!("Authorization: {wrong}")), 401, "{wrong}");
    }
    for cut in [&token[1..], &token[..63], &format!("{token}0")] {
        let reply = site.ask_as("ca", "GET", STUDIES, &[&format!("Authorization: Bearer {cut}")], b"");
        assert_eq!((reply.status, reply.header("WWW-Authenticate")), (401, Some("Bearer")));
        assert_eq!(reply.detail(), "the token does not match the token of this manager");
    }
    let reply = site.ask_as("ca", "GET", STUDIES, &[], b"");
    assert_eq!(
        reply.detail(),
        "no credentials; a token (Authorization: Bearer TOKEN) or a client \
                                certificate is required"
    );
    assert_eq!(site.memory.kept().looks, 2, "the manager was asked for those who may ask only");
}

#[test]
fn client_certificate_is_accepted_without_token() {
    let site = Site::new();
    assert_eq!(site.ask_as("c1", "GET", STUDIES, &[], b"").status, 200);
    // Certificates of nodes with other roles give no access.
    for node in ["w1", "m1"] {
        assert_eq!(site.ask_as(node, "GET", STUDIES, &[], b"").status, 401, "{node}");
    }
    for path in ["/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"] {
        assert_eq!(site.ask_as("ca", "GET", path, &[], b"").status, 200, "{path}");
    }
    let reply = site.ask_as("ca", "GET", "/healthz", &[], b"");
    assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(reply.header("Cache-Control"), Some("no-store"));
}

/// Certificates of another cluster, expired certificates and connections without TLS are refused by both sides.
#[test]
fn invalid_certificates_are_refused() {
    let site = Site::new();
    let other = site.place.path().join("other");
    let authority = Authority::init(&other, SystemClock.now()).unwrap();
    let client = |name: &str| NodeIdentity { name: name.parse().unwrap(), role: Role::Client };
    let issue = |authority: &Authority, name: &str, validity| {
        authority.issue(&client(name), validity, &site.place.path().join(name)).unwrap();
    };
    let now = SystemClock.now();
    issue(&authority, "foreign", Validity::days(1, now).unwrap());
    // A client of the other cluster rejects this manager. To see the server's refusal, the client has to trust this
    // cluster.
    let foreign = Trust::load(&site.certs("foreign")).unwrap();
    let error = connect(site.address, &foreign).write_all(b"GET").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    // A certificate of the other authority in a chain with this cluster's authority.
    let node = std::fs::read_to_string(site.certs("foreign").join("node.pem")).unwrap();
    let own = std::fs::read_to_string(site.certs("ca").join("ca.pem")).unwrap();
    let first = node.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap();
    std::fs::write(site.certs("foreign").join("node.pem"), format!("{first}{own}")).unwrap();
    let ours = Authority::open(&site.certs("ca")).unwrap();
    let days_ago = |days: u64| now - Duration::from_secs(86_400 * days);
    issue(&ours, "expired", Validity::days(1, days_ago(3)).unwrap());
    for name in ["foreign", "expired"] {
        let mut connection = connect(site.address, &Trust::load(&site.certs(name)).unwrap());
        let asked = connection.write_all(b"GET /api/v1/studies HTTP/1.1\r\nHost: m\r\n\r\n");
        let answered = asked.and_then(|()| connection.read(&mut [0; 100]));
        let error = answered.expect_err("turned away").to_string();
        assert!(error.contains("received fatal alert") || error.contains("reset"), "{name}: {error}");
    }
    // A request without TLS gets no answer, and the server continues to serve others.
    let mut plain = TcpStream::connect(site.address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: m\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(site.ask_as("c1", "GET", STUDIES, &[], b"").status, 200);
    assert_eq!(site.memory.kept().looks, 1);
}

/// A client without access gets the error before it has sent the body, and the server stores nothing.
#[test]
fn unauthorized_upload_is_refused_before_its_body() {
    let site = Site::new();
    let digest = "0".repeat(64);
    let mut connection = site.connect("w1");
    let head =
        format!("PUT /api/v1/inputs/{digest} HTTP/1.1\r\nHost: m\r\nContent-Length: 4000000000\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    assert_eq!(reply(&mut connection).status, 401);
    let body = serde_json::to_vec(&submission("nuclei", Vec::new())).unwrap();
    assert_eq!(site.ask_as("ca", "POST", STUDIES, &["Content-Type: application/json"], &body).status, 401);
    assert_eq!(site.memory.kept().submissions, 0);
    assert_eq!(std::fs::read_dir(site.certs("inputs")).unwrap().count(), 0);
}
