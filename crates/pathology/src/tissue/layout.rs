//! Placement of structures: vessels with their red blood cells, vacuoles, then nuclei in the remaining space.

use super::appearance::TileAppearance;
use super::arithmetic::Draw;
use super::noise::Field;
use super::nucleus::{Nucleus, ShrinkageGap, StainUptake};

/// 1024 × 1024: pixels of a megapixel in the densities of [`TileAppearance`].
const MPX: f32 = 1_048_576.0;
/// Half a nucleus, pixels: maximum distance of a nucleus' center from the tile.
const MARGIN_PX: f32 = 12.0;
/// Maximum attempts to place a nucleus.
const ATTEMPTS: usize = 24;
/// Minimum side of a tile that always has a vessel, pixels. A vessel might fill smaller tiles.
const VESSEL_FROM_PX: u32 = 256;

/// A soft ellipse: a red blood cell or a vacuole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disc {
    /// Center, pixels.
    pub(super) center: [f32; 2],
    /// Larger half axis, pixels.
    pub(super) radius_px: f32,
    /// Direction of the larger half axis, a unit vector.
    pub(super) axis: [f32; 2],
    /// Larger over smaller half axis.
    pub(super) elongation: f32,
    /// Blood: amount of stain. Vacuole: missing share of the tissue.
    pub(super) strength: f32,
}

/// Structures drawn on top of the stroma.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Nuclei. After labeling, nucleus i has label i + 1.
    pub(super) nuclei: Vec<Nucleus>,
    /// Red blood cells.
    pub(super) blood: Vec<Disc>,
    /// Holes in the tissue: vacuoles, and the lumen around red blood cells.
    pub(super) holes: Vec<Disc>,
}

impl Nucleus {
    /// Returns whether the nucleus keeps `spacing` times the touching distance from another.
    pub(super) fn is_apart(&self, other: &Nucleus, spacing: f32) -> bool {
        is_apart(self, other.center, |[x, y]| other.radius_px([-x, -y]), spacing)
    }
}

impl Disc {
    /// Returns whether a nucleus is mostly clear of this red blood cell. A small part of a cell may cover a nucleus, as
    /// in a section of some thickness.
    pub(super) fn is_clear_of(&self, nucleus: &Nucleus) -> bool {
        let close = (0..2).all(|axis| (self.center[axis] - nucleus.center[axis]).abs() < Grid::CELL_PX);
        !close || is_apart(nucleus, self.center, |_| self.radius_px, 0.85)
    }
}

fn is_apart(nucleus: &Nucleus, center: [f32; 2], radius: impl Fn([f32; 2]) -> f32, spacing: f32) -> bool {
    let (dx, dy) = (center[0] - nucleus.center[0], center[1] - nucleus.center[1]);
    let distance = (dx * dx + dy * dy).sqrt();
    if distance < 1.0 {
        return false;
    }
    let direction = [dx / distance, dy / distance];
    distance > spacing * (radius(direction) + nucleus.radius_px(direction))
}

impl Layout {
    /// Places all structures of a tile.
    pub(super) fn draw(recipe: &TileAppearance, size_px: u32, draw: &mut Draw) -> Self {
        Self::draw_at(recipe, [0.0; 2], size_px, draw)
    }

    /// Places all structures of a square whose upper left corner is at `origin`. Positions are relative to it.
    pub(super) fn draw_at(recipe: &TileAppearance, origin: [f32; 2], size_px: u32, draw: &mut Draw) -> Self {
        let size = size_px as f32;
        let mut layout = Self { nuclei: Vec::new(), blood: Vec::new(), holes: Vec::new() };
        let vessels = count(recipe.vessels_per_mpx, size, draw).max(usize::from(size_px >= VESSEL_FROM_PX));
        for _ in 0..vessels {
            layout.vessel(recipe, origin, size, draw);
        }
        for _ in 0..count(recipe.vacuoles_per_mpx, size, draw) {
            let center = [draw.range(0.0, size), draw.range(0.0, size)];
            let radius_px = draw.log_normal(3.6, 0.45).min(11.0);
            let (axis, elongation) = (draw.direction(), draw.range(1.0, 2.0));
            layout.holes.push(Disc { center, radius_px, axis, elongation, strength: draw.range(0.2, 0.75) });
        }
        layout.scatter_nuclei(recipe, origin, size, draw);
        layout
    }

