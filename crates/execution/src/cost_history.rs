//! Learned costs of operations, and the learned overhead of a bucket, kept for later plans in the folder of a task cache or in the state directory of a manager.
//!
//! Costs affect plans but no results, so unreadable costs are ignored. If two studies learn concurrently, the
//! costs learned from more runs win. [`CostModel`] of `pleach-dispatch` learns the costs.

use pleach_dispatch::cost_model::CostModel;
use pleach_storage::files::private;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// File in the folder of a cache or of a manager's state: a line with a digest of the other lines, then one line per learned
/// cost.
pub const NAME: &str = "costs";

/// First word of the file. Its number increases when the meaning of the lines changes.
pub const FORMAT: &str = "pleach-costs-1";

/// Returns the costs learned by earlier studies. Empty if the file is missing or corrupt.
pub fn read(folder: &Path) -> CostModel {
    verify(folder).ok().flatten().unwrap_or_default()
}

/// As [`read`], but returns `None` if the file is corrupt.
///
/// # Errors
/// Returns the I/O error, also if the file is missing.
pub fn verify(folder: &Path) -> io::Result<Option<CostModel>> {
    let file = File::open(folder.join(NAME))?;
    // Waits for a writer, which replaces the content in place.
    file.lock_shared()?;
    Ok(parse(&text(file)?))
}

/// Merges the costs that a study has learned into the file. The exclusive file lock spans reading and
/// writing, so that concurrent studies do not overwrite each other's costs.
///
/// # Errors
/// Returns the I/O error. After a failed write, the earlier costs are lost, because the digest no longer
/// matches.
pub fn store(folder: &Path, learned: &CostModel) -> io::Result<()> {
    let path = folder.join(NAME);
    let mut file = private::options().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    // Read under the lock: another study may have stored costs since this one began.
    let mut costs = parse(&text(&file)?).unwrap_or_default();
    costs.merge(learned);
    let lines = costs.lines().join("\n");
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{FORMAT} {}\n{lines}", blake3::hash(lines.as_bytes()).to_hex()).as_bytes())
}

/// Returns the text of a file. Empty if it is not UTF-8.
fn text(mut file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// Returns `None` if the digest does not match.
fn parse(text: &str) -> Option<CostModel> {
    let (head, lines) = text.split_once('\n').unwrap_or_default();
    let whole = head == format!("{FORMAT} {}", blake3::hash(lines.as_bytes()).to_hex());
    whole.then(|| CostModel::of_lines(lines.lines()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_study::builtin;
    use pleach_workflow::Value;

    fn learned(runs: usize, seconds: f64) -> CostModel {
        let registry = builtin::registry();
        let operation = registry.get("nuclei.background", 1).unwrap();
        let arguments: Vec<Value> = operation.arguments().iter().map(|_| Value::Integer(4)).collect();
        let mut costs = CostModel::default();
        (0..runs).for_each(|_| costs.observe(operation.as_ref(), &arguments, 1000, seconds));
        costs
    }

    #[test]
    fn cost_history_is_read_by_the_next_study() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), CostModel::default());
        store(folder.path(), &learned(3, 2.0)).unwrap();
        assert_eq!(read(folder.path()), learned(3, 2.0));
        // Of two models, the one learned from more runs wins.
        store(folder.path(), &learned(2, 1.0)).unwrap();
        assert_eq!(read(folder.path()), learned(3, 2.0));
        store(folder.path(), &learned(9, 1.0)).unwrap();
        assert_eq!(read(folder.path()), learned(9, 1.0));
    }

    #[test]
    fn corrupt_cost_history_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), &learned(3, 2.0)).unwrap();
        let path = folder.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &[0xff; 100], b"", b"pleach-costs-1 \nx"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(folder.path()), CostModel::default());
        }
        store(folder.path(), &learned(1, 2.0)).unwrap();
        assert_eq!(read(folder.path()), learned(1, 2.0));
    }
}
