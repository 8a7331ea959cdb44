//! Scatter plot of μ* and σ. Parameters near the diagonal σ = μ* or above it interact or are non-linear.
//!
//! If a few parameters dominate, the others crowd in the corner. A second panel magnifies the corner, and
//! only that panel labels them.

use crate::charts::label::{Area, LabelRequest, place_labels};
use crate::charts::svg::{Anchor, Drawing, Scale, TYPE_PX, shortened, text_width};
use crate::page::format_number::brief;
use crate::page::html::Html;
use crate::verdict::ranked;
use pleach_sensitivity::moat::{MoatIndices, MoatParameter};

/// Size and margins of a panel.
const PANEL_PX: [f64; 2] = [436.0, 350.0];
const LEFT_PX: f64 = 78.0;
const RIGHT_PX: f64 = 30.0;
const TOP_PX: f64 = 28.0;
const BOTTOM_PX: f64 = 48.0;
const POINT_PX: f64 = 3.8;
/// Points nearer than this in both directions share a label.
const SPOT_PX: f64 = 6.0;

/// Parameters up to this share of the largest μ* form the crowd in the corner. [`CROWD`] is the minimum of a
/// crowd.
const CORNER: f64 = 0.3;
const CROWD: usize = 3;

/// Figure, and the parameters without a label.
#[derive(Debug)]
pub(crate) struct Plane {
    /// Panel of all parameters. A second panel magnifies the corner if it is crowded.
    pub(crate) panels: Vec<Drawing>,
    pub(crate) magnified: bool,
    pub(crate) unlabeled: Vec<String>,
}

impl Plane {
    /// Returns the panels for a page, which wraps them.
    pub(crate) fn on_page(self) -> Html {
        let panels: Html = self.panels.into_iter().map(Drawing::finish).collect();
        Html::of_class("div", "panels", panels)
    }

    /// Returns the panels as one picture.
    pub(crate) fn alone(self, title: &str) -> Drawing {
        let [width, height] = PANEL_PX;
        let mut all = Drawing::new(width * self.panels.len() as f64, height, title);
        for (place, panel) in self.panels.into_iter().enumerate() {
            all.put([place as f64 * width, 0.0], panel);
        }
        all
    }
}

/// Parameter in the plane.
struct Point<'a> {
    name: &'a str,
    mu_star: f64,
    sigma: f64,
}

/// Draws the plane. `None` without parameters or without σ (one trajectory).
pub(crate) fn draw(indices: &MoatIndices, response: &str) -> Option<Plane> {
    let points = points(indices)?;
    let largest = |of: fn(&Point<'_>) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (most_mu_star, most_sigma) = (largest(|p| p.mu_star), largest(|p| p.sigma));
    let (crowd, rest): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        points.iter().partition(|p| p.mu_star <= CORNER * most_mu_star);
    let all: Vec<&Point<'_>> = points.iter().collect();
    let magnified = crowd.len() >= CROWD && !rest.is_empty() && crowd.iter().any(|p| p.mu_star > 0.0);

    let corner = |of: fn(&Point<'_>) -> f64| crowd.iter().map(|p| of(p)).fold(0.0, f64::max);
    let corner = [corner(|p| p.mu_star) * 1.05, corner(|p| p.sigma) * 1.05];
    let main = Panel::new([most_mu_star, most_sigma], "all parameters");
    let mut unlabeled = Vec::new();
    let mut panels = vec![if magnified {
        main.draw(&all, &rest, Some(corner), response, &mut unlabeled)
    } else {
        main.draw(&all, &all, None, response, &mut unlabeled)
    }];
    if magnified {
        let magnifier = Panel::new(corner, "the corner, magnified");
        panels.push(magnifier.draw(&crowd, &crowd, None, response, &mut unlabeled));
    }
    Some(Plane { panels, magnified, unlabeled })
}

/// Returns the points by descending μ*. `None` without parameters or without σ.
fn points(indices: &MoatIndices) -> Option<Vec<Point<'_>>> {
    let points = ranked(indices).into_iter().map(|MoatParameter { name, mu_star, sigma, .. }| {
        Some(Point { name, mu_star: *mu_star, sigma: (*sigma)? })
    });
    let points: Vec<_> = points.collect::<Option<_>>()?;
    (!points.is_empty()).then_some(points)
}

/// Neighboring points with a common label: the place of the first point, and all names.
struct Spot<'a> {
    at: [f64; 2],
    names: Vec<&'a str>,
}

impl Spot<'_> {
    /// Returns up to 4 names, or the first 3 and the number of others.
    fn label(&self) -> String {
        let shown: Vec<String> = self.names.iter().take(4).map(|name| shortened(name, 130.0)).collect();
        match self.names.len() {
            0..=4 => shown.join(", "),
            more => format!("{} and {} more", shown[..3].join(", "), more - 3),
        }
    }
}

struct Panel {
    x: Scale,
    y: Scale,
    title: &'static str,
}

impl Panel {
    fn new([mu_star, sigma]: [f64; 2], title: &'static str) -> Self {
        let x = Scale::new(0.0, mu_star, [LEFT_PX, PANEL_PX[0] - RIGHT_PX], 5);
        let y = Scale::new(0.0, sigma, [PANEL_PX[1] - BOTTOM_PX, TOP_PX], 5);
        Self { x, y, title }
    }

    fn at(&self, point: &Point<'_>) -> [f64; 2] {
        [self.x.px(point.mu_star), self.y.px(point.sigma)]
    }

