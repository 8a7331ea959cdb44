//! First frames of two nodes: protocol version, operations and resources.
//!
//! Each node sends one as its first frame on the control stream. It begins with the protocol's number and the build, in a
//! form that never changes, so that nodes of any two versions can determine which of them is older. The node's identity is
//! in its certificate, not in this frame.

use super::codec;
use super::identity::NodeIdentity;
use pleach_workflow::Registry;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use thiserror::Error;

/// Protocol version. It covers all messages after the first frame, and the first frame after the build. Every change of a
/// message increases it. Nodes of different protocol versions do not work together.
pub const PROTOCOL: u16 = 16;

/// Maximum length of a first frame, 256 KiB: enough for thousands of operations.
pub const MAX_HELLO_BYTES: usize = 256 << 10;

/// Prefix of every first frame.
const MAGIC: &[u8; 6] = b"pleach";

/// Protocol and build of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Protocol of the node.
    pub protocol: u16,
    /// Build of the node, for people.
    pub build: String,
}

impl Version {
    /// Returns the version of this program.
    #[must_use]
    pub fn current() -> Self {
        Self { protocol: PROTOCOL, build: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {} (pleach {})", self.protocol, self.build)
    }
}

/// Operation that a node can run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationVersion {
    /// Name of the operation.
    pub name: String,
    /// Version of the operation.
    pub version: u32,
}

/// Storage tier for data regions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierSize {
    /// Name of the tier, such as `ram`.
    pub name: String,
    /// Capacity in bytes.
    pub bytes: u64,
}

/// Operations and resources of a node. A node that executes nothing has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Operations that the node can run.
    pub operations: Vec<OperationVersion>,
    /// Processors for tasks.
    pub cores: u32,
    /// Memory for data regions and tasks.
    pub memory_bytes: u64,
    /// Tiers for data regions, the fastest first.
    pub tiers: Vec<TierSize>,
    /// Tasks that can run on accelerators at once.
    pub accelerator_slots: u32,
    /// Time limit of the node in seconds since 1970, if it has one.
    pub lease_end_seconds: Option<u64>,
    /// Host name, for operators.
    pub host_name: Option<String>,
}

/// Maximum length of a host name (RFC 1035). A longer name from a peer is truncated.
const MAX_HOST_NAME_LETTERS: usize = 253;

impl Hello {
    /// Adds the operations of a registry.
    #[must_use]
    pub fn with_operations(mut self, registry: &Registry) -> Self {
        let named = |name: &'static str| {
            let versions = registry.versions(name).into_iter();
            versions.map(move |version| OperationVersion { name: name.to_owned(), version })
        };
        self.operations = registry.names().into_iter().flat_map(named).collect();
        self.operations.sort();
        self.operations.dedup();
        self
    }

    /// Returns a node's location for operators: its address, after its host name if known.
    #[must_use]
    pub fn location(&self, address: SocketAddr) -> String {
        // The host name comes from the peer, so control characters must not reach an operator's terminal.
        let shown = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        let name = self.host_name.as_deref().unwrap_or_default();
        let name: String = name.chars().filter(shown).take(MAX_HOST_NAME_LETTERS).collect();
        if name.is_empty() { address.to_string() } else { format!("{name} ({address})") }
    }
}

/// Two nodes with different protocols.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{local_node} speaks {local}, {remote_node} speaks {remote}: {} is older; update it",
    if local.protocol < remote.protocol { local_node } else { remote_node }
)]
pub struct Mismatch {
    /// Name of the reporting node.
    pub local_node: String,
    /// Version of the reporting node.
    pub local: Version,
    /// Name of the peer.
    pub remote_node: String,
    /// Version of the peer.
    pub remote: Version,
}

/// Reason for an invalid first frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HelloError {
    /// The frame lacks the prefix or is too short.
    #[error("the first frame does not follow the pleach protocol")]
    Magic,
    /// The peer has another protocol.
    #[error(transparent)]
    Mismatch(Box<Mismatch>),
    /// The protocol matches, but the content is invalid.
    #[error("the first frame is invalid: {0}")]
    Content(String),
}

/// Encodes the first frame of a node of version `version`.
///
/// # Errors
/// Returns [`HelloError::Content`] if the frame would be too long.
pub fn write(version: &Version, hello: &Hello) -> Result<Vec<u8>, HelloError> {
    let body = codec::encode(hello).map_err(|error| HelloError::Content(error.to_string()))?;
    // The length has 1 byte. The cut may split a letter, because the reader decodes leniently.
    let build = &version.build.as_bytes()[..version.build.len().min(usize::from(u8::MAX))];
    let mut frame = MAGIC.to_vec();
    frame.extend_from_slice(&version.protocol.to_le_bytes());
    frame.push(u8::try_from(build.len()).unwrap_or(u8::MAX));
    frame.extend_from_slice(build);
    frame.extend_from_slice(&body);
    if frame.len() > MAX_HELLO_BYTES {
        let what = format!("{} bytes; at most {MAX_HELLO_BYTES} bytes are allowed", frame.len());
        return Err(HelloError::Content(what));
    }
    Ok(frame)
}

