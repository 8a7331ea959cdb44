//! Tests of the operating system's files.

use super::*;

#[test]
fn folders_are_made_with_those_around_them() {
    let place = std::env::temp_dir().join(format!("pleach-files-{}", std::process::id()));
    let within = place.join("a/b");
    OsFileSystem.create_folders(&within).unwrap();
    OsFileSystem.create_folders(&within).unwrap();
    assert!(OsFileSystem.metadata(&within).unwrap().is_folder);
    let file = within.join("file");
    OsFileSystem.create(&file).unwrap().write_all(b"text").unwrap();
    assert_eq!(OsFileSystem.create_folders(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(
        OsFileSystem.create_folders(&file.join("c")).unwrap_err().kind(),
        io::ErrorKind::NotADirectory
    );

    let files: [(&dyn FileSystem, _); 2] =
        [(&OsFileSystem, "disk"), (&UnsyncedFileSystem(std::sync::Arc::new(OsFileSystem)), "unsynced")];
    for (files, name) in files {
        let path = within.join(name);
        let open = |how| files.open_random_access(&path, how);
        assert_eq!(open(OpenMode::Write).unwrap_err().kind(), io::ErrorKind::NotFound);
        let made = open(OpenMode::Create).unwrap();
        assert_eq!(open(OpenMode::Create).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        made.write_at(b"text", 2).unwrap();
        made.sync().unwrap();
        made.set_length(5).unwrap();
        let (read, mut bytes) = (open(OpenMode::Read).unwrap(), [9; 8]);
        assert_eq!((read.length().unwrap(), read.read_at(&mut bytes, 1).unwrap()), (5, 4));
        assert_eq!(&bytes[..4], b"\0tex");
        assert!(read.write_at(b"x", 0).is_err());
        // Only one open file holds the lock at a time.
        made.lock().unwrap();
        assert!(!read.try_lock().unwrap());
        made.unlock().unwrap();
        assert!(read.try_lock().unwrap());
        drop(read);
        assert!(made.try_lock().unwrap());
    }
    fs::remove_dir_all(place).unwrap();
}
