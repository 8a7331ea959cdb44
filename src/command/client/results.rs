//! `pleach results`: downloads the result files of a study into a folder.

use super::connect;
use super::progress_bars::TransferBar;
use crate::cli::ResultsArgs;
use crate::exit::CommandResult;
use crate::interrupt::Interrupt;
use crate::terminal::print_line;
use pleach_client::{InterruptibleWait, TransferProgress, download, plain};

/// Runs the command.
pub(in crate::command) fn execute(args: &ResultsArgs) -> CommandResult {
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    let mut interrupt = Interrupt::listen()?;
    client.waiting().listen_to(interrupt.take_stop_requested());
    let (id, out) = (plain(&args.id), args.out.display());
    client
        .waiting()
        .set_message(format!("{out} is unchanged; pleach results {id} --out {out} restarts the download"));
    let transfer = TransferBar::new("receiving results", false);
    let received = download::results(&client, &args.id, &args.out, &transfer);
    transfer.finish();
    let number = received?;
    print_line(&format!("{number} files of study {} in {}", plain(&args.id), args.out.display()));
    Ok(())
}
