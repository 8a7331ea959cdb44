//! Writers: reading a written workflow gives the same graph.

use std::collections::{BTreeMap, BTreeSet};

use pleach_clustering::{
    Clustering, DataFile, Format, ReadOptions, Task, Workflow, read_bytes, write, write_clustered, write_jobs,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{data, read, rows, written};

/// Names that some format cannot hold: with control characters, white space, or empty.
fn odd_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => word(), 1 => "[a-z \\t\\n\\r]{0,4}", 1 => "[a-z\\x00-\\x1f]{1,4}", 1 => "\\PC{1,4}"]
}

/// Names with quotes, markup, paths and other scripts, but without white space.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![plain_name(), "[a-z<>&\"'/:;=\\[\\]{}#%~\\\\-]{1,6}", "[äßéΩж中🙂a]{1,4}"]
}

/// Names with quotes, markup and white space.
fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![word(), "[a-z<>&\"' \\t\\n\\r]{0,6}"]
}

/// Names that all formats hold.
fn plain_name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_.-]{1,5}"
}

/// Workflows with names of one of the classes: of many odd names one would be refused nearly always.
fn workflows() -> impl Strategy<Value = Workflow> {
    prop_oneof![workflow(odd_name), workflow(word), workflow(phrase), workflow(plain_name)]
}

/// A workflow whose edges lead to later tasks, and whose files are written before they are read.
fn workflow<S: Strategy<Value = String>>(name: fn() -> S) -> impl Strategy<Value = Workflow> {
    let task = (name(), name(), 0.0..1e6, vec(any::<prop::sample::Index>(), 0..4), any::<u8>());
    let file = (name(), any::<u64>());
    (name(), vec(task, 0..12), vec(file, 0..8)).prop_map(|(name, tasks, files)| {
        let files: BTreeMap<String, u64> = files.into_iter().collect();
        let files: Vec<_> = files.into_iter().map(|(name, bytes)| DataFile { name, bytes }).collect();
        let mut ids = BTreeSet::new();
        let (mut list, mut edges) = (Vec::new(), Vec::new());
        for (id, kind, seconds, picks, pattern) in tasks {
            if !ids.insert(id.clone()) {
                continue;
            }
            let number = list.len() as u32;
            edges.extend(
                picks
                    .iter()
                    .filter(|_| number > 0)
                    .map(|pick| (pick.index(number.max(1) as usize) as u32, number)),
            );
            // The first task writes a part of the files, and each of the others reads one.
            let uses = (0..files.len() as u32).filter(|file| pattern >> file & 1 == 1).collect();
            let (reads, writes) = if number == 0 { (vec![], uses) } else { (uses, vec![]) };
            list.push(Task { id, kind, seconds, reads, writes });
        }
        Workflow::new(name, list, files, &edges).unwrap()
    })
}

