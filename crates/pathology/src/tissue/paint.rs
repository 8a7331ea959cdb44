//! Paints a band of rows with amounts of stain: stroma, cytoplasm, holes, nuclei, then blood.

use super::appearance::TileAppearance;
use super::arithmetic::smoothstep;
use super::layout::{Disc, Layout};
use super::noise::Field;
use super::nucleus::{Nucleus, ShrinkageGap};

/// Amounts of hematoxylin, eosin and blood of one pixel.
pub(super) type Stains = [f32; 3];

/// A rectangle of pixels. A part of it may be beyond the tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    /// Leftmost column.
    pub(super) left: i32,
    /// Topmost row.
    pub(super) top: i32,
    /// Columns.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
}

/// Consecutive rows of a tile. The first may be above the tile.
pub(super) struct Band {
    /// Column at the left of the band.
    left: i32,
    /// Row of the tile at the top of the band.
    top: i32,
    /// Pixels per row.
    width: usize,
    /// Amounts of stain, row-major.
    pub(super) stains: Vec<Stains>,
}

impl Band {
    /// Paints an area. `coverage` returns the share of tissue at a position, 0 to 1.
    pub(super) fn paint(
        recipe: &TileAppearance,
        layout: &Layout,
        area: Area,
        coverage: impl Fn(f32, f32) -> f32,
    ) -> Self {
        let Area { left, top, width, height } = area;
        let stroma = Stroma::new(recipe);
        let ragged = Field::new(recipe.seed ^ 0x7A66);
        let stains = (0..height * width)
            .map(|i| {
                let (x, y) = ((left + (i % width) as i32) as f32, (top + (i / width) as i32) as f32);
                let share = coverage(x, y);
                if share > 0.0 { stroma.at(x, y).map(|amount| share * amount) } else { [0.0; 3] }
            })
            .collect();
        let mut band = Self { left, top, width, stains };
        for nucleus in &layout.nuclei {
            let reach = nucleus.reach_px() + Nucleus::CYTOPLASM_PX;
            band.visit(nucleus.center, reach, |x, y, stains| surround(nucleus, ragged, x, y, stains));
        }
        for hole in &layout.holes {
            band.visit(hole.center, hole.radius_px * 1.5 + 3.0, |x, y, stains| {
                punch(hole, ragged, x, y, stains)
            });
        }
        for nucleus in &layout.nuclei {
            let texture = Texture::new(nucleus);
            band.visit(nucleus.center, nucleus.reach_px(), |x, y, stains| texture.apply(x, y, stains));
        }
        for cell in &layout.blood {
            band.visit(cell.center, cell.radius_px * 1.5 + 2.0, |x, y, stains| {
                bleed(cell, ragged, x, y, stains)
            });
        }
        band
    }

    /// Calls `change` for the pixels of the band within `reach` of `center`.
    fn visit(&mut self, center: [f32; 2], reach: f32, mut change: impl FnMut(f32, f32, &mut Stains)) {
        let rows = (self.stains.len() / self.width) as i32;
        let span = |center: f32, first: i32, end: i32| {
            let (low, high) = ((center - reach).floor() as i32, (center + reach).floor() as i32 + 1);
            low.clamp(first, end)..high.clamp(first, end)
        };
        for y in span(center[1], self.top, self.top + rows) {
            let row = (y - self.top) as usize * self.width;
            for x in span(center[0], self.left, self.left + self.width as i32) {
                change(x as f32, y as f32, &mut self.stains[row + (x - self.left) as usize]);
            }
        }
    }
}

/// The tissue between the nuclei: fibers, granules and slow unevenness, torn open in places.
struct Stroma<'a> {
    recipe: &'a TileAppearance,
    fiber: Field,
    grain: Field,
    patch: Field,
    uneven: Field,
    cleft: Field,
    thread: Field,
    loose: Field,
}

impl<'a> Stroma<'a> {
    fn new(recipe: &'a TileAppearance) -> Self {
        let field = |n: u32| Field::new(recipe.seed.wrapping_add(n.wrapping_mul(0x9E37_79B9)));
        let [fiber, grain, patch, uneven, cleft, thread, loose] = [1, 2, 3, 4, 5, 6, 7].map(field);
        Self { recipe, fiber, grain, patch, uneven, cleft, thread, loose }
    }

