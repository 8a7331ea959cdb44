//! `pleach`: parameter sensitivity studies of image-analysis workflows, woven into one reuse plan.
//!
//! This crate is the command line: it reads arguments, joins the crates, writes files and says what went wrong.
//! It is the only home of terminal output and exit codes.

mod analysis;
mod api;
mod application;
mod below;
mod burst;
mod checksum;
mod cli;
mod client;
mod command;
mod costs;
mod execution;
mod exit;
mod explain;
mod export;
mod exporter;
mod fields;
mod gallery;
mod inputs;
mod interrupt;
mod journal;
mod kubernetes;
mod listener;
mod live;
mod log;
mod machine;
mod output;
mod outside;
mod parts;
mod past;
mod pools;
mod progress;
mod replay;
mod report;
mod results;
mod service;
mod session;
mod size;
mod slides;
mod study;
mod summary;
mod template;
mod tiers;
mod weave;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pleach_pages::Recycler = pleach_pages::Recycler;

fn main() -> ExitCode {
    exit::install_panic_hook();
    match cli::parse() {
        Ok(command) => exit::report(command::execute(command)),
        Err(cli::Parsed::Help { asked_for_nothing }) => ExitCode::from(if asked_for_nothing { 2 } else { 0 }),
        Err(cli::Parsed::Mistake(stop)) => exit::report(Err(stop)),
    }
}
