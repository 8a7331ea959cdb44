//! QUIC client that does not follow the protocol of nodes.

use crate::cluster::{ANYWHERE, Cluster, soon};
use pleach_actors::transport::clock::Clock;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::Server;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug)]
struct Time(Arc<dyn Clock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.now()))
    }
}

/// Creates a client that trusts the cluster's authority and presents the certificate of a folder, or none.
pub(crate) fn stranger(cluster: &Cluster, shows: Option<&Path>) -> (Endpoint, ClientConfig) {
    let pem = |folder: &Path, name: &str| std::fs::read(folder.join(name)).expect("a file of the cluster");
    let chain = |folder: &Path, name: &str| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(&pem(folder, name)).map(|read| read.expect("a certificate")).collect()
    };
    let mut roots = RootCertStore::empty();
    roots.add(chain(&cluster.folder("ca"), "ca.pem").remove(0)).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_details(provider, Arc::new(Time(cluster.clock())));
    let builder = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots);
    let mut tls = match shows {
        None => builder.with_no_client_auth(),
        Some(folder) => {
            let key = PrivateKeyDer::from_pem_slice(&pem(folder, "node-key.pem")).expect("a key");
            builder.with_client_auth_cert(chain(folder, "node.pem"), key).expect("a key of this certificate")
        }
    };
    tls.alpn_protocols = vec![b"pleach".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("suites of QUIC")));
    (Endpoint::client(ANYWHERE).expect("a socket"), config)
}

/// Opens a connection with a valid certificate, without a first frame.
pub(crate) async fn connect(cluster: &Cluster, server: &Server) -> (Endpoint, Connection) {
    cluster.credentials("evil", Role::Worker, 30);
    let (endpoint, config) = stranger(cluster, Some(&cluster.folder("evil")));
    let connecting = endpoint.connect_with(config, server.address(), "manager.pleach").expect("an address");
    let connection = soon(connecting).await.expect("it may come in");
    (endpoint, connection)
}

/// Returns the reason for the end of a stranger's connection.
pub(crate) async fn ends(endpoint: &Endpoint, config: ClientConfig, server: &Server) -> String {
    match soon(endpoint.connect_with(config, server.address(), "manager.pleach").expect("an address")).await {
        Ok(connection) => close_reason(&connection).await,
        Err(error) => error.to_string(),
    }
}

/// Returns the reason that the other side sends when it ends a connection.
pub(crate) async fn close_reason(connection: &Connection) -> String {
    match soon(connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => String::from_utf8_lossy(&close.reason).into_owned(),
        error => error.to_string(),
    }
}

/// Sends a QUIC client's first packet, and nothing else.
pub(crate) fn first_packet(config: &ClientConfig, from: SocketAddr, to: SocketAddr) {
    let endpoint_config = Arc::new(quinn::EndpointConfig::default());
    let mut endpoint = quinn_proto::Endpoint::new(endpoint_config, None, true, None);
    let now = Instant::now();
    let (_, mut connection) =
        endpoint.connect(now, config.clone(), to, "manager.pleach").expect("an address");
    let mut packet = Vec::new();
    let transmit = connection.poll_transmit(now, 1, &mut packet).expect("a client speaks first");
    let socket = UdpSocket::bind(from).expect("an address of loopback");
    assert_eq!(socket.send_to(&packet[..transmit.size], to).expect("a packet is sent"), transmit.size);
}