    fn spots<'a>(&self, points: &[&Point<'a>]) -> Vec<Spot<'a>> {
        let mut spots: Vec<Spot<'a>> = Vec::new();
        for point in points {
            let at = self.at(point);
            let near = |spot: &&mut Spot<'a>| {
                (spot.at[0] - at[0]).abs() < SPOT_PX && (spot.at[1] - at[1]).abs() < SPOT_PX
            };
            match spots.iter_mut().find(near) {
                Some(spot) => spot.names.push(point.name),
                None => spots.push(Spot { at, names: vec![point.name] }),
            }
        }
        spots
    }

    /// Returns the ends of the line σ = μ* within the panel.
    fn diagonal(&self) -> [[f64; 2]; 2] {
        let end = self.x.high().min(self.y.high());
        [[self.x.px(0.0), self.y.px(0.0)], [self.x.px(end), self.y.px(end)]]
    }

    /// Writes the name of the diagonal at its upper end, and returns its area. The name is left of the
    /// diagonal if the diagonal ends at the top of the panel, else above it.
    fn name_diagonal(&self, drawing: &mut Drawing) -> Area {
        let name = "σ = μ*";
        let [start, [x, y]] = self.diagonal();
        let lean = (x - start[0]) / (start[1] - y);
        let height = TYPE_PX + 2.0;
        let at = if y < TOP_PX + height { [x - 8.0 - lean * height, y + height] } else { [x, y - 7.0] };
        drawing.text("note", Anchor::End, at, name);
        Area { left: at[0] - text_width(name), top: at[1] - TYPE_PX, right: at[0], bottom: at[1] + 3.0 }
    }

    fn draw(
        &self,
        points: &[&Point<'_>],
        labeled: &[&Point<'_>],
        corner: Option<[f64; 2]>,
        response: &str,
        unlabeled: &mut Vec<String>,
    ) -> Drawing {
        let [width, height] = PANEL_PX;
        let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
        let title = format!("Plane of mu* and sigma of the effects on {response}: {}", self.title);
        let mut drawing = Drawing::new(width, height, &title);
        drawing.axis_below(&self.x, [TOP_PX, bottom]);
        drawing.axis_left(&self.y, [LEFT_PX, right]);
        drawing.text("head", Anchor::Start, [LEFT_PX, TOP_PX - 12.0], self.title);
        drawing.text(
            "axis",
            Anchor::Middle,
            [(LEFT_PX + right) / 2.0, bottom + 37.0],
            "μ* (size of the effect)",
        );
        drawing.upright("axis", [12.0, (TOP_PX + bottom) / 2.0], "σ (variation of the effect)");
        if let Some([mu_star, sigma]) = corner {
            let (x, y) = (self.x.px(mu_star), self.y.px(sigma));
            drawing.rect("corner", [LEFT_PX, y, x - LEFT_PX, bottom - y]);
        }
        let [start, end] = self.diagonal();
        drawing.line("diagonal", [start[0], start[1], end[0], end[1]]);
        drawing.line("base", [LEFT_PX, bottom, right, bottom]);
        drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);

        for point in points {
            let note = format!("{}: μ* {}, σ {}", point.name, brief(point.mu_star), brief(point.sigma));
            drawing.noted(&note, |drawing| drawing.dots("point", [self.at(point)]));
        }
        let mut obstacles: Vec<Area> =
            points.iter().map(|p| Area::around(self.at(p), POINT_PX + 1.5)).collect();
        let named = self.name_diagonal(&mut drawing);
        obstacles.push(named);
        let spots = self.spots(labeled);
        let labels: Vec<String> = spots.iter().map(Spot::label).collect();
        let height = TYPE_PX + 2.0;
        let wanted = spots.iter().zip(&labels);
        let wanted: Vec<LabelRequest> = wanted
            .map(|(spot, label)| LabelRequest { point: spot.at, width: text_width(label), height })
            .collect();
        let bounds = Area { left: LEFT_PX + 3.0, top: TOP_PX - 4.0, right: width, bottom: bottom - 1.0 };
        let places = place_labels(&wanted, &obstacles, bounds, Some([start, end]));
        for ((placed, label), spot) in places.iter().zip(&labels).zip(&spots) {
            let Some(placed) = placed else {
                unlabeled.extend(spot.names.iter().map(ToString::to_string));
                continue;
            };
            if let Some([x, y]) = placed.leader {
                drawing.line("leader", [spot.at[0], spot.at[1], x, y]);
            }
            drawing.text("label", Anchor::Start, [placed.area.left, placed.area.bottom - 3.5], label);
        }
        drawing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn plane(parameters: &[(&str, f64, f64)]) -> Option<Plane> {
        let fixture = fixture::moat(parameters);
        draw(fixture.analysis.moat().unwrap(), "Dice")
    }

    #[test]
    fn a_crowd_in_the_corner_is_magnified() {
        let crowd = [("a", 1.0, 0.1), ("b", 0.02, 0.01), ("c", 0.01, 0.02), ("d", 0.001, 0.01)];
        assert!(plane(&crowd).unwrap().magnified);
        assert!(!plane(&crowd[..2]).unwrap().magnified);
    }

    #[test]
    fn parameters_on_one_spot_share_a_label() {
        let drawn = plane(&[("a", 1.0, 0.1), ("b", 0.0, 0.0), ("c", 0.0, 0.0)]).unwrap();
        assert!(drawn.unlabeled.is_empty());
        assert!(drawn.on_page().into_string().contains(">b, c</text>"));
    }

    #[test]
    fn without_spread_there_is_no_plane() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        fixture.without_spread();
        assert!(draw(fixture.analysis.moat().unwrap(), "Dice").is_none());
    }
}
