//! Digests of image files: BLAKE3 of the content. A slide in several files has one digest of all of them.

use pleach_dispatch::content_digest::digest_of_files;
use pleach_slides::files_of;
use std::path::Path;

/// Returns the BLAKE3 digest of a file's content. For a slide in several files, the digest covers all of them
/// and is independent of the name of the index file. `None` if a file cannot be read.
pub fn digest(path: &Path) -> Option<[u8; 32]> {
    let files = files_of(path).ok()?;
    let [first, others @ ..] = &files[..] else { return None };
    let first = content_digest(first)?;
    let others =
        others.iter().map(|file| Some((file.file_name()?.as_encoded_bytes(), content_digest(file)?)));
    Some(digest_of_files(first, others.collect::<Option<Vec<_>>>()?))
}

/// Returns the BLAKE3 digest of one file's content. `None` if it cannot be read.
pub(crate) fn content_digest(path: &Path) -> Option<[u8; 32]> {
    let mut hash = blake3::Hasher::new();
    hash.update_reader(std::fs::File::open(path).ok()?).ok()?;
    Some(*hash.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_a_slide_covers_all_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.vms", "ImageFile=1.jpg\nImageFile(1,0)=2.jpg");
        write("1.jpg", "one");
        let digest_of = |name: &str| digest(&folder.path().join(name));
        assert_eq!(digest_of("a.vms"), None, "one is missing");
        write("2.jpg", "two");
        let before = digest_of("a.vms").unwrap();
        let unread = folder.path().join("3.jpg");
        std::fs::write(unread, "three").unwrap();
        std::fs::copy(folder.path().join("a.vms"), folder.path().join("b.vms")).unwrap();
        assert_eq!((digest_of("a.vms"), digest_of("b.vms")), (Some(before), Some(before)));
        for (name, text) in [("2.jpg", "tow"), ("1.jpg", "two"), ("a.vms", "ImageFile=2.jpg")] {
            write(name, text);
            assert_ne!(digest_of("a.vms"), Some(before), "{name}");
        }
        assert_eq!(digest_of("1.jpg"), Some(*blake3::hash(b"two").as_bytes()), "one file is its content");
    }
}
