//! Places labels of points without overlaps.
//!
//! The placement is greedy: each label in turn takes the nearest free place around its point. A label without
//! a free place is left out, and the caption of the figure names it.

/// Axis-parallel rectangle, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn around([x, y]: [f64; 2], radius: f64) -> Self {
        Self { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Returns the area shifted by the least distance into `bounds`. An area larger than the bounds still
    /// exceeds them.
    fn moved_into(self, bounds: &Self) -> Self {
        let x = (bounds.left - self.left).max(0.0) + (bounds.right - self.right).min(0.0);
        let y = (bounds.top - self.top).max(0.0) + (bounds.bottom - self.bottom).min(0.0);
        Self { left: self.left + x, top: self.top + y, right: self.right + x, bottom: self.bottom + y }
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    /// Returns whether the straight line from `a` to `b` meets the area, by clipping (Liang and Barsky 1984).
    fn meets(&self, [ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> bool {
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        let sides = [
            (ax - bx, ax - self.left),
            (bx - ax, self.right - ax),
            (ay - by, ay - self.top),
            (by - ay, self.bottom - ay),
        ];
        for (along, room) in sides {
            if along == 0.0 {
                if room < 0.0 {
                    return false;
                }
            } else if along < 0.0 {
                enter = enter.max(room / along);
            } else {
                leave = leave.min(room / along);
            }
        }
        enter <= leave
    }
}

/// Label to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelRequest {
    /// Labeled point.
    pub(crate) point: [f64; 2],
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Place of a label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelPlacement {
    pub(crate) area: Area,
    /// End of the leader line from the point. `None` for a label next to its point.
    pub(crate) leader: Option<[f64; 2]>,
    distance: f64,
}

/// Distances of labels from their points. From the second on, a leader line joins label and point.
const DISTANCES_PX: [f64; 7] = [8.0, 15.0, 25.0, 38.0, 54.0, 72.0, 92.0];

/// Directions from the point to the label, the most readable first: right, left, flatter diagonals, then
/// above and below.
const DIRECTIONS: [[f64; 2]; 12] = [
    [1.0, 0.0],
    [0.71, -0.71],
    [0.71, 0.71],
    [-1.0, 0.0],
    [-0.71, -0.71],
    [-0.71, 0.71],
    [0.92, -0.38],
    [0.92, 0.38],
    [-0.92, -0.38],
    [-0.92, 0.38],
    [0.0, -1.0],
    [0.0, 1.0],
];

/// Returns a place for each label inside `bounds`, clear of all `obstacles` and of each other. Labels cross
/// `line` only if no other place is free.
///
/// The result depends on the order. Tries the given order, with the important labels first, and its reverse.
/// Keeps the one that leaves out fewer labels, then the one with the smaller distances.
pub(crate) fn place_labels(
    wanted: &[LabelRequest],
    obstacles: &[Area],
    bounds: Area,
    line: Option<[[f64; 2]; 2]>,
) -> Vec<Option<LabelPlacement>> {
    let forward = greedy(0..wanted.len(), wanted, obstacles, bounds, line);
    let backward = greedy((0..wanted.len()).rev(), wanted, obstacles, bounds, line);
    let left_out = |places: &[Option<LabelPlacement>]| places.iter().filter(|place| place.is_none()).count();
    let length =
        |places: &[Option<LabelPlacement>]| places.iter().flatten().map(|place| place.distance).sum::<f64>();
    let better = left_out(&backward)
        .cmp(&left_out(&forward))
        .then_with(|| length(&backward).total_cmp(&length(&forward)))
        .is_lt();
    if better { backward } else { forward }
}

fn greedy(
    order: impl Iterator<Item = usize>,
    wanted: &[LabelRequest],
    obstacles: &[Area],
    bounds: Area,
    line: Option<[[f64; 2]; 2]>,
) -> Vec<Option<LabelPlacement>> {
    let mut taken: Vec<Area> = Vec::new();
    let mut leaders: Vec<[[f64; 2]; 2]> = Vec::new();
    let mut places = vec![None; wanted.len()];
    for number in order {
        let label = &wanted[number];
        let free = |candidate: &LabelPlacement| {
            let own = Area::around(label.point, 0.5);
            let end = candidate.leader.unwrap_or(label.point);
            bounds.holds(&candidate.area)
                && !obstacles.iter().any(|obstacle| obstacle.overlaps(&candidate.area))
                && !taken.iter().any(|other| other.overlaps(&candidate.area) || other.meets(label.point, end))
                && !leaders.iter().any(|[a, b]| candidate.area.meets(*a, *b))
                && (candidate.leader.is_none()
                    || !obstacles.iter().any(|o| !o.overlaps(&own) && o.meets(label.point, end)))
        };
        let crosses = |candidate: &LabelPlacement| line.is_some_and(|[a, b]| candidate.area.meets(a, b));
        let candidates: Vec<LabelPlacement> = candidates(label, bounds).filter(free).collect();
        let chosen = candidates.iter().find(|candidate| !crosses(candidate)).or(candidates.first()).copied();
        if let Some(placed) = chosen {
            taken.push(placed.area);
            leaders.extend(placed.leader.map(|end| [label.point, end]));
        }
        places[number] = chosen;
    }
    places
}

fn candidates(label: &LabelRequest, bounds: Area) -> impl Iterator<Item = LabelPlacement> + use<> {
    let LabelRequest { point: [x, y], width, height } = *label;
    DISTANCES_PX.into_iter().enumerate().flat_map(move |(ring, distance)| {
        DIRECTIONS.into_iter().map(move |[dx, dy]| {
            // The edge or corner of the label that faces the point has this distance.
            let near = [x + dx * distance, y + dy * distance];
            let facing = |direction: f64| {
                if direction > 0.3 {
                    0.0
                } else if direction < -0.3 {
                    1.0
                } else {
                    0.5
                }
            };
            let (left, top) = (near[0] - facing(dx) * width, near[1] - facing(dy) * height);
            let area = Area { left, top, right: left + width, bottom: top + height }.moved_into(&bounds);
            let end = [x.clamp(area.left, area.right), y.clamp(area.top, area.bottom)];
            LabelPlacement { area, leader: (ring > 0).then_some(end), distance }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Area = Area { left: 0.0, top: 0.0, right: 400.0, bottom: 300.0 };

    #[test]
    fn single_label_is_placed_to_the_right() {
        let wanted = [LabelRequest { point: [100.0, 100.0], width: 40.0, height: 14.0 }];
        let placed = place_labels(&wanted, &[Area::around([100.0, 100.0], 4.0)], BOUNDS, None)[0].unwrap();
        assert_eq!((placed.area.left, placed.area.top), (108.0, 93.0));
        assert!(placed.leader.is_none());
    }

    #[test]
    fn a_full_corner_leaves_labels_out() {
        let wanted = [LabelRequest { point: [0.0, 300.0], width: 390.0, height: 80.0 }; 9];
        let placed = place_labels(&wanted, &[], BOUNDS, None);
        assert!(placed[0].is_some());
        assert!(placed[8].is_none());
    }

    proptest! {
        #[test]
        fn labels_overlap_neither_labels_nor_points(
            points in prop::collection::vec((0.0..400.0, 0.0..300.0, 10.0..120.0), 1..60),
        ) {
            let wanted: Vec<LabelRequest> = points
                .iter()
                .map(|&(x, y, width)| LabelRequest { point: [x, y], width, height: 14.0 })
                .collect();
            let obstacles: Vec<Area> = wanted.iter().map(|label| Area::around(label.point, 4.0)).collect();
            let placed = place_labels(&wanted, &obstacles, BOUNDS, Some([[0.0, 300.0], [400.0, 0.0]]));
            let areas: Vec<Area> = placed.iter().flatten().map(|placed| placed.area).collect();
            for (index, area) in areas.iter().enumerate() {
                prop_assert!(BOUNDS.holds(area));
                prop_assert!(!obstacles.iter().any(|obstacle| obstacle.overlaps(area)));
                prop_assert!(!areas[..index].iter().any(|other| other.overlaps(area)));
            }
        }
    }
}
