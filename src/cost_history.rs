//! What operations took in earlier studies: kept in the folder of a cache, so that later plans weigh buckets by it.
//!
//! Advice, not results: what cannot be read is forgotten, and of two studies that learn at the same time the one that has
//! seen more runs is believed. What is learned, and how, is `pleach-dispatch`'s ([`CostModel`]).

use pleach_dispatch::cost_model::CostModel;
use pleach_storage::files::private;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// The file in the cache's folder: a line with a digest of the others, then a line for each thing known.
const NAME: &str = "costs";

/// The first word of the file. The number is raised when the lines change their meaning.
const FORMAT: &str = "pleach-costs-1";

/// What the studies of a cache have learned; nothing where there is no such file, or it is damaged.
pub(crate) fn read(cache: &Path) -> CostModel {
    let open = || {
        let file = File::open(cache.join(NAME))?;
        file.lock_shared()?;
        text(file)
    };
    open().map_or_else(|_: io::Error| CostModel::default(), |text| parse(&text))
}

/// Keeps what a study has learned beside what others have in the meantime.
///
/// # Errors
/// What the system says; what was kept before is then as good as lost.
pub(crate) fn keep(cache: &Path, learned: &CostModel) -> io::Result<()> {
    let path = cache.join(NAME);
    let mut file = private::options().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    let mut costs = parse(&text(&file)?);
    costs.merge(learned);
    let lines = costs.lines().join("\n");
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{FORMAT} {}\n{lines}", blake3::hash(lines.as_bytes()).to_hex()).as_bytes())
}

/// All of a file; none of what is no text.
fn text(mut file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

fn parse(text: &str) -> CostModel {
    let (head, lines) = text.split_once('\n').unwrap_or_default();
    let whole = head == format!("{FORMAT} {}", blake3::hash(lines.as_bytes()).to_hex());
    if whole { CostModel::of_lines(lines.lines()) } else { CostModel::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
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
    fn what_was_learned_is_there_for_the_next_study() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), CostModel::default());
        keep(folder.path(), &learned(3, 2.0)).unwrap();
        assert_eq!(read(folder.path()), learned(3, 2.0));
        // Of two, the one that has seen more.
        keep(folder.path(), &learned(2, 1.0)).unwrap();
        assert_eq!(read(folder.path()), learned(3, 2.0));
        keep(folder.path(), &learned(9, 1.0)).unwrap();
        assert_eq!(read(folder.path()), learned(9, 1.0));
    }

    #[test]
    fn damage_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), &learned(3, 2.0)).unwrap();
        let path = folder.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &[0xff; 100], b"", b"pleach-costs-1 \nx"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(folder.path()), CostModel::default());
        }
        keep(folder.path(), &learned(1, 2.0)).unwrap();
        assert_eq!(read(folder.path()), learned(1, 2.0));
    }
}
