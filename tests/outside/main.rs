//! External models: samples as files, and responses from files in all supported forms.

mod bad_input;
mod dakota;
#[path = "../support/data.rs"]
mod data;
mod doubts;
mod methods;
#[path = "../support/pleach.rs"]
mod pleach;
mod plots;
mod readme;
#[path = "../support/results.rs"]
mod results;
mod starts;
mod studies;
#[path = "../support/study.rs"]
mod study;

use pleach::pleach;
use serde_json::Value;
use std::f64::consts::PI;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The problem of Ishigami's function in SALib's format.
const ISHIGAMI: &str = r#"{"num_vars": 3, "names": ["x1", "x2", "x3"],
 "bounds": [[-3.141592653589793, 3.141592653589793], [-3.141592653589793, 3.141592653589793], [-3.141592653589793, 3.141592653589793]]}"#;

fn ishigami(x: &[f64]) -> f64 {
    x[0].sin() + 7.0 * x[1].sin().powi(2) + 0.1 * x[2].powi(4) * x[0].sin()
}

/// First-order and total indices of x1, x2 and x3 in closed form.
fn truth() -> [[f64; 2]; 3] {
    let pi4 = PI.powi(4);
    let variance = 49.0 / 8.0 + 0.1 * pi4 / 5.0 + 0.01 * pi4 * pi4 / 18.0 + 0.5;
    let first = 0.5 * (1.0 + 0.1 * pi4 / 5.0).powi(2) / variance;
    let second = 49.0 / 8.0 / variance;
    let both = 0.01 * pi4 * pi4 * (1.0 / 18.0 - 1.0 / 50.0) / variance;
    [[first, first + both], [second, second], [0.0, both]]
}

/// The folder of an external model.
struct Outside(TempDir);

impl Outside {
    /// A folder with Ishigami's problem.
    fn ishigami() -> Self {
        let outside = Self(tempfile::tempdir().expect("a folder"));
        outside.write("problem.json", ISHIGAMI);
        outside
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file written");
    }

    fn read(&self, name: &str) -> String {
        results::text(&self.path(name))
    }

    /// Runs `pleach` with these words. Returns its standard output.
    #[track_caller]
    fn done(&self, words: &str) -> String {
        pleach(self.folder(), &words.split_whitespace().collect::<Vec<_>>()).done()
    }

    /// As [`Self::done`], for a JSON document.
    #[track_caller]
    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{words} --json"))).expect("a JSON document")
    }

    /// Asserts exit code 2, one error line with this beginning, and no new files.
    #[track_caller]
    fn refused(&self, words: &str, expected: &str) {
        let before = fs::read_dir(self.folder()).expect("a folder").count();
        let answer = pleach(self.folder(), &words.split_whitespace().collect::<Vec<_>>());
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{words}: {answer:?}");
        let said = answer.stderr.strip_prefix("error: ").expect("an error");
        assert!(said.starts_with(expected), "{words} said:\n{said}\nbut wanted was:\n{expected}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(fs::read_dir(self.folder()).expect("a folder").count(), before, "{words} left something");
    }

    /// Rows of a CSV of samples, without the evaluation number.
    fn samples(&self, name: &str) -> Vec<Vec<f64>> {
        let rows = self.read(name);
        let row =
            |line: &str| line.split(',').skip(1).map(|field| field.parse().expect("a number")).collect();
        rows.lines().skip(1).map(row).collect()
    }

    /// Writes Ishigami's function of a CSV's samples as a CSV of one column in the same order.
    fn respond(&self, samples: &str, responses: &str) -> Vec<f64> {
        let values: Vec<f64> = self.samples(samples).iter().map(|x| ishigami(x)).collect();
        let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
        self.write(responses, format!("y\n{lines}"));
        values
    }
}

/// A number in the indices document: the first response, by parameter.
fn number(document: &Value, parameter: usize, path: &str) -> f64 {
    let at = format!("/responses/0/indices/parameters/{parameter}/{path}");
    document.pointer(&at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at} in {document}"))
}
