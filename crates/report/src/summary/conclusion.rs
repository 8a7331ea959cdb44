//! Conclusion from indices in words: which parameters matter, and which are negligible.

use super::{NAME_COLUMNS, shortened, wrapped};
use crate::sections::indices::variance;
use crate::verdict::{NEGLIGIBLE, Verdict, largest, ranked};
use pleach_results::analysis::{Analysis, IndexTable};
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::MoatIndices;
use pleach_sensitivity::vbd::VbdIndices;

/// Parameters with their words, the most influential ones first.
type Groups = Vec<(String, Vec<String>)>;

/// Returns the conclusion of a response in lines of 80 columns. Empty without indices, and for a response that does not vary.
pub fn conclusion(analysis: &Analysis) -> Vec<String> {
    let groups = match analysis {
        Analysis::Indices(Indices::Moat(indices)) => of_effects(indices),
        Analysis::Indices(Indices::Vbd(indices)) => of_variance(indices),
        other => of_intervals(other),
    };
    let of = |(words, names): (String, Vec<String>)| {
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    };
    let groups: Vec<String> = groups.into_iter().filter_map(of).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let response = shortened(analysis.response(), NAME_COLUMNS);
    let mut lines = wrapped(&format!("{response}: {}", groups.join("; ")));
    lines.push(String::new());
    lines
}

fn of_effects(indices: &MoatIndices) -> Groups {
    let largest = largest(indices);
    if largest == 0.0 {
        return Vec::new();
    }
    let of = |verdict: Verdict, is_still: bool| {
        let ranked = ranked(indices).into_iter();
        let some = ranked.filter(|p| Verdict::of(p, largest) == verdict && (p.mu_star == 0.0) == is_still);
        some.map(|parameter| parameter.name.clone()).collect()
    };
    let share = format!("below {:.0} % of the largest effect", NEGLIGIBLE * 100.0);
    vec![
        ("significant effects".to_owned(), of(Verdict::Matters, false)),
        ("undecided".to_owned(), of(Verdict::Undecided, false)),
        (share, of(Verdict::Negligible, false)),
        ("no effect".to_owned(), of(Verdict::Negligible, true)),
    ]
}

fn of_variance(indices: &VbdIndices) -> Groups {
    if indices.no_variation {
        return Vec::new();
    }
    let ends = |index: &Estimate| {
        let (value, conf) = (index.value.unwrap_or(0.0), index.conf.unwrap_or(0.0));
        [value - conf, value + conf]
    };
    let of = |is_in: fn([f64; 2]) -> bool| {
        let ranked = variance::ranked(indices).into_iter().filter(|p| is_in(ends(&p.total)));
        ranked.map(|parameter| parameter.name.clone()).collect()
    };
    let share = variance::NEGLIGIBLE * 100.0;
    vec![
        ("significant shares of its variance".to_owned(), of(|[low, _]| low >= variance::NEGLIGIBLE)),
        (
            "undecided".to_owned(),
            of(|[low, high]| low < variance::NEGLIGIBLE && high >= variance::NEGLIGIBLE),
        ),
        (format!("below {share:.0} %"), of(|[_, high]| high < variance::NEGLIGIBLE)),
    ]
}

fn of_intervals(analysis: &Analysis) -> Groups {
    let Some(listed) = IndexTable::of(analysis) else { return Vec::new() };
    let conf = listed.columns.get(listed.main + 1).filter(|column| column.ends_with("_conf"));
    let Some(place) = conf.map(|_| listed.main + 1) else { return Vec::new() };
    let (mut clear, mut open) = (Vec::new(), Vec::new());
    for (name, numbers) in listed.ranked() {
        let Some((value, conf)) = numbers[listed.main].zip(numbers[place]) else { continue };
        if value.abs() > conf { clear.push(name.clone()) } else { open.push(name.clone()) }
    }
    vec![("intervals exclude 0".to_owned(), clear), ("intervals include 0".to_owned(), open)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_parameter_has_its_words() {
        let parameters =
            [("still", 0.0, 0.0), ("G2", 0.4, 0.08), ("tiny", 0.001, 0.001), ("open", 0.02, 0.02)];
        let analysis = fixture::moat(&parameters).analysis;
        assert_eq!(
            conclusion(&analysis),
            [
                "dice: significant effects: G2; undecided: open; below 5 % of the largest effect:",
                "  tiny; no effect: still",
                ""
            ]
        );
        assert!(conclusion(&fixture::moat(&[("a", 0.0, 0.0)]).analysis).is_empty());
    }
}
