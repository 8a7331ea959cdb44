//! Figures: their names, their validity as pictures, and their content.

use crate::Outside;
use std::collections::BTreeSet;
use std::fs;

/// Names of the figures in a folder. Asserts that each exists as SVG and as PNG.
fn figures(outside: &Outside, folder: &str) -> BTreeSet<String> {
    let names = fs::read_dir(outside.path(folder))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names.map(|name| name.into_string().expect("letters")).collect();
    let drawings: BTreeSet<String> =
        names.iter().filter_map(|name| name.strip_suffix(".svg")).map(str::to_owned).collect();
    for drawing in &drawings {
        let svg = outside.read(&format!("{folder}/{drawing}.svg"));
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{drawing}: {error}"));
        assert!(document.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{drawing}");
        let png = fs::read(outside.path(&format!("{folder}/{drawing}.png"))).expect("pixels");
        let picture = image::load_from_memory(&png).expect("a picture");
        assert!(picture.width() >= 1000 && picture.height() >= 300, "{drawing}: {} wide", picture.width());
    }
    assert_eq!(names.len(), 2 * drawings.len(), "{names:?}");
    drawings
}

fn drawn(method: &str, sample: &str) -> (Outside, BTreeSet<String>) {
    let outside = Outside::ishigami();
    outside.done(&format!("sample problem.json --method {method} {sample} --out x.csv"));
    outside.respond("x.csv", "y.csv");
    outside.done(&format!(
        "analyze problem.json --method {method} --samples x.csv --responses y.csv --plot plots"
    ));
    let names = figures(&outside, "plots");
    (outside, names)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn every_method_has_its_figures() {
    for (method, sample, expected) in [
        ("moat", "--trajectories 12 --levels 4", &["bars", "plane", "convergence", "scatter"][..]),
        ("vbd", "--samples 64 --second-order", &["bars", "stack", "second-order", "convergence", "scatter"]),
        ("vbd", "--samples 64", &["bars", "stack", "convergence", "scatter"]),
        ("fast", "--samples 129", &["bars", "stack", "scatter"]),
        ("correlation", "--samples 64", &["bars", "convergence", "scatter"]),
        ("regression", "--samples 64", &["bars", "convergence", "scatter"]),
        ("pawn", "--samples 128", &["bars", "convergence", "scatter"]),
        ("delta", "--samples 128", &["bars", "convergence", "scatter"]),
        ("rbd-fast", "--samples 128", &["bars", "convergence", "scatter"]),
    ] {
        assert_eq!(drawn(method, sample).1, set(expected), "{method} {sample}");
    }
}

#[test]
fn a_figure_shows_every_parameter() {
    let (outside, _) = drawn("vbd", "--samples 64 --second-order");
    for name in ["bars", "stack", "second-order", "convergence", "scatter"] {
        let svg = outside.read(&format!("plots/{name}.svg"));
        for parameter in ["x1", "x2", "x3"] {
            assert!(svg.contains(&format!(">{parameter}</text>")), "{name}: {parameter}");
        }
    }
    // Three cells for pairs and three for single parameters.
    assert_eq!(outside.read("plots/second-order.svg").matches("<rect class=\"cell ").count(), 6);
}

#[test]
fn several_responses_have_figures_each_and_one_that_is_constant_none() {
    let outside = Outside::ishigami();
    outside.done("sample problem.json --method correlation --samples 40 --out x.csv");
    let rows = outside.samples("x.csv");
    let lines: String = rows.iter().map(|row| format!("{},5,{}\n", row[0], row[1] * row[2])).collect();
    outside.write("y.csv", format!("a b/c,same,d\n{lines}"));
    outside.done("analyze problem.json --method correlation --samples x.csv --responses y.csv --plot plots");
    let expected = [
        "1-a-b-c-bars",
        "1-a-b-c-convergence",
        "1-a-b-c-scatter",
        "3-d-bars",
        "3-d-convergence",
        "3-d-scatter",
    ];
    assert_eq!(figures(&outside, "plots"), set(&expected));
}
