//! Classification of groups by the responses of a study: labels that depend on one parameter, agreement with scikit-learn, and
//! invalid files.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_interop::analysis::{DesignForm, analyze};
use pleach_interop::classification::{Classification, GroupFeatures, GroupLabels};
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::samples::SampleTable;
use pleach_results::analysis::{Analysis, IndexTable};
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_study::builtin;
use pleach_workflow::MethodSpec;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A study of two parameters, its results and labels, in a folder.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("problem.json", r#"{"num_vars": 2, "names": ["a", "b"], "bounds": [[0, 1], [0, 1]]}"#);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn problem(&self) -> Problem {
        Problem::load(&self.path("problem.json"), &builtin::registry()).unwrap()
    }

    fn samples(&self) -> SampleTable {
        SampleTable::read(&self.problem(), &self.path("samples.csv")).unwrap()
    }

    fn labels(&self) -> Result<GroupLabels, String> {
        GroupLabels::read(&self.path("labels.csv")).map_err(|error| self.plain(&error))
    }

    fn features(&self, only: &[&str]) -> Result<GroupFeatures, String> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let read = GroupFeatures::read(&self.samples(), &self.path("responses.csv"), &self.labels()?, &only);
        read.map_err(|error| self.plain(&error))
    }

    /// Returns a message without the folder.
    fn plain(&self, error: &dyn std::fmt::Display) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

