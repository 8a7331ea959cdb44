//! Gantt chart of the slots under one policy: one row per worker, one line per slot.

use super::{LEFT_PX, Pictures, STAGES, TOP_PX, Unit};
use crate::charts::svg::{Anchor, Drawing, Scale, shortened};
use crate::page::format_number::counted;
use pleach_simulation::burst::{Burst, Outcome, WorkerInterval};
use pleach_simulation::cluster::SlotSpan;
use std::collections::BTreeMap;

const WIDTH_PX: f64 = 1000.0;
const RIGHT_PX: f64 = 24.0;
const BOTTOM_PX: f64 = 78.0;
/// Height of all rows together, as far as [`ROW_PX`] allows.
const ROWS_PX: f64 = 560.0;
/// Minimum and maximum height of a row.
const ROW_PX: [f64; 2] = [3.0, 26.0];
/// Maximum rows. With more, the picture becomes a gray area: only the first workers are drawn, in order of
/// request.
const MAX_ROWS: usize = 180;
/// Spans of one color with a smaller gap are drawn as one.
const APART_PX: f64 = 0.4;

/// Returns the picture as the content of an SVG file.
pub(super) fn draw(pictures: &Pictures<'_>, burst: &Burst, outcome: &Outcome) -> String {
    let came: Vec<&WorkerInterval> =
        outcome.happened.stays.iter().filter(|stay| stay.node.is_some()).collect();
    let rows = &came[..came.len().min(MAX_ROWS)];
    let row_px = (ROWS_PX / rows.len().max(1) as f64).clamp(ROW_PX[0], ROW_PX[1]);
    let bottom = TOP_PX + row_px * rows.len() as f64;
    let (right, height) = (WIDTH_PX - RIGHT_PX, bottom + BOTTOM_PX);
    let deadline = outcome.deadline_seconds.unwrap_or(0.0);
    let longest = outcome.makespan_seconds.max(if outcome.in_time == Some(true) { 0.0 } else { deadline });
    let unit = Unit::of(longest);
    let x = Scale::new(0.0, longest / unit.seconds, [LEFT_PX, right], 9);
    let left_out = came.len() - rows.len();
    let mut note = format!("{} busy", crate::page::format_number::percent(outcome.utilization));
    note.push_str(&format!(
        ", {} of the reuse retained",
        crate::page::format_number::percent(outcome.reuse_kept)
    ));
    if outcome.interruptions > 0 {
        let taken = counted(outcome.interruptions as usize, "worker", "workers");
        note.push_str(&format!(
            ", {taken} interrupted, {} s of work lost",
            super::brief(outcome.lost_seconds)
        ));
    }
    if left_out > 0 {
        note.push_str(&format!(
            "; {} that joined later are not shown",
            counted(left_out, "worker", "workers")
        ));
    }
    let title = format!("Slot usage: {}, {}", pictures.study, outcome.policy);
    let mut drawing = pictures.begin([WIDTH_PX, height], &title, &note);
    drawing.axis_below(&x, [TOP_PX, bottom]);
    let spans = by_node(&outcome.happened.spans);
    for (number, stay) in rows.iter().enumerate() {
        let top = TOP_PX + row_px * number as f64;
        row(&mut drawing, stay, [top, row_px], |seconds: f64| x.px(seconds / unit.seconds));
        let Some(spans) = stay.node.and_then(|node| spans.get(&node)) else { continue };
        let slots = stay.site.map_or(burst.base.cores, |site| burst.sites[site].cores);
        for piece in
            pieces(spans, slots, APART_PX * unit.seconds * longest / unit.seconds / (right - LEFT_PX))
        {
            let gap = if row_px > 6.0 { 1.0 } else { 0.4 };
            let slot_px = (row_px - gap) / f64::from(slots);
            let [from, to] = piece.seconds.map(|seconds| x.px(seconds / unit.seconds));
            let place = [from, top + slot_px * f64::from(piece.slot), (to - from).max(0.3), slot_px];
            drawing.rect(&piece.class(), place);
        }
        if stay.was_taken {
            let at = x.px(stay.seconds[2] / unit.seconds);
            drawing.line("taken", [at, top, at, top + row_px]);
        }
    }
    groups(&mut drawing, pictures, rows, row_px);
    drawing.line("base", [LEFT_PX, bottom, right, bottom]);
    if let Some(deadline) = outcome.deadline_seconds.filter(|deadline| *deadline <= longest) {
        pictures.deadline_at(&mut drawing, x.px(deadline / unit.seconds), [TOP_PX - 14.0, bottom]);
    }
    let axis = format!("time since submission, in {}", unit.name);
    drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 38.0], &axis);
    key(&mut drawing, pictures.stages, outcome, bottom + 62.0);
    drawing.finish_as_file(include_str!("../burst.css"))
}

/// Draws the lifetime of a worker: from request to arrival, then from arrival to end.
fn row(drawing: &mut Drawing, stay: &WorkerInterval, [top, height]: [f64; 2], px: impl Fn(f64) -> f64) {
    let [asked, there, ended] = stay.seconds.map(px);
    let height = height - if height > 6.0 { 1.0 } else { 0.4 };
    drawing.rect("coming", [asked, top, there - asked, height]);
    drawing.rect("row", [there, top, ended - there, height]);
}

