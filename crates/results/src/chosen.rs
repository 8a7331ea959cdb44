//! Chosen evaluation of a result folder: by number, or by its role among the extremes of a response.

use crate::folder;
use crate::folder::PLAN;
use pleach_workflow::{Parameter, Value};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// Roles of `run.json` that a choice may name.
const ROLES: [&str; 6] = ["best", "worst", "nearest", "farthest", "highest", "lowest"];

/// Choice of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationChoice {
    /// The defaults, which need no results.
    Default,
    /// The evaluation with a role, such as `best`.
    Role(&'static str),
    /// The evaluation of this number, from 1.
    Number(usize),
}

impl FromStr for EvaluationChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed =
            "a number of samples.csv, default, best, worst, nearest, farthest, highest or lowest is allowed";
        match text {
            "default" | "0" => Ok(Self::Default),
            text => match ROLES.iter().find(|role| **role == text) {
                Some(role) => Ok(Self::Role(role)),
                None => text.parse().map(Self::Number).map_err(|_| allowed),
            },
        }
    }
}

/// Chosen evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenEvaluation {
    /// Its number. 0 for the defaults.
    pub evaluation: usize,
    /// A value for each parameter.
    pub values: Vec<Value>,
}

/// The evaluation cannot be chosen.
#[derive(Debug, Error)]
pub enum ChoiceError {
    /// A result file cannot be read.
    #[error("--results {}: failed to read {name}: {cause}; the results folder of the study is allowed, or of one of its phases", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A result file is corrupt.
    #[error("--results {}: {name} is corrupt: {problem}", folder.display())]
    Corrupt {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: &'static str,
        /// The problem.
        problem: String,
    },
    /// The folder has results of another study.
    #[error("--results {}: holds results of study {found}; results of {study} are allowed", folder.display())]
    OtherStudy {
        /// The folder.
        folder: PathBuf,
        /// Name of its study.
        found: String,
        /// Name of the allowed study.
        study: String,
    },
    /// No evaluation has the role.
    #[error("--evaluation {role}: {}; {allowed}", response.as_ref().map_or_else(|| "no response has it".to_owned(), |name| format!("response {name} has no such evaluation")))]
    NoRole {
        /// The role.
        role: &'static str,
        /// The response.
        response: Option<String>,
        /// Allowed roles or responses.
        allowed: String,
    },
    /// The number is beyond the sample.
    #[error("--evaluation {number}: samples.csv has the evaluations 1 to {count}")]
    NoNumber {
        /// The number.
        number: usize,
        /// Number of evaluations.
        count: usize,
    },
}

#[derive(Deserialize)]
struct RunDocument {
    #[serde(default)]
    extremes: Vec<ResponseExtremes>,
}

#[derive(Deserialize)]
struct ResponseExtremes {
    response: String,
    evaluations: Vec<EvaluationRole>,
}

#[derive(Deserialize)]
struct EvaluationRole {
    role: String,
    evaluation: Option<usize>,
}

#[derive(Deserialize)]
struct PlanDocument {
    study: String,
}

/// Returns the chosen evaluation of a study's results. `response` selects the response of a role, the first of the study if it is
/// `None`.
///
/// # Errors
/// [`ChoiceError`] names the folder or the option.
pub fn choose(
    choice: EvaluationChoice,
    results: &Path,
    response: Option<&str>,
    study: &str,
    parameters: &[Parameter],
) -> Result<ChosenEvaluation, ChoiceError> {
    let evaluation = match choice {
        EvaluationChoice::Default => {
            let values = parameters.iter().map(|parameter| parameter.default).collect();
            return Ok(ChosenEvaluation { evaluation: 0, values });
        }
        EvaluationChoice::Number(number) => number,
        EvaluationChoice::Role(role) => with_role(role, results, response)?,
    };
    let plan: PlanDocument = read_json(results, PLAN)?;
    if plan.study != study {
        let (folder, found) = (results.to_owned(), plan.study);
        return Err(ChoiceError::OtherStudy { folder, found, study: study.to_owned() });
    }
    Ok(ChosenEvaluation { evaluation, values: row(evaluation, results, parameters)? })
}

/// Returns the digest of the study that owns the folder. `None` if it is not readable.
#[must_use]
pub fn digest_of(results: &Path) -> Option<String> {
    folder::study_of(&fs::read(results.join(PLAN)).ok()?).ok()
}

fn read(results: &Path, name: &'static str) -> Result<Vec<u8>, ChoiceError> {
    let unreadable = |cause| ChoiceError::Unreadable { folder: results.to_owned(), name, cause };
    fs::read(results.join(name)).map_err(unreadable)
}

fn read_json<T: for<'de> Deserialize<'de>>(results: &Path, name: &'static str) -> Result<T, ChoiceError> {
    serde_json::from_slice(&read(results, name)?).map_err(|error| ChoiceError::Corrupt {
        folder: results.to_owned(),
        name,
        problem: error.to_string(),
    })
}

