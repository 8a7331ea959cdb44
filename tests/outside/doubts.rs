//! Samples that do not suit the problem or the method are refused or warned of once, in one line for all parameters.

use crate::Outside;

/// A sample of Ishigami's problem with its responses, as CSV files.
fn sampled(samples: usize) -> Outside {
    let outside = Outside::ishigami();
    outside.done(&format!("sample problem.json --method delta --samples {samples} --seed 1 --out x.csv"));
    outside.respond("x.csv", "y.csv");
    outside
}

fn notes(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.strip_prefix("note: ")).collect()
}

#[test]
fn values_far_outside_the_bounds_are_refused_with_the_worst() {
    let outside = sampled(50);
    let good = outside.read("x.csv");
    let spoilt = |edit: &dyn Fn(usize, &str) -> String| {
        let lines: Vec<String> = good
            .lines()
            .enumerate()
            .map(|(number, line)| {
                if number == 0 {
                    return line.to_owned();
                }
                let (evaluation, rest) = line.split_once(',').expect("columns");
                let (x1, others) = rest.split_once(',').expect("columns");
                format!("{evaluation},{},{others}", edit(number, x1))
            })
            .collect();
        outside.write("x.csv", lines.join("\n"));
    };
    let analyze = "analyze problem.json --method delta --samples x.csv --responses y.csv";
    spoilt(&|number, x1| match number {
        4 => "-7.5".to_owned(),
        6 => "1000000".to_owned(),
        _ => x1.to_owned(),
    });
    let bounds = "is outside the bounds -3.141592653589793 to 3.141592653589793";
    let remedy = "widen the bounds of the problem, or name another file\n";
    let expected =
        format!("x.csv: line 7, column x1: 1000000 {bounds} (2 of 50 values are outside); {remedy}");
    for method in ["delta", "pawn", "correlation", "regression", "rbd-fast"] {
        outside.refused(&analyze.replace("delta", method), &expected);
    }
    spoilt(&|_, _| "1000000".to_owned());
    outside.refused(
        analyze,
        &format!("x.csv: line 51, column x1: 1000000 {bounds} (50 of 50 values are outside); {remedy}"),
    );
    // Three decimals of a bound are within print rounding, two are not.
    spoilt(&|number, x1| if number == 3 { "3.142".to_owned() } else { x1.to_owned() });
    outside.done(analyze);
    spoilt(&|number, x1| if number == 3 { "3.15".to_owned() } else { x1.to_owned() });
    outside.refused(
        analyze,
        &format!("x.csv: line 4, column x1: 3.15 {bounds} (1 of 50 values are outside); {remedy}"),
    );
}

#[test]
fn few_samples_are_warned_of_by_method() {
    let outside = sampled(200);
    let analyze = "analyze problem.json --samples x.csv --responses y.csv --method";
    let few = |method: &str| {
        let printed = outside.done(&format!("{analyze} {method}"));
        let few: Vec<String> =
            notes(&printed).into_iter().filter(|note| note.contains("are few")).map(str::to_owned).collect();
        few
    };
    let said = |advised: u32| {
        vec![format!("200 evaluations are few for this method; {advised} or more are recommended")]
    };
    assert_eq!(few("delta"), said(1000));
    assert_eq!(few("pawn"), said(1000));
    assert_eq!(few("rbd-fast"), said(500));
    assert_eq!(few("correlation"), [] as [&str; 0]);
}

#[test]
fn warnings_that_responses_have_in_common_are_shown_once() {
    let outside = sampled(60);
    let ys = outside.read("y.csv");
    let two: String =
        ys.lines().skip(1).map(|y| format!("{y},{}\n", y.parse::<f64>().unwrap() * 2.0)).collect();
    outside.write("y.csv", format!("y,z\n{two}"));
    let printed = outside.done("analyze problem.json --samples x.csv --responses y.csv --method delta");
    let few = "60 evaluations are few for this method; 1000 or more are recommended";
    assert_eq!(notes(&printed).into_iter().filter(|note| *note == few).count(), 1, "{printed}");
}

