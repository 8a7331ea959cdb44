//! Which evaluations are shown, and on which tile. A decision on responses alone: nothing is run or read here.

use crate::output::tables::RunResponse;
use crate::report::Far;

/// What is shown beside the reference. Evaluations are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The evaluation whose result lies farthest from the reference.
    pub(crate) most_different: usize,
    /// The one with the median response, of two the nearer; the same one where there is only one.
    pub(crate) median: usize,
    /// The tile on which the response of the most different evaluation lies farthest from the tile's median.
    pub(crate) tile: usize,
}

/// Chooses from `responses`, one an evaluation over its tiles (none where the evaluation is not complete), and
/// `runs`, the response of each on each tile; `metric` is the column that the study analyses. Of equals, the first.
///
/// The tile is not the one with the worst response itself: a tile with next to no objects has bad responses throughout,
/// and shows little.
///
/// `None` where no evaluation is complete.
pub(crate) fn choose(
    responses: &[Option<f64>],
    runs: &[RunResponse],
    metric: usize,
    far: Far,
) -> Option<Choice> {
    let complete = responses.iter().enumerate();
    let mut complete: Vec<(usize, f64)> = complete
        .filter_map(|(place, response)| Some((place + 1, response.filter(|response| response.is_finite())?)))
        .collect();
    let middle = middle(complete.iter().map(|(_, response)| *response).collect())?;
    let distance = |response: f64| match far {
        Far::Low => -response,
        Far::High => response,
        Far::Unknown => (response - middle).abs(),
    };
    let farthest = complete.iter().map(|(_, response)| distance(*response)).fold(f64::NEG_INFINITY, f64::max);
    let (most_different, _) = *complete.iter().find(|(_, response)| distance(*response) == farthest)?;
    // From the nearest on, as far as that is known; stable, so that of equals the first is the nearer.
    let order = |response: f64| if far == Far::Low { -response } else { response };
    complete.sort_by(|(_, a), (_, b)| order(*a).total_cmp(&order(*b)));
    let (median, _) = complete[(complete.len() - 1) / 2];

    let on = |tile: usize| {
        let runs = runs.iter().filter(move |run| run.tile == tile);
        runs.filter_map(move |run| Some((run.evaluation, *run.result.as_ref().ok()?.get(metric)?)))
    };
    let mut tile: Option<(usize, f64)> = None;
    for candidate in 0..runs.iter().map(|run| run.tile + 1).max().unwrap_or(0) {
        let own = on(candidate).find(|(evaluation, _)| *evaluation == most_different);
        let Some((_, own)) = own.filter(|(_, response)| response.is_finite()) else { continue };
        let all = on(candidate).map(|(_, response)| response).filter(|response| response.is_finite());
        let Some(usual) = self::middle(all.collect()) else { continue };
        let apart = (own - usual).abs();
        if tile.is_none_or(|(_, most)| apart > most) {
            tile = Some((candidate, apart));
        }
    }
    Some(Choice { most_different, median, tile: tile?.0 })
}

/// The median of finite numbers, the lower of two; `None` without numbers.
fn middle(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tables::RunFailure;

    /// Runs of evaluations on tiles; NaN stands for a failed run. The response over tiles is their mean.
    fn chosen(rows: &[&[f64]], far: Far) -> Option<Choice> {
        let failure = || RunFailure { stage: String::new(), at: String::new(), cause: String::new() };
        let mut runs = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            for (tile, &response) in row.iter().enumerate() {
                let result = if response.is_nan() { Err(failure()) } else { Ok(vec![0.0, response]) };
                runs.push(RunResponse { evaluation: place + 1, tile, result });
            }
        }
        let mean =
            |row: &&[f64]| Some(row.iter().sum::<f64>() / row.len() as f64).filter(|mean| !mean.is_nan());
        let responses: Vec<Option<f64>> = rows.iter().map(mean).collect();
        choose(&responses, &runs, 1, far)
    }

    #[test]
    fn the_direction_is_the_metrics() {
        let rows: [&[f64]; 5] = [&[0.9], &[0.1], &[0.5], &[1.0], &[0.6]];
        let choice = |far| chosen(&rows, far).map(|choice| (choice.most_different, choice.median));
        assert_eq!(choice(Far::Low), Some((2, 5)));
        assert_eq!(choice(Far::High), Some((4, 5)));
        assert_eq!(choice(Far::Unknown), Some((2, 5)));
    }

    #[test]
    fn the_tile_is_where_it_differs_from_what_is_usual_there() {
        // On the second tile every response is bad.
        let rows: [&[f64]; 3] = [&[0.9, 0.1, 0.9], &[0.3, 0.05, 0.8], &[0.8, 0.12, 0.9]];
        assert_eq!(chosen(&rows, Far::Low), Some(Choice { most_different: 2, median: 3, tile: 0 }));
    }

    #[test]
    fn of_equals_the_first_is_chosen() {
        let rows: [&[f64]; 4] = [&[0.5, 0.5]; 4];
        assert_eq!(chosen(&rows, Far::Low), Some(Choice { most_different: 1, median: 2, tile: 0 }));
        assert_eq!(chosen(&rows[..1], Far::High), Some(Choice { most_different: 1, median: 1, tile: 0 }));
        // Of two, the median is the other one.
        let two: [&[f64]; 2] = [&[0.5], &[0.7]];
        assert_eq!(chosen(&two, Far::Low), Some(Choice { most_different: 1, median: 2, tile: 0 }));
    }

    #[test]
    fn failed_evaluations_are_not_chosen() {
        let rows: [&[f64]; 3] = [&[0.1, f64::NAN], &[0.7, 0.6], &[0.9, 0.8]];
        assert_eq!(chosen(&rows, Far::Low), Some(Choice { most_different: 2, median: 3, tile: 0 }));
        assert_eq!(chosen(&rows[..1], Far::Low), None);
        assert_eq!(chosen(&[], Far::Low), None);
    }
}
