//! Operations of installed distributions, found through their entry points without importing them.

use crate::python::environment;
use pleach_external::{ExternalOperation, Pool, load};
use pleach_regions::DataRegion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MANIFEST: &str = "[[operation]]\nname = \"python:mypipe.inner.double\"\nversion = 1\n\
                        inputs = [{ name = \"in\", type = \"scalar\" }]\n\
                        outputs = [{ name = \"out\", type = \"scalar\" }]\n";

/// An environment with a distribution `my-pipe`, of package `mypipe`.
struct Installed {
    folder: TempDir,
}

impl Installed {
    /// Makes the environment. Its other distributions are those of `scripts/install-python`. `None` if tests of Python are skipped.
    fn new(test: &str) -> Option<Self> {
        let others = libraries(&environment(test)?);
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(folder.path()).status();
        assert!(made.unwrap().success());
        let installed = Self { folder };
        installed.write("others.pth", others.to_str().unwrap());
        installed.write("mypipe/__init__.py", "raise SystemExit('imported before its operations run')\n");
        installed.write("mypipe/inner.py", "def double(x):\n    return 2 * x\n");
        installed.write("mypipe/pleach.toml", MANIFEST);
        installed
            .write("my_pipe-1.5.dist-info/METADATA", "Metadata-Version: 2.1\nName: my_pipe\nVersion: 1.5\n");
        let record =
            "mypipe/__init__.py,sha256=1,1\nmypipe/inner.py,sha256=2,1\n../../../bin/tool,sha256=3,1\n";
        installed.write("my_pipe-1.5.dist-info/RECORD", record);
        installed.points("[pleach.operations]\nmypipe = mypipe\n");
        Some(installed)
    }

    fn write(&self, file: &str, content: &str) {
        let file = libraries(self.folder.path()).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn points(&self, text: &str) {
        self.write("my_pipe-1.5.dist-info/entry_points.txt", text);
    }

    fn load(&self) -> Result<Vec<ExternalOperation>, String> {
        let found = load(Path::new("distribution:my.pipe"), Some(self.folder.path()), &Pool::new());
        found.map_err(|error| error.to_string())
    }
}

/// Returns the folder of the distributions of an environment.
fn libraries(environment: &Path) -> PathBuf {
    let version = fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap();
    version.path().join("site-packages")
}

#[test]
fn operations_of_a_distribution_run() {
    let Some(installed) = Installed::new("operations_of_a_distribution_run") else { return };
    let first = installed.load().unwrap().remove(0);
    let Err(error) = first.operation.run(&[&DataRegion::Scalar(2.0)], &[]) else {
        panic!("it is imported now")
    };
    assert!(error.to_string().contains("imported before its operations run"), "{error}");
    installed.write("mypipe/__init__.py", "");
    let operation = installed.load().unwrap().remove(0).operation;
    assert!(operation.name().starts_with("python:mypipe.inner.double@"), "{}", operation.name());
    let result = operation.run(&[&DataRegion::Scalar(2.0)], &[]).unwrap();
    assert!(matches!(result[..], [DataRegion::Scalar(4.0)]), "{result:?}");
}

#[test]
fn identity_is_that_of_the_distribution() {
    let Some(installed) = Installed::new("identity_is_that_of_the_distribution") else { return };
    let first = installed.load().unwrap().remove(0).identity;
    assert!(first.0.contains_key("numpy") && first.0["my-pipe"].starts_with("1.5 "), "{first:?}");
    let record = "mypipe/__init__.py,sha256=1,1\nmypipe/inner.py,sha256=2,1\n../../../bin/tool,sha256=4,1\n";
    installed.write("my_pipe-1.5.dist-info/RECORD", record);
    assert_eq!(installed.load().unwrap()[0].identity, first, "a script has the path of its environment");
    installed.write("my_pipe-1.5.dist-info/RECORD", &record.replace("=2", "=5"));
    let edited = installed.load().unwrap().remove(0).identity;
    assert_eq!(edited.differences(&first), ["my-pipe changed"]);
}

#[test]
fn missing_manifests_are_named() {
    let Some(installed) = Installed::new("missing_manifests_are_named") else { return };
    let fails = |text: &str| {
        let found = installed.load().unwrap_err();
        assert!(found.contains("distribution my.pipe: ") && found.contains(text), "{found}");
    };
    installed.points("[other]\nmypipe = mypipe\n");
    fails("0 entry points of the group pleach.operations; 1 is allowed");
    installed.points("[pleach.operations]\nmypipe = nothing\n");
    fails("the entry point names nothing; a package with pleach.toml is allowed");
    installed.points("[pleach.operations]\nmypipe = mypipe.inner\n");
    fails("mypipe/inner/pleach.toml is missing; the package of the entry point must have it");
    let other = load(Path::new("distribution:absent"), Some(installed.folder.path()), &Pool::new());
    let text = other.unwrap_err().to_string();
    assert!(text.contains("distribution absent: not installed; install with"), "{text}");
}