/// Returns whether the format can hold the workflow, by the rules of the formats.
fn holds(workflow: &Workflow, format: Format) -> bool {
    let (tasks, files) = (workflow.tasks(), workflow.files());
    let ids = || tasks.iter().map(|task| &task.id).chain(files.iter().map(|file| &file.name));
    let kinds = || tasks.iter().map(|task| &task.kind);
    let is_control = |c: char| (c < ' ' && !"\t\n\r".contains(c)) || c == '\u{fffe}' || c == '\u{ffff}';
    match format {
        Format::Dax => {
            !ids().chain(kinds()).any(|name| name.contains(is_control))
                && !workflow.name().contains(is_control)
        }
        Format::Dag => {
            let words = |name: &String| name.split_whitespace().eq([name.as_str()]);
            let one_word = kinds().all(|kind| kind.is_empty() || words(kind)) && ids().all(words);
            !tasks.is_empty() && one_word
        }
        Format::WfFormat => {
            let named = !workflow.name().is_empty() && !kinds().any(String::is_empty);
            !tasks.is_empty() && named
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn written_workflows_are_read_again_or_refused(workflow in workflows()) {
        for format in Format::ALL {
            let mut bytes = Vec::new();
            match write(&workflow, format, &mut bytes) {
                Ok(()) => {
                    prop_assert!(holds(&workflow, format), "{format}");
                    let again = read(&bytes);
                    prop_assert_eq!(rows(&again), rows(&workflow));
                    prop_assert!(format == Format::Dag || again.name() == workflow.name());
                }
                Err(error) => {
                    prop_assert!(!holds(&workflow, format), "{format}: {error}");
                    prop_assert!(bytes.is_empty() && !error.to_string().contains('\n'), "{error}");
                }
            }
        }
    }

    #[test]
    fn plain_names_are_held_by_all_formats(workflow in workflow(plain_name)) {
        for format in Format::ALL.into_iter().filter(|_| !workflow.tasks().is_empty()) {
            let again = read(&written(&workflow, format));
            prop_assert_eq!(rows(&again), rows(&workflow));
            // Unused files are not in DAX; the others keep their order too.
            prop_assert!(format == Format::Dax || again.files() == workflow.files());
        }
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..60), head in 0..4_usize) {
        let head = ["", "<adag>", "{\"schemaVersion\":\"1.5\",", "TASK a b 1\nFILE "][head];
        let bytes = [head.as_bytes(), &bytes].concat();
        let _ = read_bytes("x", &bytes, ReadOptions::default());
    }
}

/// A diamond of two kinds.
fn diamond() -> Workflow {
    let task = |id: &str, seconds, reads: &[u32], writes: &[u32]| Task {
        id: id.into(),
        kind: "k".into(),
        seconds,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    };
    let files = (0..3).map(|file| DataFile { name: format!("f{file}"), bytes: 10 + file }).collect();
    let tasks = vec![
        task("top", 1.5, &[], &[0]),
        task("left", 2.0, &[0], &[1]),
        task("right", 3.25, &[0], &[2]),
        task("end", 0.125, &[1, 2], &[]),
    ];
    Workflow::new("diamond", tasks, files, &[(0, 1), (0, 2), (1, 3), (2, 3)]).unwrap()
}

#[test]
fn jobs_are_written_as_tasks() {
    let workflow = diamond();
    let clustering = Clustering::new(&workflow, vec![vec![0], vec![2, 1], vec![3]]).unwrap();
    for format in Format::ALL {
        let mut bytes = Vec::new();
        write_clustered(&workflow, &clustering, format, &mut bytes).unwrap();
        assert_eq!(rows(&read(&bytes)), rows(&clustering.workflow(&workflow).unwrap()));
    }
    let mut bytes = Vec::new();
    write_jobs(&workflow, &clustering, &mut bytes).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let expected = serde_json::json!({
        "workflow": "diamond",
        "jobs": [
            { "id": "top", "tasks": ["top"], "seconds": 1.5, "level": 1 },
            { "id": "right", "tasks": ["right", "left"], "seconds": 5.25, "level": 2 },
            { "id": "end", "tasks": ["end"], "seconds": 0.125, "level": 3 },
        ]
    });
    assert_eq!(json, expected);
}

/// Ids that WfFormat allows, in its whole text.
#[test]
fn names_are_escaped_as_ids_of_wfformat() {
    let mut tasks = diamond().tasks().to_vec();
    let ids = ["a b", "x-1", "/bin/sh#2", "é"];
    tasks.iter_mut().zip(ids).for_each(|(task, id)| task.id = id.to_owned());
    let files = ["", "x-", "x-_20"].map(|name| DataFile { name: name.to_owned(), bytes: 1 });
    let edges: Vec<_> = diamond().edges().collect();
    let workflow = Workflow::new("odd", tasks, files.to_vec(), &edges).unwrap();
    let bytes = written(&workflow, Format::WfFormat);
    assert_eq!(rows(&read(&bytes)), rows(&workflow));
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let specification = &json["workflow"]["specification"];
    let id = |entry: &serde_json::Value| entry["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = ["tasks", "files"]
        .into_iter()
        .flat_map(|list| specification[list].as_array().unwrap().iter().map(id))
        .collect();
    assert_eq!(ids, ["x-a_20b", "x-x-1", "x-_2Fbin_2Fsh_232", "x-_C3_A9", "x-", "x-x-", "x-x-_5F20"]);
    // Ids of other programs stay as they are.
    let other = String::from_utf8(bytes).unwrap().replace("\"pleach\"", "\"other\"");
    assert_eq!(read(other.as_bytes()).tasks()[0].id, "x-a_20b");
}

#[test]
fn sipht_is_written_as_wfformat() {
    let Some(data) = data("sipht_is_written_as_wfformat") else { return };
    let bytes = std::fs::read(data.join("dax/Sipht_30.xml.gz")).unwrap();
    let workflow = read(&bytes);
    assert_eq!(rows(&read(&written(&workflow, Format::WfFormat))), rows(&workflow));
}

#[test]
fn dag_lines_are_those_of_the_format() {
    let expected = "FILE f0 10\nFILE f1 11\nFILE f2 12\nTASK top pleach::k:1.0 1.5\nTASK left pleach::k:1.0 2\n\
        TASK right pleach::k:1.0 3.25\nTASK end pleach::k:1.0 0.125\nINPUTS top\nOUTPUTS top f0\nINPUTS left f0\n\
        OUTPUTS left f1\nINPUTS right f0\nOUTPUTS right f2\nINPUTS end f1 f2\nOUTPUTS end\n\
        EDGE top left\nEDGE top right\nEDGE left end\nEDGE right end\n";
    assert_eq!(String::from_utf8(written(&diamond(), Format::Dag)).unwrap(), expected);
}

/// Returns each element with its parent element and attributes.
fn elements(text: &str) -> BTreeSet<(String, String, Vec<String>)> {
    let document = roxmltree::Document::parse(text).unwrap();
    let name = |node: roxmltree::Node<'_, '_>| node.tag_name().name().to_owned();
    let nodes = document.descendants().filter(roxmltree::Node::is_element);
    let element = |node: roxmltree::Node<'_, '_>| {
        let attributes = node.attributes().map(|attribute| attribute.name().to_owned()).collect();
        (name(node), node.parent().map(name).unwrap_or_default(), attributes)
    };
    nodes.map(element).collect()
}

#[test]
fn dax_has_the_elements_and_attributes_of_pegasus() {
    let Some(data) = data("dax_has_the_elements_and_attributes_of_pegasus") else { return };
    let real = std::fs::read_to_string(data.join("dax/Montage_25.xml")).unwrap();
    let ours = String::from_utf8(written(&read(real.as_bytes()), Format::Dax)).unwrap();
    assert_eq!(elements(&ours), elements(&real));
    // The first line, the namespaces and the counts too.
    let head = |text: &str| {
        let adag = text.lines().find(|line| line.starts_with("<adag")).unwrap().to_owned();
        (text.lines().next().unwrap().to_owned(), adag)
    };
    assert_eq!(head(&ours), head(&real));
}

/// Returns the type of each path of a JSON document. Elements of lists share a path.
fn shape(value: &serde_json::Value, path: &str, shapes: &mut BTreeSet<String>) {
    use serde_json::Value;
    let kind = match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| shape(field, &format!("{path}.{name}"), shapes));
            "object"
        }
        Value::Array(list) => {
            list.iter().for_each(|value| shape(value, &format!("{path}[]"), shapes));
            "array"
        }
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) | Value::Null => "other",
    };
    shapes.insert(format!("{path}: {kind}"));
}

