//! Arguments that are not in the grammar.

use crate::{refused, refused_as};

#[test]
fn one_line_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |args: &str, expected: &str| {
        refused(folder.path(), &args.split(' ').collect::<Vec<_>>(), expected);
    };
    refused("weave", "unrecognized subcommand 'weave'");
    refused("run", "the following required arguments were not provided: <STUDY>");
    refused("run a.toml b.toml", "unexpected argument 'b.toml' found");
    refused("run a.toml --out", "a value is required for '--out <DIR>' but none was supplied");
    let count = "a whole number of at least 1 is allowed";
    refused(
        "run a.toml --max-bucket-size 0",
        &format!("invalid value '0' for '--max-bucket-size <N>': {count}"),
    );
    refused("tissue --out x --count 0", &format!("invalid value '0' for '--count <N>': {count}"));
    refused("tissue --out x --size 9.5", &format!("invalid value '9.5' for '--size <PX>': {count}"));
    refused("run a.toml --workers 0", "invalid value '0' for '--workers <N>': 1 to 1024 is allowed");
    refused("run a.toml --workers 1025", "invalid value '1025' for '--workers <N>': 1 to 1024 is allowed");
}

#[test]
fn what_is_allowed_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused_as = |args: &[&str], beginning: &str| refused_as(folder.path(), args, beginning);
    let strategies =
        "invalid value 'sca' for '--strategy <STRATEGY>'; [possible values: none, stage, naive, rtma";
    refused_as(&["run", "a.toml", "--strategy", "sca"], strategies);
    refused_as(&["plan", "a.toml", "--strategy", "sca"], strategies);
    let reuse = "invalid value 'value' for '--reuse <REUSE>'; [possible values: tree";
    refused_as(&["run", "a.toml", "--reuse", "value"], reuse);
    refused_as(&["run", "a.toml", "--resume"], "unexpected argument '--resume' found");
    refused_as(&["segment", "a.png"], "the following required arguments were not provided: --out <MASK.png");
}
