//! Commands of the processes of a cluster, and of those who operate it.

pub(super) mod cache;
pub(super) mod certs;
pub(super) mod doctor;
mod items;
pub(super) mod manager;
pub(super) mod pools;
pub(super) mod storage;
pub(super) mod upgrade_check;
pub(super) mod worker;

use crate::exit::{CommandError, CommandResult};
use pleach_actors::transport::certs::Credentials;
use pleach_actors::transport::identity::Role;
use std::path::Path;
use std::sync::Arc;

/// Loads the credentials of a process from the folder of `--certs`. Rejects the certificate of another role.
fn credentials(folder: &Path, role: Role) -> CommandResult<Arc<Credentials>> {
    let fail = |text: String| CommandError::Input(format!("--certs {}: {text}", folder.display()));
    let credentials = Credentials::load(folder).map_err(|error| fail(error.to_string()))?;
    let found = credentials.identity();
    if found.role != role {
        let role = role.as_str();
        return Err(fail(format!(
            "the certificate belongs to {found}; a {role} certificate is allowed (pleach certs issue --role {role})"
        )));
    }
    Ok(Arc::new(credentials))
}
