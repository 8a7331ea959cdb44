//! Morris indices, recomputed from the result tables of a study.

use crate::results::json;
use crate::tables::{Row, rows};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks `indices.json` of the folder `out` against its `samples.csv` and `responses.csv`. `ranges` holds the smallest and
/// largest values of the varying parameters.
pub(crate) fn check_moat(out: &Path, metric: &str, ranges: &BTreeMap<String, (f64, f64)>) {
    let (samples, responses) = (rows(&out.join("samples.csv")), rows(&out.join("responses.csv")));
    let tiles = responses.iter().map(|row| &row["tile"]).collect::<BTreeSet<_>>().len() as f64;
    let response = |sample: &Row| -> f64 {
        let of_sample = responses.iter().filter(|row| row["evaluation"] == sample["evaluation"]);
        let sum: f64 = of_sample.map(|row| number(&row[metric])).sum();
        if ["pixel-difference", "nuclei"].contains(&metric) { sum } else { sum / tiles }
    };
    let all: Vec<f64> = samples.iter().map(response).collect();
    let range = all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - all.iter().copied().fold(f64::INFINITY, f64::min);
    let mut effects: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (samples, responses) in samples.chunks(ranges.len() + 1).zip(all.chunks(ranges.len() + 1)) {
        for (samples, responses) in samples.windows(2).zip(responses.windows(2)) {
            let (name, low, high) = changed(&samples[0], &samples[1], ranges);
            let step = (number(&samples[1][name]) - number(&samples[0][name])) / (high - low);
            effects.entry(name).or_default().push((responses[1] - responses[0]) / step);
        }
    }
    let indices = json(&out.join("indices.json"));
    assert_eq!((&indices["method"], &indices["response"]), (&"moat".into(), &metric.into()));
    let parameters = indices["parameters"].as_array().expect("a list");
    assert_eq!(parameters.len(), ranges.len());
    for parameter in parameters {
        let effects = &effects[parameter["name"].as_str().expect("a name")];
        let count = effects.len() as f64;
        let mean = |of: fn(&f64) -> f64| effects.iter().map(of).sum::<f64>() / count;
        let (mu, mu_star) = (mean(|effect| *effect), mean(|effect| effect.abs()));
        let variance = effects.iter().map(|effect| (effect - mu).powi(2)).sum::<f64>() / (count - 1.0);
        assert_near(&parameter["mu"], mu);
        assert_near(&parameter["mu_star"], mu_star);
        assert_near(&parameter["sigma"], variance.sqrt());
        assert_near(&parameter["effect"], if range > 0.0 { mu / range } else { 0.0 });
        assert!(parameter["mu_star_conf"].as_f64().is_some_and(|width| width >= 0.0), "{parameter}");
    }
}

/// The one parameter that differs between two rows, with its range.
fn changed<'a>(one: &Row, other: &Row, ranges: &'a BTreeMap<String, (f64, f64)>) -> (&'a str, f64, f64) {
    let mut changed = ranges.iter().filter(|(name, _)| one[*name] != other[*name]);
    let (name, (low, high)) = changed.next().expect("a step changes a parameter");
    assert!(changed.next().is_none(), "a step changes one parameter: {one:?} {other:?}");
    (name, *low, *high)
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

fn assert_near(found: &Value, expected: f64) {
    let near = found.as_f64().is_some_and(|found| (found - expected).abs() <= 1e-9 * expected.abs().max(1.0));
    assert!(near, "{found} is not {expected}");
}

/// Smallest and largest value of each parameter of the reference application (`application.md`).
pub(crate) fn nuclei_ranges() -> BTreeMap<String, (f64, f64)> {
    let ranges = [
        ("B", 210.0, 240.0),
        ("G", 210.0, 240.0),
        ("R", 210.0, 240.0),
        ("T1", 2.5, 7.5),
        ("T2", 2.5, 7.5),
        ("MorphRecon", 4.0, 8.0),
        ("G1", 5.0, 80.0),
        ("FillHoles", 4.0, 8.0),
        ("minSize", 2.0, 40.0),
        ("maxSize", 900.0, 1500.0),
        ("G2", 2.0, 40.0),
        ("minSizePl", 5.0, 80.0),
        ("Watershed", 4.0, 8.0),
        ("minSizeSeg", 2.0, 40.0),
        ("maxSizeSeg", 900.0, 1500.0),
    ];
    ranges.into_iter().map(|(name, low, high)| (name.to_owned(), (low, high))).collect()
}
