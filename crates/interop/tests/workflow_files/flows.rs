//! Taverna workflows written here: nested dataflows, merges, iteration strategies, constants, conditions.

use super::{Folder, json, registry, texts};
use pleach_workflow::{Workflow, operation_uses};
use serde_json::json;
use std::fmt::Write;

/// A dataflow in the form of Taverna 2, one element a line.
#[derive(Clone, Default)]
struct Flow {
    id: String,
    inputs: String,
    outputs: String,
    processors: String,
    conditions: String,
    links: String,
}

impl Flow {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    fn input(mut self, name: &str, annotation: &str) -> Self {
        let _ = writeln!(
            self.inputs,
            "<port><name>{name}</name><depth>0</depth><annotations><text>{annotation}</text></annotations></port>"
        );
        self
    }

    fn output(mut self, name: &str) -> Self {
        let _ = writeln!(self.outputs, "<port><name>{name}</name></port>");
        self
    }

    fn processor(
        mut self,
        name: &str,
        [inputs, outputs]: [&[&str]; 2],
        class: &str,
        bean: &str,
        strategy: &str,
    ) -> Self {
        let ports = |names: &[&str]| -> String {
            names.iter().map(|name| format!("<port><name>{name}</name></port>")).collect()
        };
        let maps = |names: &[&str]| -> String {
            names.iter().map(|name| format!("<map from=\"{name}\" to=\"{name}\"/>")).collect()
        };
        let _ = writeln!(
            self.processors,
            "<processor><name>{name}</name><inputPorts>{}</inputPorts><outputPorts>{}</outputPorts><activities><activity>\
             <class>net.sf.taverna.t2.activities.{class}</class><inputMap>{}</inputMap><outputMap>{}</outputMap>\
             <configBean>{bean}</configBean></activity></activities><iterationStrategyStack><iteration><strategy>{strategy}\
             </strategy></iteration></iterationStrategyStack></processor>",
            ports(inputs),
            ports(outputs),
            maps(inputs),
            maps(outputs)
        );
        self
    }

    fn tool(self, name: &str, ends: [&[&str]; 2]) -> Self {
        let bean = format!("<x xmlns=\"\"><command>{name} %%a%%</command></x>");
        self.processor(name, ends, "externaltool.ExternalToolActivity", &bean, "")
    }

    fn constant(self, name: &str, value: &str) -> Self {
        let bean = format!("<x xmlns=\"\"><value>{value}</value></x>");
        self.processor(name, [&[], &["value"]], "stringconstant.StringConstantActivity", &bean, "")
    }

    fn nested(self, name: &str, ends: [&[&str]; 2], id: &str) -> Self {
        self.processor(name, ends, "dataflow.DataflowActivity", &format!("<dataflow ref=\"{id}\"/>"), "")
    }

    /// Adds a link between ends such as `port` or `processor.port`. `+` before the sink merges.
    fn link(mut self, source: &str, sink: &str) -> Self {
        let end = |of: &str, kind: &str, usual: &str| match of.split_once('.') {
            Some((processor, port)) => format!(
                "<{kind} type=\"{usual}\"><processor>{processor}</processor><port>{port}</port></{kind}>"
            ),
            None => format!("<{kind} type=\"dataflow\"><port>{of}</port></{kind}>"),
        };
        let (sink, kind) = sink.strip_prefix('+').map_or((sink, "processor"), |sink| (sink, "merge"));
        let _ = writeln!(
            self.links,
            "<datalink>{}{}</datalink>",
            end(sink, "sink", kind),
            end(source, "source", "processor")
        );
        self
    }

    fn condition(mut self, control: &str, target: &str) -> Self {
        let _ = writeln!(self.conditions, "<condition control=\"{control}\" target=\"{target}\"/>");
        self
    }

    fn xml(&self, role: &str) -> String {
        let Self { id, inputs, outputs, processors, conditions, links } = self;
        format!(
            "<dataflow id=\"{id}\" role=\"{role}\"><name>{id}</name>\n<inputPorts>\n{inputs}</inputPorts>\n<outputPorts>\n{outputs}\
             </outputPorts>\n<processors>\n{processors}</processors>\n<conditions>\n{conditions}</conditions>\n<datalinks>\n{links}\
             </datalinks></dataflow>\n"
        )
    }
}

fn file(flows: &[Flow]) -> String {
    let flows = flows.iter().enumerate();
    let flows: String =
        flows.map(|(place, flow)| flow.xml(if place == 0 { "top" } else { "nested" })).collect();
    format!("<workflow xmlns=\"http://taverna.sf.net/2008/xml/t2flow\" version=\"1\">\n{flows}</workflow>\n")
}

