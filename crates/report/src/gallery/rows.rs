//! Pictures of each tile: the default, the best and the worst evaluation of the first response, beside the reference.

use super::choice::Panel;
use super::replays::TileReplays;
use super::{GalleryError, TilePictures, compose, shown_as};
use pleach_cache::PriorResults;
use pleach_results::analysis::CollectedResponses;
use pleach_results::analysis::extremes::{Extremes, Role};
use pleach_study::PreparedStudy;
use pleach_study::single_run;

/// Maximum tiles: more make the page large and long.
const MAX_TILES: usize = 12;

/// 16 Mpx: maximum pixels of all tiles, 12 of 1,024 px or one of 4,096 px. Each pixel costs 3 runs, so the pictures cost no more than
/// those of `gallery::choice` on one large tile.
const MAX_PIXELS: u64 = 1 << 24;

/// Pictures of tiles.
#[derive(Debug, Default)]
pub(crate) struct TileRows {
    /// Tiles in the order of the study.
    pub(crate) rows: Vec<TilePictures>,
    /// Number of tiles that are not shown.
    pub(crate) left_out: usize,
}

/// Returns the pictures of the tiles. Of more tiles than the limits allow, those where the two ends of the first response differ
/// most. Empty for a single tile, which the gallery shows, and for a workflow without reference.
pub(super) fn rows(
    prepared: &PreparedStudy,
    prior: &PriorResults,
    collected: &CollectedResponses,
    extremes: &[Extremes],
) -> TileRows {
    let study = &prepared.study;
    let panels = panels(extremes, prepared.reference_run());
    // A panel is at least one end: without complete evaluations, only the default is known.
    let is_end = |panel: &Panel| panel.roles.iter().any(|(_, role)| *role != Role::Default);
    if study.tiles.len() < 2 || study.workflow.reference.is_none() || !panels.iter().any(is_end) {
        return TileRows::default();
    }
    let metric = extremes.first().map_or(study.metric, |of| of.metric);
    let mut tiles = by_difference(collected, metric, &panels, study.tiles.len());
    let mut pixels = 0;
    let mut fits = |tile: &usize| {
        pixels += prepared.tiles[*tile].pixels;
        pixels <= MAX_PIXELS
    };
    let shown = tiles.iter().take(MAX_TILES).take_while(|tile| fits(tile)).count();
    tiles.truncate(shown);
    tiles.sort_unstable();
    // A tile that cannot be read has failed runs, which the report lists.
    let rows: Vec<TilePictures> =
        tiles.into_iter().filter_map(|tile| row(prepared, prior, collected, tile, &panels).ok()).collect();
    TileRows { left_out: study.tiles.len() - rows.len(), rows }
}

/// Returns the evaluations of the first response, each once. The default is left out if it is the reference.
fn panels(extremes: &[Extremes], is_reference: bool) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for (metric, one) in extremes.iter().take(1).flat_map(|of| of.evaluations.iter().map(|e| (of.metric, e)))
    {
        let Some(evaluation) = one.evaluation else { continue };
        if one.role == Role::Default && is_reference {
            continue;
        }
        match panels.iter().position(|panel| panel.evaluation == evaluation) {
            Some(place) => panels[place].roles.push((metric, one.role)),
            None => panels.push(Panel { evaluation, roles: vec![(metric, one.role)] }),
        }
    }
    panels
}

/// Returns all tiles, those where the responses of the panels differ most first.
fn by_difference(
    collected: &CollectedResponses,
    metric: usize,
    panels: &[Panel],
    tiles: usize,
) -> Vec<usize> {
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); tiles];
    for run in collected.runs.iter().chain(&collected.defaults) {
        let is_shown = panels.iter().any(|panel| panel.evaluation == run.evaluation);
        let response = run.result.as_ref().ok().and_then(|result| result.get(metric).copied());
        if let (true, Some(response)) = (is_shown, response.filter(|response| response.is_finite())) {
            let (low, high) = ends[run.tile];
            ends[run.tile] = (low.min(response), high.max(response));
        }
    }
    let mut order: Vec<usize> = (0..tiles).collect();
    // Stable: of equal tiles the first, so that the report of a study is the same each time.
    order.sort_by(|a, b| (ends[*b].1 - ends[*b].0).total_cmp(&(ends[*a].1 - ends[*a].0)));
    order
}

fn row(
    prepared: &PreparedStudy,
    prior: &PriorResults,
    collected: &CollectedResponses,
    tile: usize,
    panels: &[Panel],
) -> Result<TilePictures, GalleryError> {
    let workflow = &prepared.study.workflow;
    let own = workflow.reference.as_ref().map(|own| single_run::of_stage(workflow, own.stage, own.output));
    let mut replays = TileReplays::new(prepared, prior, tile, own, &[])?;
    if prepared.reference_run() {
        replays.reference = replays.regions(0)?.pop();
    }
    let mut shown = Vec::new();
    for panel in panels {
        if let Some(mask) = replays.regions(panel.evaluation)?.pop() {
            shown.push((shown_as(prepared, collected, tile, panel), mask));
        }
    }
    let reference = replays.reference.ok_or(GalleryError::NoReference)?;
    let focus = panels.last().map_or(0, |panel| panel.evaluation);
    compose::pictures(&prepared.study.tiles[tile].name, &replays.image, &reference, focus, shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_results::analysis::extremes::Extreme;

    #[test]
    fn panels_are_those_of_the_first_response_each_once() {
        let extremes = |metric: usize, of: &[(Role, usize)]| Extremes {
            response: "r".to_owned(),
            metric,
            evaluations: of
                .iter()
                .map(|&(role, evaluation)| Extreme {
                    role,
                    evaluation: Some(evaluation),
                    value: Some(0.5),
                    settings: Vec::new(),
                })
                .collect(),
        };
        let first = extremes(2, &[(Role::Default, 0), (Role::Best, 3), (Role::Worst, 3)]);
        let other = extremes(0, &[(Role::Default, 0), (Role::Highest, 7), (Role::Lowest, 8)]);
        let all = [first, other];
        let numbers = |panels: Vec<Panel>| panels.iter().map(|panel| panel.evaluation).collect::<Vec<_>>();
        assert_eq!(numbers(panels(&all, false)), [0, 3]);
        let ends = panels(&all, true);
        assert_eq!(ends, [Panel { evaluation: 3, roles: vec![(2, Role::Best), (2, Role::Worst)] }]);
    }
}
