//! The JSON Schema of study files agrees with the parser and with the reference.

use crate::folder::Folder;
use crate::registry::registry;
use pleach_workflow::{BasePoints, Distribution, MethodSpec, ParameterSpace, STUDY_SCHEMA};
use serde_json::Value;
use std::collections::BTreeSet;

/// Keys of a method that only `pleach analyze` reads.
const ANALYSIS: [&str; 4] = ["estimator", "slices", "harmonics", "resamples"];

/// The methods of study files, with the keys that each one needs.
const KINDS: [(&str, &str); 9] = [
    ("moat", ""),
    ("vbd", "samples = 64"),
    ("correlation", "samples = 64"),
    ("regression", "samples = 64"),
    ("pawn", "samples = 64"),
    ("delta", "samples = 64"),
    ("fast", "samples = 65"),
    ("rbd-fast", "samples = 64"),
    ("table", "file = \"sets.csv\""),
];

fn schema() -> Value {
    serde_json::from_str(STUDY_SCHEMA).expect("JSON")
}

/// Returns a part of the schema, by JSON pointer.
fn part(pointer: &str) -> Value {
    schema().pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema")).clone()
}

fn keys(pointer: &str) -> BTreeSet<String> {
    part(pointer).as_object().expect("an object").keys().cloned().collect()
}

fn texts(pointer: &str) -> BTreeSet<String> {
    let list = part(pointer);
    list.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the keys that the parser's message about an unknown one lists.
fn known(message: &str) -> BTreeSet<String> {
    let (_, known) = message.split_once("unknown; known are ").unwrap_or_else(|| panic!("{message}"));
    known.split(", ").map(str::to_owned).collect()
}

/// Returns the keys of a section, from a study with an unknown key in it.
fn of_parser(section: &str, keys: &str) -> BTreeSet<String> {
    let sections = [
        ("study", "[study]\nname = \"n\"\nworkflow = \"nuclei\"\n"),
        ("input", "[input]\ntiles = [\"a.png\"]\n"),
        ("method", "[method]\nkind = \"moat\"\n"),
        ("response", "[response]\nmetric = \"dice\"\n"),
        ("parameters.G1", ""),
    ];
    let mut text = String::new();
    for (name, usual) in sections {
        match (name == section, keys.is_empty()) {
            (true, true) => {
                text +=
                    &format!("{usual}{}zzz = 1\n", if usual.is_empty() { "[parameters.G1]\n" } else { "" })
            }
            (true, false) => text += keys,
            _ => text += usual,
        }
    }
    let folder = Folder::with(&["a.png"]);
    folder.write("study.toml", text);
    known(&folder.load("study.toml").expect_err("an unknown key").to_string())
}

#[test]
fn schema_has_the_keys_of_the_parser() {
    assert_eq!(of_parser("study", ""), keys("/properties/study/properties"));
    assert_eq!(of_parser("input", ""), keys("/properties/input/properties"));
    assert_eq!(of_parser("response", ""), keys("/properties/response/properties"));
    let root = of_parser("parameters.G1", "[zzz]\n");
    assert_eq!(root, keys("/properties"));
    let slides = "[input]\nslides = [\"a.png\"]\ntissue.zzz = 1\n";
    assert_eq!(of_parser("input", slides), keys("/properties/input/properties/tissue/properties"));
    let images = "[input]\nimages = [\"a.png\"]\npartition.zzz = 1\n";
    assert_eq!(of_parser("input", images), keys("/properties/input/properties/partition/properties"));
    let until = "[method]\nkind = \"moat\"\nuntil.zzz = 1\n";
    assert_eq!(of_parser("method", until), keys("/definitions/until/properties"));
    let survivors = "[[phase]]\nkind = \"moat\"\nsurvivors.zzz = 1\n[[phase]]\nkind = \"moat\"\n";
    assert_eq!(of_parser("method", survivors), keys("/definitions/survivors/properties"));
}

#[test]
fn schema_has_the_keys_of_each_method() {
    assert_eq!(texts("/definitions/method/properties/kind/enum"), set(KINDS.map(|(kind, _)| kind)));
    for (number, (kind, needed)) in KINDS.into_iter().enumerate() {
        let rule = format!("/definitions/method/allOf/{number}");
        assert_eq!(part(&format!("{rule}/if/properties/kind/const")), kind);
        let section = format!("[method]\nkind = \"{kind}\"\n{needed}\nzzz = 1\n");
        let mut wanted = of_parser("method", &section);
        wanted.extend(ANALYSIS.map(str::to_owned));
        // A grid of external models.
        wanted.extend(["correlation", "regression"].contains(&kind).then(|| "levels".to_owned()));
        assert_eq!(texts(&format!("{rule}/then/propertyNames/enum")), wanted, "{kind}");
    }
    let phase = "[[phase]]\nkind = \"moat\"\nzzz = 1\n[[phase]]\nkind = \"moat\"\n";
    assert_eq!(of_parser("method", phase), texts("/definitions/phase/allOf/0/then/propertyNames/enum"));
    let all = set(MethodSpec::KEYS.into_iter().chain(["until"]));
    assert_eq!(keys("/definitions/method/properties"), all);
    assert_eq!(texts("/definitions/method/properties/base/enum"), set(BasePoints::ALL.map(BasePoints::name)));
}

#[test]
fn schema_has_the_keys_of_parameters() {
    let folder = Folder::with(&[]);
    folder.write("problem.toml", "[parameters.x]\nzzz = 1\n");
    let file = folder.path().join("problem.toml");
    let message =
        ParameterSpace::load(&file, &registry(), |_| None, &[]).expect_err("an unknown key").to_string();
    assert_eq!(known(&message), keys("/definitions/parameter/properties"));
    // The keys of a study with a workflow are a part of them.
    assert!(of_parser("parameters.G1", "").is_subset(&known(&message)));
    assert_eq!(texts("/definitions/parameter/properties/distribution/enum"), set(Distribution::NAMES));
}

/// Returns the keys of study files in the reference, by the title of their table.
fn documented() -> Vec<(String, BTreeSet<String>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let text = std::fs::read_to_string(path).expect("the reference");
    let (_, text) = text.split_once("\n## Study files\n").expect("its chapter");
    let (text, _) = text.split_once("\n## ").expect("the next chapter");
    let mut tables: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("**`[") {
            tables.push((title.split(']').next().unwrap_or_default().to_owned(), BTreeSet::new()));
        } else if let Some(row) = line.strip_prefix("| `") {
            let cell = row.split(" |").next().unwrap_or_default();
            let names = cell.split(", ").map(|name| name.trim_matches('`').to_owned());
            tables.last_mut().expect("a title above").1.extend(names);
        }
    }
    tables
}