#[test]
fn wfformat_has_the_shape_of_real_files() {
    let Some(data) = data("wfformat_has_the_shape_of_real_files") else { return };
    let real = std::fs::read(data.join("wfformat/srasearch-chameleon-10a-001.json")).unwrap();
    let workflow = read(&real);
    let (mut theirs, mut ours) = (BTreeSet::new(), BTreeSet::new());
    shape(&serde_json::from_slice(&real).unwrap(), "", &mut theirs);
    let json: serde_json::Value = serde_json::from_slice(&written(&workflow, Format::WfFormat)).unwrap();
    shape(&json, "", &mut ours);
    assert_eq!(ours.difference(&theirs).collect::<Vec<_>>(), Vec::<&String>::new());
    // Machines, authors and measurements of tasks are not part of a workflow here.
    let lacking: Vec<&String> = theirs.difference(&ours).collect();
    assert!(
        lacking.iter().all(|path| {
            [".author", ".machines", "avgCPU", "memoryInBytes", "priority", "machines", "arguments[]", "url"]
                .iter()
                .any(|part| path.contains(part))
        }),
        "{lacking:?}"
    );
    assert_eq!(json["workflow"]["execution"]["makespanInSeconds"].as_f64().unwrap(), longest(&workflow));
}

/// Returns the longest path in seconds, by following each path.
fn longest(workflow: &Workflow) -> f64 {
    fn from(workflow: &Workflow, task: u32) -> f64 {
        let rest = workflow.parents(task).iter().map(|parent| from(workflow, *parent));
        rest.fold(0.0, f64::max) + workflow.tasks()[task as usize].seconds
    }
    (0..workflow.tasks().len() as u32).map(|task| from(workflow, task)).fold(0.0, f64::max)
}

#[test]
fn workflows_without_tasks_are_written_as_dax_only() {
    let empty = Workflow::new("none", vec![], vec![], &[]).unwrap();
    assert!(read(&written(&empty, Format::Dax)).tasks().is_empty());
    for format in [Format::Dag, Format::WfFormat] {
        let error = write(&empty, format, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, format!("workflow \"none\": no tasks; {format} holds 1 task or more"));
    }
}

/// An output that is full after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let length = bytes.len().min(self.0);
        self.0 -= length;
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_output_is_an_error() {
    let workflow = diamond();
    for format in Format::ALL {
        let error = write(&workflow, format, &mut Full(50)).unwrap_err().to_string();
        assert!(error.starts_with("failed to write: "), "{error}");
    }
    assert!(write_jobs(&workflow, &Clustering::single(&workflow), &mut Full(5)).is_err());
}
