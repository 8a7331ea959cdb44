//! Unusable input: one line names the place and the allowed values, and no file is left behind.

use crate::Outside;
use std::path::Path;

/// A problem with valid samples and responses, for tests to corrupt.
fn usable(method: &str) -> Outside {
    let outside = Outside::ishigami();
    outside.done(&format!("sample problem.json --method {method} --out x.csv"));
    outside.respond("x.csv", "y.csv");
    outside
}

/// Analyzes responses of a plain sample.
const ANALYZE: &str = "analyze problem.json --method correlation --samples x.csv --responses y.csv";

#[test]
fn non_numeric_responses_are_refused() {
    let outside = usable("correlation --samples 8");
    let good = outside.read("y.csv");
    for text in ["NaN", "inf", "-Infinity", "failed", "1e999", "0x10"] {
        let mut lines: Vec<&str> = good.lines().collect();
        lines[4] = text;
        outside.write("y.csv", lines.join("\r\n"));
        let left_empty = "leave the field of a failed evaluation empty";
        outside.refused(
            ANALYZE,
            &format!("y.csv: line 5, column y: \"{text}\" is not a finite number; {left_empty}\n"),
        );
    }
    outside.write("y.csv", good.replace('\n', "\n\n").replacen(".", ",", 1));
    outside.refused(ANALYZE, "y.csv: line 3 has 2 fields; the first line has 1, separated by commas\n");
    outside.write("y.csv", "y\n1\n2\n3\n\"4,5\"\n5\n6\n7\n8\n");
    outside.refused(
        ANALYZE,
        "y.csv: line 5, column y: \"4,5\" is not a finite number; a decimal point is needed;",
    );
    let lines: String = (1..=8).map(|number| format!("{number};{number},5\r\n")).collect();
    outside.write("y.csv", format!("\u{feff}evaluation;y\r\n{lines}"));
    outside.done(ANALYZE);
}

#[test]
fn non_numeric_samples_are_refused() {
    let outside = usable("correlation --samples 8");
    let good = outside.read("x.csv");
    let spoilt = |row: usize, text: &str| {
        let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
        let (kept, _) = lines[row].rsplit_once(',').unwrap();
        lines[row] = format!("{kept},{text}");
        outside.write("x.csv", lines.join("\n"));
    };
    spoilt(3, "high");
    outside.refused(ANALYZE, "x.csv: line 4, column x3: \"high\" is not a finite number");
    spoilt(8, "nan");
    outside.refused(ANALYZE, "x.csv: line 9, column x3: \"nan\" is not a finite number");
    spoilt(2, "");
    outside.refused(ANALYZE, "x.csv: line 3, column x3: missing value; each evaluation needs one\n");
    spoilt(2, "1,5");
    outside.refused(ANALYZE, "x.csv: line 3 has 5 fields; the first line has 4, separated by commas\n");
    outside.write(
        "whole.toml",
        "[parameters.x1]\ntype = \"integer\"\nrange = [0, 9]\n[parameters.x2]\nfixed = 4\n",
    );
    let words = "analyze whole.toml --method correlation --samples x.csv";
    outside.write("x.csv", "x1,x2,y\n1,4,1\n2,4,2\n2.5,4,2\n");
    outside.refused(words, "x.csv: line 4, column x1: 2.5 is not an integer\n");
    outside.write("x.csv", "x1,x2,y\n1,4,1\n2,5,2\n2,4,2\n");
    outside
        .refused(words, "x.csv: line 3, column x2: 5 is not allowed; the problem fixes the parameter at 4\n");
}

