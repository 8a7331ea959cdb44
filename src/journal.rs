//! The journal of a running study: which responses are known, on disk before anybody is told.
//!
//! A text file in the folder of results. Its first line says whose it is; every further line is one finished run's
//! response. Each line begins with a checksum, so that a line which a crash cut short is found out, and everything
//! from there on is run again. Lines are written by a thread of their own, many at a time, and synced before they are
//! acknowledged. What is to be done with responses, and when a journal is no longer needed, is decided elsewhere.

mod record;
mod writer;

pub(crate) use record::{Header, JournaledResponse, count, has_header, read};
pub(crate) use writer::{Writer, WriterError};

/// Its name in the folder of results.
pub(crate) const NAME: &str = "journal";
