//! The files `address` and `url` of `--publish`: the manager's addresses for workers and for clients.
//!
//! A manager writes them after it has locked its state directory and bound its ports. So one that is refused leaves those of
//! the manager that runs, even if both start in the same moment.

use crate::cli::PublishArgs;
use crate::exit::{CommandError, CommandResult};
use pleach_planner::memory_limit;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Readable by all users, for clients of other users. The content is no secret.
const MODE: u32 = 0o644;

/// Writes both files. Readers see the file of before or the new one.
pub(super) fn publish(args: &PublishArgs, workers_port: u16, clients_port: u16) -> CommandResult {
    let Some(folder) = &args.publish else { return Ok(()) };
    let host = args.host.clone().or_else(memory_limit::host_name).unwrap_or_else(|| "localhost".to_owned());
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host,
    };
    let files =
        [("address", format!("{host}:{workers_port}")), ("url", format!("https://{host}:{clients_port}"))];
    for (name, text) in files {
        let path = folder.join(name);
        replace(&path, &text)
            .map_err(|error| CommandError::Input(format!("--publish {}: {error}", path.display())))?;
    }
    Ok(())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = write(&part, text).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&part);
    }
    written
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    // The manager's umask restricts the mode of new files.
    file.set_permissions(fs::Permissions::from_mode(MODE))?;
    writeln!(file, "{text}")?;
    file.sync_all()
}