    /// Adds red blood cells in a pale lumen that runs along the fibers, or a bleeding without direction.
    fn vessel(&mut self, recipe: &TileAppearance, origin: [f32; 2], size: f32, draw: &mut Draw) {
        let start = [draw.range(0.0, size), draw.range(0.0, size)];
        // Bleedings are round. Vessels are cut at any angle, so all lengths are equally common.
        let (length_px, width_px) =
            if draw.chance(0.3) { (22.0, 22.0) } else { (draw.range(15.0, 60.0), draw.range(0.0, 12.0)) };
        let cells = 2 + (length_px * draw.range(0.05, 0.2)) as usize;
        // Stain of the whole vessel: from pale pink to the dark red of stacked cells.
        let strength = draw.range(0.65, 1.1);
        for _ in 0..cells {
            let [along, across] = [length_px, width_px].map(|reach| reach * draw.range(-1.0, 1.0));
            // The vessel bends with the fibers, to first order: half the turn at each end.
            let [tx, ty] = recipe.fibers.tangent(origin[0] + start[0] + 0.5 * along, origin[1] + start[1]);
            let center = [start[0] + along * tx - across * ty, start[1] + along * ty + across * tx];
            // 18 to 24 px across: 7 µm shrunk by fixation, at 0.25 µm per pixel. Oblique cells look narrower.
            let radius_px = draw.range(9.0, 12.0);
            let (axis, elongation) = (draw.direction(), draw.range(1.0, 1.5));
            let shade = strength * draw.range(0.75, 1.15);
            self.blood.push(Disc { center, radius_px, axis, elongation, strength: shade });
            let lumen_px = radius_px + draw.range(1.0, 8.0);
            self.holes.push(Disc { center, radius_px: lumen_px, axis, elongation, strength: 0.4 });
        }
    }

    fn scatter_nuclei(&mut self, recipe: &TileAppearance, origin: [f32; 2], size: f32, draw: &mut Draw) {
        let wanted = count(recipe.nuclei_per_mpx, size + 2.0 * MARGIN_PX, draw).max(1);
        let crowding = Field::new(recipe.seed ^ 0xC0DE);
        let mut grid = Grid::new(size);
        for _ in 0..wanted {
            let mut nucleus = nucleus(recipe, draw);
            // With probability `clustering` the nucleus is placed against an existing nucleus. Otherwise a crowding
            // field decides whether a random position is accepted.
            for _ in 0..ATTEMPTS {
                let parent = (!self.nuclei.is_empty() && draw.chance(recipe.clustering))
                    .then(|| draw.uniform_below(self.nuclei.len()));
                match parent.map(|index| &self.nuclei[index]) {
                    Some(parent) => {
                        let direction = draw.direction();
                        let gap = (parent.radius_px(direction) + nucleus.radius_px(direction))
                            * draw.range(0.86, 1.1);
                        nucleus.center =
                            [parent.center[0] + gap * direction[0], parent.center[1] + gap * direction[1]];
                    }
                    None => {
                        nucleus.center = [0; 2].map(|_| draw.range(-MARGIN_PX, size + MARGIN_PX));
                        let [x, y] = nucleus.center;
                        let density =
                            0.6 + 0.27 * crowding.at((origin[0] + x) / 150.0, (origin[1] + y) / 150.0);
                        // The first nucleus is accepted anywhere inside, so that every tile has one.
                        if !self.nuclei.is_empty() && !draw.chance(density) {
                            continue;
                        }
                        if self.nuclei.is_empty() {
                            nucleus.center = [0; 2].map(|_| draw.range(0.2 * size, 0.8 * size));
                        }
                    }
                }
                let [x, y] = nucleus.center;
                let inside = [x, y].iter().all(|c| (-MARGIN_PX..size + MARGIN_PX).contains(c));
                // Nuclei align with visible fibers and have random directions elsewhere.
                let ([tx, ty], [rx, ry]) =
                    (recipe.fibers.tangent(origin[0] + x, origin[1] + y), draw.direction());
                let weight = 1.4 - recipe.fibrousness;
                let axis = [tx + weight * rx, ty + weight * ry];
                let length = (axis[0] * axis[0] + axis[1] * axis[1]).sqrt();
                nucleus.axis = if length > 0.1 { [axis[0] / length, axis[1] / length] } else { [tx, ty] };
                // Touching is common and covering rare, like in the clusters of the annotated tiles.
                let spacing = if parent.is_some() { 0.84 } else { 1.06 };
                if inside && (self.nuclei.is_empty() || self.fits(&nucleus, spacing, &grid)) {
                    grid.insert(nucleus.center, self.nuclei.len());
                    self.nuclei.push(nucleus);
                    break;
                }
            }
        }
    }

