//! TLS connector over TCP with the cluster's configuration, which verifies certificates as between nodes.
//!
//! ureq's own connector would look for the URL's host in the certificate. A manager's certificate holds its role
//! instead.

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Connector that starts TLS on a TCP connection.
#[derive(Debug)]
pub(super) struct ClusterTls {
    config: Arc<ClientConfig>,
    /// Name that the manager's certificate must contain.
    name: ServerName<'static>,
}

impl ClusterTls {
    pub(super) fn new(config: ClientConfig, name: ServerName<'static>) -> Self {
        Self { config: Arc::new(config), name }
    }
}

impl<In: Transport> Connector<In> for ClusterTls {
    type Out = Encrypted;

    fn connect(&self, details: &ConnectionDetails, below: Option<In>) -> Result<Option<Encrypted>, Error> {
        let Some(below) = below else { return Ok(None) };
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let transport: Box<dyn Transport> = Box::new(below);
        let mut socket = TransportAdapter::new(transport, Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        // The handshake ends here, so that a wrong certificate fails before the request is sent.
        connection.complete_io(&mut socket)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Encrypted { buffers, stream: StreamOwned::new(connection, socket) }))
    }
}

/// TLS connection.
pub(super) struct Encrypted {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted").finish_non_exhaustive()
    }
}

impl Transport for Encrypted {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
