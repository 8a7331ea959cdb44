//! Python for external operations.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use pleach_external::Environment;

pub(super) fn check(args: &DoctorArgs, items: &mut Items) {
    let named = args.python.path();
    let environment = named.map_or_else(Environment::of_shell, Environment::at);
    let described = environment.and_then(|environment| Ok((environment.version()?, environment.interpreter)));
    match described {
        Ok((version, interpreter)) => items.ok("Python", format!("{version} at {}", interpreter.display())),
        // Only the environment that the user names is needed for certain.
        Err(error) if named.is_some() => {
            items.error("Python", error.to_string(), "name another environment by --python or PLEACH_PYTHON");
        }
        Err(error) => items.note(
            "Python",
            error.to_string(),
            "install Python 3.10 or later with numpy for operations in Python; nothing else needs it",
        ),
    }
}
