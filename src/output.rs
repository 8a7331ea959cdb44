//! Folder of a study's results: files with atomic publish, JSON records, and tables.

pub(crate) mod folder;
pub(crate) mod record;
pub(crate) mod survivors;
pub(crate) mod tables;
