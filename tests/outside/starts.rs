//! First steps: a study file for the images of a folder, a workflow in JSON, and a workflow of another program.

use crate::pleach::pleach;
use std::fs;
use std::path::Path;

#[test]
fn init_writes_a_study_of_the_images_that_it_finds() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("my study");
    fs::create_dir(&folder).expect("made");
    let refused = pleach(&folder, &["init"]);
    assert_eq!(refused.code, 2);
    let wanted = "error: .: no image in it or its folders; png, jpg, jpeg, tif, tiff and slides (svs, ndpi, scn, bif, mrxs, vms) are \
                  allowed, such as those of `pleach tissue --out tiles`\n";
    assert_eq!(refused.stderr, wanted);
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "2"]).done();
    let said = pleach(parent.path(), &["init", "my study"]).done();
    let wanted = "my study/study.toml: 2 tiles: tiles/*.png; references of all tiles: tiles\nnext: pleach plan my study/study.toml\n";
    assert_eq!(said, wanted);
    let plan = pleach(&folder, &["plan", "study.toml"]).done();
    assert!(plan.starts_with("ranges, value: 160 evaluations, 320 runs"), "{plan}");
    let schema = fs::read_to_string(folder.join("study.schema.json")).expect("a schema");
    assert_eq!(schema, pleach(&folder, &["schema"]).done());
    // Nothing is overwritten.
    fs::write(folder.join("study.toml"), "mine").expect("written");
    let refused = pleach(&folder, &["init"]);
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (2, "error: ./study.toml: exists; only a new file is written\n")
    );
    assert_eq!(fs::read_to_string(folder.join("study.toml")).expect("a file"), "mine");
}

#[test]
fn new_workflow_of_built_in_operations_runs() {
    let parent = tempfile::tempdir().expect("a folder");
    let said = pleach(parent.path(), &["workflow", "new", "mine"]).done();
    assert_eq!(said, "mine: 8 files; README.md has the next steps\n");
    let folder = parent.path().join("mine");
    pleach(&folder, &["workflow", "check", "workflow.json"]).done();
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "1"]).done();
    pleach(&folder, &["run", "study.toml", "--out", "results", "--quiet"]).done();
    let indices = fs::read_to_string(folder.join("results/indices.csv")).expect("indices");
    let rows = ["dice,G1,", "nuclei,minSize,"];
    assert!(rows.iter().all(|row| indices.lines().any(|line| line.starts_with(row))), "{indices}");
    assert_eq!(pleach(parent.path(), &["workflow", "new", "mine"]).code, 2);
}

/// A Taverna workflow of two tools.
const FLOW: &str = r#"<workflow xmlns="http://taverna.sf.net/2008/xml/t2flow"><dataflow id="1" role="top"><name>flow</name>
<inputPorts><port><name>image</name></port><port><name>level</name><annotations><text>{"type":"integer","values":[7]}</text></annotations></port></inputPorts>
<outputPorts><port><name>result</name></port></outputPorts><processors>
<processor><name>one</name><inputPorts><port><name>image</name></port><port><name>l</name></port></inputPorts><outputPorts><port><name>mid</name></port></outputPorts>
<activities><activity><class>x.ExternalToolActivity</class><configBean><command>find</command></configBean></activity></activities></processor>
<processor><name>two</name><inputPorts><port><name>mid</name></port></inputPorts><outputPorts><port><name>result</name></port></outputPorts>
<activities><activity><class>x.ExternalToolActivity</class><configBean><command>count</command></configBean></activity></activities></processor>
</processors><datalinks>
<datalink><sink type="processor"><processor>one</processor><port>image</port></sink><source type="dataflow"><port>image</port></source></datalink>
<datalink><sink type="processor"><processor>one</processor><port>l</port></sink><source type="dataflow"><port>level</port></source></datalink>
<datalink><sink type="processor"><processor>two</processor><port>mid</port></sink><source type="processor"><processor>one</processor><port>mid</port></source></datalink>
<datalink><sink type="dataflow"><port>result</port></sink><source type="processor"><processor>two</processor><port>result</port></source></datalink>
</datalinks></dataflow></workflow>
"#;

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn imported_workflow_is_checked_operation_by_operation() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("flow.t2flow"), FLOW).expect("written");
    let import = ["workflow", "import", "flow.t2flow", "--out", "flow"];
    let said = pleach(folder, &import).done();
    assert!(
        said.starts_with("flow: workflow flow: 2 inputs, 2 processors, 4 links\n  workflow.json\n"),
        "{said}"
    );
    assert_eq!(
        files(&folder.join("flow")),
        ["one.json", "parameter-sets.csv", "study.toml", "two.json", "workflow.json"]
    );
    let checked = pleach(folder, &["workflow", "check", "flow/workflow.json"]);
    let lines = "flow/one.json: /tasks/0: task one: operation \"find\" v1 is unknown: (l)  image -> mid\n\
                 flow/two.json: /tasks/0: task two: operation \"count\" v1 is unknown: ()  mid -> result\n";
    assert_eq!((checked.code, checked.stdout.as_str()), (2, lines));
    let wanted = "error: flow/workflow.json: 2 operations are unknown; `pleach workflow stub` writes their source; known are ";
    assert!(checked.stderr.starts_with(wanted), "{}", checked.stderr);
    // Files of an earlier import stay.
    let again = pleach(folder, &import);
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (2, "error: flow/workflow.json: exists; only new files are written\n")
    );
    // A map is of no use for a study.
    fs::write(folder.join("map.json"), "{}").expect("written");
    fs::write(folder.join("problem.json"), r#"{"num_vars": 1, "names": ["x"], "bounds": [[0, 1]]}"#)
        .expect("written");
    let refused = pleach(folder, &["workflow", "import", "problem.json", "--map", "map.json"]);
    let wanted = "error: --map map.json: problem.json is no workflow; only workflows have calls\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (2, wanted));
    let source = pleach(folder, &["workflow", "stub", "flow/workflow.json", "--rust"]).done();
    assert!(
        source.contains("impl Operation for Find {") && source.contains("impl Operation for Count {"),
        "{source}"
    );
}
