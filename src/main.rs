//! `pleach`: parameter sensitivity studies of image-analysis workflows, merged into one reuse plan.
//!
//! This crate is the command line. It parses arguments, connects the crates, writes files and reports errors. No other
//! crate writes to the terminal or sets exit codes.

mod burst;
mod cli;
mod command;
mod exit;
mod interrupt;
mod live;
mod log;
mod progress_display;
mod spill;
mod terminal;
mod tiers;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

fn main() -> ExitCode {
    exit::install_panic_hook();
    match cli::parse() {
        Ok(command) => exit::report(command::execute(command)),
        Err(cli::Parsed::Help { asked_for_nothing }) => ExitCode::from(if asked_for_nothing { 2 } else { 0 }),
        Err(cli::Parsed::Mistake(stop)) => exit::report(Err(stop)),
    }
}
