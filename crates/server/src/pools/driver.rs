//! Settings of the driver of a pool: the table `[pool.provision]` of a pool file.

use pleach_actors::transport::identity::NodeName;
use pleach_workflow::toml_fields::{FieldError, Section};
use std::path::PathBuf;

/// 60 s without a study before workers are drained: the next study of a session often follows within a minute.
const IDLE_SECONDS: f64 = 60.0;

/// 7 days: a longer idle time is a mistake.
const MAX_IDLE_SECONDS: f64 = 604_800.0;

/// Length of the part of a worker's name that the manager appends to the prefix: 8 digits of its owner tag, 10 digits of
/// its start, 8 digits of a number, and 2 hyphens.
const SUFFIX_LENGTH: usize = 28;

/// Maximum number of arguments of a command, and of options of a worker.
const MAX_ARGUMENTS: usize = 1000;

/// 63 characters of the name of a deployment: its pods have more in their names, which are labels.
const MAX_OBJECT_NAME: usize = 63;

/// Driver of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverSettings {
    /// Seconds without a study after which workers above the minimum are drained.
    pub idle_seconds: f64,
    /// Address of the manager for its workers. `None`: that of the socket.
    pub manager: Option<String>,
    /// Kind of the driver, with its settings.
    pub kind: DriverKind,
}

/// Kind of a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverKind {
    /// Worker processes on the manager's machine.
    Process {
        /// Additional options of `pleach worker`.
        options: Vec<String>,
        /// File with a token to join with. `None`: the manager issues certificates.
        token: Option<PathBuf>,
    },
    /// Programs that start, stop and list workers.
    Command {
        /// Starts a worker and prints its handle.
        start: Vec<String>,
        /// Stops a worker.
        stop: Vec<String>,
        /// Prints name and handle of each worker.
        list: Vec<String>,
    },
    /// Scale of a deployment in the namespace of the manager.
    Kubernetes {
        /// Name of the deployment.
        deployment: String,
    },
}

impl DriverSettings {
    /// Reads the table `provision` of a pool whose workers have this prefix. Returns `None` without the table.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that is wrong or missing.
    pub(super) fn read(pool: &Section<'_>, prefix: &str) -> Result<Option<Self>, FieldError> {
        let Some(section) = pool.section("provision", "a table [pool.provision] is allowed")? else {
            return Ok(None);
        };
        const DRIVER: &str = "process, command or kubernetes is allowed";
        let driver = section.needed_text("driver", DRIVER)?;
        let is_name = format!("{prefix}{}", "0".repeat(SUFFIX_LENGTH)).parse::<NodeName>().is_ok();
        if driver != "kubernetes" && !is_name {
            let allowed = "with provision, a prefix of at most 35 lower-case letters, digits and hyphens is allowed, which begins \
                           with a letter or digit";
            return pool.not_allowed("workers", &format!("{prefix:?}"), allowed);
        }
        let kind = match driver {
            "process" => DriverKind::Process {
                options: arguments(&section, "options")?.unwrap_or_default(),
                token: section
                    .text("token", "a file with a token (pleach certs token) is allowed")?
                    .map(|file| section.path(file)),
            },
            "command" => {
                let needed = |key| -> Result<Vec<String>, FieldError> {
                    let allowed = "a program and its arguments are required, as in [\"./start\", \"{name}\"]";
                    let arguments = arguments(&section, key)?.filter(|arguments| !arguments.is_empty());
                    let mut arguments = section.needed(key, arguments, allowed)?;
                    // As in a shell, a name without a slash is looked up in PATH.
                    if arguments[0].contains('/') {
                        arguments[0] = section.path(&arguments[0]).display().to_string();
                    }
                    Ok(arguments)
                };
                DriverKind::Command { start: needed("start")?, stop: needed("stop")?, list: needed("list")? }
            }
            "kubernetes" => DriverKind::Kubernetes { deployment: deployment(&section, prefix)? },
            other => return section.not_allowed("driver", &format!("{other:?}"), DRIVER),
        };
        let manager = match kind {
            // The template of the deployment has the address.
            DriverKind::Kubernetes { .. } => None,
            DriverKind::Process { .. } | DriverKind::Command { .. } => manager(&section)?,
        };
        let idle = "0 to 604800 is allowed: seconds without a study before workers are drained";
        let idle_seconds = section.number_in("idle_seconds", [0.0, MAX_IDLE_SECONDS], idle)?;
        section.end()?;
        Ok(Some(Self { idle_seconds: idle_seconds.unwrap_or(IDLE_SECONDS), manager, kind }))
    }
}

/// Reads the address of the manager.
fn manager(section: &Section<'_>) -> Result<Option<String>, FieldError> {
    let address = "HOST:PORT of the manager, as its workers reach it, is allowed";
    let manager = section.text("manager", address)?;
    if let Some(manager) = manager.filter(|manager| !manager.contains(':')) {
        return section.not_allowed("manager", &format!("{manager:?}"), address);
    }
    Ok(manager.map(str::to_owned))
}

/// Reads the name of a deployment, whose pods must have this prefix in their names.
fn deployment(section: &Section<'_>, prefix: &str) -> Result<String, FieldError> {
    const ALLOWED: &str = "the name of a deployment in the manager's namespace is required";
    let name = section.needed_text("deployment", ALLOWED)?;
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    // A name in the path of a request must not end the path.
    if name.is_empty() || name.len() > MAX_OBJECT_NAME || !name.chars().all(is_plain) {
        let allowed = "at most 63 lower-case letters, digits and hyphens are allowed";
        return section.not_allowed("deployment", &format!("{name:?}"), allowed);
    }
    if !format!("{name}-").starts_with(prefix) {
        let allowed = format!(
            "its pods are named {name}-…, but workers of the pool have the prefix {prefix:?}; workers = \"{name}-\" is allowed"
        );
        return section.not_allowed("deployment", &format!("{name:?}"), &allowed);
    }
    Ok(name.to_owned())
}

/// Reads a list of arguments.
fn arguments(section: &Section<'_>, key: &str) -> Result<Option<Vec<String>>, FieldError> {
    let allowed = "a list of up to 1000 texts is allowed, as in [\"--memory\", \"2GB\"]";
    let list = section.list(key, allowed, |value| value.as_str())?;
    match list {
        Some(list) if list.len() > MAX_ARGUMENTS || list.iter().any(|text| text.contains('\0')) => {
            section.not_allowed(key, &format!("{} texts", list.len()), allowed)
        }
        list => Ok(list.map(|list| list.into_iter().map(str::to_owned).collect())),
    }
}
