//! Small disks mounted in the namespace of one process. Other processes reach them through that process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A mounted disk. Dropping the value unmounts it.
pub(crate) struct Disk {
    /// Process that holds the mount namespace.
    holder: Child,
    folder: PathBuf,
    enter: &'static [&'static str],
}

impl Disk {
    /// Mounts a tmpfs of `megabytes` MB at `folder`. Returns `None` if the system denies mounts.
    pub(crate) fn tmpfs(folder: &Path, megabytes: u32) -> Option<Self> {
        let script = format!(r#"mount -t tmpfs -o size={megabytes}m tmpfs "$0" && echo there && exec cat"#);
        // Every user may mount in a user namespace.
        let enter = &["--user", "--mount", "--preserve-credentials"];
        Self::mounted(&["--mount", "--map-root-user"], &script, folder, enter)
    }

    /// Mounts a file with an ext4 file system, which becomes read-only on corruption. Only root can mount it.
    pub(crate) fn ext4(folder: &Path, megabytes: u32) -> Option<Self> {
        let make = format!("truncate -s {megabytes}M \"$0.image\" && mkfs.ext4 -q -F \"$0.image\"");
        let mount = r#"mount -o loop,errors=remount-ro "$0.image" "$0" && echo there && exec cat"#;
        Self::mounted(&["--mount"], &format!("{make} && {mount}"), folder, &["--mount"])
    }

    fn mounted(space: &[&str], script: &str, folder: &Path, enter: &'static [&'static str]) -> Option<Self> {
        fs::create_dir_all(folder).expect("a folder");
        let mut holder = Command::new("unshare")
            .args(space)
            .args(["sh", "-c", script])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut said = String::new();
        BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut said).expect("a line");
        let disk = Self { holder, folder: folder.to_owned(), enter };
        (said == "there\n").then_some(disk)
    }

    /// Command prefix that enters the mount namespace and the parent folder of the mount point, and executes its arguments.
    pub(crate) fn way(&self) -> Vec<String> {
        let (holder, here) =
            (self.holder.id().to_string(), self.folder.parent().expect("a folder").display());
        let enter = ["nsenter"].iter().chain(self.enter).copied();
        let rest = ["--target", &holder, "sh", "-c", r#"cd "$0" && exec "$@""#];
        enter.chain(rest).map(str::to_owned).chain([here.to_string()]).collect()
    }

    /// The folder as processes outside the namespace see it.
    pub(crate) fn seen(&self) -> PathBuf {
        let inside = self.folder.strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.holder.id().to_string()).join("root").join(inside)
    }

    /// Fills the disk to the last page. Returns the file.
    pub(crate) fn fill(&self) -> PathBuf {
        let filler = self.seen().join("filler");
        let mut file = File::create(&filler).expect("a file");
        let error = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        filler
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
