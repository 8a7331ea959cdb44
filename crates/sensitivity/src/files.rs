//! Parameter sets and problems in files of other programs: tables, Dakota, SALib.

pub mod dakota;
pub mod import;
pub mod problem;
pub mod table;