fn with_role(role: &'static str, results: &Path, response: Option<&str>) -> Result<usize, ChoiceError> {
    let run: RunDocument = read_json(results, "run.json")?;
    let fail = |allowed: String| {
        Err(ChoiceError::NoRole { role, response: response.map(ToOwned::to_owned), allowed })
    };
    let of = match response {
        None => run.extremes.first(),
        Some(name) => match run.extremes.iter().find(|of| of.response == name) {
            Some(of) => Some(of),
            None => {
                let known: Vec<&str> = run.extremes.iter().map(|of| of.response.as_str()).collect();
                return fail(format!("--response {} is allowed", known.join(", ")));
            }
        },
    };
    let Some(of) = of else { return fail("a number or default is allowed".to_owned()) };
    match of.evaluations.iter().find(|one| one.role == role).and_then(|one| one.evaluation) {
        Some(evaluation) => Ok(evaluation),
        None => {
            let known: Vec<&str> = of.evaluations.iter().map(|one| one.role.as_str()).collect();
            let nearest = if known.contains(&"nearest") {
                "; results are compared with the result at the defaults, so none is the best"
            } else {
                ""
            };
            fail(format!("a number, {} are allowed for {}{nearest}", known.join(", "), of.response))
        }
    }
}

/// Returns the values of a row of `samples.csv`. Parameters without a column have their defaults.
fn row(number: usize, results: &Path, parameters: &[Parameter]) -> Result<Vec<Value>, ChoiceError> {
    const NAME: &str = "samples.csv";
    let corrupt = |problem: String| ChoiceError::Corrupt { folder: results.to_owned(), name: NAME, problem };
    let text = read(results, NAME)?;
    let mut table = csv::Reader::from_reader(&text[..]);
    let header = table.headers().map_err(|error| corrupt(error.to_string()))?.clone();
    let is_known = |name: &&str| *name == "evaluation" || parameters.iter().any(|p| p.name == **name);
    if let Some(column) = header.iter().find(|name| !is_known(name)) {
        return Err(corrupt(format!("the study has no parameter {column}")));
    }
    let mut count = 0;
    for record in table.records() {
        let record = record.map_err(|error| corrupt(error.to_string()))?;
        count += 1;
        if record.get(0) != Some(number.to_string().as_str()) {
            continue;
        }
        let value = |parameter: &Parameter| match header.iter().position(|name| name == parameter.name) {
            None => Ok(parameter.default),
            Some(column) => Value::parse(record.get(column).unwrap_or_default(), parameter.value_type)
                .map_err(|error| corrupt(format!("evaluation {number}, {}: {error}", parameter.name))),
        };
        return parameters.iter().map(value).collect();
    }
    Err(ChoiceError::NoNumber { number, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::{Domain, ValueType};

    fn parameter(name: &str, default: i64) -> Parameter {
        Parameter {
            name: name.to_owned(),
            value_type: ValueType::Integer,
            default: Value::Integer(default),
            domain: Domain::Fixed { value: Value::Integer(default) },
        }
    }

    fn results() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("plan.json", r#"{"study": "s", "study_digest": "d"}"#);
        write("samples.csv", "evaluation,a,b\n1,10,20\n2,11,21\n");
        write(
            "run.json",
            r#"{"extremes": [{"response": "dice", "evaluations": [{"role": "default", "evaluation": 0},
                {"role": "best", "evaluation": 2}]}, {"response": "objects", "evaluations": [{"role": "highest", "evaluation": 1}]}]}"#,
        );
        folder
    }

    #[test]
    fn evaluation_is_chosen_by_role_number_or_default() {
        let folder = results();
        // Parameter c is not in the table.
        let parameters = [parameter("b", 2), parameter("c", 3), parameter("a", 1)];
        let chosen = |text: &str, response: Option<&str>| {
            choose(text.parse().unwrap(), folder.path(), response, "s", &parameters)
                .map(|chosen| {
                    (chosen.evaluation, chosen.values.iter().map(|v| v.as_f64()).collect::<Vec<_>>())
                })
                .map_err(|error| error.to_string())
        };
        assert_eq!(chosen("best", None), Ok((2, vec![21.0, 3.0, 11.0])));
        assert_eq!(chosen("highest", Some("objects")), Ok((1, vec![20.0, 3.0, 10.0])));
        assert_eq!(chosen("default", None), Ok((0, vec![2.0, 3.0, 1.0])));
        assert_eq!(chosen("1", None), Ok((1, vec![20.0, 3.0, 10.0])));
        assert!(chosen("3", None).unwrap_err().contains("evaluations 1 to 2"));
        assert!(chosen("best", Some("area")).unwrap_err().contains("--response dice, objects is allowed"));
        let error = chosen("best", Some("objects")).unwrap_err();
        assert!(error.contains("response objects has no such evaluation; a number, highest"), "{error}");
        assert!("least".parse::<EvaluationChoice>().is_err());
    }

    #[test]
    fn results_of_another_study_are_refused() {
        let folder = results();
        let choose = |study: &str, parameters: &[Parameter]| {
            choose(EvaluationChoice::Number(1), folder.path(), None, study, parameters)
                .unwrap_err()
                .to_string()
        };
        assert!(
            choose("t", &[parameter("a", 1), parameter("b", 1)]).contains("results of study s; results of t")
        );
        assert!(choose("s", &[parameter("a", 1)]).contains("the study has no parameter b"));
        fs::remove_file(folder.path().join("samples.csv")).unwrap();
        assert!(choose("s", &[]).contains("failed to read samples.csv"));
        assert_eq!(digest_of(folder.path()).as_deref(), Some("d"));
    }
}