/// Names the rows of the base cluster, which come first, and the rows of the pools. The rows of several pools
/// form one group.
fn groups(drawing: &mut Drawing, pictures: &Pictures<'_>, rows: &[&WorkerInterval], row_px: f64) {
    let base = rows.iter().filter(|stay| stay.site.is_none()).count();
    let mut name = |text: &str, from: usize, to: usize| {
        if to > from {
            let [top, bottom] = [from, to].map(|row| TOP_PX + row_px * row as f64);
            drawing.line("base", [LEFT_PX - 6.0, top + 1.0, LEFT_PX - 6.0, bottom - 1.0]);
            let middle = (top + bottom) / 2.0;
            if bottom - top > crate::charts::svg::text_width(text) {
                drawing.upright("label", [LEFT_PX - 14.0, middle], text);
            } else {
                drawing.text("label", Anchor::End, [LEFT_PX - 10.0, middle + 4.0], text);
            }
        }
    };
    name("base", 0, base);
    let pools = if let [pool] = pictures.pools { (*pool).to_owned() } else { "pools".to_owned() };
    name(&pools, base, rows.len());
}

/// Draws the color key.
fn key(drawing: &mut Drawing, stages_named: &[String], outcome: &Outcome, y: f64) {
    let mut stages: Vec<u32> = outcome.happened.spans.iter().map(|span| span.stage).collect();
    stages.sort_unstable();
    stages.dedup();
    let name = |stage: u32| {
        let name = stages_named.get(stage as usize).map_or("", String::as_str);
        (format!("s{}", stage % STAGES), shortened(name, 160.0))
    };
    let mut names: Vec<(String, String)> = stages.into_iter().map(name).collect();
    names.push(("row".to_owned(), "idle".to_owned()));
    names.push(("coming".to_owned(), "starting".to_owned()));
    names.push(("lost".to_owned(), "lost with the worker".to_owned()));
    let mut x = LEFT_PX;
    for (class, name) in names {
        drawing.rect(&class, [x, y - 9.0, 12.0, 10.0]);
        drawing.text("label", Anchor::Start, [x + 17.0, y], &name);
        x += 17.0 + crate::charts::svg::text_width(&name) + 18.0;
    }
}

fn by_node(spans: &[SlotSpan]) -> BTreeMap<usize, Vec<SlotSpan>> {
    let mut nodes: BTreeMap<usize, Vec<SlotSpan>> = BTreeMap::new();
    spans.iter().for_each(|span| nodes.entry(span.node).or_default().push(*span));
    nodes
}

/// Rectangle of one color in one slot. Pieces that are not whole were lost with their worker.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    slot: u32,
    stage: u32,
    is_complete: bool,
    seconds: [f64; 2],
}

impl Piece {
    fn class(&self) -> String {
        if self.is_complete { format!("s{}", self.stage % STAGES) } else { "lost".to_owned() }
    }
}

/// Assigns each span of a worker to its first free slot. Spans of one color with a gap below `apart_seconds`
/// become one piece.
fn pieces(spans: &[SlotSpan], slots: u32, apart_seconds: f64) -> Vec<Piece> {
    let mut ordered = spans.to_vec();
    ordered.sort_by_key(|span| (span.from_us, span.to_us));
    let mut free_us = vec![0; slots.max(1) as usize];
    let mut last: Vec<Option<Piece>> = vec![None; free_us.len()];
    let mut pieces = Vec::new();
    for span in ordered {
        // A worker never runs more spans than it has slots. Slot 0 is a fallback instead of a panic on a tie
        // in time.
        let slot = free_us.iter().position(|free| *free <= span.from_us).unwrap_or(0);
        free_us[slot] = span.to_us;
        let seconds = [span.from_us as f64 / 1e6, span.to_us as f64 / 1e6];
        let (stage, is_complete) = (span.stage, span.is_whole);
        let piece = Piece { slot: slot as u32, stage, is_complete, seconds };
        match &mut last[slot] {
            Some(before)
                if (before.stage, before.is_complete) == (piece.stage, piece.is_complete)
                    && piece.seconds[0] - before.seconds[1] < apart_seconds =>
            {
                before.seconds[1] = piece.seconds[1];
            }
            place => pieces.extend(place.replace(piece)),
        }
    }
    pieces.extend(last.into_iter().flatten());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_get_slots_and_merge_by_color() {
        let span = |stage, from: u64, to: u64| SlotSpan {
            node: 0,
            stage,
            from_us: from * 1_000_000,
            to_us: to * 1_000_000,
            is_whole: true,
        };
        let spans = [span(1, 0, 4), span(1, 4, 9), span(1, 0, 5), span(0, 5, 6)];
        let pieces = pieces(&spans, 2, 0.5);
        let piece = |slot, stage, from, to| Piece { slot, stage, is_complete: true, seconds: [from, to] };
        assert_eq!(pieces, [piece(1, 1, 0.0, 5.0), piece(0, 1, 0.0, 9.0), piece(1, 0, 5.0, 6.0)]);
    }
}
