//! Journal of a running study: a write-ahead log of responses. A response is on disk before it is
//! acknowledged.
//!
//! The journal is a text file in the result folder. Its first line identifies the study, and each further
//! line is the response of one finished run. Each line begins with a checksum. After a torn or corrupt line,
//! a reader ignores the rest, and those runs are executed again. A separate thread writes lines in groups and
//! syncs them before it acknowledges them (group commit). The session in `pleach-execution` decides when to remove
//! the journal.

mod record;
mod writer;

pub use record::{FORMAT, Header, HeaderError, JournaledResponse, count, has_header, read, read_header};
pub use writer::{Recorder, Writer, WriterError};

/// Name of the journal in the result folder.
pub const NAME: &str = "journal";
