//! Commands, loaded from manifests and run through the trait `Operation`.
//!
//! Programs are scripts of `sh` that the manifest lists as files, and one program in C, which grows.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

#[path = "commands/formats.rs"]
mod formats;
#[path = "commands/limits.rs"]
mod limits;
#[path = "commands/manifests.rs"]
mod manifests;

use pleach_external::{ExternalError, ExternalOperation, Pool};
use pleach_regions::DataRegion;
use pleach_workflow::{Value, ValueType};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// 30 s: maximum wait for an effect that takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// A package with one operation.
struct Package {
    folder: TempDir,
}

impl Package {
    /// Creates a package whose operation `exec:test` runs this script with these words.
    fn new(script: &str, words: &[&str], rest: &str) -> Self {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let command = format!("command = [\"sh\", \"script.sh\", {}]", words.join(", "));
        Self::of(script, &format!("{command}\nfiles = [\"script.sh\"]\n{rest}"))
    }

    /// Creates a package with this entry.
    fn of(script: &str, entry: &str) -> Self {
        let package = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(package.path("script.sh"), script).unwrap();
        let entry = format!("[[operation]]\nname = \"exec:test\"\nversion = 1\n{entry}\n");
        std::fs::write(package.path("pleach.toml"), entry).unwrap();
        package
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_load(&self) -> Result<ExternalOperation, ExternalError> {
        let loaded = pleach_external::load(&self.path("pleach.toml"), None, &Pool::new())?;
        assert_eq!(loaded.len(), 1);
        Ok(loaded.into_iter().next().unwrap())
    }

    fn load(&self) -> ExternalOperation {
        self.try_load().unwrap()
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, String> {
        self.load().operation.run(inputs, arguments).map_err(|error| error.to_string())
    }

    /// Returns the error of loading.
    fn mistake(&self) -> String {
        self.try_load().unwrap_err().to_string()
    }
}

/// Waits until `condition` holds.
fn eventually(text: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "{text}");
        std::thread::yield_now();
    }
}

/// Returns whether a process runs. One that its parent has not reaped does not.
fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Returns the words of a file that a script writes.
fn words(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

const SCALAR_OUT: &str = "outputs = [{ name = \"out\", type = \"scalar\" }]";

#[test]
fn words_arrive_without_a_shell() {
    let script = "for word; do printf '<%s>' \"$word\"; done > \"$1.words\"; cat \"$1.words\" >&2; exit 7";
    let rest = r#"
        outputs = [{ name = "out", type = "scalar" }]
        arguments = [{ name = "level", type = "real", low = 0, high = 1 },
                     { name = "count", type = "integer", low = 0, high = 9 },
                     { name = "mode", choices = { 1 = "two words $(touch hacked)", 2 = "*" } }]
        constants = { flag = true, text = "it's \"quoted\"", half = 0.5 }"#;
    let words = ["{out}", "a={level}%", "{count}{count}", "{mode}", "{{x}}", "{flag},{text},{half}", ""];
    let package = Package::new(script, &words, rest);
    let arguments = [Value::from_f64(0.1, ValueType::Real).unwrap(), Value::Integer(4), Value::Integer(1)];
    let error = package.run(&[], &arguments).unwrap_err();
    let wanted = "<a=0.1%><44><two words $(touch hacked)><{x}><true,it's \"quoted\",0.5><>";
    assert!(error.ends_with(&format!("/out.csv>{wanted}")), "{error}");
    let error = package.run(&[], &[arguments[0], arguments[1], Value::Integer(2)]).unwrap_err();
    assert!(error.contains("<*>"), "{error}");
}

#[test]
fn environment_is_plain_and_input_is_empty() {
    let script = r#"
        test "$PWD" = "$2" && test "$TMPDIR" = "$2" && test "$OMP_NUM_THREADS" = 1 && test "$OWN" = x || exit 1
        test -z "$CARGO_MANIFEST_DIR" || exit 2
        test "$(readlink /proc/self/fd/0)" = /dev/null || exit 3
        echo 1 > "$1""#;
    let package =
        Package::new(script, &["{out}", "{folder}"], &format!("{SCALAR_OUT}\nenv = {{ OWN = \"x\" }}"));
    assert_eq!(package.run(&[], &[]), Ok(vec![DataRegion::Scalar(1.0)]));
}

#[test]
fn seed_is_that_of_the_arguments() {
    let rest = format!(
        "{SCALAR_OUT}\ndeterminism = \"seeded\"\narguments = [{{ name = \"n\", type = \"integer\", values = [1, 2] }}]"
    );
    let package = Package::new("echo $2 > $1", &["{out}", "{seed}"], &rest);
    let operation = package.load().operation;
    let seed = |n| operation.run(&[], &[Value::Integer(n)]).unwrap();
    assert_eq!(seed(1), seed(1));
    assert_ne!(seed(1), seed(2));
}

#[test]
fn failure_has_status_and_output_and_is_not_repeated() {
    let script = "echo run >> $2; echo on stdout; echo on stderr >&2; exit 3";
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let package = Package::new(script, &["{out}", runs.to_str().unwrap()], SCALAR_OUT);
    let error = package.run(&[], &[]).unwrap_err();
    assert_eq!(error, "the command ended with status 3; its last output:\non stdout\non stderr");
    assert_eq!(words(&runs), ["run"]);
}

#[test]
fn signal_is_repeated_once() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let always = Package::new("echo run >> $2; kill -9 $$", &["{out}", runs.to_str().unwrap()], SCALAR_OUT);
    let error = always.run(&[], &[]).unwrap_err();
    assert_eq!(error, "the process ended with signal 9 (SIGKILL)");
    assert_eq!(words(&runs), ["run", "run"]);
    // A second run may succeed.
    let script = "test -e $2.first || { touch $2.first; kill -9 $$; }; echo 2 > $1";
    let once = Package::new(script, &["{out}", runs.to_str().unwrap()], SCALAR_OUT);
    assert_eq!(once.run(&[], &[]), Ok(vec![DataRegion::Scalar(2.0)]));
}

#[test]
fn folder_is_removed_and_children_of_a_success_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let script = "sleep 1000 & echo $! $PWD > $2; echo 1 > $1";
    let package = Package::new(script, &["{out}", notes.to_str().unwrap()], SCALAR_OUT);
    assert!(package.run(&[], &[]).is_ok());
    let notes = words(&notes);
    eventually("the child ends", || !is_running(&notes[0]));
    assert!(notes[1].contains("/pleach-external-") && !Path::new(&notes[1]).exists(), "{notes:?}");
}

#[test]
fn tasks_run_beside_each_other() {
    // Each waits for the other's file.
    let folder = tempfile::tempdir().unwrap();
    let script = "touch $2/$3; until test -e $2/$4; do :; done; echo 1 > $1";
    let rest = format!(
        "{SCALAR_OUT}\narguments = [{{ name = \"own\", type = \"integer\", values = [1, 2] }},
                                    {{ name = \"other\", type = \"integer\", values = [1, 2] }}]"
    );
    let words = ["{out}", folder.path().to_str().unwrap(), "{own}", "{other}"];
    let operation = Package::new(script, &words, &rest);
    let loaded = operation.load().operation;
    std::thread::scope(|scope| {
        let run = |own, other| loaded.run(&[], &[Value::Integer(own), Value::Integer(other)]).unwrap();
        let first = scope.spawn(move || run(1, 2));
        assert_eq!(run(2, 1), first.join().unwrap());
    });
}
