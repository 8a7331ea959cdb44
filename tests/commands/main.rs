//! Commands beside studies: certificates, clients, clustering, examples, generated tissue, tiles, storage and replay.

mod certs;
mod clients;
mod cluster_study;
mod clustering;
#[path = "../support/data.rs"]
mod data;
mod examples;
mod generated;
mod papers;
mod pbs;
#[path = "../support/pleach.rs"]
mod pleach;
mod region;
mod replay;
mod scratch;
mod segment;
mod slurm;
mod storage;
#[path = "../support/study.rs"]
mod study;
#[path = "../support/tables.rs"]
mod tables;
mod terminal;
