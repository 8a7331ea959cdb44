//! Reasons for refused connections: one sentence that an operator on either side can act on, and a cause for programs.
//!
//! The refusing side sends cause and sentence when it closes the connection, so that the peer need not guess. An earlier
//! failure, in TLS, arrives as an alert number. This module translates the number into a sentence.

use quinn::{ConnectionError, TransportErrorCode, VarInt};
use std::fmt;

/// Cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// No response from the address.
    Unreachable,
    /// The peer showed no certificate.
    NoCertificate,
    /// Another authority issued the certificate.
    ForeignCertificate,
    /// The certificate has expired or is not valid yet.
    Expired,
    /// The certificate is unusable for another reason.
    Certificate,
    /// The certificate has another role than the connection requires.
    Role,
    /// The protocol versions differ.
    Version,
    /// The received data is not a valid frame or message.
    Language,
    /// A frame or a data region was too long.
    TooLong,
    /// A time limit has passed.
    Deadline,
    /// The peer is overloaded.
    Busy,
    /// The token is invalid.
    Token,
    /// The connection was lost by a failure of the network or of the peer.
    Lost,
    /// The connection ended normally.
    Ended,
    /// Another process is connected under the same name.
    NameInUse,
}

impl Cause {
    const ALL: [Self; 15] = [
        // Code 0 is that of a connection that quinn closes on drop, which is a normal end.
        Self::Ended,
        Self::Unreachable,
        Self::NoCertificate,
        Self::ForeignCertificate,
        Self::Expired,
        Self::Certificate,
        Self::Role,
        Self::Version,
        Self::Language,
        Self::TooLong,
        Self::Deadline,
        Self::Busy,
        Self::Token,
        Self::Lost,
        Self::NameInUse,
    ];

    /// Returns the code on the wire: the position in [`ALL`](Self::ALL). New causes are appended, so that codes never
    /// change.
    fn code(self) -> VarInt {
        let place = Self::ALL.iter().position(|cause| *cause == self).unwrap_or_default();
        VarInt::from_u32(place as u32)
    }

    fn of_code(code: VarInt) -> Self {
        let place = usize::try_from(code.into_inner()).ok();
        // An unknown code is not permanent, so that a cause added by a later version leads to a retry.
        place.and_then(|place| Self::ALL.get(place)).copied().unwrap_or(Self::Lost)
    }

    /// Returns whether a retry is useless until an operator acts.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        match self {
            Self::NoCertificate
            | Self::ForeignCertificate
            | Self::Expired
            | Self::Certificate
            | Self::Role
            | Self::Version
            | Self::TooLong
            | Self::Language
            | Self::Token => true,
            Self::Unreachable | Self::Deadline | Self::Busy | Self::Lost | Self::Ended | Self::NameInUse => {
                false
            }
        }
    }
}

/// Maximum length of a sentence that is sent or shown. The close of a connection must fit a packet of the smallest size.
const MAX_TEXT_BYTES: usize = 900;

/// Reason for a refused or ended connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Cause, for programs.
    pub cause: Cause,
    /// Sentence, for people.
    pub text: String,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Refusal {
    /// Creates a refusal with its sentence.
    pub(crate) fn new(cause: Cause, text: impl fmt::Display) -> Self {
        Self { cause, text: printable(&text.to_string()) }
    }

    /// Ends a connection with this reason. An ended connection keeps its own reason.
    pub(crate) fn close(&self, connection: &quinn::Connection) {
        if connection.close_reason().is_none() {
            connection.close(self.cause.code(), self.text.as_bytes());
        }
    }

    /// Ends all connections of an endpoint with this reason.
    pub(crate) fn close_endpoint(&self, endpoint: &quinn::Endpoint) {
        endpoint.close(self.cause.code(), self.text.as_bytes());
    }

    /// Returns the reason for the end of a connection.
    pub(crate) fn of_connection(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => {
                Self::new(Cause::of_code(close.error_code), String::from_utf8_lossy(&close.reason))
            }
            ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
                Some(alert) => {
                    let (cause, what) = of_alert(alert);
                    let reason = String::from_utf8_lossy(&close.reason);
                    Self::new(cause, format!("the peer refused this node's certificate: {what} ({reason})"))
                }
                // quinn sends this code to peers beyond the limit of half-open connections.
                None if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
                    Self::new(Cause::Busy, "the peer is overloaded; try again later")
                }
                None => Self::new(Cause::Lost, format!("the peer ended the connection: {close}")),
            },
            ConnectionError::TransportError(error) => match alert(error.code) {
                Some(alert) => {
                    let (cause, what) = of_alert(alert);
                    let reason = &error.reason;
                    Self::new(cause, format!("the peer's certificate is refused: {what} ({reason})"))
                }
                None => Self::new(Cause::Lost, format!("connection error: {error}")),
            },
            ConnectionError::VersionMismatch => {
                Self::new(Cause::Version, "the peer does not support this version of QUIC")
            }
            ConnectionError::TimedOut => Self::new(Cause::Lost, "the connection timed out"),
            ConnectionError::Reset => Self::new(Cause::Lost, "the peer has restarted"),
            ConnectionError::LocallyClosed => Self::new(Cause::Ended, "this node ended the connection"),
            ConnectionError::CidsExhausted => Self::new(Cause::Busy, "too many connections"),
        }
    }
}

/// Returns the number of a TLS alert. `None` for any other error.
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    // RFC 9001, section 4.8: TLS alerts have the error codes 0x100–0x1ff.
    (0x100..0x200).contains(&code).then_some((code & 0xff) as u8)
}

/// Returns the cause and a description of a TLS alert (RFC 8446, section 6.2).
fn of_alert(alert: u8) -> (Cause, &'static str) {
    match alert {
        45 => (
            Cause::Expired,
            "expired or not valid yet; issue a new one, or correct the clock of one of the hosts",
        ),
        48 => (
            Cause::ForeignCertificate,
            "issued by the authority of another cluster; issue one with this cluster's authority",
        ),
        116 => {
            (Cause::NoCertificate, "none was sent; issue one with `pleach certs issue`, or join with a token")
        }
        42 => (Cause::Certificate, "invalid, or issued for another purpose"),
        44 => (Cause::Certificate, "revoked"),
        51 => (Cause::ForeignCertificate, "not signed by the authority"),
        120 => (Cause::Language, "the peer does not use the pleach protocol"),
        _ => (Cause::Certificate, "not accepted"),
    }
}

/// Returns one line of printable characters, truncated if too long, because operators read text from peers.
fn printable(text: &str) -> String {
    let mut line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.len() > MAX_TEXT_BYTES {
        line.truncate(line.floor_char_boundary(MAX_TEXT_BYTES));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_round_trip() {
        for cause in Cause::ALL {
            assert_eq!(Cause::of_code(cause.code()), cause);
        }
        assert_eq!(Cause::of_code(VarInt::from_u32(4711)), Cause::Lost);
        assert_eq!(Cause::of_code(VarInt::MAX), Cause::Lost);
    }

    #[test]
    fn refusal_text_of_a_peer_is_one_printable_line() {
        let text = format!("a\n\u{1b}[31mb{}", "é".repeat(2000));
        let refusal = Refusal::new(Cause::Lost, text);
        assert!(refusal.text.starts_with("a  [31mbé") && refusal.text.len() <= MAX_TEXT_BYTES);
        assert!(!refusal.text.contains(char::is_control));
    }
}
