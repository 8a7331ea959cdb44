//! Bad input, and input of unusual size.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_clustering::{ReadOptions, read_bytes};

use crate::ASSUME_ZERO;

const STRICT: ReadOptions = ReadOptions { assume_zero: false, max_bytes: 1 << 30 };

fn error(text: &str, options: ReadOptions) -> String {
    let error = read_bytes("dir/x", text.as_bytes(), options).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.len() < 500, "{error}");
    error
}

/// A DAX file with this content.
fn dax(content: &str) -> String {
    format!("<adag name=\"w\">\n{content}\n</adag>")
}

/// A WfFormat file with these tasks, files and executions.
fn wfformat(tasks: &str, files: &str, runs: &str) -> String {
    format!(
        r#"{{"name":"w","schemaVersion":"1.5","workflow":{{"specification":{{"tasks":[{tasks}],"files":[{files}]}},"execution":{{"tasks":[{runs}]}}}}}}"#
    )
}

const SECONDS: &str = "a finite number of seconds of 0 or more is allowed, without a unit";
const BYTES: &str = "a whole number of bytes of 0 or more is allowed, without a unit";
const JOB_A: &str = r#"<job id="a" name="k" runtime="1"/>"#;
const JOB_B: &str = r#"<job id="b" name="k" runtime="1"/>"#;

