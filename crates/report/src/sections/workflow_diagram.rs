//! Diagram of the workflow: stages with their tasks from top to bottom, and the data regions between them.
//!
//! Tasks form one column in the order of the workflow, so boxes never overlap. A region leaves its task to
//! the right, runs down its own track and enters its readers from the right. Tracks are assigned greedily,
//! short regions first, so that short regions stay near the boxes (interval coloring).

mod layout;

use crate::Report;
use crate::charts::svg::{Anchor, Drawing, shortened, text_width};
use crate::page::html::{Html, figure, html, strong};
use layout::{Layout, Node, Slot};
use pleach_workflow::{ReferenceSource, Workflow};

/// Width of the figure. More tracks than fit widen it.
const WIDTH_PX: f64 = 780.0;
/// Width of the region names beside the boxes.
const NAMES_PX: f64 = 190.0;
/// Minimum width of a readable task box.
const NARROWEST_PX: f64 = 260.0;
/// Gap between the frame of a stage and its tasks.
const INSET_PX: f64 = 12.0;
const TRACK_PX: f64 = 12.0;
const LINE_PX: f64 = 16.0;

/// Returns the section.
pub(crate) fn section(report: &Report<'_>) -> Html {
    let workflow = &report.study.workflow;
    let masks = matches!(report.study.reference, ReferenceSource::Masks(_));
    let analyzed: Vec<&str> = report.study.metric_names().collect();
    let caption = html![
        strong("The workflow of this study."),
        " Each box is a task with the operation it runs and the parameters it takes; frames are stages, \
         which run from top to bottom. Lines are data regions: they leave a task at its right side, and \
         arrows lead to the tasks that read them. A dot is a branch; lines that cross without a dot are not \
         connected.",
    ];
    figure(draw(workflow, masks, &analyzed), caption)
}

/// Draws the figure. `masks` is whether references are mask files. `analyzed` names the analyzed metrics.
fn draw(workflow: &Workflow, masks: bool, analyzed: &[&str]) -> Html {
    // The number of tracks depends only on the order of tasks. The boxes get the remaining width.
    let tracks = Layout::new(workflow, masks, analyzed, NARROWEST_PX).tracks();
    let gutter = TRACK_PX * (tracks + 1) as f64;
    let box_px = (WIDTH_PX - gutter - NAMES_PX - 2.0 * INSET_PX).max(NARROWEST_PX);
    let layout = Layout::new(workflow, masks, analyzed, box_px);
    let frame = box_px + NAMES_PX + 2.0 * INSET_PX;
    let title = format!("Stages, tasks and data regions of the workflow {}", workflow.name);
    let mut drawing = Drawing::new(frame + gutter, layout.height + 1.0, &title);
    let left = INSET_PX + box_px;
    for stage in &layout.frames {
        drawing.rect("frame", [0.5, stage.top, frame, stage.bottom - stage.top]);
        drawing.text("stage-name", Anchor::Start, [INSET_PX, stage.top + 20.0], &stage.name);
        for (place, line) in stage.description.iter().enumerate() {
            let y = stage.top + 20.0 + LINE_PX * place as f64;
            drawing.text("soft", Anchor::Start, [stage.text_left, y], line);
        }
    }
    for region in &layout.regions {
        let x = frame + TRACK_PX * (region.track + 1) as f64;
        let note = format!("{}: {} to {}", region.name, region.writer, region.readers.join(", "));
        drawing.noted(&note, |drawing| {
            let Some(last) = region.to.last() else {
                return drawing.polyline("region", &[[left, region.from], [left + 40.0, region.from]]);
            };
            drawing.polyline("region", &[[left, region.from], [x, region.from], [x, *last], [left, *last]]);
            for y in &region.to {
                if y != last {
                    drawing.polyline("region", &[[x, *y], [left, *y]]);
                    drawing.dots("joint", [[x, *y]]);
                }
                drawing.arrow("tip", [left + 1.0, *y]);
            }
        });
    }
    for node in &layout.nodes {
        drawing.noted(&node.note, |drawing| task(drawing, node, box_px));
    }
    drawing.finish()
}

