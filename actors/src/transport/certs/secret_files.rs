//! Files for secrets: readable by their owner only, published atomically, and never overwritten.

use super::CertsError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum length of a file, 1 MiB. Certificates and keys take some hundred bytes each.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Creates a folder that only its owner can enter, and missing parents with the usual mode. An existing folder keeps its
/// mode.
///
/// # Errors
/// Returns [`CertsError::File`].
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

/// Writes a new file of mode 0600. At the return, its content and its name are on disk. After a crash, the file is complete
/// or missing.
///
/// # Errors
/// Returns [`CertsError::Exists`] if the file exists, whichever process created it, and [`CertsError::File`].
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), CertsError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = temporary(path, content).and_then(|temporary| {
        // Unlike a rename, a link fails if the name exists.
        let linked = fs::hard_link(&temporary, path);
        let removed = fs::remove_file(&temporary);
        // The new name must be on disk before the caller relies on the file.
        linked.and(removed).and_then(|()| File::open(folder)?.sync_all())
    });
    written.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => CertsError::Exists(path.to_owned()),
        _ => CertsError::File { path: path.to_owned(), source },
    })
}

/// Writes and syncs a temporary file beside `path`. Its name contains the process id. The file of a crashed process with the
/// same id is removed first.
fn temporary(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Always a new file, because the mode of an existing one would stay.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // The caller gets the first error. Removing the file is best effort.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(temporary)
}

/// Reads a file of at most 1 MiB.
///
/// # Errors
/// Returns [`CertsError::File`], and [`CertsError::Content`] for a longer file.
pub fn read(path: &Path) -> Result<Vec<u8>, CertsError> {
    let fail = |source| CertsError::File { path: path.to_owned(), source };
    let mut content = Vec::new();
    let file = File::open(path).map_err(fail)?;
    // One byte more than allowed distinguishes a file of maximum length from a longer one.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(fail)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        let what = format!("more than {MAX_FILE_BYTES} bytes; a certificate or key is allowed");
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
    fn failed_read_or_write_names_the_path() {
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
