//! Connection of a command to a manager, and display of the manager's answers.

pub(super) mod cancel;
pub(super) mod drain;
pub(super) mod forget;
pub(super) mod progress_bars;
pub(super) mod query;
pub(super) mod results;
pub(super) mod status;
pub(super) mod submit;
pub(super) mod table;
pub(super) mod watch;
pub(super) mod watched;

use crate::cli::ManagerArgs;
use crate::exit::CommandResult;
use crate::terminal::print_notice;
use pleach_client::{Client, InterruptibleWait};
use pleach_workflow::text::quoted;

/// Maximum length of a notice.
const MAX_LETTERS: usize = 800;

/// Creates a client for the manager that the arguments name. Its notices go to stderr.
pub(super) fn connect(args: &ManagerArgs, waiting: InterruptibleWait) -> CommandResult<Client> {
    let client = Client::new(&args.options(), super::manager_token().as_deref(), waiting)?;
    Ok(client.with_notices(line_on_stderr))
}

/// Prints a line on stderr.
pub(super) fn line_on_stderr(text: &str) {
    print_notice(&quoted(text, MAX_LETTERS));
}