/// Draws a number of 0 to 1 that depends on both others.
fn noise(one: usize, other: usize) -> f64 {
    let mixed = (one as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (other as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

const EVALUATIONS: usize = 60;

/// Ten patients with two tiles each. The area is 10 for the label `benign` and 20 for `malignant`, and grows with `a`, so that
/// benign patients get the other label for a large `a`. `b` changes nothing. `grain` does not distinguish the labels.
fn patients() -> Files {
    let files = Files::new();
    let mut labels = "tile,group,label\n".to_owned();
    for patient in 0..10 {
        let label = if patient % 2 == 0 { "benign" } else { "malignant" };
        for tile in 0..2 {
            writeln!(labels, "p{patient}_{tile},patient {patient},{label}").unwrap();
        }
    }
    files.write("labels.csv", &labels);
    let (mut samples, mut responses) =
        ("evaluation,a,b\n".to_owned(), "evaluation,tile,dice,area,grain\n".to_owned());
    for evaluation in 0..EVALUATIONS {
        let (a, b) = (noise(evaluation, 1), noise(evaluation, 2));
        writeln!(samples, "{},{a},{b}", evaluation + 1).unwrap();
        for patient in 0..10 {
            for tile in 0..2 {
                let base = if patient % 2 == 0 { 10.0 } else { 20.0 };
                let area = base + noise(patient, tile) + if a > 0.7 { 9.0 } else { 0.0 };
                let grain = 1.0 + noise(patient + 50, tile);
                writeln!(responses, "{},p{patient}_{tile},0.5,{area},{grain}", evaluation + 1).unwrap();
            }
        }
    }
    files.write("samples.csv", &samples);
    files.write("responses.csv", &responses);
    files
}

#[test]
fn labels_change_with_the_parameter_that_moves_the_features() {
    let files = patients();
    let (labels, features) = (files.labels().unwrap(), files.features(&[]).unwrap());
    // Dice compares with a reference and measures no tissue.
    assert_eq!(features.names, ["area", "grain"]);
    assert_eq!(
        (labels.groups.len(), &labels.labels[..]),
        (10, &["benign".to_owned(), "malignant".to_owned()][..])
    );
    let expected = (noise(0, 0) + noise(0, 1)) / 2.0;
    let first = features.evaluations[0][0].as_ref().unwrap()[0];
    let step = if noise(0, 1) > 0.7 { 9.0 } else { 0.0 };
    assert!((first - 10.0 - expected - step).abs() < 1e-12);
    let found = Classification::of(&features, &labels, None).unwrap();
    assert!(found.leave_one_out && found.clusters == 2);
    assert_eq!(found.accuracy(&labels), 1.0);
    let large = (0..EVALUATIONS).filter(|evaluation| noise(*evaluation, 1) > 0.7).count();
    for (group, label) in found.groups.iter().zip(&labels.label_of) {
        let (evaluations, changes, _) = group.changes();
        assert_eq!((evaluations, changes), (EVALUATIONS, if *label == 0 { large } else { 0 }));
    }
    let responses = found.responses(&labels);
    let names: Vec<&str> = responses.iter().map(|response| response.name.as_str()).collect();
    assert_eq!(names, ["label-changes", "label-probability", "accuracy", "cluster-changes"]);
    for (evaluation, (changes, accuracy)) in responses[0].values.iter().zip(&responses[2].values).enumerate()
    {
        let half = if noise(evaluation, 1) > 0.7 { 0.5 } else { 0.0 };
        assert_eq!((*changes, *accuracy), (Some(half), Some(1.0 - half)));
    }
    // The existing analysis ranks the parameters.
    let (problem, samples) = (files.problem(), files.samples());
    let recipe = MethodSpec { kind: Some("correlation".to_owned()), ..MethodSpec::default() };
    let request = MethodRequest::of(&problem, recipe).unwrap();
    let form = DesignForm::of(&samples, &request).unwrap();
    let bootstrap = Bootstrap { resamples: 100, seed: 1 };
    let analyses: Vec<Analysis> = analyze(&form, request.method, &responses[..1], bootstrap).unwrap();
    let table = IndexTable::of(&analyses[0]).unwrap();
    let pearson: Vec<f64> = table.records().map(|record| record[1].parse::<f64>().unwrap().abs()).collect();
    assert!(pearson[0] > 0.6 && pearson[1] < 0.3, "{pearson:?}");
}

#[test]
fn failed_runs_leave_their_group_out_of_an_evaluation() {
    let files = patients();
    let text = fs::read_to_string(files.path("responses.csv")).unwrap();
    let line = text.lines().find(|line| line.starts_with("3,p4_1,")).unwrap();
    files.write("responses.csv", &text.replace(&format!("\n{line}\n"), "\n"));
    let (labels, features) = (files.labels().unwrap(), files.features(&["area"]).unwrap());
    assert!(features.evaluations[2][4].is_none() && features.evaluations[2][3].is_some());
    let found = Classification::of(&features, &labels, Some(3)).unwrap();
    assert_eq!(found.groups[4].changes().0, EVALUATIONS - 1);
    assert!(found.responses(&labels).iter().all(|response| response.values[2].is_none()));
}

#[test]
fn a_label_with_one_group_is_learned_with_all() {
    let files = patients();
    let text = fs::read_to_string(files.path("labels.csv")).unwrap();
    files.write("labels.csv", &text.replace("patient 3,malignant", "patient 3,other"));
    let (labels, features) = (files.labels().unwrap(), files.features(&[]).unwrap());
    let found = Classification::of(&features, &labels, None).unwrap();
    assert!(!found.leave_one_out && found.clusters == 3);
}

#[test]
fn invalid_files_are_refused_with_the_place() {
    let files = patients();
    let sound = fs::read_to_string(files.path("labels.csv")).unwrap();
    let with = |old: &str, new: &str| {
        assert!(sound.contains(old));
        files.write("labels.csv", &sound.replacen(old, new, 1));
        files.features(&[]).unwrap_err()
    };
    assert_eq!(
        with("label\n", "class\n"),
        "labels.csv: column label: missing; the header has tile, group, class"
    );
    assert_eq!(
        with("p0_1,patient 0,benign", "p0_1,patient 0,malignant"),
        "labels.csv: line 3: group \"patient 0\" has the labels \"benign\" and \"malignant\"; one label per group is \
         allowed"
    );
    assert_eq!(
        with("p0_1", "p0_0"),
        "labels.csv: line 3: a second row for tile \"p0_0\"; one row per tile is allowed"
    );
    assert_eq!(
        with("p0_0,patient 0,benign", "p0_0,patient 0,"),
        "labels.csv: line 2, column label: empty; a text is needed"
    );
    let unknown = with("p0_1", "q");
    assert!(
        unknown.starts_with("labels.csv: tile \"q\": not in the responses; their tiles are \"p0_0\""),
        "{unknown}"
    );
    assert!(unknown.ends_with("and 12 more"), "{unknown}");
    files.write("labels.csv", &sound.replace("malignant", "benign"));
    assert_eq!(
        files.labels().unwrap_err(),
        "labels.csv: column label: 1 label; at least 2 different ones are needed"
    );
    files.write("labels.csv", &sound);
    let column = files.features(&["areas"]).unwrap_err();
    assert_eq!(
        column,
        "responses.csv: column areas: missing; the header has evaluation, tile, dice, area, grain"
    );
    let labels = files.labels().unwrap();
    let clusters = Classification::of(&files.features(&[]).unwrap(), &labels, Some(11)).unwrap_err();
    assert_eq!(
        clusters.to_string(),
        "--clusters 11: 1 to 10 are allowed, the number of groups with features"
    );
    let dice = Classification::of(&files.features(&["dice"]).unwrap(), &labels, None).unwrap_err();
    assert_eq!(dice.to_string(), "features dice: equal in all groups; at least one that differs is needed");
    let responses = fs::read_to_string(files.path("responses.csv")).unwrap();
    files.write("responses.csv", &responses.replacen("\n1,", "\n99,", 1));
    let evaluation = files.features(&[]).unwrap_err();
    assert_eq!(
        evaluation,
        "responses.csv: line 2, column evaluation: 99 is not in the samples; 1 to 60 are allowed"
    );
    files.write("responses.csv", &responses.replacen("1,p0_1", "1,p0_0", 1));
    let twice = files.features(&[]).unwrap_err();
    assert_eq!(
        twice,
        "responses.csv: line 3: a second row of the evaluation for tile \"p0_0\"; one is allowed"
    );
}

const SCRIPT: &str = r#"
import sys, pandas as pd, numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
table = pd.read_csv(sys.argv[1])
x, y = table.filter(like="f").values, table["label"].values
for i in range(len(x)):
    rest = np.arange(len(x)) != i
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=100000)).fit(x[rest], y[rest])
    expected = model.predict_proba(x[i:i + 1])[0, list(model.classes_).index(y[i])]
    assert abs(expected - table["probability"][i]) < 1e-6, (i, expected, table["probability"][i])
    assert model.predict(x[i:i + 1])[0] == table["assigned"][i]
clusters = KMeans(3, n_init=20, random_state=1).fit(StandardScaler().fit_transform(x)).labels_
assert adjusted_rand_score(clusters, table["cluster"]) == 1
print(len(x), "groups agree")
"#;

/// Returns the environment that `scripts/install-python` installs, or the reason why it cannot.
fn environment() -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-python");
    let output = Command::new(script).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
    }
}