#[test]
fn missing_and_duplicate_columns_are_refused() {
    let outside = usable("correlation --samples 8");
    outside.write("x.csv", "evaluation,x1,x3\n1,2,3\n");
    outside.refused(ANALYZE, "x.csv: column \"x2\": missing; the header has evaluation, x1, x3\n");
    outside.write("x.csv", "x1,x2,x3,x2\n1,2,3,4\n");
    outside.refused(ANALYZE, "x.csv: line 1: column \"x2\" occurs twice; column names must be unique\n");
    outside.write("x.csv", "1,2\n3,4\n");
    let names = "2 columns without names, but the problem has 3 parameters, 3 of them varying; a header \
                 with column names is needed\n";
    outside.refused(ANALYZE, &format!("x.csv: {names}"));
    outside.done("sample problem.json --method correlation --samples 8 --out x.csv");
    outside.write("y.csv", "evaluation,x1\n1,2\n");
    outside.refused(ANALYZE, "y.csv: no response column; the columns are evaluation, x1\n");
    outside.write("y.csv", "evaluation,y,y\n1,2,3\n");
    outside.refused(ANALYZE, "y.csv: line 1: column \"y\" occurs twice");
    outside.write("y.csv", "y\n1\n2\n3\n4\n5\n6\n7\n8\n");
    outside.refused(
        &format!("{ANALYZE} --response z"),
        "y.csv: --response: \"z\" is not a column; the columns are y\n",
    );
    outside.refused(
        &ANALYZE.replace("--responses y.csv", ""),
        "x.csv: no response column; the columns are evaluation, x1, x2, x3\n",
    );
}

#[test]
fn unpaired_rows_are_refused() {
    let outside = usable("correlation --samples 8");
    outside.write("y.csv", "y\n1\n2\n3\n");
    outside.refused(ANALYZE, "y.csv: 3 rows, but x.csv has 8; one row per evaluation is needed");
    let numbered = |extra: &str| {
        let lines: String =
            (1..=8).map(|number| format!("{number},{}\n", f64::from(number).sqrt())).collect();
        outside.write("y.csv", format!("evaluation,y\n{lines}{extra}"));
    };
    numbered("9,1\n");
    outside.refused(ANALYZE, "y.csv: line 10: evaluation 9 is not in x.csv, which has 1 to 8\n");
    numbered("3,1\n");
    outside.refused(ANALYZE, "y.csv: line 10: the evaluation occurs a second time;");
    numbered("1.5,1\n");
    outside.refused(
        ANALYZE,
        "y.csv: line 10, column evaluation: 1.5 is not the number of an evaluation; numbers from 1 are \
         allowed\n",
    );
    numbered(",1\n");
    outside.refused(
        ANALYZE,
        "y.csv: line 10, column evaluation: an empty field is not the number of an evaluation;",
    );
    outside.write("y.csv", "evaluation,tile,y\n1,a,1\n1,b,2\n1,a,3\n");
    outside.refused(
        ANALYZE,
        "y.csv: line 4: the evaluation occurs a second time for tile \"a\"; one row per evaluation and tile \
         is allowed\n",
    );
    outside.write("x.csv", "evaluation,x1,x2,x3\n1,1,2,3\n2,2,1,3\n1,1,2,0\n");
    outside.refused(ANALYZE, "x.csv: line 4: evaluation 1 occurs a second time; numbers must be unique\n");
    outside.write("x.csv", "evaluation,x1,x2,x3\n");
    outside.refused(ANALYZE, "x.csv: no rows; at least one parameter set is needed\n");
    outside.refused(&ANALYZE.replace("x.csv", "none.csv"), "none.csv: failed to read: No such file");
}

#[test]
fn too_few_rows_for_a_method_are_refused() {
    let outside = usable("correlation --samples 8");
    let rows: String = (1..=8).map(|number| format!("{number}\n")).collect();
    outside.write("y.csv", format!("y\n{rows}"));
    let refused = |method: &str, said: &str| {
        outside.refused(&ANALYZE.replace("correlation", method), &format!("y.csv: {said}"))
    };
    refused("delta", "8 evaluations of response y are complete (0 are not); delta needs at least 20\n");
    refused("rbd-fast", "8 evaluations of response y are complete (0 are not); rbd-fast needs at least 42\n");
    refused("pawn", "slices = 10 does not suit pawn; allowed are 2 to the number of evaluations, 8\n");
    outside.write("y.csv", "y\n1\n2\n\"\"\n\"\"\n\"\"\n\"\"\n\"\"\n\"\"\n");
    refused(
        "correlation",
        "2 evaluations of response y are complete (6 are not); pearson needs at least 3\n",
    );
    let outside = usable("vbd --samples 4");
    outside.write("y.csv", format!("evaluation,y\n{}", "1,2\n"));
    outside.refused(
        "analyze problem.json --method vbd --samples x.csv --responses y.csv",
        "y.csv: 0 base samples of response y are complete (4 are not); vbd needs at least 2\n",
    );
    let outside = usable("moat --trajectories 2");
    outside.write("y.csv", "evaluation,y\n1,2\n");
    outside.refused(
        "analyze problem.json --method moat --samples x.csv --responses y.csv",
        "y.csv: all 2 trajectories lack responses; at least one complete trajectory is needed\n",
    );
}