/// Reads the first frame of `remote_node`. A version error contains the version of `local_node`.
///
/// # Errors
/// Returns [`HelloError`].
pub fn read(
    frame: &[u8],
    here: &Version,
    here_who: &NodeIdentity,
    there_who: &NodeIdentity,
) -> Result<Hello, HelloError> {
    let rest = frame.strip_prefix(MAGIC).ok_or(HelloError::Magic)?;
    let (protocol, rest) = rest.split_first_chunk().ok_or(HelloError::Magic)?;
    let (length, rest) = rest.split_first().ok_or(HelloError::Magic)?;
    let (build, body) = rest.split_at_checked(usize::from(*length)).ok_or(HelloError::Magic)?;
    let protocol = u16::from_le_bytes(*protocol);
    // Compared before the body, whose format may differ between versions.
    if protocol != here.protocol {
        // Operators read the build in the error, so only printable letters remain.
        let build = String::from_utf8_lossy(build).chars().filter(char::is_ascii_graphic).collect();
        return Err(HelloError::Mismatch(Box::new(Mismatch {
            local_node: here_who.to_string(),
            local: here.clone(),
            remote_node: there_who.to_string(),
            remote: Version { protocol, build },
        })));
    }
    codec::decode(body).map_err(|error| HelloError::Content(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::identity::Role;
    use proptest::prelude::*;

    fn who(role: Role) -> NodeIdentity {
        NodeIdentity { name: "n1".parse().unwrap(), role }
    }

    fn read_by(frame: &[u8], protocol: u16) -> Result<Hello, HelloError> {
        let here = Version { protocol, ..Version::current() };
        read(frame, &here, &who(Role::Manager), &who(Role::Worker))
    }

    /// Both sides name the same node as the older one, and both versions.
    #[test]
    fn version_mismatch_names_the_older_node() {
        let (old, new) =
            (Version { protocol: 3, build: "0.3.1".into() }, Version { protocol: 4, build: "1.0".into() });
        let (manager, worker) = (who(Role::Manager), who(Role::Worker));
        let frame = |version| write(version, &Hello::default()).unwrap();
        let told = |frame: &[u8], here: &Version, here_who, there_who| {
            read(frame, here, here_who, there_who).unwrap_err().to_string()
        };
        assert_eq!(
            told(&frame(&old), &new, &manager, &worker),
            "manager n1 speaks protocol 4 (pleach 1.0), worker n1 speaks protocol 3 (pleach 0.3.1): worker \
             n1 is older; update it"
        );
        let by_worker = told(&frame(&new), &old, &worker, &manager);
        assert!(by_worker.ends_with(": worker n1 is older; update it"), "{by_worker}");
    }

    #[test]
    fn bytes_after_the_build_of_a_later_protocol_are_ignored() {
        let mut frame = write(&Version { protocol: 2, build: "2".into() }, &Hello::default()).unwrap();
        frame.extend([0xff; 40]);
        assert!(matches!(read_by(&frame, 1), Err(HelloError::Mismatch(_))));
    }

    #[test]
    fn location_with_a_host_name_shows_printable_letters_only() {
        let address = "10.0.0.7:512".parse().unwrap();
        let location =
            |name: &str| Hello { host_name: Some(name.to_owned()), ..Hello::default() }.location(address);
        assert_eq!(location("node7"), "node7 (10.0.0.7:512)");
        assert_eq!(location("a\n\u{1b}[31mb"), "a31mb (10.0.0.7:512)");
        assert_eq!(location("\n"), "10.0.0.7:512");
        assert_eq!(location(&"x".repeat(9999)).len(), 253 + 15);
        assert_eq!(Hello::default().location(address), "10.0.0.7:512");
    }

    proptest! {
        #[test]
        fn hello_round_trips(names in prop::collection::vec(".{0,20}", 0..5), cores: u32, memory_bytes: u64,
                         lease_end_seconds: Option<u64>, accelerator_slots: u32, host_name: Option<String>) {
            let operations =
                names.iter().map(|name| OperationVersion { name: name.clone(), version: cores }).collect();
            let tiers = names.into_iter().map(|name| TierSize { name, bytes: memory_bytes }).collect();
            let hello = Hello {
                operations, cores, memory_bytes, tiers, accelerator_slots, lease_end_seconds, host_name,
            };
            prop_assert_eq!(read_by(&write(&Version::current(), &hello).unwrap(), PROTOCOL), Ok(hello));
        }

        #[test]
        fn reading_noise_does_not_panic(noise in prop::collection::vec(any::<u8>(), 0..60), is_ours: bool) {
            let frame = if is_ours { [&MAGIC[..], &[1, 0], &noise].concat() } else { noise };
            let _ = read_by(&frame, 1);
        }
    }
}
