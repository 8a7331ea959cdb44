//! Every method, and every format of samples and responses.

use crate::{Outside, number, truth};
use serde_json::Value;

#[test]
fn vbd_of_ishigami_is_near_the_analytic_indices() {
    let outside = Outside::ishigami();
    let said = outside.done("sample problem.json --method vbd --samples 2048 --second-order --out x.csv");
    assert_eq!(said, "x.csv: 16384 evaluations of 3 varying parameters for method vbd, seed 0\n");
    outside.respond("x.csv", "y.csv");
    for estimator in ["saltelli", "jansen", "janon"] {
        let words = format!(
            "analyze problem.json --method vbd --samples x.csv --responses y.csv --estimator {estimator}"
        );
        let found = outside.json(&words);
        assert_eq!(found.pointer("/responses/0/indices/estimator"), Some(&estimator.into()));
        for (parameter, [first, total]) in truth().into_iter().enumerate() {
            let near = |path: &str, truth: f64| {
                let value = number(&found, parameter, &format!("{path}/value"));
                let conf = number(&found, parameter, &format!("{path}/conf"));
                assert!(
                    (value - truth).abs() <= 1.5 * conf,
                    "{estimator} {path} {parameter}: {value} ± {conf}, {truth}"
                );
            };
            near("first", first);
            near("total", total);
        }
    }
    let printed =
        outside.done("analyze problem.json --method sobol --samples x.csv --responses y.csv --out found");
    assert!(printed.starts_with("parameters by their share of the variance of y\n"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let table = outside.read("found/indices.csv");
    assert!(
        table.starts_with("response,parameter,first,first_conf,total,total_conf,failed\ny,x1,"),
        "{table}"
    );
    assert_eq!(outside.read("found/second-order.csv").lines().count(), 4);
    let written: Value = serde_json::from_str(&outside.read("found/indices.json")).unwrap();
    assert_eq!(
        number(&written, 0, "first/value").to_string(),
        table.lines().nth(1).unwrap().split(',').nth(2).unwrap()
    );
}

/// The same numbers give the same indices, bit by bit, in every file format.
#[test]
fn files_do_not_change_a_result() {
    let outside = Outside::ishigami();
    outside.done("sample problem.json --method vbd --samples 16 --out x.csv");
    outside.done("sample problem.json --method vbd --samples 16 --out x.parquet");
    outside.done("sample problem.json --method vbd --samples 16 --out x.tsv");
    let responses = outside.respond("x.csv", "y.csv");
    let rows = outside.samples("x.csv");
    let analyzed = |samples: &str, responses: &str| {
        let responses = if responses.is_empty() { String::new() } else { format!("--responses {responses}") };
        let found =
            outside.json(&format!("analyze problem.json --method vbd --samples {samples} {responses}"));
        found["responses"].clone()
    };
    let expected = analyzed("x.csv", "y.csv");
    assert!(expected[0]["indices"]["parameters"][0]["first"]["value"].is_number());
    assert_eq!(analyzed("x.parquet", "y.csv"), expected);
    assert_eq!(analyzed("x.tsv", "y.csv"), expected);

    // The format of numpy: blanks as separators and no names.
    let text = |row: &Vec<f64>| row.iter().map(|x| format!("{x:e}")).collect::<Vec<_>>().join(" ") + "\n";
    outside.write("x.txt", rows.iter().map(text).collect::<String>());
    outside.write("y.txt", responses.iter().map(|y| format!("  {y:e}\n")).collect::<String>());
    assert_eq!(analyzed("x.txt", "y.txt"), expected);

    // Numbered responses in reverse order. Then one table with shuffled rows, as a spreadsheet writes it.
    let mut numbered: Vec<String> =
        responses.iter().zip(1..).map(|(y, number)| format!("{number},{y}\r\n")).collect();
    numbered.reverse();
    outside.write("back.csv", format!("\u{feff}evaluation,y\r\n{}", numbered.concat()));
    assert_eq!(analyzed("x.csv", "back.csv"), expected);
    let comma = |number: &f64| number.to_string().replace('.', ",");
    let mut all: Vec<String> = rows
        .iter()
        .zip(&responses)
        .zip(1..)
        .map(|((row, y), number)| {
            let fields: Vec<String> = row.iter().chain([y]).map(comma).collect();
            format!("{};{number}\r\n", fields.join(";"))
        })
        .collect();
    all.rotate_left(31);
    outside.write("all.csv", format!("x1;x2;x3;y;evaluation\r\n{}", all.concat()));
    assert_eq!(analyzed("all.csv", ""), expected);

    // Dakota's annotated table.
    let line = |((row, y), number): ((&Vec<f64>, &f64), i32)| {
        let fields: Vec<String> = row.iter().chain([y]).map(ToString::to_string).collect();
        format!("{number:<8} NO_ID   {}\n", fields.join("    "))
    };
    let lines: String = rows.iter().zip(&responses).zip(1..).map(line).collect();
    outside.write("dakota_tabular.dat", format!("%eval_id interface x1 x2 x3 y\n{lines}"));
    assert_eq!(analyzed("dakota_tabular.dat", ""), expected);
}

#[test]
fn every_method_can_be_reached() {
    let outside = Outside::ishigami();
    for (method, sample, index) in [
        ("moat", "--trajectories 20 --levels 4", "mu_star"),
        ("morris", "--trajectories 6 --candidates 12 --sampler halton", "mu_star"),
        ("vbd", "--samples 64 --sampler lhs", "total"),
        ("correlation", "--samples 200", "prcc"),
        ("correlation", "--sampler factorial --levels 4", "spearman"),
        ("pawn", "--samples 300 --sampler sobol", "median"),
        ("delta", "--samples 300 --sampler mc", "delta"),
        ("fast", "--samples 129", "first"),
        ("rbd-fast", "--samples 300 --sampler halton-plain", "coefficient"),
    ] {
        outside.done(&format!("sample problem.json --method {method} {sample} --seed 7 --out x.csv"));
        outside.respond("x.csv", "y.csv");
        let found = outside
            .json(&format!("analyze problem.json --method {method} --samples x.csv --responses y.csv"));
        let value = found.pointer(&format!("/responses/0/indices/parameters/1/{index}"));
        let value = value.and_then(|index| index.as_f64().or(index["value"].as_f64()));
        assert!(value.is_some_and(f64::is_finite), "{method}: {found}");
        let printed = outside
            .done(&format!("analyze problem.json --method {method} --samples x.csv --responses y.csv"));
        assert!(["x1", "x2", "x3"].iter().all(|name| printed.contains(&format!("\n{name} "))), "{printed}");
    }
    outside.done("sample problem.json --method regression --samples 200 --out x.csv");
    outside.respond("x.csv", "y.csv");
    let found = outside.json("analyze problem.json --method regression --samples x.csv --responses y.csv");
    assert!(
        found.pointer("/responses/0/indices/srrc/r_squared/value").is_some_and(Value::is_number),
        "{found}"
    );
}

/// Moment-independent indices of Ishigami's function rank its parameters as the variance does.
#[test]
fn other_methods_agree_that_x2_matters_and_x3_less() {
    let outside = Outside::ishigami();
    outside.done("sample problem.json --method pawn --samples 2000 --out x.csv");
    outside.respond("x.csv", "y.csv");
    for (method, index) in
        [("pawn", "median/value"), ("delta", "delta/value"), ("rbd-fast", "coefficient/value")]
    {
        let found = outside.json(&format!(
            "analyze problem.json --method {method} --resamples 20 --samples x.csv --responses y.csv"
        ));
        let [_, x2, x3] = [0, 1, 2].map(|parameter| number(&found, parameter, index));
        assert!(x2 > x3, "{method}: {x2} {x3}");
    }
}

#[test]
fn several_responses_are_analyzed_at_once() {
    let outside = Outside::ishigami();
    outside.done("sample problem.json --method moat --trajectories 5 --levels 4 --out x.csv");
    let rows = outside.samples("x.csv");
    // The second response is linear and fails in evaluation 7, which drops its trajectory.
    let line = |(row, number): (&Vec<f64>, i32)| {
        let linear = if number == 7 { String::new() } else { (3.0 * row[0] - row[2]).to_string() };
        format!("{},{linear}\n", crate::ishigami(row))
    };
    let lines: String = rows.iter().zip(1..).map(line).collect();
    outside.write("y.csv", format!("wavy,straight\n{lines}"));
    let words = "analyze problem.json --method moat --levels 4 --samples x.csv --responses y.csv";
    let found = outside.json(words);
    let straight = &found["responses"][1]["indices"];
    assert_eq!((&straight["response"], &straight["trajectories_dropped"]), (&"straight".into(), &1.into()));
    let range = 2.0 * std::f64::consts::PI;
    for (parameter, slope) in [3.0, 0.0, -1.0].into_iter().enumerate() {
        let mu = straight["parameters"][parameter]["mu"].as_f64().unwrap();
        assert!((mu - slope * range).abs() < 1e-9, "{mu}");
    }
    assert_eq!(found["responses"][0]["indices"]["trajectories_dropped"], 0);
    let one = outside.json(&format!("{words} --response straight"));
    assert_eq!(one["responses"][0], found["responses"][1]);
    assert!(
        outside.done(words).contains("note: 1 of 5 trajectories are excluded, because evaluations failed\n")
    );
    let with_out = outside.done(&format!("{words} --out found"));
    assert!(with_out.ends_with("results in found\n"), "{with_out}");
    assert_eq!(
        outside.read("found/indices.csv").lines().filter(|line| line.starts_with("straight,")).count(),
        3
    );
}