#[test]
fn samples_without_the_design_are_refused() {
    let outside = usable("vbd --samples 4");
    let analyze =
        |method: &str| format!("analyze problem.json --method {method} --samples x.csv --responses y.csv");
    let good = outside.samples("x.csv");
    let write = |rows: &[Vec<f64>]| {
        let row = |row: &Vec<f64>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n";
        outside.write("x.csv", format!("x1,x2,x3\n{}", rows.iter().map(row).collect::<String>()));
    };
    let mut rows = good.clone();
    rows[12][2] = 0.5;
    write(&rows);
    let expected = format!(
        "x.csv: evaluation 13: x3 is 0.5 instead of {}: in Saltelli's design the row is A with x2 of B, of \
         the block that starts at evaluation 11\n",
        good[10][2]
    );
    outside.refused(&analyze("vbd"), &expected);
    write(&good[..19]);
    outside.refused(
        &analyze("vbd"),
        "x.csv: 19 evaluations do not form complete blocks of Saltelli's design; a block of 3 varying",
    );
    outside.refused(
        &analyze("moat"),
        "x.csv: evaluation 3 changes x1, x2 of the evaluation before; a trajectory of these 3 varying",
    );
    outside.refused(&analyze("fast"), "x.csv: 19 evaluations do not form 3 search curves of equal length");
    outside.refused(
        &format!("{} --second-order", analyze("vbd")),
        "x.csv: 19 evaluations do not form complete blocks of 8, with second order\n",
    );
    let numbered: String = good
        .iter()
        .zip(1..)
        .filter(|(_, n)| *n != 7)
        .map(|(r, n)| format!("{n},{},{},{}\n", r[0], r[1], r[2]))
        .collect();
    outside.write("x.csv", format!("evaluation,x1,x2,x3\n{numbered}"));
    outside.refused(
        &analyze("vbd"),
        "x.csv: evaluation 7 is missing; the design of this method needs all rows, with an empty response for a failed evaluation\n",
    );

    let outside = usable("fast --samples 65");
    let mut lines: Vec<String> = outside.read("x.csv").lines().map(str::to_owned).collect();
    lines.swap(80, 81);
    outside.write("x.csv", lines.join("\n").replace("evaluation", "number"));
    outside.refused(
        "analyze problem.json --method fast --samples x.csv --responses y.csv",
        "x.csv: evaluation 80: x1 is ",
    );
}