    /// Returns the amounts of stain at a position.
    ///
    /// The relative amplitudes reproduce the standard deviations measured between the nuclei of real tiles, mostly at 4
    /// px and above (hematoxylin 0.10 in all, 0.07 above 4 px, 0.04 above 16 px; eosin 0.10, 0.08, 0.05).
    fn at(&self, x: f32, y: f32) -> Stains {
        let recipe = self.recipe;
        let [along, across] = recipe.fibers.coordinates(x, y);
        let fiber = self.fiber.octaves(along, across, [90.0, 13.0], &[1.0, 0.8, 0.5]);
        let patch = self.patch.octaves(x, y, [60.0, 60.0], &[1.0, 0.7, 0.5]);
        let blue = self.patch.octaves(x + 911.0, y - 777.0, [44.0, 44.0], &[1.0, 0.9, 0.7]);
        let grain = self.grain.octaves(x, y, [7.0, 7.0], &[1.0, 0.7]);
        let slow = [0.0, 3001.0].map(|shift| {
            let field = self.uneven.at((x + shift) / 400.0, y / 400.0);
            1.0 + recipe.unevenness * field
        });
        // Ridges where the field crosses zero: thin threads rather than soft waves.
        let thread = self.thread.octaves(along, across, [64.0, 13.0], &[1.0, 0.8, 0.5]);
        let strands = recipe.fibrousness * (0.6 * fiber + 0.8 * (1.0 - 1.04 * thread.abs()));
        let loose = self.loose.octaves(x + 0.3 * along, y + 0.3 * across, [30.0, 30.0], &[1.0, 0.7, 0.4]);
        let mass = self.loose.octaves(x - 1711.0, y + 403.0, [48.0, 48.0], &[1.0, 0.8]);
        let dense = (1.05 + 0.16 * mass) * (1.0 - 0.72 * recipe.looseness * smoothstep(0.5, 2.4, loose));
        let eosin = dense * (1.02 + 0.155 * strands + 0.19 * patch + 0.06 * grain);
        let haematoxylin = dense * (1.02 - 0.1 * patch + 0.36 * blue + 0.12 * strands + 0.2 * grain);
        let tear = self.cleft.octaves(along, across, [150.0, 46.0], &[1.0, 0.45]);
        let tissue = 1.0
            - 0.96 * smoothstep(recipe.cleft_threshold, recipe.cleft_threshold + 0.26, tear + 0.03 * grain);
        [
            tissue * slow[0] * recipe.stroma_haematoxylin * haematoxylin.max(0.05),
            tissue * slow[1] * recipe.stroma_eosin * eosin.max(0.1),
            0.0,
        ]
    }
}

/// Removes tissue from a hole and thickens its border.
fn punch(hole: &Disc, ragged: Field, x: f32, y: f32, stains: &mut Stains) {
    let depth = disc_depth_px(hole, x, y) + 1.2 * ragged.at(x / 8.0, y / 8.0);
    let border = 1.0 + 0.12 * smoothstep(-3.0, -0.5, depth);
    let left = border * (1.0 - hole.strength * smoothstep(-1.2, 2.2, depth));
    stains[0] *= left;
    stains[1] *= left;
}

/// Paints the surroundings of a nucleus: cytoplasm, and the gap where the tissue has shrunk away on one side.
fn surround(nucleus: &Nucleus, ragged: Field, x: f32, y: f32, stains: &mut Stains) {
    let ShrinkageGap { direction: [gx, gy], width_px, strength } = nucleus.look.gap;
    let outside = -nucleus.depth_px(x, y);
    if outside > Nucleus::CYTOPLASM_PX {
        return;
    }
    let away = distance(nucleus.center, x, y).max(1.0);
    let side = ((x - nucleus.center[0]) * gx + (y - nucleus.center[1]) * gy) / away;
    let body = (1.0 - smoothstep(2.0, Nucleus::CYTOPLASM_PX, outside)) * smoothstep(-0.9, 0.5, -side);
    stains[1] *= 1.0 + nucleus.look.cytoplasm * body;
    let width = width_px * smoothstep(-0.1, 1.0, side);
    if width > 0.0 && outside < 2.0 * width_px + 1.5 {
        let width = width * (1.0 + 0.35 * ragged.at(x / 7.0, y / 7.0));
        let gap = smoothstep(0.3, 2.0, width) * (1.0 - smoothstep(width - 1.5, width + 1.5, outside));
        stains[0] *= 1.0 - strength * gap;
        stains[1] *= 1.0 - strength * gap;
    }
}