fn task(drawing: &mut Drawing, node: &Node, box_px: f64) {
    let class = if node.is_task { "task" } else { "end" };
    drawing.rect(class, [INSET_PX, node.top, box_px, node.height]);
    let (left, right) = (INSET_PX + 10.0, INSET_PX + box_px - 10.0);
    let operation = shortened(&node.operation, box_px / 2.0);
    drawing.text("soft", Anchor::End, [right, node.top + LINE_PX], &operation);
    let room = right - left - text_width(&operation) - 10.0;
    drawing.text("task-name", Anchor::Start, [left, node.top + LINE_PX], &shortened(&node.name, room));
    for (place, line) in node.description.iter().enumerate() {
        let y = node.top + LINE_PX * (place as f64 + 2.0);
        drawing.text("soft", Anchor::Start, [left, y], line);
    }
    for (place, line) in node.parameters.iter().enumerate() {
        let y = node.top + LINE_PX * ((place + node.description.len()) as f64 + 2.0);
        drawing.text("label", Anchor::Start, [left, y], line);
    }
    for Slot { y, name, .. } in &node.slots {
        let label = shortened(name, NAMES_PX - 22.0);
        drawing.text("region-name", Anchor::Start, [INSET_PX + box_px + 14.0, y - 3.5], &label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_study::builtin;
    use serde_json::{Value, json};

    /// Returns a user's workflow with two stages before the comparison, the second long, and names that need
    /// escaping or shortening.
    fn own() -> Workflow {
        let integer = |name: &str, argument: &str| json!({ "name": name, "argument": argument, "type": "integer", "default": 1, "range": [0, 10] });
        let area = |n: usize| {
            json!({
                "task": format!("m{n}"), "description": "Areas, ".repeat(n + 1),
                "operation": "nuclei.candidate-area", "version": 1,
                "parameters": [
                    integer(&format!("low{}", "-very".repeat(3 * n)), "minSize"),
                    integer(&format!("high{n}"), "maxSize"),
                ],
                "reads": [if n == 0 { "b&w".to_owned() } else { format!("m{}", n - 1) }],
                "writes": [format!("m{n}")],
            })
        };
        let mask = |name: &str| json!({ "region": name, "type": "mask" });
        let find = json!({
            "stage": "find <all>", "description": "Finds \"them\"",
            "inputs": [{ "region": "slide", "type": "bgr8" }], "outputs": [mask("b&w")],
            "tasks": [
                { "task": "a", "description": "", "operation": "nuclei.reconstruct", "version": 1,
                  "parameters": [
                      { "name": "c", "argument": "MorphRecon", "type": "integer", "default": 8, "values": [4, 8] },
                  ],
                  "reads": ["slide"], "writes": ["rc", "recon"] },
                { "task": "b", "description": "", "operation": "nuclei.candidates", "version": 1,
                  "parameters": [integer("g", "G1"), { "name": "c", "argument": "FillHoles" }],
                  "reads": ["rc", "recon"], "writes": ["nobody's", "b&w"] },
            ],
        });
        let many = json!({
            "stage": "many", "description": "Many", "inputs": [mask("b&w")], "outputs": [mask("m13")],
            "tasks": (0..14).map(area).collect::<Vec<Value>>(),
        });
        let compare = json!({
            "stage": "compare", "description": "Compares", "inputs": [mask("m13"), mask("truth")],
            "outputs": [{ "region": "numbers", "type": "table" }],
            "tasks": [{ "task": "c", "description": "", "operation": "compare.masks", "version": 1,
                        "reads": ["m13", "truth"], "writes": ["numbers"] }],
        });
        let workflow = json!({
            "workflow": "own", "description": "A user's", "inputs": [{ "region": "slide", "type": "bgr8" }],
            "reference": { "region": "truth", "type": "mask", "output": "m13" },
            "stages": [{ "descriptor": "a.json" }, { "descriptor": "b.json" }, { "descriptor": "c.json" }],
            "response": { "region": "numbers", "metrics": [{ "metric": "dice", "over_tiles": "mean" }] },
        });
        let [workflow, find, many, compare] = [workflow, find, many, compare].map(|file| file.to_string());
        let files = [("w.json", &*workflow), ("a.json", &find), ("b.json", &many), ("c.json", &compare)];
        Workflow::embedded(&files, &builtin::registry()).unwrap()
    }

    fn number(node: &roxmltree::Node<'_, '_>, attribute: &str) -> f64 {
        node.attribute(attribute).unwrap().parse().unwrap()
    }

    /// Checks properties of the picture of any workflow, and returns its texts.
    fn check(workflow: &Workflow) -> Vec<String> {
        let drawn = draw(workflow, false, &["dice"]).into_string();
        let document = roxmltree::Document::parse(&drawn).unwrap();
        let (width, height) =
            (number(&document.root_element(), "width"), number(&document.root_element(), "height"));
        let of_class = |class: &'static str| {
            document
                .descendants()
                .filter(move |node| node.attribute("class") == Some(class))
                .collect::<Vec<_>>()
        };
        let mut boxes: Vec<(f64, f64)> = Vec::new();
        for rect in of_class("task").iter().chain(&of_class("end")) {
            boxes.push((number(rect, "y"), number(rect, "y") + number(rect, "height")));
            assert!(number(rect, "x") + number(rect, "width") <= width);
        }
        boxes.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(boxes.windows(2).all(|pair| pair[0].1 < pair[1].0), "boxes overlap: {boxes:?}");
        assert!(boxes.iter().all(|(_, bottom)| *bottom <= height));
        let tasks: usize = workflow.stages.iter().map(|stage| stage.tasks.len()).sum();
        // The tile, the reference and the response add 3 boxes.
        assert_eq!((of_class("task").len(), boxes.len()), (tasks, tasks + 3));
        let reads: usize = workflow.stages.iter().flat_map(|s| &s.tasks).map(|task| task.reads.len()).sum();
        assert_eq!(of_class("tip").len(), reads + 1, "an arrow for each region read");
        for text in document.descendants().filter(|node| node.has_tag_name("text")) {
            let (x, y) = (number(&text, "x"), number(&text, "y"));
            assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y));
            if text.attribute("text-anchor") == Some("start") {
                assert!(x + text_width(text.text().unwrap_or("")) <= width, "{text:?}");
            }
        }
        document
            .descendants()
            .filter(|n| n.has_tag_name("text"))
            .filter_map(|n| n.text())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn diagram_of_the_built_in_workflow_shows_its_tasks() {
        let workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap();
        let texts = check(&workflow);
        for expected in
            ["segmentation", "t5", "nuclei.candidates", "G1, FillHoles", "diff (gray8)", "metrics (table)"]
        {
            assert!(texts.iter().any(|text| text == expected), "{expected} in {texts:?}");
        }
        let without = check(&workflow.without(&["normalize".to_owned()]));
        assert!(
            without.iter().any(|text| text == "normalized") && !without.contains(&"normalization".to_owned())
        );
    }

    #[test]
    fn diagram_of_a_user_workflow_shows_its_tasks() {
        let texts = check(&own());
        for expected in
            ["find <all>", "b&w (mask)", "nobody's (gray8)", "m13", "The m13 of many at default parameters"]
        {
            assert!(texts.iter().any(|text| text == expected), "{expected} in {texts:?}");
        }
    }

    /// Lines of different regions never overlap along a track or a row.
    #[test]
    fn every_region_has_its_own_path() {
        let workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap();
        for workflow in [workflow, own()] {
            let layout = Layout::new(&workflow, true, &["dice"], NARROWEST_PX);
            let ways = layout.regions.iter().filter_map(|region| Some((region, *region.to.last()?)));
            let ways: Vec<_> = ways.collect();
            for (place, (one, end)) in ways.iter().enumerate() {
                for (other, other_end) in &ways[place + 1..] {
                    let apart = *end < other.from || *other_end < one.from;
                    assert!(one.track != other.track || apart, "{} and {}", one.name, other.name);
                    assert!(one.to.iter().all(|y| !other.to.contains(y)) && one.from != other.from);
                }
            }
        }
    }
}
