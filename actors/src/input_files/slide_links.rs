//! Files of a slide in one folder, under the names at their owner: readers of such a slide find one file by the name of
//! another.
//!
//! The folder contains links to the local files and is named by the digest of all of them. The links are created without
//! verifying the content.

use pleach_dispatch::message::FileContent;
use pleach_storage::files::private;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Suffix of a slide's folder name, after its digest.
const SUFFIX: &str = "slide";

/// Number of links created, for unique temporary names.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Returns the name of the folder where [`gather`] links the files of a slide. `None` for one file.
#[must_use]
pub fn gathered(file: &FileContent) -> Option<String> {
    let digest = blake3::Hash::from_bytes(file.digest_of_all()).to_hex();
    (!file.companions.is_empty()).then(|| format!("{digest}.{SUFFIX}"))
}

/// Returns a readable path of a slide with parts at `places`, in order. A single file, or files at their owner's paths, need
/// no links. Otherwise the function links them in `folder`.
///
/// # Errors
/// Returns an error if the links cannot be created.
pub fn gather(folder: &Path, file: &FileContent, mut places: Vec<PathBuf>) -> io::Result<PathBuf> {
    let is_at_owners = file.parts().zip(&places).all(|(part, place)| Path::new(&part.path) == place);
    let Some(name) = gathered(file).filter(|_| !is_at_owners) else {
        return Ok(places.swap_remove(0));
    };
    let named = Path::new(&file.path).file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let slide = folder.join(name).join(named);
    let names = file.companions.iter().map(|companion| slide.with_file_name(&companion.name));
    for (name, place) in std::iter::once(slide.clone()).chain(names).zip(&places) {
        // Absolute, because a relative target would be resolved in the folder of the link.
        link(&name, &place.canonicalize()?)?;
    }
    Ok(slide)
}

/// Creates a link if it is missing. A link with another target is replaced atomically.
fn link(name: &Path, place: &Path) -> io::Result<()> {
    if fs::read_link(name).is_ok_and(|found| found == place) {
        return Ok(());
    }
    let folder = name.parent().ok_or(io::ErrorKind::InvalidInput)?;
    private::create_folders(folder)?;
    // An earlier process with the same id may have been killed while it created a link of this number.
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let part = folder.join(format!("{}.{number}.part", std::process::id()));
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => symlink(place, &part)?,
    }
    // Unlike `symlink`, a rename replaces an existing link, and readers see the old or the new one.
    fs::rename(&part, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::message::Companion;

    #[test]
    fn slide_files_are_linked_into_one_folder() {
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
        // One of the files has moved.
        let moved = [places[0].clone(), write("w", "one, again"), places[2].clone()];
        assert_eq!(gather(&folder, &file, moved.to_vec()).unwrap(), slide);
        assert_eq!([read("a.mrxs"), read("a/1"), read("a/2")], ["named", "one, again", "two"]);
        assert_eq!(fs::read_dir(slide.with_file_name("a")).unwrap().count(), 2);
        // All files are at their owner's paths, or the slide is one file.
        let own = ["a.mrxs", "a/1", "a/2"].map(|name| Path::new("/away").join(name));
        assert_eq!(gather(&folder, &file, own.to_vec()).unwrap(), own[0]);
        file.companions.clear();
        assert_eq!(gather(&folder, &file, vec![places[0].clone()]).unwrap(), places[0]);
    }
}
