//! Section on the distribution of the response over evaluations and per tile.

use crate::Report;
use crate::charts::boxes::{Row, draw};
use crate::page::format_number::{Rounding, count, counted};
use crate::page::html::{Html, Table, figure, html, strong};
use crate::page::metric::Metric;
use pleach_results::analysis::{self, RunResponse};
use pleach_study::units;
use pleach_workflow::Aggregate;

/// Maximum tiles with their own row. More tiles are summarized.
const MAX_TILES: usize = 20;
/// Tiles shown at each end of a summary.
const END_TILES: usize = 6;

/// Returns the section.
pub(crate) fn section(report: &Report<'_>) -> Html {
    let metric = Metric::of(report.study);
    let tiles = tiles(report);
    let over = over_tiles(report, metric.aggregate);
    let (shown, note) = selected(tiles);
    let axis = format!("{}, one dot per evaluation", metric.name);
    let mut drawings = Html::default();
    let numbers = numbers(&shown, report.run.evaluations);
    // A sum over tiles needs its own scale.
    let apart = metric.aggregate == Aggregate::Sum && report.study.tiles.len() > 1;
    let mut rows = Vec::new();
    if report.study.tiles.len() > 1 {
        if apart {
            drawings.push(draw(&[over], &format!("{axis}, {}", metric.aggregate_label())));
        } else {
            rows.push(over);
        }
    }
    rows.extend(shown);
    drawings.push(draw(&rows, &axis));
    let caption = html![
        strong("Distribution of the response."),
        " Box: the middle half of the evaluations; heavy line: median; thin line: smallest to largest. ",
        if report.study.tiles.len() > 1 { "Tiles with distant boxes react differently. " } else { "" },
        note,
    ];
    html![figure(drawings, caption), numbers]
}

/// Returns the range of the response over the evaluations, in words. `None` without responses.
pub(crate) fn range(report: &Report<'_>) -> Option<String> {
    let metric = Metric::of(report.study);
    let over = over_tiles(report, metric.aggregate);
    let (smallest, largest) = (*over.values.first()?, *over.values.last()?);
    let rounding = Rounding::brief(largest.abs().max(smallest.abs()));
    Some(format!(
        "Over the evaluations, {} ({}) ranged from {} to {}.",
        metric.name,
        metric.aggregate_label(),
        rounding.show(smallest),
        rounding.show(largest)
    ))
}

/// Returns one row per tile, in the order of the tiles.
fn tiles(report: &Report<'_>) -> Vec<Row> {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); report.study.tiles.len()];
    for run in report.runs {
        if let (Ok(metrics), Some(tile)) = (&run.result, values.get_mut(run.tile)) {
            tile.extend(metrics.get(report.study.metric));
        }
    }
    report.study.tiles.iter().zip(values).map(|(tile, values)| Row::new(&tile.name, values)).collect()
}

/// Returns one value per evaluation with a response on every tile. Excluded tiles do not count.
fn over_tiles(report: &Report<'_>, aggregate: Aggregate) -> Row {
    let name = match aggregate {
        Aggregate::Mean => "all tiles, mean",
        Aggregate::Sum => "all tiles, sum",
    };
    // Prefers the responses of the sample: the indices are computed from them.
    if let Some(sampled) = report.sampled {
        return Row::new(
            name,
            sampled.collected.responses(report.study.metric, aggregate).into_iter().flatten(),
        );
    }
    let repeated = units::repeated_responses(report.study);
    let left_out = |tile: usize| {
        repeated.get(tile) == Some(&true)
            || report.study.tiles.get(tile).is_some_and(|tile| report.run.excluded_tiles.contains(&tile.name))
    };
    let evaluations = report.runs.chunk_by(|a, b| a.evaluation == b.evaluation);
    let values = evaluations.filter_map(|runs| {
        let live = runs.iter().filter(|run| !left_out(run.tile));
        let value = |run: &RunResponse| {
            let weight = report.study.tile_weights.get(run.tile).copied().unwrap_or(1.0);
            Some((run.result.as_ref().ok()?.get(report.study.metric).copied()?, weight))
        };
        let values: Vec<(f64, f64)> = live.map(value).collect::<Option<_>>()?;
        analysis::aggregate(&values, aggregate)
    });
    Row::new(name, values)
}

/// Returns all tiles up to [`MAX_TILES`]. Of more, returns those with the lowest and the highest medians, a
/// row of all medians, and a note.
fn selected(mut tiles: Vec<Row>) -> (Vec<Row>, String) {
    if tiles.len() <= MAX_TILES {
        return (tiles, String::new());
    }
    let median = |row: &Row| row.five_numbers().map_or(f64::NEG_INFINITY, |[_, _, median, ..]| median);
    tiles.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let medians = Row::new("medians of all tiles", tiles.iter().map(median));
    let all = tiles.len();
    let highest = tiles.split_off(all - END_TILES);
    tiles.truncate(END_TILES);
    tiles.push(medians);
    tiles.extend(highest);
    let note = format!(
        "Of {}, the {END_TILES} with the lowest and the {END_TILES} with the highest medians are shown; \
         responses.csv has all.",
        counted(all, "tile", "tiles"),
    );
    (tiles, note)
}

/// Returns the section on a response of a model: one value per evaluation.
pub(crate) fn of_model(response: &str, values: &[Option<f64>]) -> Html {
    let rows = [Row::new(response, values.iter().copied().flatten())];
    let drawing = draw(&rows, &format!("{response}, one dot per evaluation"));
    let caption = html![
        strong("Distribution of the response."),
        " Box: the middle half of the evaluations; heavy line: median; thin line: smallest to largest.",
    ];
    let largest =
        rows.iter().filter_map(Row::five_numbers).flatten().fold(0.0, |most: f64, n| most.max(n.abs()));
    let evaluations = counted(values.len(), "evaluation", "evaluations");
    let numbers = table("response", format!("The response, of {evaluations}"), &rows, Rounding::of(largest));
    html![figure(drawing, caption), numbers]
}

fn numbers(rows: &[Row], evaluations: usize) -> Html {
    let largest =
        rows.iter().filter_map(Row::five_numbers).flatten().fold(0.0, |most: f64, n| most.max(n.abs()));
    let rounding = Rounding::of(largest);
    let caption = format!("The response per tile, of {}", counted(evaluations, "evaluation", "evaluations"));
    table("tile", caption, rows, rounding)
}

fn table(of: &str, caption: String, rows: &[Row], rounding: Rounding) -> Html {
    let header = [of, "responses", "smallest", "quartile", "median", "quartile", "largest"];
    let mut table = Table::new("numbers", caption, header);
    for row in rows {
        let numbers = row.five_numbers().map_or([None; 5], |numbers| numbers.map(Some));
        let numbers = numbers.map(|number| Html::from(rounding.option(number)));
        table.row([Html::from(&row.name), count(row.values.len()).into()].into_iter().chain(numbers));
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tiles_are_summarized() {
        let rows = |count: usize| (0..count).map(|n| Row::new(format!("tile {n}"), [n as f64])).collect();
        assert_eq!(selected(rows(20)).0.len(), 20);
        let (shown, note) = selected(rows(600));
        assert_eq!(shown.len(), 2 * END_TILES + 1);
        assert_eq!((shown[0].name.as_str(), shown[12].name.as_str()), ("tile 0", "tile 599"));
        assert!(note.starts_with("Of 600 tiles"), "{note}");
    }
}