#[test]
fn invalid_problems_are_refused() {
    let outside = Outside::ishigami();
    let refused = |problem: &str, said: &str| {
        outside.write("p.json", problem);
        outside.refused("sample p.json --method vbd --samples 8 --out x.csv", &format!("p.json: {said}"));
    };
    refused(
        r#"{"names": ["a", "b"], "bounds": [[0, 1], [3, 2]]}"#,
        "bounds[1]: the lower bound 3 is above the upper bound 2\n",
    );
    refused(
        r#"{"names": ["a", "a"], "bounds": [[0, 1], [0, 1]]}"#,
        "names[1]: the name \"a\" is not allowed",
    );
    refused(
        r#"{"names": ["a"], "bounds": [[0, 1], [0, 1]]}"#,
        "bounds has 2 entries; 1 are needed, one per \
                                                                name",
    );
    refused(r#"{"names": ["a"], "bounds": [[0, "1"]]}"#, "bounds[0][1]: \"1\" is not a number\n");
    refused(
        r#"{"names": ["a"], "bounds": [[2, 2]]}"#,
        "method: no parameter varies; at least one needs a range or two values\n",
    );
    refused("names: a", "line 1, column 2: invalid JSON: ");
    let study = |text: &str, said: &str| {
        outside.write("s.toml", text);
        outside.refused("sample s.toml --out x.csv", &format!("s.toml: {said}"));
    };
    study(
        "[method]\nkind = \"vbd\"\nsamples = 4\n[parameters.a]\nrange = [3, 2]\n",
        "parameters.a.range: range [3, 2] is empty; the first number must be below the second\n",
    );
    study(
        "[method]\nkind = \"vbd\"\n[parameters.a]\nstep = 2\n",
        "parameters.a: missing; one of range, values, fixed and distribution is needed\n",
    );
    study("[method]\nkind = \"vbd\"\n", "parameters: missing; this section is needed\n");
    study("[parameters.a]\nrange = [0, 1]\n", "method: missing; --method is needed: moat, vbd, correlation");
    study(
        "[method]\nkind = \"vbd\"\nslices = 3\n[parameters.a]\nrange = [0, 1]\n",
        "method.slices: not a setting of method \"vbd\"; allowed are sampler, base, samples",
    );
    study(
        "[method]\nkind = \"vbd\"\n[parameters.a]\nrange = [0, 1]\n",
        "samples: missing; method \"vbd\" needs --samples\n",
    );
    study(
        "[method]\nkind = \"vbd\"\nsamples = 0\n[parameters.a]\nrange = [0, 1]\n",
        "method.samples: 0 is not allowed; allowed: 1 to 10000000\n",
    );
    study(
        "[study]\nsed = 4\n[parameters.a]\nrange = [0, 1]\n",
        "study.sed: unknown; known are name, workflow, seed, durability\n",
    );
    study(
        "[input]\n[parameters.a]\nrange = [0, 1]\n",
        "input: unknown; known are study, method, parameters\n",
    );
    outside.refused("sample problem.yaml --out x.csv", "problem.yaml: failed to read: No such file");
    outside.write("problem.yaml", "names: a");
    outside.refused(
        "sample problem.yaml --out x.csv",
        "problem.yaml: unknown file name extension; a study (.toml)",
    );
}

#[test]
fn incompatible_sampler_and_method_are_refused() {
    let outside = Outside::ishigami();
    let refused =
        |words: &str, said: &str| outside.refused(&format!("sample problem.json --out x.csv {words}"), said);
    refused(
        "--method vbd --samples 8 --sampler factorial",
        "--sampler: sampler \"factorial\" does not suit method \"vbd\": the rows of a grid",
    );
    refused(
        "--method moat --sampler fractional-factorial",
        "--sampler: sampler \"fractional-factorial\" does not suit method \"moat\": trajectories start",
    );
    refused(
        "--method fast --samples 99 --sampler sobol",
        "--sampler: sampler \"sobol\" does not suit method \"fast\": its indices require search curves",
    );
    refused(
        "--method pawn --sampler factorial",
        "--sampler: sampler \"factorial\" does not suit method \"distribution\": a few repeated levels",
    );
    refused(
        "--method vbd --samples 8 --sampler lhs-maximin",
        "--sampler: \"lhs-maximin\" is not allowed; allowed: sobol, mc, lhs, halton, hammersley (",
    );
    refused(
        "--method delta --samples 8 --sampler latin",
        "invalid value 'latin' for '--sampler <NAME>'; [possible values: mc, lhs, ",
    );
    refused(
        "--method vbd --samples 8 --trajectories 3",
        "--trajectories: not a setting of method \"vbd\"; allowed are sampler, base, samples, second_order",
    );
    refused(
        "--method fast --samples 64",
        "problem.json: method: samples = 64 does not suit efast; allowed are more than 4·harmonics², 64, for a parameter\n",
    );
    refused("--method sobl", "invalid value 'sobl' for '--method <NAME>'");
    refused(
        "--method vbd --samples 10000001",
        "--samples: 10000001 is not allowed; allowed: 1 to 10000000\n",
    );
    refused(
        "--method vbd --samples 2000001",
        "problem.json: method: samples = 2000001 need 10000005 evaluations, 5 per sample; at most 10000000 \
         are allowed, for 2000000 samples\n",
    );
    outside.refused(
        "sample problem.json --method vbd --samples 4 --out none/x.csv",
        "--out none/x.csv: failed to write: No such file",
    );
}

/// A parameter of one level does not vary, and the analysis omits it.
#[test]
fn parameter_of_one_level_does_not_vary() {
    let outside = Outside::ishigami();
    outside.write("p.json", r#"{"names": ["x1", "rest", "x2"], "bounds": [[0, 1], [4, 4], [0, 2]]}"#);
    outside.write(
        "s.toml",
        "[parameters.x1]\nrange = [0, 1]\n[parameters.rest]\nvalues = [4]\n[parameters.x2]\nrange = [0, 2]\n",
    );
    for problem in ["p.json", "s.toml"] {
        for method in ["vbd --samples 8", "moat", "correlation --samples 20"] {
            let kind = method.split(' ').next().unwrap();
            outside.done(&format!("sample {problem} --method {method} --out x.csv"));
            let rows = outside.samples("x.csv");
            assert!(rows.iter().all(|row| row[1] == 4.0), "{rows:?}");
            outside.write(
                "y.csv",
                rows.iter().map(|row| format!("{}\n", row[0] - 3.0 * row[2])).collect::<String>(),
            );
            let found =
                outside.json(&format!("analyze {problem} --method {kind} --samples x.csv --responses y.csv"));
            let parameters = found.pointer("/responses/0/indices/parameters").unwrap().as_array().unwrap();
            assert_eq!(parameters.iter().map(|p| &p["name"]).collect::<Vec<_>>(), ["x1", "x2"]);
        }
    }
}

#[test]
fn folders_of_studies_are_left_alone() {
    let outside = usable("correlation --samples 8");
    std::fs::create_dir(outside.path("out")).unwrap();
    outside.write("out/plan.json", "{}");
    outside.refused(
        &format!("{ANALYZE} --out out"),
        "--out out: contains results of a study; another folder is allowed\n",
    );
    outside.refused(&format!("{ANALYZE} --out y.csv"), "--out y.csv: cannot be created: ");
}

/// Files that pyarrow wrote: a NaN, which is not a missing value, and columns without numbers.
#[test]
fn unusable_parquet_is_refused() {
    let outside = Outside::ishigami();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/tables/tests/fixtures");
    for name in ["odd.parquet", "pandas.parquet"] {
        outside.write(name, std::fs::read(fixtures.join(name)).expect("a fixture"));
    }
    let refused = |problem: &str, file: &str, said: &str| {
        outside.write("p.json", problem);
        let words = format!("analyze p.json --method correlation --samples {file}");
        outside.refused(&words, &format!("{file}: {said}"));
    };
    let one = |name: &str| format!("{{\"names\": [\"{name}\"], \"bounds\": [[-1000000, 1000000]]}}");
    refused(
        &one("x"),
        "odd.parquet",
        "row 2, column x: NaN is not a finite number; null is allowed for a missing number",
    );
    refused(&one("x1"), "odd.parquet", "column \"x1\": missing; the header has x, all.list.element, y\n");
    refused(&one("tile"), "pandas.parquet", "column tile holds texts; numbers are allowed\n");
    refused(&one("y"), "pandas.parquet", "row 4, column y: missing value; each evaluation needs one\n");
    refused(
        &one("x1"),
        "pandas.parquet",
        "column when holds values of the type Timestamp; numbers are allowed\n",
    );
    // Nulls are failed evaluations.
    outside.write("p.json", one("x1"));
    outside.write("y.csv", "y\n".to_owned() + &"1.5\n".repeat(39) + "2\n");
    let found =
        outside.json("analyze p.json --method correlation --samples pandas.parquet --responses y.csv");
    assert_eq!(found.pointer("/responses/0/indices/evaluations_used"), Some(&40.into()));
    outside.write("broken.parquet", "PAR1 and no more");
    outside.refused(
        "analyze p.json --method correlation --samples broken.parquet",
        "broken.parquet: invalid Parquet: ",
    );
}
