//! The files of a slide in one folder, by the names that they have at their owner's: what reads such a slide finds one file by
//! the name of another.
//!
//! They are links to where each lies here, in a folder that is called by the digest of all of them. Whether they still hold what
//! they did is not looked at.

use pleach_dispatch::message::FileContent;
use pleach_storage::files::private;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the name of the folder of a slide ends with, behind its digest.
const SUFFIX: &str = "slide";

/// Tells links apart that are being made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The digest of a slide by those of its files: the one that it is named by, and the others with their names, in the order of
/// these. One file has its own.
#[must_use]
pub fn digest_of_files<'a>(
    first: [u8; 32],
    others: impl IntoIterator<Item = (&'a [u8], [u8; 32])>,
) -> [u8; 32] {
    let mut others = others.into_iter().peekable();
    if others.peek().is_none() {
        return first;
    }
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach slide 1").update(&first);
    for (name, digest) in others {
        hash.update(&(name.len() as u64).to_le_bytes()).update(name).update(&digest);
    }
    *hash.finalize().as_bytes()
}

/// BLAKE3 of a file's content; with companions, of all that the slide is made of, by whichever name of its own and of its
/// folder.
#[must_use]
pub fn digest_of_all(file: &FileContent) -> [u8; 32] {
    let others = file.companions.iter().map(|companion| {
        let name = companion.name.rsplit('/').next().unwrap_or_default();
        (name.as_bytes(), companion.digest)
    });
    digest_of_files(file.digest, others)
}

/// Name of the folder in which [`gather`] links the files of a slide. `None` for one file.
#[must_use]
pub fn gathered(file: &FileContent) -> Option<String> {
    let digest = blake3::Hash::from_bytes(digest_of_all(file)).to_hex();
    (!file.companions.is_empty()).then(|| format!("{digest}.{SUFFIX}"))
}

/// Where a file can be read whose parts, in their order, lie in `places`: there, if it is one or all are where its owner has
/// them, and otherwise in `folder`, where links to them are made.
///
/// # Errors
/// When they cannot be made.
pub fn gather(folder: &Path, file: &FileContent, mut places: Vec<PathBuf>) -> io::Result<PathBuf> {
    let is_at_owners = file.parts().zip(&places).all(|(part, place)| Path::new(&part.path) == place);
    let Some(name) = gathered(file).filter(|_| !is_at_owners) else {
        return Ok(places.swap_remove(0));
    };
    let named = Path::new(&file.path).file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let slide = folder.join(name).join(named);
    let names = file.companions.iter().map(|companion| slide.with_file_name(&companion.name));
    for (name, place) in std::iter::once(slide.clone()).chain(names).zip(&places) {
        link(&name, &place.canonicalize()?)?;
    }
    Ok(slide)
}

/// Makes a link, unless it is there; one to elsewhere is replaced at once.
fn link(name: &Path, place: &Path) -> io::Result<()> {
    if fs::read_link(name).is_ok_and(|found| found == place) {
        return Ok(());
    }
    let folder = name.parent().ok_or(io::ErrorKind::InvalidInput)?;
    private::create_folders(folder)?;
    // Of another process as well, which may have been killed while it made one.
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let part = folder.join(format!("{}.{number}.part", std::process::id()));
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => symlink(place, &part)?,
    }
    fs::rename(&part, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::message::Companion;

    #[test]
    fn files_lie_together_by_their_names() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let companion = |name: &str| Companion { name: name.to_owned(), digest: [1; 32], bytes: 1 };
        let mut file = FileContent {
            path: "/away/a.mrxs".to_owned(),
            digest: [2; 32],
            bytes: 1,
            companions: vec![companion("a/1"), companion("a/2")],
        };
        let places = vec![write("x", "named"), write("y", "one"), write("z", "two")];
        let folder = place.path().join("kept");
        let slide = gather(&folder, &file, places.clone()).unwrap();
        let read = |name: &str| fs::read_to_string(slide.with_file_name(name)).unwrap();
        assert_eq!([read("a.mrxs"), read("a/1"), read("a/2")], ["named", "one", "two"]);
        // One of them lies elsewhere by now.
        let moved = [places[0].clone(), write("w", "one, again"), places[2].clone()];
        assert_eq!(gather(&folder, &file, moved.to_vec()).unwrap(), slide);
        assert_eq!([read("a.mrxs"), read("a/1"), read("a/2")], ["named", "one, again", "two"]);
        assert_eq!(fs::read_dir(slide.with_file_name("a")).unwrap().count(), 2);
        // All of them lie where they should, or it is one file.
        let own = ["a.mrxs", "a/1", "a/2"].map(|name| Path::new("/away").join(name));
        assert_eq!(gather(&folder, &file, own.to_vec()).unwrap(), own[0]);
        file.companions.clear();
        assert_eq!(gather(&folder, &file, vec![places[0].clone()]).unwrap(), places[0]);
    }
}
