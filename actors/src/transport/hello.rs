//! First frames of two nodes: protocol version, operations and resources.
//!
//! It is the first frame either way on the control stream. It begins with the protocol's number and the build, in a
//! form that never changes, so that nodes of any two versions can tell which of them is older. Who a node is says its
//! certificate, not this.

use super::codec;
use super::identity::NodeIdentity;
use pleach_workflow::Registry;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use thiserror::Error;

/// What is spoken after the first frame, and in it behind the build. Raised with every change of a message: nodes of
/// different numbers do not work together.
pub const PROTOCOL: u16 = 5;

/// The longest first frame: room for thousands of operations.
pub const MAX_HELLO_BYTES: usize = 256 << 10;

/// What every first frame begins with.
const MAGIC: &[u8; 6] = b"pleach";

/// Protocol and build of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its protocol.
    pub protocol: u16,
    /// Its build, for people.
    pub build: String,
}

impl Version {
    /// This program's.
    #[must_use]
    pub fn here() -> Self {
        Self { protocol: PROTOCOL, build: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {} (pleach {})", self.protocol, self.build)
    }
}

/// An operation that a node can run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationVersion {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
}

/// A place for data regions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierSize {
    /// Its name, such as `ram`.
    pub name: String,
    /// What it may take.
    pub bytes: u64,
}

/// Operations and resources of a node. A node that executes nothing has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The operations that it can run.
    pub operations: Vec<OperationVersion>,
    /// Processors for tasks.
    pub cores: u32,
    /// Memory for data regions and tasks.
    pub memory_bytes: u64,
    /// Where it keeps data regions, the fastest first.
    pub tiers: Vec<TierSize>,
    /// Tasks that can run on accelerators at once.
    pub accelerator_slots: u32,
    /// When it has to end, in seconds since 1970, if it has to.
    pub lease_end_seconds: Option<u64>,
    /// The name of its host, for operators.
    pub host_name: Option<String>,
}

/// Host names have at most so many letters (RFC 1035). More of a peer's is not shown.
const MAX_HOST_NAME_LETTERS: usize = 253;

impl Hello {
    /// The same with the operations of a registry.
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

    /// A node's location for operators: its address, after its host name where that is known.
    #[must_use]
    pub fn location(&self, address: SocketAddr) -> String {
        let shown = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        let name = self.host_name.as_deref().unwrap_or_default();
        let name: String = name.chars().filter(shown).take(MAX_HOST_NAME_LETTERS).collect();
        if name.is_empty() { address.to_string() } else { format!("{name} ({address})") }
    }
}

/// Two nodes speak different protocols.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{here_who} speaks {here}, {there_who} speaks {there}: {} is older and has to be updated",
    if here.protocol < there.protocol { here_who } else { there_who }
)]
pub struct Mismatch {
    /// Who says this.
    pub here_who: String,
    /// What it speaks.
    pub here: Version,
    /// Name of the peer.
    pub there_who: String,
    /// Version of the peer.
    pub there: Version,
}

/// Reason for an invalid first frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HelloError {
    /// It does not begin as one.
    #[error("the first frame is none of pleach's")]
    Magic,
    /// Another protocol.
    #[error(transparent)]
    Mismatch(Box<Mismatch>),
    /// The protocol is this one, the content is not.
    #[error("the first frame is damaged: {0}")]
    Content(String),
}

/// The first frame of a node that speaks `version`.
///
/// # Errors
/// [`HelloError::Content`] when no frame can hold it.
pub fn write(version: &Version, hello: &Hello) -> Result<Vec<u8>, HelloError> {
    let body = codec::encode(hello).map_err(|error| HelloError::Content(error.to_string()))?;
    let build = &version.build.as_bytes()[..version.build.len().min(usize::from(u8::MAX))];
    let mut frame = MAGIC.to_vec();
    frame.extend_from_slice(&version.protocol.to_le_bytes());
    frame.push(u8::try_from(build.len()).unwrap_or(u8::MAX));
    frame.extend_from_slice(build);
    frame.extend_from_slice(&body);
    if frame.len() > MAX_HELLO_BYTES {
        let what = format!("{} bytes; at most {MAX_HELLO_BYTES} are allowed", frame.len());
        return Err(HelloError::Content(what));
    }
    Ok(frame)
}

/// Reads the first frame of `there_who`. A version error contains the version of `here_who`.
///
/// # Errors
/// [`HelloError`].
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
    if protocol != here.protocol {
        // It is shown to people: no more than printable letters.
        let build = String::from_utf8_lossy(build).chars().filter(char::is_ascii_graphic).collect();
        return Err(HelloError::Mismatch(Box::new(Mismatch {
            here_who: here_who.to_string(),
            here: here.clone(),
            there_who: there_who.to_string(),
            there: Version { protocol, build },
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
        let here = Version { protocol, ..Version::here() };
        read(frame, &here, &who(Role::Manager), &who(Role::Worker))
    }

    /// Whichever side reads, it names the same one, and how far apart they are.
    #[test]
    fn the_older_one_is_named() {
        let (old, new) =
            (Version { protocol: 3, build: "0.3.1".into() }, Version { protocol: 4, build: "1.0".into() });
        let (manager, worker) = (who(Role::Manager), who(Role::Worker));
        let frame = |version| write(version, &Hello::default()).unwrap();
        let told = |frame: &[u8], here: &Version, here_who, there_who| {
            read(frame, here, here_who, there_who).unwrap_err().to_string()
        };
        assert_eq!(
            told(&frame(&old), &new, &manager, &worker),
            "manager n1 speaks protocol 4 (pleach 1.0), worker n1 speaks protocol 3 (pleach 0.3.1): worker n1 is older \
             and has to be updated"
        );
        let by_worker = told(&frame(&new), &old, &worker, &manager);
        assert!(by_worker.ends_with(": worker n1 is older and has to be updated"), "{by_worker}");
    }

    #[test]
    fn a_later_protocol_may_say_what_it_likes_behind_its_build() {
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
        fn it_comes_back(names in prop::collection::vec(".{0,20}", 0..5), cores: u32, memory_bytes: u64,
                         lease_end_seconds: Option<u64>, accelerator_slots: u32, host_name: Option<String>) {
            let operations =
                names.iter().map(|name| OperationVersion { name: name.clone(), version: cores }).collect();
            let tiers = names.into_iter().map(|name| TierSize { name, bytes: memory_bytes }).collect();
            let hello = Hello {
                operations, cores, memory_bytes, tiers, accelerator_slots, lease_end_seconds, host_name,
            };
            prop_assert_eq!(read_by(&write(&Version::here(), &hello).unwrap(), PROTOCOL), Ok(hello));
        }

        #[test]
        fn nothing_makes_it_panic(noise in prop::collection::vec(any::<u8>(), 0..60), is_ours: bool) {
            let frame = if is_ours { [&MAGIC[..], &[1, 0], &noise].concat() } else { noise };
            let _ = read_by(&frame, 1);
        }
    }
}
