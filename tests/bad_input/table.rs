//! Invalid tables of parameter sets are refused.

use crate::study::Study;
use crate::{KNOWN, refused, refused_as};

#[test]
fn invalid_parameter_tables_are_refused() {
    let study = Study::of_tissue(64);
    study.write(
        "by_method.toml",
        crate::study::STUDY
            .replace("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"table\"\nfile = \"t.csv\""),
    );
    let refused = |table: &str, expected: &str| {
        study.write("t.csv", table);
        let expected = format!("t.csv: {expected}");
        refused(
            study.folder(),
            &["run", "study.toml", "--parameter-sets", "t.csv", "--out", "out"],
            &expected,
        );
        refused(study.folder(), &["plan", "study.toml", "--parameter-sets", "t.csv"], &expected);
        refused(study.folder(), &["run", "by_method.toml", "--out", "out"], &expected);
    };
    let unknown =
        format!("line 1: column 2 is \"G3\", which is not a parameter; allowed are {KNOWN} and evaluation");
    refused("G1,G3\n60,1\n", &unknown);
    refused("G1,T1\n60,5\n60.5,5\n", "line 3, column G1: \"60.5\" is not an integer");
    refused("G1,T1\n60,five\n", "line 2, column T1: \"five\" is not a finite number");
    refused("T1\nNaN\n", "line 2, column T1: \"NaN\" is not a finite number");
    refused("T1,G1\n,60\n", "line 2, column T1: \"\" is not a finite number");
    refused("G1,T1\n60\n", "line 2 has 1 fields; the first line has 2, separated by commas");
    refused("G1,T1\n60,5\n60,5,7\n", "line 3 has 3 fields; the first line has 2, separated by commas");
    refused("", &format!("the table is empty; a header that names parameters is needed ({KNOWN})"));
    refused("G1,T1\n", "the table has a header and no rows; at least one parameter set is needed");
    refused("G1,G1\n60,60\n", "line 1: column \"G1\" occurs twice; column names must be unique");
}

#[test]
fn table_values_outside_an_operation_are_refused() {
    let study = Study::of_tissue(64);
    study.write("t.csv", "FillHoles,G1\n4,60\n6,60\n");
    let expected =
        "t.csv: evaluation 2: parameter FillHoles = 6: operation nuclei.candidates accepts one of 4 8";
    refused(study.folder(), &["run", "study.toml", "--parameter-sets", "t.csv", "--out", "out"], expected);
    refused(study.folder(), &["plan", "study.toml", "--parameter-sets", "t.csv"], expected);
    study.write(
        "by_method.toml",
        crate::study::STUDY
            .replace("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"table\"\nfile = \"t.csv\""),
    );
    refused(study.folder(), &["run", "by_method.toml", "--out", "out"], expected);
    refused(study.folder(), &["plan", "by_method.toml"], expected);
}

#[test]
fn non_table_files_are_refused() {
    let study = Study::of_tissue(64);
    let run = |table| ["run", "study.toml", "--out", "out", "--parameter-sets", table];
    refused(
        study.folder(),
        &run("none.csv"),
        "none.csv: failed to read: No such file or directory (os error 2)",
    );
    refused(study.folder(), &run("tiles"), "tiles: failed to read: Is a directory (os error 21)");
    refused_as(study.folder(), &run("tiles/tissue_01.png"), "tiles/tissue_01.png: failed to read: ");
}
