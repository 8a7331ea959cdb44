//! Manager process: stores submitted studies, has its workers execute them, and serves them over HTTP.
//!
//! [`service`] owns the state directory and runs the studies on the manager actor. [`http`] is the HTTP interface of
//! clients, [`input_store`] stores their input files, and [`listener`] bounds their connections. [`exporter`] serves
//! metrics and probes. [`pools`] reads the worker pools that the manager scales, [`drivers`] start and stop their workers,
//! and [`kubernetes`] calls the cluster that it runs on.

pub mod drivers;
pub mod exporter;
pub mod http;
pub mod input_store;
pub mod kubernetes;
pub mod listener;
pub mod pools;
pub mod service;
