//! `pleach workflow new`: writes the folder of a workflow of built-in operations, or of a pipeline in Python. Both run at once.

use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use std::io;
use std::path::Path;

/// Files of a workflow of built-in operations, with `NAME` for its name.
const JSON_FILES: [(&str, &str); 8] = [
    ("workflow.json", include_str!("new/json/workflow.json")),
    ("normalization.json", include_str!("new/json/normalization.json")),
    ("objects.json", include_str!("new/json/objects.json")),
    ("comparison.json", include_str!("new/json/comparison.json")),
    ("object-comparison.json", include_str!("new/json/object-comparison.json")),
    ("study.toml", include_str!("new/json/study.toml")),
    ("README.md", include_str!("new/json/README.md")),
    (".gitignore", include_str!("new/template/gitignore")),
];

/// Files of a pipeline in Python.
const PYTHON_FILES: [(&str, &str); 10] = [
    ("density.py", include_str!("new/template/density.py")),
    ("measure.py", include_str!("new/template/measure.py")),
    ("pleach.toml", include_str!("new/template/pleach.toml")),
    ("workflow.json", include_str!("new/template/workflow.json")),
    ("stage.json", include_str!("new/template/stage.json")),
    ("study.toml", include_str!("new/template/study.toml")),
    ("requirements.txt", include_str!("new/template/requirements.txt")),
    ("README.md", include_str!("new/template/README.md")),
    ("tests/test_pipeline.py", include_str!("new/template/tests/test_pipeline.py")),
    (".gitignore", include_str!("new/template/gitignore")),
];

/// Runs the command.
pub(super) fn execute(folder: &Path, python: bool) -> CommandResult {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !name.chars().all(is_allowed) || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err(CommandError::Input(format!(
            "{}: not allowed as a name; letters, digits, \"-\" and \"_\" are allowed, the first a letter",
            folder.display()
        )));
    }
    // An existing folder is the user's.
    let files: &[(&str, &str)] = if python { &PYTHON_FILES } else { &JSON_FILES };
    create(folder, name, files).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CommandError::Input(format!("{}: exists; a new folder is allowed", folder.display()))
        }
        _ => CommandError::writing(format_args!("{}: failed to write", folder.display()), &error),
    })?;
    print_line(&format!("{}: {} files; README.md has the next steps", folder.display(), files.len()));
    Ok(())
}

/// Creates the folder with its files. Leaves nothing behind on failure.
fn create(folder: &Path, name: &str, files: &[(&str, &str)]) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    let write = || {
        files.iter().try_for_each(|(file, text)| {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(path, text.replace("NAME", name))
        })
    };
    write().inspect_err(|_| {
        // The first error is the one to report.
        let _ = std::fs::remove_dir_all(folder);
    })
}
