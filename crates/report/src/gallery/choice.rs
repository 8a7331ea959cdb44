//! Selects the evaluations and the tile of the pictures, from the responses alone.

use pleach_results::analysis::RunResponse;
use pleach_results::analysis::extremes::{Extremes, Role};

/// Maximum evaluations shown: the default, and 2 for each of 3 responses. Each one costs a replay.
const MAX_SHOWN: usize = 7;

/// Evaluations and tile shown beside the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Evaluations, the default first, each once.
    pub(crate) panels: Vec<Panel>,
    /// Evaluation that determines the tile and the window: the worse end of the first response.
    pub(crate) focus: usize,
    /// Tile on which the response of `focus` is farthest from the tile's median.
    pub(crate) tile: usize,
}

/// Evaluation and the reasons for showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    /// Number of the evaluation, from 1. 0 for the run at defaults.
    pub(crate) evaluation: usize,
    /// Roles, each with its response as a column among the metrics of the workflow.
    pub(crate) roles: Vec<(usize, Role)>,
}

/// Selects from the extremes of each response. `responses` holds the first response of each evaluation over
/// its tiles. `runs` and `defaults` hold the responses of the evaluations and of the defaults on each tile.
/// `shows_default` is `false` if the default is already the reference.
///
/// The tile with the worst response itself would often be one with almost no objects: its responses are bad
/// in every evaluation, and its picture shows little.
///
/// `None` if no evaluation has a response on every tile.
pub(crate) fn choose(
    extremes: &[Extremes],
    responses: &[Option<f64>],
    runs: &[RunResponse],
    defaults: &[RunResponse],
    shows_default: bool,
) -> Option<Choice> {
    let first = extremes.first()?;
    let focus = focus(first, responses)?;
    let tile = tile(focus, first.metric, runs)?;
    let ran_there = |run: &RunResponse| run.tile == tile && run.result.is_ok();
    let mut panels: Vec<Panel> = Vec::new();
    for (of, extreme) in extremes.iter().flat_map(|of| of.evaluations.iter().map(move |one| (of, one))) {
        let Some(evaluation) = extreme.evaluation else { continue };
        let is_default = extreme.role == Role::Default;
        if is_default && (!shows_default || (evaluation == 0 && !defaults.iter().any(ran_there))) {
            continue;
        }
        match panels.iter().position(|panel| panel.evaluation == evaluation) {
            // The role of the default is the same for all responses and listed once.
            Some(place) if !is_default => panels[place].roles.push((of.metric, extreme.role)),
            Some(_) => {}
            None if panels.len() < MAX_SHOWN => {
                panels.push(Panel { evaluation, roles: vec![(of.metric, extreme.role)] });
            }
            None => {}
        }
    }
    Some(Choice { panels, focus, tile })
}

/// Returns the evaluation at the worse end of a response. For a response without direction, returns the end
/// farther from the median.
fn focus(of: &Extremes, responses: &[Option<f64>]) -> Option<usize> {
    let ends = of.evaluations.iter().filter(|one| one.role != Role::Default);
    let ends: Vec<(Role, usize, f64)> =
        ends.filter_map(|one| Some((one.role, one.evaluation?, one.value?))).collect();
    let [(_, high, highest), (role, low, lowest)] = ends[..] else { return None };
    let middle = middle(responses.iter().copied().flatten())?;
    let is_high = role == Role::Lowest && (highest - middle).abs() > (lowest - middle).abs();
    Some(if is_high { high } else { low })
}

/// Returns the tile on which the response of an evaluation is farthest from the tile's median.
fn tile(evaluation: usize, metric: usize, runs: &[RunResponse]) -> Option<usize> {
    let on = |tile: usize| {
        let runs = runs.iter().filter(move |run| run.tile == tile);
        runs.filter_map(move |run| Some((run.evaluation, *run.result.as_ref().ok()?.get(metric)?)))
    };
    let mut tile: Option<(usize, f64)> = None;
    for candidate in 0..runs.iter().map(|run| run.tile + 1).max().unwrap_or(0) {
        let own = on(candidate).find(|(number, _)| *number == evaluation);
        let Some((_, own)) = own.filter(|(_, response)| response.is_finite()) else { continue };
        let Some(usual) = middle(on(candidate).map(|(_, response)| response)) else { continue };
        let apart = (own - usual).abs();
        // On ties the first tile, so that the report of a study is the same each time.
        if tile.is_none_or(|(_, most)| apart > most) {
            tile = Some((candidate, apart));
        }
    }
    tile.map(|(tile, _)| tile)
}