#[test]
fn defects_of_dax_are_refused_with_line_id_field_and_value() {
    let job = |attributes: &str| dax(&format!("<job id=\"a\" {attributes}/>"));
    let uses = |attributes: &str| dax(&format!("<job id=\"a\" runtime=\"1\">\n<uses {attributes}/></job>"));
    let edges = |list: &str| dax(&format!("{JOB_A}\n{JOB_B}\n{list}"));
    let cases = [
        (job(""), format!("dir/x:2: task \"a\": runtime is missing; {SECONDS}")),
        (job("runtime=\"NaN\""), format!("dir/x:2: task \"a\": runtime \"NaN\"; {SECONDS}")),
        (job("runtime=\"-1\""), format!("dir/x:2: task \"a\": runtime \"-1\"; {SECONDS}")),
        (job("runtime=\"13 s\""), format!("dir/x:2: task \"a\": runtime \"13 s\"; {SECONDS}")),
        (uses("link=\"input\" size=\"1\""), "dir/x:3: element <uses> without attribute file; ".to_owned()),
        (uses("file=\"f\" link=\"input\""), format!("dir/x:3: file \"f\": size is missing; {BYTES}")),
        (
            uses("file=\"f\" link=\"input\" size=\"4 MB\""),
            format!("dir/x:3: file \"f\": size \"4 MB\"; {BYTES}"),
        ),
        (
            uses("file=\"f\" link=\"in\" size=\"4\""),
            "dir/x:3: file \"f\": link \"in\"; input, output".to_owned(),
        ),
        (uses("file=\"f\" size=\"4\""), "dir/x:3: file \"f\": link is missing; input, output".to_owned()),
        (dax(&format!("{JOB_A}\n{JOB_A}")), "dir/x:3: task \"a\": given twice; ids are unique".to_owned()),
        (
            edges("<child ref=\"b\">\n<parent ref=\"c\"/></child>"),
            "dir/x:5: task \"c\": does not exist; ".to_owned(),
        ),
        (edges("<child ref=\"c\"/>"), "dir/x:4: task \"c\": does not exist; ".to_owned()),
        (edges("<child/>"), "dir/x:4: element <child and parent> without attribute ref; ".to_owned()),
        (
            edges("<child ref=\"a\"><parent ref=\"b\"/></child><child ref=\"b\"><parent ref=\"a\"/></child>"),
            "dir/x: tasks depend on themselves: \"a\" → \"b\" → \"a\"; ".to_owned(),
        ),
        (
            "<workflow/>".to_owned(),
            "dir/x:1: element <workflow>; a root element <adag> is allowed".to_owned(),
        ),
        ("<adag>\n<job id></adag>".to_owned(), "dir/x:2: no XML: ".to_owned()),
    ];
    for (text, expected) in cases {
        let error = error(&text, STRICT);
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

#[test]
fn defects_of_dag_are_refused_with_line_id_field_and_value() {
    let cases = [
        ("TASK a k", format!("dir/x:1: task \"a\": run time is missing; {SECONDS}")),
        ("\nTASK a k -0.5", format!("dir/x:2: task \"a\": run time \"-0.5\"; {SECONDS}")),
        ("TASK a k inf", format!("dir/x:1: task \"a\": run time \"inf\"; {SECONDS}")),
        ("TASK a k 5 s", "dir/x:1: line \"TASK a k 5 s\"; TASK id type seconds is allowed".to_owned()),
        ("TASK a", "dir/x:1: line \"TASK a\"; TASK id type seconds is allowed".to_owned()),
        ("FILE f 4MB", format!("dir/x:1: file \"f\": size \"4MB\"; {BYTES}")),
        ("FILE f", format!("dir/x:1: file \"f\": size is missing; {BYTES}")),
        ("FILE f 1\nFILE f 1", "dir/x:2: file \"f\": given twice; ids are unique".to_owned()),
        ("TASK a k 1\nTASK a k 1", "dir/x:2: task \"a\": given twice; ids are unique".to_owned()),
        ("TASK a k 1\nINPUTS a f", format!("dir/x:2: file \"f\": size is missing; {BYTES}")),
        ("TASK a k 1\nINPUTS", "dir/x:2: line \"INPUTS\"; ".to_owned()),
        ("INPUTS b f\nTASK a k 1", "dir/x:1: task \"b\": does not exist; ".to_owned()),
        ("TASK a k 1\nEDGE a c", "dir/x:2: task \"c\": does not exist; ".to_owned()),
        ("TASK a k 1\nEDGE a", "dir/x:2: line \"EDGE a\"; EDGE parent child… is allowed".to_owned()),
        ("TASK a k 1\nEDGE a a", "dir/x: tasks depend on themselves: \"a\" → \"a\"; ".to_owned()),
        (
            "TASK a k 1\nJOB b",
            "dir/x:2: line \"JOB b\"; lines FILE, TASK, INPUTS, OUTPUTS and EDGE".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        let error = error(text, STRICT);
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

#[test]
fn defects_of_wfformat_are_refused_with_id_field_and_value() {
    let task = r#"{"id":"a","parents":[],"children":[]}"#;
    let run = |field: &str| wfformat(task, "", &format!("{{\"id\":\"a\"{field}}}"));
    let file = |field: &str| {
        wfformat(task, &format!("{{\"id\":\"f\"{field}}}"), r#"{"id":"a","runtimeInSeconds":1}"#)
    };
    let (one, f) = (r#"{"id":"a","runtimeInSeconds":1}"#, r#"{"id":"f","sizeInBytes":1}"#);
    let two = r#"{"id":"a","children":["b"]},{"id":"b","children":["a"]}"#;
    let runs = r#"{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":1}"#;
    let cases = [
        (wfformat(task, "", ""), format!("dir/x: task \"a\": runtimeInSeconds is missing; {SECONDS}")),
        (run(""), format!("dir/x: task \"a\": runtimeInSeconds is missing; {SECONDS}")),
        (run(",\"runtimeInSeconds\":-2"), format!("dir/x: task \"a\": runtimeInSeconds \"-2\"; {SECONDS}")),
        (
            run(",\"runtimeInSeconds\":\"2 s\""),
            "dir/x: task \"a\": runtimeInSeconds \"\\\"2 s\\\"\"; ".to_owned(),
        ),
        (
            run(",\"runtime\":2"),
            "dir/x: task \"a\": runtime has no unit; runtimeInSeconds is allowed".to_owned(),
        ),
        (
            run(",\"runtimeInSeconds\":NaN"),
            "dir/x:1: no WfFormat: expected value at line 1 column".to_owned(),
        ),
        (file(""), format!("dir/x: file \"f\": sizeInBytes is missing; {BYTES}")),
        (file(",\"size\":1"), "dir/x: file \"f\": size has no unit; sizeInBytes is allowed".to_owned()),
        (file(",\"sizeInBytes\":1.5"), format!("dir/x: file \"f\": sizeInBytes \"1.5\"; {BYTES}")),
        (wfformat(two, "", runs), "dir/x: tasks depend on themselves: \"a\" → \"b\" → \"a\"; ".to_owned()),
        (
            wfformat(&two.replace("\"b\",", "\"a\","), "", runs),
            "dir/x: task \"b\": does not exist; ".to_owned(),
        ),
        (wfformat(task, "", runs), "dir/x: task \"b\": does not exist; ".to_owned()),
        (
            wfformat(&format!("{task},{task}"), "", one),
            "dir/x: task \"a\": given twice; ids are unique".to_owned(),
        ),
        (
            wfformat(task, &format!("{f},{f}"), one),
            "dir/x: file \"f\": given twice; ids are unique".to_owned(),
        ),
        (
            wfformat(task, "", &format!("{one},{one}")),
            "dir/x: execution of task \"a\": given twice; ".to_owned(),
        ),
        (
            wfformat(r#"{"id":"a","parents":["z"]}"#, "", r#"{"id":"a","runtimeInSeconds":1}"#),
            "dir/x: task \"z\": does not exist; ids of tasks of the file are allowed".to_owned(),
        ),
        (
            r#"{"schemaVersion":"1.3"}"#.to_owned(),
            "dir/x: schemaVersion \"\\\"1.3\\\"\"; WfFormat 1.5 is".to_owned(),
        ),
        ("{}".to_owned(), "dir/x: schemaVersion \"missing\"; WfFormat 1.5 is allowed".to_owned()),
        (
            r#"{"schemaVersion":"1.5"}"#.to_owned(),
            "dir/x:1: no WfFormat: missing field `workflow`".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        let error = error(&text, STRICT);
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

#[test]
fn missing_and_negative_numbers_are_zero_on_request() {
    let texts = [
        dax("<job id=\"a\"><uses file=\"f\" link=\"input\"/></job><job id=\"b\" runtime=\"-3\"/>"),
        "TASK a k\nTASK b k -3\nINPUTS a f".to_owned(),
        wfformat(r#"{"id":"a","inputFiles":["f"]},{"id":"b"}"#, "", r#"{"id":"b","runtimeInSeconds":-3}"#),
    ];
    for text in texts {
        let workflow = read_bytes("x", text.as_bytes(), ASSUME_ZERO).unwrap();
        assert_eq!(workflow.tasks().iter().map(|task| task.seconds).collect::<Vec<_>>(), [0.0, 0.0]);
        assert_eq!((workflow.files()[0].bytes, &workflow.tasks()[0].reads[..]), (0, &[0][..]));
    }
    assert!(error(&dax("<job id=\"a\" runtime=\"NaN\"/>"), ASSUME_ZERO).contains("runtime \"NaN\""));
}

#[test]
fn edges_count_once_and_files_of_both_kinds_are_outputs() {
    let texts = [
        dax(&format!(
            "{JOB_A}<job id=\"b\" runtime=\"1\"><uses file=\"f\" link=\"inout\" size=\"1\"/></job>\
             <child ref=\"b\"><parent ref=\"a\"/><parent ref=\"a\"/></child>"
        )),
        "FILE f 1\nTASK a k 1\nTASK b k 1\nINPUTS b f\nOUTPUTS b f\nEDGE a b b\nEDGE a b".to_owned(),
        wfformat(
            r#"{"id":"a","children":["b"]},{"id":"b","parents":["a"],"inputFiles":["f"],"outputFiles":["f"]}"#,
            r#"{"id":"f","sizeInBytes":1}"#,
            r#"{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":1}"#,
        ),
    ];
    for text in texts {
        let workflow = read_bytes("x", text.as_bytes(), STRICT).unwrap();
        assert_eq!(workflow.edges().collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!((&workflow.tasks()[1].reads[..], &workflow.tasks()[1].writes[..]), (&[][..], &[0][..]));
    }
}

#[test]
fn a_task_that_reads_before_its_writer_is_a_cycle_through_files() {
    let head = "FILE f 1\nFILE g 1\nTASK a k 1\nTASK b k 1\n";
    let against = format!("{head}OUTPUTS a f\nINPUTS b f\nEDGE b a");
    let expected = "dir/x: tasks depend on themselves through files: \"a\" → \"b\" → \"a\"; ";
    assert!(error(&against, STRICT).starts_with(expected), "{}", error(&against, STRICT));
    let circle = format!("{head}OUTPUTS a f\nINPUTS b f\nOUTPUTS b g\nINPUTS a g");
    assert!(error(&circle, STRICT).starts_with(expected));
    // Of two writers the reader waits for one.
    let several = format!("{head}TASK c k 1\nOUTPUTS a f\nOUTPUTS c f\nINPUTS b f\nEDGE b a\nEDGE c b");
    assert_eq!(read_bytes("x", several.as_bytes(), STRICT).unwrap().levels().len(), 3);
}

#[test]
fn document_types_and_deep_nesting_are_refused_or_harmless() {
    let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE adag [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<adag name=\"&b;\"/>";
    let expected = "dir/x:1: document type declaration; XML without a document type declaration is allowed";
    assert_eq!(error(bomb, STRICT), expected);
    // Elements within elements need no stack here. Those that are no jobs are left out.
    let deep = dax(&format!("{}{}", "<a>".repeat(20_000), "</a>".repeat(20_000)));
    assert!(read_bytes("x", deep.as_bytes(), STRICT).unwrap().tasks().is_empty());
    let deep = format!("{{\"schemaVersion\":{}", "[".repeat(100_000));
    assert!(error(&deep, STRICT).contains("recursion limit exceeded"));
}

#[test]
fn compressed_zeros_are_refused_at_the_limit() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![0; 1 << 20]).unwrap();
    let bytes = encoder.finish().unwrap();
    assert!(bytes.len() < 8_000);
    let options = ReadOptions { max_bytes: 100_000, ..STRICT };
    let error = read_bytes("zeros.gz", &bytes, options).unwrap_err().to_string();
    assert_eq!(error, "zeros.gz: text too long; 100000 bytes are allowed after decompression");
    let error = read_bytes("zeros", &[b' '; 11], ReadOptions { max_bytes: 10, ..STRICT }).unwrap_err();
    assert!(error.to_string().starts_with("zeros: text too long; 10 bytes"));
    let error = read_bytes("short.gz", &bytes[..100], STRICT).unwrap_err().to_string();
    assert!(error.starts_with("short.gz: failed to read: "), "{error}");
}

#[test]
fn content_without_a_format_is_refused() {
    for text in ["", "  \n", "hello", "[1]", "JOB a b"] {
        assert!(
            error(text, STRICT).starts_with("dir/x: unknown format; DAX 2.1 (XML with <adag>), "),
            "{text}"
        );
    }
    let error = read_bytes("x\n", b"TASK \xff", STRICT).unwrap_err().to_string();
    assert_eq!(error, "x\u{fffd}: byte 5 is no UTF-8; text in UTF-8 is allowed");
    let missing =
        pleach_clustering::read(std::path::Path::new("no/such/file"), STRICT).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file: failed to read: "), "{missing}");
}

#[test]
fn lines_of_a_million_edges_are_read() {
    let edges = 1_000_000;
    let dag = format!("TASK a k 1\nTASK b k 1\nEDGE a{}", " b".repeat(edges));
    assert_eq!(read_bytes("x", dag.as_bytes(), STRICT).unwrap().edges().collect::<Vec<_>>(), [(0, 1)]);
    // A tenth for the slower syntaxes: their lines are as long as the whole file.
    let list = "<parent ref=\"a\"/>".repeat(edges / 10);
    let xml = dax(&format!("{JOB_A}{JOB_B}<child ref=\"b\">{list}</child>"));
    assert_eq!(read_bytes("x", xml.as_bytes(), STRICT).unwrap().edges().count(), 1);
    // An error at the end of a long line needs one pass for its line.
    let wrong = dax(&format!("{JOB_A}{JOB_B}<child ref=\"b\">{list}<parent ref=\"c\"/></child>"));
    assert!(error(&wrong, STRICT).starts_with("dir/x:2: task \"c\": does not exist"));
    let children = vec!["\"b\""; edges / 10].join(",");
    let tasks = format!(r#"{{"id":"a","children":[{children}]}},{{"id":"b"}}"#);
    let json = wfformat(&tasks, "", r#"{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":1}"#);
    assert_eq!(read_bytes("x", json.as_bytes(), STRICT).unwrap().edges().count(), 1);
}

#[test]
fn names_that_are_paths_are_names_only() {
    let text = "FILE /etc/passwd 1\nFILE ../../up 2\nTASK /bin/sh http://host/x 1\nINPUTS /bin/sh /etc/passwd ../../up";
    let workflow = read_bytes("x", text.as_bytes(), STRICT).unwrap();
    assert_eq!(
        (workflow.tasks()[0].id.as_str(), workflow.files()[0].name.as_str()),
        ("/bin/sh", "/etc/passwd")
    );
}

#[test]
fn names_in_messages_are_escaped_and_short() {
    let text = format!("TASK \u{1b}[31m{} k x", "y".repeat(100_000));
    let error = error(&text, STRICT);
    assert!(
        error.starts_with("dir/x:1: task \"\\u{1b}[31myyy") && error.contains("…\": run time \"x\""),
        "{error}"
    );
}
