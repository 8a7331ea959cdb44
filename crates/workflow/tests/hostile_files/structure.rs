//! Well-formed files of the wrong structure: values of the shipped files removed, repeated, swapped and retyped.

use crate::{FILES, Folder, STUDY, shipped_text};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

/// Change of one value.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Repeat,
    Rename(String),
    Become(Value),
    Wrap,
}

fn changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    let values = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("")),
        Just(json!("mask")),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
        Just(json!([[1, 2], {"a": []}])),
        // No absolute paths: the message for an absolute path does not name the folder of the test.
        "([a-zA-Z0-9~\\n\\u{0}\\u{feff} ][a-zA-Z0-9/~\\n\\u{0}\\u{feff} ]{0,11})?".prop_map(Value::from),
    ];
    let change = prop_oneof![
        Just(Change::Remove),
        Just(Change::Repeat),
        "[a-z]{0,8}".prop_map(Change::Rename),
        values.prop_map(Change::Become),
        Just(Change::Wrap),
    ];
    proptest::collection::vec((any::<Index>(), change), 1..4)
}

/// Returns the number of values in a document, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the document with the value of this number (in the order of [`count`]) changed.
fn changed(value: &Value, number: usize, change: &Change) -> Value {
    let mut at = 0;
    change_in(value, &mut at, number, change).into_iter().next().map_or(Value::Null, |(_, value)| value)
}

/// Returns the results of a change to a value: none, one, or two values, with a new key if it is renamed.
fn change_in(value: &Value, at: &mut usize, number: usize, change: &Change) -> Vec<(Option<String>, Value)> {
    let own = *at == number;
    *at += 1;
    let inner = match value {
        Value::Array(items) => {
            let items = items.iter().flat_map(|item| change_in(item, at, number, change));
            Value::Array(items.map(|(_, item)| item).collect())
        }
        Value::Object(entries) => {
            let mut kept = Map::new();
            for (key, entry) in entries {
                for (copy, (name, entry)) in change_in(entry, at, number, change).into_iter().enumerate() {
                    // The copy needs a different key, since an object has each key once.
                    let name = name.unwrap_or_else(|| format!("{key}{}", "2".repeat(copy)));
                    kept.insert(name, entry);
                }
            }
            Value::Object(kept)
        }
        plain => plain.clone(),
    };
    match change {
        Change::Remove if own => Vec::new(),
        Change::Repeat if own => vec![(None, inner.clone()), (None, inner)],
        Change::Rename(name) if own => vec![(Some(name.clone()), inner)],
        Change::Become(other) if own => vec![(None, other.clone())],
        Change::Wrap if own => vec![(None, json!([inner]))],
        _ => vec![(None, inner)],
    }
}

fn changed_often(mut document: Value, changes: &[(Index, Change)]) -> Value {
    for (index, change) in changes {
        document = changed(&document, index.index(count(&document)), change);
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restructured_descriptors_are_read_or_refused(which in 0..FILES.len(), changes in changes()) {
        thread_local! {
            static FOLDER: Folder = Folder::new();
        }
        FOLDER.with(|folder| {
            let name = FILES[which];
            let good: Value = shipped_text(name).parse().expect("JSON");
            folder.write(name, changed_often(good, &changes).to_string());
            // `load` asserts the conditions on messages and memory.
            let _ = folder.load(name);
            folder.write(name, shipped_text(name));
        });
    }

    #[test]
    fn restructured_studies_are_read_or_refused(changes in changes()) {
        thread_local! {
            static FOLDER: Folder = Folder::new();
        }
        let good: Value = toml::from_str(&STUDY).expect("TOML");
        // Skips documents that TOML cannot express (null, numbers beyond 64 bits).
        if let Ok(text) = toml::to_string(&changed_often(good, &changes)) {
            FOLDER.with(|folder| {
                folder.write("study.toml", text);
                let _ = folder.load("segmentation.json");
            });
        }
    }
}