/// Seven parameters without effect give one line, and no warning about intervals of μ* around zero.
#[test]
fn parameters_without_effect_are_one_line() {
    let outside = Outside::ishigami();
    let names: Vec<String> = (1..=9).map(|place| format!("\"p{place}\"")).collect();
    let bounds = ["[0, 1]"; 9].join(", ");
    outside.write("nine.json", format!("{{\"names\": [{}], \"bounds\": [{bounds}]}}", names.join(", ")));
    outside.done("sample nine.json --method moat --trajectories 6 --levels 4 --seed 1 --out x.csv");
    let y: String = outside.samples("x.csv").iter().map(|x| format!("{}\n", 2.0 * x[0] + x[1])).collect();
    outside.write("y.txt", y);
    let printed =
        outside.done("analyze nine.json --method moat --levels 4 --samples x.csv --responses y.txt");
    let expected = ["mu_star is 0 for p3, p4, p5, p6, p7, p8 and 1 more: no evaluation shows an effect"];
    assert_eq!(notes(&printed), expected, "{printed}");
}

#[test]
fn samples_that_do_not_cover_the_bounds_or_repeat_a_column_are_doubted() {
    let outside = Outside::ishigami();
    let rows = (0..400_u32).map(|row| {
        let unit = |prime: u32| f64::from(row * prime % 401) / 401.0;
        [3.0 * unit(7), 6.2 * unit(31) - 3.1, 6.2 * unit(31) - 3.1]
    });
    let rows: Vec<[f64; 3]> = rows.collect();
    let x: String = rows.iter().map(|[a, b, c]| format!("{a},{b},{c}\n")).collect();
    outside.write("x.csv", format!("x1,x2,x3\n{x}"));
    let y: String = rows.iter().map(|[a, b, _]| format!("{}\n", a.sin() + b)).collect();
    outside.write("y.txt", y);
    let words = "analyze problem.json --method correlation --samples x.csv --responses y.txt";
    let printed = outside.done(words);
    let uncovered = "the sample covers less than half of the range of 1 of 3 parameters: x1 (48 %)";
    let together = "columns vary together, so their effects cannot be separated: x2 and x3";
    assert_eq!(notes(&printed)[..2], [uncovered, together], "{printed}");
    assert_eq!(outside.json(words)["sample_warnings"], serde_json::json!([uncovered, together]));
}

/// SALib's `lognorm`: mean and deviation of the logarithm.
#[test]
fn log_normal_parameters_are_sampled_as_salib_has_them() {
    let outside = Outside::ishigami();
    outside.write(
        "logs.json",
        r#"{"names": ["a", "b"], "bounds": [[2.5, 0.5], [0, 1]], "dists": ["lognorm", "unif"]}"#,
    );
    outside.done("workflow import logs.json --out logs.toml");
    assert!(outside.read("logs.toml").contains("distribution = \"log-normal\"\nmean = 2.5\nstd = 0.5\n"));
    for problem in ["logs.json", "logs.toml"] {
        let sample = format!("sample {problem} --method correlation --samples 999 --seed 3 --out x.csv");
        outside.done(&sample);
        let mut values: Vec<f64> = outside.samples("x.csv").iter().map(|row| row[0]).collect();
        values.sort_by(f64::total_cmp);
        // A Latin hypercube has one value in each of 999 strata of equal probability. The median is in its own stratum.
        assert!((values[499] / 2.5_f64.exp() - 1.0).abs() < 2e-3, "{problem}: {}", values[499]);
        // The 0.25 and 0.975 quantiles of SALib, within their strata.
        assert!((values[249] / 8.695 - 1.0).abs() < 5e-3 && (values[973] / 32.46 - 1.0).abs() < 2e-2);
        let y: String = outside.samples("x.csv").iter().map(|x| format!("{}\n", x[0].ln() + x[1])).collect();
        outside.write("y.txt", y);
        outside.done(&format!("analyze {problem} --method correlation --samples x.csv --responses y.txt"));
    }
    outside.refused(
        "sample logs.json --method moat --out m.csv",
        "logs.json: method: parameter a cannot be stepped over [0, inf]",
    );
}

#[test]
fn samplers_and_estimators_are_in_help_and_completion() {
    let outside = Outside::ishigami();
    for (command, values) in [
        ("sample", &["lhs-maximin", "hammersley-plain", "fractional-factorial", "morris"][..]),
        ("analyze", &["saltelli", "jansen", "janon"]),
    ] {
        let help = outside.done(&format!("{command} --help"));
        let completion = outside.done("completions bash");
        for value in values {
            assert!(help.contains(value), "{value} is not in {help}");
            assert!(completion.contains(value), "{value} is not in the completion of bash");
        }
    }
    outside.refused(
        "analyze problem.json --method vbd --samples x.csv --estimator sobol",
        "invalid value 'sobol' for '--estimator <NAME>'; [possible values: saltelli, jansen, janon]",
    );
}
