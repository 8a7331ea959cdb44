//! Files for secrets: for their owner alone, whole or not at all, and never overwritten.

use super::CertsError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest file read here. Certificates and keys take some hundreds of bytes each.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Makes a folder that only its owner can enter, and those above it as usual. One that is there stays as it is.
///
/// # Errors
/// [`CertsError::File`].
pub fn make_folder(folder: &Path) -> Result<(), CertsError> {
    let fail = |source| CertsError::File { path: folder.to_owned(), source };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(fail)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made.map_err(fail),
    }
}

/// Writes a file of mode 0600 that was not there before. When this returns, its content and its name are on disk;
/// after a crash it is there as a whole, or not at all.
///
/// # Errors
/// Returns [`CertsError::Exists`] if the file exists, whichever process created it, and [`CertsError::File`].
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), CertsError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = temporary(path, content).and_then(|temporary| {
        // A link, unlike a rename, fails where the name is taken.
        let linked = fs::hard_link(&temporary, path);
        let removed = fs::remove_file(&temporary);
        linked.and(removed).and_then(|()| File::open(folder)?.sync_all())
    });
    written.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => CertsError::Exists(path.to_owned()),
        _ => CertsError::File { path: path.to_owned(), source },
    })
}

/// A file beside `path` with its content, on disk. The name is this process's; what a crashed one of the same number
/// left behind is removed first.
fn temporary(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // The error is the one to report, not what follows from it.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(temporary)
}

/// Reads a file of at most 1 MiB.
///
/// # Errors
/// [`CertsError::File`] and, for a longer one, [`CertsError::Content`].
pub fn read(path: &Path) -> Result<Vec<u8>, CertsError> {
    let fail = |source| CertsError::File { path: path.to_owned(), source };
    let mut content = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(fail)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        let what = format!("more than {MAX_FILE_BYTES} bytes; it holds no certificate and no key");
        return Err(CertsError::Content { path: path.to_owned(), what });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_its_owners_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let file = folder.join("key");
        write_new(&file, b"first").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(write_new(&file, b"second"), Err(CertsError::Exists(path)) if path == file));
        assert_eq!(read(&file).unwrap(), b"first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn what_cannot_be_written_or_read_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, vec![0; (1 << 20) + 1]).unwrap();
        assert!(matches!(read(&file), Err(CertsError::Content { .. })));
        let below = file.join("key");
        for error in [write_new(&below, b"").unwrap_err(), make_folder(&below).unwrap_err()] {
            assert!(error.to_string().starts_with(place.path().to_str().unwrap()), "{error}");
        }
    }
}