const IMAGE: &str = r#"{"type": "rt", "values": ["tile.png"]}"#;

/// An image through one tool to a table.
fn simple() -> Flow {
    let flow = Flow::new("simple").input("image", IMAGE).output("result");
    flow.tool("measure", [&["image"], &["result"]])
        .link("image", "measure.image")
        .link("measure.result", "result")
}

fn imported(folder: &Folder, flows: &[Flow]) -> pleach_interop::workflow_files::ImportedWorkflow {
    let path = folder.write("w.t2flow", &file(flows));
    folder.import(&path, "{}").expect("imported")
}

/// Imports the flows and expects this message.
#[track_caller]
fn refused(flows: &[Flow], message: &str) {
    let folder = Folder::new();
    let path = folder.write("w.t2flow", &file(flows));
    let said = folder.import(&path, "{}").expect_err("refused");
    assert_eq!(said, message);
    assert_eq!(said.lines().count(), 1);
}

/// Returns the reads and writes of a stage's only task.
fn ends(folder: &Folder, stage: &str) -> (Vec<String>, Vec<String>) {
    let uses = operation_uses(&folder.path(&format!("out/{stage}.json"))).expect("a stage");
    let names = |of: &[pleach_workflow::RegionUse]| of.iter().map(|region| region.name.clone()).collect();
    (names(&uses[0].reads), names(&uses[0].writes))
}

#[test]
fn nested_dataflows_are_inlined() {
    let inner =
        Flow::new("inner").input("x", "").output("y").tool("a", [&["i"], &["o"]]).tool("b", [&["i"], &["o"]]);
    let inner = inner.link("x", "a.i").link("a.o", "b.i").link("b.o", "y");
    let top = Flow::new("top").input("image", IMAGE).output("result").nested("n", [&["x"], &["y"]], "inner");
    let top = top.nested("m", [&["x"], &["y"]], "inner").tool("last", [&["one", "two"], &["result"]]);
    let top = top.link("image", "n.x").link("n.y", "m.x").link("n.y", "last.one").link("m.y", "last.two");
    let top = top.link("last.result", "result");
    let folder = Folder::new();
    let result = imported(&folder, &[top, inner]);
    assert_eq!(result.summary, "workflow top: 1 inputs, 5 processors, 8 links");
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(ends(&folder, "n-a"), (of(&["image"]), of(&["n-a.o"])));
    assert_eq!(ends(&folder, "n-b"), (of(&["n-a.o"]), of(&["n-b.o"])));
    assert_eq!(ends(&folder, "m-a"), (of(&["n-b.o"]), of(&["m-a.o"])));
    assert_eq!(ends(&folder, "last"), (of(&["n-b.o", "m-b.o"]), of(&["result"])));
}

#[test]
fn merged_links_are_a_list() {
    let flow = Flow::new("top").input("image", IMAGE).output("result").tool("a", [&["i"], &["left"]]);
    let flow = flow.tool("b", [&["i"], &["right"]]).tool("join", [&["list"], &["result"]]);
    let flow = flow.link("image", "a.i").link("image", "b.i").link("b.right", "+join.list");
    let flow = flow.link("a.left", "+join.list").link("join.result", "result");
    let folder = Folder::new();
    imported(&folder, &[flow]);
    assert_eq!(ends(&folder, "join").0, ["right", "left"], "in the order of the links");
}

#[test]
fn constants_are_fixed_parameters_or_remarks() {
    let flow = simple().constant("radius", "3").constant("level", "0.5").constant("db", "uniprot kb");
    let flow = flow.tool("other", [&["r", "level", "db", "image"], &["table"]]).output("table");
    let flow =
        flow.link("radius.value", "other.r").link("level.value", "other.level").link("db.value", "other.db");
    let flow = flow.link("image", "other.image").link("other.table", "table");
    let folder = Folder::new();
    let result = imported(&folder, &[flow]);
    let task = json(&result, "other.json")["tasks"][0].clone();
    let radius = json!({ "name": "radius", "argument": "r", "type": "integer", "fixed": 3 });
    assert_eq!(task["parameters"], json!([radius, { "name": "level", "type": "real", "fixed": 0.5 }]));
    assert_eq!(task["description"], "Tool other %%a%%; db = \"uniprot kb\"");
    assert!(result.notes.iter().any(|note| note.contains("text db = \"uniprot kb\"")), "{:?}", result.notes);
    assert_eq!(result.summary, "workflow simple: 1 inputs, 2 processors, 7 links");
}