#[test]
fn schema_and_reference_have_the_same_keys() {
    let inputs = |name: &str| {
        let mut all = keys(&format!("/properties/{name}/properties"));
        // A switch of the workflow may be true, false or a section.
        for (section, is_switch) in
            [("tissue", false), ("annotations", false), ("partition", false), ("normalize", true)]
        {
            if all.contains(section) {
                let nested = keys(&format!("/properties/{name}/properties/{section}/properties"));
                all.extend(nested.iter().map(|key| format!("{section}.{key}")));
                all.retain(|key| is_switch || key != section);
            }
        }
        all
    };
    let mut seen = Vec::new();
    for (title, documented) in documented() {
        let wanted = match title.as_str() {
            "method" => {
                let mut all = keys("/definitions/method/properties");
                all.retain(|key| !ANALYSIS.contains(&key.as_str()) && key != "until");
                all.insert("survivors".to_owned());
                all.extend(keys("/definitions/until/properties").iter().map(|key| format!("until.{key}")));
                all
            }
            "parameters.NAME" => {
                let mut all = keys("/definitions/parameter/properties");
                // In the row of the distributions.
                all.retain(|key| !["mean", "std", "mode"].contains(&key.as_str()));
                all
            }
            other => inputs(other),
        };
        assert_eq!(documented, wanted, "[{title}]");
        seen.push(title);
    }
    assert_eq!(seen, ["study", "input", "method", "response", "parameters.NAME"]);
}