#[test]
fn probabilities_and_clusters_agree_with_scikit_learn() {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(reason) => {
            println!("SKIPPED probabilities_and_clusters_agree_with_scikit_learn: {reason}");
            return;
        }
    };
    let files = Files::new();
    let (mut labels, mut responses) = ("tile,label\n".to_owned(), "evaluation,tile,f1,f2,f3,f4\n".to_owned());
    for tile in 0..15 {
        let label = tile % 3;
        writeln!(labels, "t{tile},kind {label}").unwrap();
        let [x, y] = [[0.0, 0.0], [2.5, 0.5], [0.5, 3.0]][label];
        let f = [x, y, 7.0, 100.0 * y].into_iter().enumerate().map(|(f, mean)| mean + 1.2 * noise(tile, f));
        let f: Vec<String> = f.map(|value| value.to_string()).collect();
        writeln!(responses, "1,t{tile},{}", f.join(",")).unwrap();
    }
    files.write("labels.csv", &labels);
    files.write("responses.csv", &responses);
    files.write("samples.csv", "a,b\n0.5,0.5\n");
    let (labels, features) = (files.labels().unwrap(), files.features(&[]).unwrap());
    let found = Classification::of(&features, &labels, None).unwrap();
    let mut table = "label,assigned,probability,cluster,f1,f2,f3,f4\n".to_owned();
    for (group, assigned) in found.groups.iter().enumerate() {
        let numbers: Vec<String> = features.consensus[group].iter().map(f64::to_string).collect();
        let name = |label: usize| &labels.labels[label];
        let (label, consensus) = (name(labels.label_of[group]), &assigned.consensus);
        let (probability, cluster) = (consensus.probability, consensus.cluster);
        writeln!(table, "{label},{},{probability},{cluster},{}", name(consensus.label), numbers.join(","))
            .unwrap();
    }
    files.write("table.csv", &table);
    let mut python = Command::new(Path::new(&environment).join("bin/python"));
    let output = python.args(["-c", SCRIPT]).arg(files.path("table.csv")).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