#[test]
fn cross_makes_all_sets_and_dot_makes_pairs() {
    let swept = |strategy: &str| {
        let flow = Flow::new("top").input("image", IMAGE).output("result");
        let flow = flow.input("p", r#"{"type": "integer", "values": [1, 2]}"#);
        let flow = flow.input("q", r#"{"type": "float", "values": [0.5, 1.5]}"#);
        let flow = flow.input("r", r#"{"type": "floatarray", "values": [[1, 2], [3, 2]]}"#);
        let bean = "<x xmlns=\"\"><command>t</command></x>";
        let ends: [&[&str]; 2] = [&["image", "a", "b", "c"], &["result"]];
        let flow = flow.processor("t", ends, "externaltool.ExternalToolActivity", bean, strategy);
        let flow = flow.link("image", "t.image").link("p", "t.a").link("q", "t.b").link("r", "t.c");
        flow.link("t.result", "result")
    };
    let sets = |strategy: &str| {
        let folder = Folder::new();
        let result = imported(&folder, &[swept(strategy)]);
        let (_, text) =
            result.files.iter().find(|(name, _)| name == "parameter-sets.csv").expect("a table").clone();
        text
    };
    let all = "p,q,r.0,r.1\n1,0.5,1.0,2.0\n1,0.5,3.0,2.0\n1,1.5,1.0,2.0\n1,1.5,3.0,2.0\n2,0.5,1.0,2.0\n2,0.5,3.0,2.0\n\
               2,1.5,1.0,2.0\n2,1.5,3.0,2.0\n";
    assert_eq!(sets("<cross><port name=\"a\"/><port name=\"b\"/><port name=\"c\"/></cross>"), all);
    let pairs = "p,q,r.0,r.1\n1,0.5,1.0,2.0\n1,0.5,3.0,2.0\n2,1.5,1.0,2.0\n2,1.5,3.0,2.0\n";
    assert_eq!(
        sets("<cross><dot><port name=\"a\"/><port name=\"b\"/></dot><port name=\"c\"/></cross>"),
        pairs
    );
    let folder = Folder::new();
    let result = imported(&folder, &[swept("")]);
    let parameters = json(&result, "t.json")["tasks"][0]["parameters"].clone();
    let p = json!({ "name": "p", "argument": "a", "type": "integer", "default": 1, "values": [1, 2] });
    let fixed = json!({ "name": "r.1", "argument": "c_1", "type": "real", "fixed": 2.0 });
    assert_eq!((&parameters[0], &parameters[3]), (&p, &fixed));
    // The last list has another length.
    let uneven = swept("<dot><port name=\"a\"/><port name=\"b\"/></dot>");
    let uneven = Flow { inputs: uneven.inputs.replace("[0.5, 1.5]", "[0.5, 1.5, 2]"), ..uneven };
    refused(
        &[uneven],
        "DIR/w.t2flow:13: dot \"t\": ports p, q have [2, 3] values; ports with equally many values are allowed",
    );
}

#[test]
fn conditions_must_be_implied() {
    let flow = Flow::new("top").input("image", IMAGE).output("result").tool("a", [&["i"], &["mid"]]);
    let flow = flow.tool("b", [&["i"], &["result"]]).tool("c", [&["i"], &["more"]]).link("image", "a.i");
    let flow = flow.link("a.mid", "b.i").link("image", "c.i").link("b.result", "result");
    imported(&Folder::new(), &[flow.clone().condition("a", "b")]);
    refused(
        &[flow.condition("c", "b")],
        "DIR/w.t2flow:15: condition \"b\": waits for c without reading its outputs; control links that data links imply are allowed",
    );
}

#[test]
fn scripts_are_listed_with_their_lines() {
    let script = |flow: Flow, name: &str, class: &str| {
        flow.processor(name, [&[], &[]], class, "<script>x</script>", "")
    };
    let flow = script(simple(), "B_system", "beanshell.BeanshellActivity");
    let flow = script(flow, "Echo_List", "localworker.LocalworkerActivity");
    refused(
        std::slice::from_ref(&flow),
        "DIR/w.t2flow:11: processor \"B_system\" (beanshell, line 11), \"Echo_List\" (localworker, line 12) are not allowed; \
         tools, text constants and nested workflows are allowed, and processors whose name --map gives an operation",
    );
    let folder = Folder::new();
    let path = folder.write("w.t2flow", &file(&[flow]));
    let map = r#"{ "calls": { "B_system": "mine.b", "Echo_List": "mine.echo" } }"#;
    let result = folder.import(&path, map).expect("imported");
    assert_eq!(json(&result, "echo-list.json")["tasks"][0]["operation"], "mine.echo");
}

#[test]
fn invalid_elements_are_refused_with_their_line() {
    let annotated = |text: &str| simple().input("p", text);
    refused(
        &[annotated(r#"{"type": "text", "values": ["x"]}"#)],
        "DIR/w.t2flow:5: port \"p\": {\"type\": \"text\", \"values\": [\"x\"]}; {\"type\": \"integer\", \"float\", \"floatarray\" or \
         \"rt\", \"values\": [...]} is allowed",
    );
    refused(
        &[simple().link("gone.x", "measure.image")],
        "DIR/w.t2flow:17: datalink \"x\": processor gone is missing; a processor of the dataflow is needed",
    );
    refused(
        &[simple().link("nothing", "measure.image")],
        "DIR/w.t2flow:10: processor \"measure\": input image is linked to nothing, which is missing; a port of the file is needed",
    );
    let cyclic = simple()
        .tool("b", [&["i"], &["o"]])
        .tool("c", [&["i"], &["o"]])
        .link("b.o", "c.i")
        .link("c.o", "b.i");
    refused(
        &[cyclic],
        "DIR/w.t2flow:2: dataflow \"simple\": cycle of b, c; links without a cycle are allowed",
    );
    let inner = Flow::new("inner").nested("again", [&[], &[]], "inner");
    refused(
        &[simple().nested("n", [&[], &[]], "inner"), inner],
        "DIR/w.t2flow:19: dataflow \"inner\": nests itself; nesting without a cycle is allowed",
    );
    refused(
        &[simple().nested("n", [&[], &[]], "gone")],
        "DIR/w.t2flow:11: processor \"n\": nested workflow gone is missing; a dataflow of the file is needed",
    );
    refused(
        &[Flow::new("empty").input("image", IMAGE)],
        "DIR/w.t2flow:2: dataflow \"empty\": no processor that runs; one or more are needed",
    );
    let silent = Flow { outputs: String::new(), ..simple() };
    let silent = Flow { links: silent.links.lines().next().expect("a link").to_owned() + "\n", ..silent };
    refused(
        &[silent],
        "DIR/w.t2flow:2: dataflow \"simple\": no output of a processor is a table; a table of responses is needed",
    );
    let folder = Folder::new();
    let path = folder.write(
        "w.t2flow",
        "<workflow xmlns=\"http://taverna.sf.net/2008/xml/t2flow\">\n<dataflow>\n</workflow>",
    );
    let said = folder.import(&path, "{}").expect_err("refused");
    assert!(said.starts_with("DIR/w.t2flow:3: no XML: expected 'dataflow' tag"), "{said}");
    let path = folder.write(
        "w.t2flow",
        "<workflow xmlns=\"http://taverna.sf.net/2008/xml/t2flow\">\n<dataflow/></workflow>",
    );
    let said = folder.import(&path, "{}").expect_err("refused");
    assert_eq!(said, "DIR/w.t2flow:2: element <dataflow> without <name>; a name is needed");
}

#[test]
fn imported_files_name_the_missing_operations() {
    let folder = Folder::new();
    imported(&folder, &[simple()]);
    let error =
        Workflow::load(&folder.path("out/workflow.json"), &registry()).expect_err("an unknown operation");
    assert!(error.to_string().contains("/tasks/0/operation: operation \"measure\" is unknown"), "{error}");
    let workflow = std::fs::read_to_string(folder.path("out/workflow.json")).expect("a file");
    assert!(
        workflow.contains("\n  \"inputs\": [{ \"region\": \"image\", \"type\": \"bgr8\" }],\n"),
        "{workflow}"
    );
    let stage: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path("out/measure.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(texts(&stage["tasks"][0]["reads"]), ["image"]);
    assert_eq!(stage["outputs"][0]["type"], "table");
}

#[test]
fn nesting_that_multiplies_is_refused() {
    // 10 dataflows, each with the next one ten times.
    let nest = |level: usize| {
        let flow = Flow::new(&format!("f{level}"));
        (0..10).fold(flow, |flow, n| flow.nested(&format!("n{n}"), [&[], &[]], &format!("f{}", level + 1)))
    };
    let mut flows: Vec<Flow> = (0..10).map(nest).collect();
    flows.push(Flow::new("f10"));
    let folder = Folder::new();
    let path = folder.write("w.t2flow", &file(&flows));
    let said = folder.import(&path, "{}").expect_err("refused");
    assert!(said.ends_with("more than 1000 processors or nested workflows; fewer are allowed"), "{said}");
}
