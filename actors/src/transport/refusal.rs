//! Why two nodes do not talk: one sentence that an operator on either side can act on, and a cause for programs.
//!
//! Whoever refuses sends cause and sentence with the close of the connection, so that the other side need not guess.
//! What fails before that, in TLS, comes as an alert's number; it is put into words here.

use quinn::{ConnectionError, TransportErrorCode, VarInt};
use std::fmt;

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Nobody answers there.
    Unreachable,
    /// The peer showed no certificate.
    NoCertificate,
    /// The certificate comes from another authority.
    ForeignCertificate,
    /// The certificate is not valid any more, or not yet.
    Expired,
    /// The certificate cannot be used for another reason.
    Certificate,
    /// The certificate is for something else.
    Role,
    /// The protocols differ.
    Version,
    /// What came was no frame or no message.
    Language,
    /// A frame or a data region was too long.
    TooLong,
    /// Something did not happen in time.
    Deadline,
    /// Too much is going on already.
    Busy,
    /// The token is not good.
    Token,
    /// The connection ended: by a failure of the network or of the peer.
    Lost,
    /// The connection ended as it should.
    Ended,
    /// Another process is connected under the same name.
    NameInUse,
}

impl Cause {
    const ALL: [Self; 15] = [
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

    /// Its number on the wire: the place in the list above, which only grows at its end.
    fn code(self) -> VarInt {
        let place = Self::ALL.iter().position(|cause| *cause == self).unwrap_or_default();
        VarInt::from_u32(place as u32)
    }

    fn of_code(code: VarInt) -> Self {
        let place = usize::try_from(code.into_inner()).ok();
        place.and_then(|place| Self::ALL.get(place)).copied().unwrap_or(Self::Lost)
    }

    /// Trying again will not help before somebody has done something about it.
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

/// The longest sentence sent or shown. The close of a connection has to fit one packet of the smallest size.
const MAX_TEXT_BYTES: usize = 900;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub cause: Cause,
    /// For people.
    pub text: String,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Refusal {
    /// With its sentence.
    pub(crate) fn new(cause: Cause, text: impl fmt::Display) -> Self {
        Self { cause, text: printable(&text.to_string()) }
    }

    /// Ends a connection, and says why. One that has ended keeps its own reason.
    pub(crate) fn close(&self, connection: &quinn::Connection) {
        if connection.close_reason().is_none() {
            connection.close(self.cause.code(), self.text.as_bytes());
        }
    }

    /// Ends all connections of an endpoint, and says why.
    pub(crate) fn close_endpoint(&self, endpoint: &quinn::Endpoint) {
        endpoint.close(self.cause.code(), self.text.as_bytes());
    }

    /// Why a connection ended.
    pub(crate) fn of_connection(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => {
                Self::new(Cause::of_code(close.error_code), String::from_utf8_lossy(&close.reason))
            }
            ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
                Some(alert) => {
                    let (cause, what) = of_alert(alert);
                    let reason = String::from_utf8_lossy(&close.reason);
                    Self::new(
                        cause,
                        format!("the other side refused this node's certificate: {what} ({reason})"),
                    )
                }
                None if close.error_code == TransportErrorCode::CONNECTION_REFUSED => Self::new(
                    Cause::Busy,
                    "the other side has too much to do to let anybody in; try again later",
                ),
                None => Self::new(Cause::Lost, format!("the other side ended the connection: {close}")),
            },
            ConnectionError::TransportError(error) => match alert(error.code) {
                Some(alert) => {
                    let (cause, what) = of_alert(alert);
                    let reason = &error.reason;
                    Self::new(cause, format!("the other side's certificate is refused: {what} ({reason})"))
                }
                None => Self::new(Cause::Lost, format!("the connection broke: {error}")),
            },
            ConnectionError::VersionMismatch => {
                Self::new(Cause::Version, "the other side speaks no version of QUIC that is spoken here")
            }
            ConnectionError::TimedOut => {
                Self::new(Cause::Lost, "nothing has been heard from the other side any more")
            }
            ConnectionError::Reset => Self::new(Cause::Lost, "the other side has started anew"),
            ConnectionError::LocallyClosed => Self::new(Cause::Ended, "the connection was ended here"),
            ConnectionError::CidsExhausted => Self::new(Cause::Busy, "too many connections"),
        }
    }
}

/// The number of a TLS alert.
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    // RFC 9001, 4.8.
    (0x100..0x200).contains(&code).then_some((code & 0xff) as u8)
}

/// RFC 8446, 6.2.
fn of_alert(alert: u8) -> (Cause, &'static str) {
    match alert {
        45 => (
            Cause::Expired,
            "it is not valid at this time; issue a new one, or set the clock of one of the two",
        ),
        48 => (
            Cause::ForeignCertificate,
            "it comes from another cluster's authority; use one that was issued here",
        ),
        116 => {
            (Cause::NoCertificate, "there is none; issue one with `pleach certs issue`, or join with a token")
        }
        42 => (Cause::Certificate, "it is damaged, or is for something else than is wanted here"),
        44 => (Cause::Certificate, "it has been revoked"),
        51 => (Cause::ForeignCertificate, "its signature is not that of the authority"),
        120 => (Cause::Language, "the other side is not of pleach"),
        _ => (Cause::Certificate, "it was not accepted"),
    }
}

/// One line of printable letters, cut where it is too long: what a peer says may be put before an operator.
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
    fn causes_come_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::of_code(cause.code()), cause);
        }
        assert_eq!(Cause::of_code(VarInt::from_u32(4711)), Cause::Lost);
        assert_eq!(Cause::of_code(VarInt::MAX), Cause::Lost);
    }

    #[test]
    fn what_a_peer_says_is_one_printable_line() {
        let text = format!("a\n\u{1b}[31mb{}", "é".repeat(2000));
        let refusal = Refusal::new(Cause::Lost, text);
        assert!(refusal.text.starts_with("a  [31mbé") && refusal.text.len() <= MAX_TEXT_BYTES);
        assert!(!refusal.text.contains(char::is_control));
    }
}