/// Paints a red blood cell over the tissue: thinner in its middle, hiding most of the stroma.
fn bleed(cell: &Disc, ragged: Field, x: f32, y: f32, stains: &mut Stains) {
    let noise = ragged.at(x / 9.0, y / 9.0);
    let depth = disc_depth_px(cell, x, y) + 0.9 * noise;
    let cover = smoothstep(-1.4, 1.4, depth);
    let rim = 1.0 - (depth / cell.radius_px).clamp(0.0, 1.0);
    let amount = cover * cell.strength * (0.8 + 0.3 * rim * rim + 0.08 * noise);
    stains[1] *= 1.0 - 0.8 * cover;
    // Stacked cells are pressed flat, so they absorb more than one cell but less than twice as much.
    stains[2] = stains[2].max(amount) + 0.35 * stains[2].min(amount);
}

/// Returns the depth inside a disc, pixels, to first order. Negative outside.
fn disc_depth_px(disc: &Disc, x: f32, y: f32) -> f32 {
    let (dx, dy) = (x - disc.center[0], y - disc.center[1]);
    let [ax, ay] = disc.axis;
    let (u, v) = (dx * ax + dy * ay, disc.elongation * (dy * ax - dx * ay));
    let rho = (u * u + v * v).sqrt();
    let slope = (u * u + v * v * disc.elongation * disc.elongation).sqrt() / rho.max(1e-3);
    (disc.radius_px - rho) / slope.max(1.0)
}

/// The interior of one nucleus.
struct Texture<'a> {
    nucleus: &'a Nucleus,
    chromatin: Field,
}

impl<'a> Texture<'a> {
    fn new(nucleus: &'a Nucleus) -> Self {
        Self { nucleus, chromatin: Field::new(nucleus.look.seed) }
    }

    fn apply(&self, x: f32, y: f32, stains: &mut Stains) {
        let look = &self.nucleus.look;
        let depth = self.nucleus.depth_px(x, y);
        if depth < -look.softness_px {
            return;
        }
        let cover = smoothstep(-look.softness_px, look.softness_px, depth);
        let clumps = self.chromatin.octaves(x, y, [13.0, 13.0], &[1.0, 1.0, 0.9, 0.3]);
        let membrane = smoothstep(-1.0, 1.0, depth) * (1.0 - smoothstep(1.5, 3.5, depth));
        let mut amount = 1.0 + look.chromatin * clumps + look.rim * membrane;
        let mut eosin_left = 0.75;
        let [u, v] = self.nucleus.local(x, y);
        let [a, b] = self.nucleus.half_axes_px;
        for ([nu, nv], radius_px) in look.nucleoli {
            let away = (((u - nu) * a).powi(2) + ((v - nv) * b).powi(2)).sqrt();
            let inside = if radius_px > 0.0 { smoothstep(-1.0, 1.0, radius_px - away) } else { 0.0 };
            amount += 0.45 * inside;
            eosin_left += 0.3 * inside;
        }
        let target = look.haematoxylin * amount.max(0.3);
        // Where two nuclei meet, the darker one shows through.
        stains[0] += cover * (target.max(stains[0]) - stains[0]);
        stains[1] *= 1.0 + cover * (eosin_left - 1.0);
    }
}

fn distance(center: [f32; 2], x: f32, y: f32) -> f32 {
    let (dx, dy) = (x - center[0], y - center[1]);
    (dx * dx + dy * dy).sqrt()
}