/// Returns the median of the finite numbers, the lower of two. `None` without finite numbers.
fn middle(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_results::analysis::RunFailure;
    use pleach_results::analysis::extremes::Extreme;

    /// Returns a run with the response in the second column. NaN makes a failed run.
    fn run(evaluation: usize, tile: usize, response: f64) -> RunResponse {
        let failure = || RunFailure { stage: String::new(), at: String::new(), cause: String::new() };
        let result = if response.is_nan() { Err(failure()) } else { Ok(vec![0.0, response]) };
        RunResponse { evaluation, tile, result, both_empty: Vec::new() }
    }

    fn extremes(metric: usize, of: &[(Role, usize, f64)]) -> Extremes {
        let extreme = |&(role, evaluation, value): &(Role, usize, f64)| Extreme {
            role,
            evaluation: Some(evaluation),
            value: Some(value),
            settings: Vec::new(),
        };
        let evaluations = of.iter().map(extreme).collect();
        Extremes { response: "r".to_owned(), metric, evaluations }
    }

    /// Selects from evaluations with the given responses, one row per evaluation and one column per tile.
    fn chosen(rows: &[&[f64]], of: &[Extremes], defaults: &[f64]) -> Option<Choice> {
        let runs = rows.iter().enumerate().flat_map(|(place, row)| {
            row.iter().enumerate().map(move |(tile, &response)| run(place + 1, tile, response))
        });
        let runs: Vec<RunResponse> = runs.collect();
        let defaults: Vec<RunResponse> =
            defaults.iter().enumerate().map(|(tile, &response)| run(0, tile, response)).collect();
        let mean =
            |row: &&[f64]| Some(row.iter().sum::<f64>() / row.len() as f64).filter(|mean| !mean.is_nan());
        let responses: Vec<Option<f64>> = rows.iter().map(mean).collect();
        choose(of, &responses, &runs, &defaults, true)
    }

    #[test]
    fn the_tile_is_where_the_worst_differs_from_what_is_usual_there() {
        // Every response on the second tile is bad.
        let rows: [&[f64]; 3] = [&[0.9, 0.1, 0.9], &[0.3, 0.05, 0.8], &[0.8, 0.12, 0.9]];
        let of = [extremes(1, &[(Role::Default, 0, 0.5), (Role::Best, 1, 0.63), (Role::Worst, 2, 0.38)])];
        let choice = chosen(&rows, &of, &[0.5; 3]).unwrap();
        assert_eq!((choice.focus, choice.tile), (2, 0));
        let panel = |evaluation, role| Panel { evaluation, roles: vec![(1, role)] };
        assert_eq!(choice.panels, [panel(0, Role::Default), panel(1, Role::Best), panel(2, Role::Worst)]);
        // Defaults that failed on the selected tile are not shown.
        let choice = chosen(&rows, &of, &[f64::NAN, 0.5, 0.5]).unwrap();
        assert_eq!(choice.panels, [panel(1, Role::Best), panel(2, Role::Worst)]);
    }

    #[test]
    fn without_direction_the_end_far_from_the_median_counts() {
        let rows: [&[f64]; 4] = [&[10.0], &[11.0], &[40.0], &[9.0]];
        let of = [extremes(1, &[(Role::Highest, 3, 40.0), (Role::Lowest, 4, 9.0)])];
        assert_eq!(chosen(&rows, &of, &[]).unwrap().focus, 3);
    }

    #[test]
    fn an_evaluation_of_several_roles_is_shown_once() {
        let rows: [&[f64]; 2] = [&[0.5], &[0.7]];
        let one = extremes(1, &[(Role::Default, 1, 0.5), (Role::Best, 2, 0.7), (Role::Worst, 1, 0.5)]);
        let other = extremes(0, &[(Role::Default, 1, 5.0), (Role::Highest, 2, 9.0), (Role::Lowest, 1, 5.0)]);
        let choice = chosen(&rows, &[one, other], &[]).unwrap();
        let expected = [
            Panel { evaluation: 1, roles: vec![(1, Role::Default), (1, Role::Worst), (0, Role::Lowest)] },
            Panel { evaluation: 2, roles: vec![(1, Role::Best), (0, Role::Highest)] },
        ];
        assert_eq!(choice.panels, expected);
    }

    #[test]
    fn without_a_complete_evaluation_nothing_is_chosen() {
        let rows: [&[f64]; 1] = [&[0.1, f64::NAN]];
        assert_eq!(chosen(&rows, &[extremes(1, &[(Role::Default, 0, 0.1)])], &[0.1, 0.2]), None);
        assert_eq!(chosen(&rows, &[], &[]), None);
    }
}