    /// Returns whether a nucleus keeps `spacing` times the touching distance from every other nucleus, and is mostly
    /// clear of the blood.
    fn fits(&self, nucleus: &Nucleus, spacing: f32, grid: &Grid) -> bool {
        grid.near(nucleus.center).all(|index| nucleus.is_apart(&self.nuclei[index], spacing))
            && self.blood.iter().all(|cell| cell.is_clear_of(nucleus))
    }
}

/// Returns the number of structures of this density in a square of this side: the expectation, rounded at random.
fn count(per_mpx: f32, side: f32, draw: &mut Draw) -> usize {
    (per_mpx * side * side / MPX + draw.unit()) as usize
}

/// Draws a nucleus of this slide, without a position.
fn nucleus(recipe: &TileAppearance, draw: &mut Draw) -> Nucleus {
    let area_px = draw.log_normal(recipe.area_px, recipe.area_sigma).clamp(140.0, 1500.0);
    let elongation = draw.log_normal(1.8, 0.22).clamp(1.03, 2.8);
    let irregularity = draw.range(0.4, 1.2);
    // 1 in 8 nuclei is partly out of focus: pale, smooth and soft.
    let pale = draw.chance(0.125);
    // Small nuclei are condensed and stain darker.
    let condensed = (recipe.area_px / area_px).sqrt().clamp(0.85, 1.15);
    let strength = if pale { draw.range(0.5, 0.8) } else { draw.log_normal(1.04, 0.16) };
    let open = draw.chance(0.3);
    let nucleoli = [0.45, 0.2].map(|chance| {
        let [x, y] = draw.direction();
        let radius_px = if draw.chance(chance) && !pale { draw.range(1.4, 2.6) } else { 0.0 };
        let offset = draw.range(0.0, 0.5);
        ([offset * x, offset * y], radius_px)
    });
    let width_px = if draw.chance(recipe.gap_share) { draw.range(1.5, 6.0) } else { 0.0 };
    let gap = ShrinkageGap { direction: draw.direction(), width_px, strength: draw.range(0.4, 0.9) };
    let look = StainUptake {
        haematoxylin: recipe.nuclear_haematoxylin * strength * condensed * if open { 0.85 } else { 1.0 },
        softness_px: if pale { draw.range(3.0, 5.0) } else { draw.range(1.7, 3.4) },
        chromatin: if pale { 0.12 } else { draw.range(0.2, 0.42) },
        rim: if open { draw.range(0.15, 0.4) } else { draw.range(0.0, 0.15) },
        nucleoli,
        gap,
        cytoplasm: draw.range(-0.1, 0.4).max(0.0),
        seed: draw.bits(),
    };
    Nucleus::draw(draw, area_px, elongation, irregularity, [1.0, 0.0], look)
}

/// Nuclei by grid cell, to find neighbors without a scan of all nuclei.
struct Grid {
    columns: usize,
    cells: Vec<Vec<usize>>,
}

impl Grid {
    /// Side of a cell, pixels: just above twice the largest radius of a nucleus, 94 px (area 1500 px, elongation 2.8,
    /// outline 1.28).
    const CELL_PX: f32 = 96.0;

    fn new(size: f32) -> Self {
        let columns = ((size + 2.0 * MARGIN_PX) / Self::CELL_PX) as usize + 1;
        Self { columns, cells: vec![Vec::new(); columns * columns] }
    }

    fn place(&self, center: [f32; 2]) -> [usize; 2] {
        center.map(|c| (((c + MARGIN_PX).max(0.0) / Self::CELL_PX) as usize).min(self.columns - 1))
    }

    fn insert(&mut self, center: [f32; 2], index: usize) {
        let [x, y] = self.place(center);
        self.cells[y * self.columns + x].push(index);
    }

    fn near(&self, center: [f32; 2]) -> impl Iterator<Item = usize> + '_ {
        let [x, y] = self.place(center);
        let (columns, last) = (self.columns, self.columns - 1);
        (y.saturating_sub(1)..=(y + 1).min(last))
            .flat_map(move |y| (x.saturating_sub(1)..=(x + 1).min(last)).map(move |x| y * columns + x))
            .flat_map(|cell| self.cells[cell].iter().copied())
    }
}
