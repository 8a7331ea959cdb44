//! The seven tasks of the segmentation, restated line by line from the rules that the original program's masks confirm.
//! OpenCV's own marker watershed is the reference for flooding.

use crate::slow::{
    components, crop, keep, opencv_watershed, pad, slow_distance, slow_fill_holes, slow_filter,
    slow_reconstruct,
};
use pleach_pathology::kernels::Connectivity::{self, Eight, Four};
use pleach_pathology::kernels::morphology::StructuringElement;

/// The 15 parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// Background thresholds B, G, R.
    pub(crate) bright: [u8; 3],
    /// T1 and T2.
    pub(crate) ratios: [f64; 2],
    pub(crate) morph_recon: Connectivity,
    pub(crate) g1: u8,
    pub(crate) fill_holes: Connectivity,
    /// minSize and maxSize.
    pub(crate) candidate_area: [u32; 2],
    pub(crate) g2: u8,
    pub(crate) min_size_pl: u32,
    pub(crate) watershed: Connectivity,
    /// minSizeSeg and maxSizeSeg.
    pub(crate) final_area: [u32; 2],
}

/// Every output of the seven tasks.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) rbc: Vec<u8>,
    pub(crate) is_background: bool,
    pub(crate) rc: Vec<u8>,
    pub(crate) recon: Vec<u8>,
    pub(crate) diff: Vec<u8>,
    pub(crate) bw1: Vec<u8>,
    pub(crate) bw1_t: Vec<u8>,
    pub(crate) seg_open: Vec<u8>,
    pub(crate) seg_nonoverlap: Vec<u8>,
    pub(crate) mask: Vec<u8>,
}

fn mask_of<T>(values: &[T], is_object: impl Fn(&T) -> bool) -> Vec<u8> {
    values.iter().map(|value| if is_object(value) { 255 } else { 0 }).collect()
}

fn area_filter(mask: &[u8], width: usize, connectivity: Connectivity, [min, max]: [u32; 2]) -> Vec<u8> {
    keep(mask, width, connectivity, |pixels| (min as usize..max as usize).contains(&pixels.len()))
}

fn select(mask: &[u8], seeds: &[u8], width: usize) -> Vec<u8> {
    keep(mask, width, Eight, |pixels| pixels.iter().any(|pixel| seeds[*pixel] != 0))
}

/// Runs all seven tasks.
pub(crate) fn chain(pixels: &[[u8; 3]], width: usize, p: &Parameters) -> Outputs {
    let (rbc, is_background) = t1(pixels, width, p);
    let (rc, recon) = t2(pixels, width, p);
    let diff: Vec<u8> = rc.iter().zip(&recon).map(|(rc, recon)| rc - recon).collect();
    let bw1 = slow_fill_holes(&mask_of(&diff, |value| *value > p.g1), width, p.fill_holes);
    let bw1_t = area_filter(&bw1, width, Eight, p.candidate_area);
    let seg_open = if is_background { vec![0; pixels.len()] } else { t5(&diff, &bw1_t, &rbc, width, p) };
    let seg_nonoverlap = t6(pixels, &seg_open, width, p);
    let kept = area_filter(&seg_nonoverlap, width, Four, p.final_area);
    let mask = slow_fill_holes(&kept, width, p.fill_holes);
    Outputs { rbc, is_background, rc, recon, diff, bw1, bw1_t, seg_open, seg_nonoverlap, mask }
}

fn t1(pixels: &[[u8; 3]], width: usize, p: &Parameters) -> (Vec<u8>, bool) {
    let background =
        pixels.iter().filter(|[b, g, r]| *b > p.bright[0] && *g > p.bright[1] && *r > p.bright[2]);
    let is_background = background.count() as f64 >= 0.9 * pixels.len() as f64;
    let ratio = |a: u8, b: u8| f32::from(a) / (f32::from(b) + 1.192_092_9e-7);
    let above = |limit: f64| mask_of(pixels, |[_, g, r]| ratio(*r, *g) > limit as f32);
    let seeds = above(p.ratios[0]);
    if seeds.iter().all(|value| *value == 0) {
        return (vec![0; pixels.len()], is_background);
    }
    let selected = select(&above(p.ratios[1]), &seeds, width);
    let redder = |(value, [b, _, r]): (&u8, &[u8; 3])| if ratio(*r, *b) > 1.0 { *value } else { 0 };
    (selected.iter().zip(pixels).map(redder).collect(), is_background)
}

/// The opening's padding remains around marker and mask, 1 px wide, as a source of the reconstruction.
fn t2(pixels: &[[u8; 3]], width: usize, p: &Parameters) -> (Vec<u8>, Vec<u8>) {
    let rc: Vec<u8> = pixels.iter().map(|[_, _, r]| 255 - r).collect();
    let padded = pad(&rc, width, 9, 255);
    let eroded = slow_filter(&padded, width + 18, StructuringElement::Octagon, true, None);
    let opened = slow_filter(&eroded, width + 18, StructuringElement::Octagon, false, None);
    let marker = crop(&opened, width + 18, 8);
    let ringed = width + 2;
    let rows = marker.len() / ringed;
    let on_ring = |at: usize| {
        at.is_multiple_of(ringed) || at % ringed == width + 1 || at < ringed || at / ringed + 1 == rows
    };
    let inner = pad(&rc, width, 1, 0);
    let mask: Vec<u8> =
        (0..marker.len()).map(|at| if on_ring(at) { marker[at] } else { inner[at] }).collect();
    let recon = slow_reconstruct(&marker, &mask, ringed, p.morph_recon);
    (rc, crop(&recon, ringed, 1))
}

/// Removes red blood cells and fills holes. The erosion of the opening counts the outside as 0.
fn t5(diff: &[u8], bw1_t: &[u8], rbc: &[u8], width: usize, p: &Parameters) -> Vec<u8> {
    let selected = select(&mask_of(diff, |value| *value > p.g2), bw1_t, width);
    let without: Vec<u8> = selected.iter().zip(rbc).map(|(value, rbc)| value & !rbc).collect();
    let filled = slow_fill_holes(&without, width, Four);
    let eroded = slow_filter(&filled, width, StructuringElement::Cross, true, Some(0));
    slow_filter(&eroded, width, StructuringElement::Cross, false, None)
}

fn t6(pixels: &[[u8; 3]], seg_open: &[u8], width: usize, p: &Parameters) -> Vec<u8> {
    let large = area_filter(seg_open, width, Eight, [p.min_size_pl, u32::MAX]);
    let seg_big = slow_filter(&large, width, StructuringElement::Cross, false, None);
    if !seg_big.contains(&0) {
        // The original program's distances are undefined. This implementation leaves such an image unchanged.
        return seg_big;
    }
    let lowered = |plane: &[f32]| plane.iter().map(|value| value - 1.0).collect::<Vec<f32>>();
    let distance = slow_distance(&seg_big, width);
    let hm = slow_reconstruct(&lowered(&distance), &distance, width, Eight);
    let further = slow_reconstruct(&lowered(&hm), &hm, width, p.watershed);
    let seeds: Vec<u8> =
        further.iter().zip(&hm).map(|(further, hm)| if *further == hm - 1.0 { 255 } else { 0 }).collect();
    let mut markers = vec![0; seeds.len()];
    for (label, component) in (1..).zip(components(&seeds, width, p.watershed)) {
        component.into_iter().for_each(|pixel| markers[pixel] = label);
    }
    let labels = opencv_watershed(pixels.as_flattened(), &seg_big, &markers, width);
    let line = |x: Option<usize>, y: Option<usize>| match (x, y) {
        (Some(x), Some(y)) if x < width => labels[y * width + x] < 0,
        _ => false,
    };
    let separates = |at: usize| {
        let (x, y) = (at % width, at / width);
        let (here, up) = (Some(y), y.checked_sub(1));
        let steps =
            |side: Option<usize>| side.is_some_and(|x| x < width) && !line(side, up) && line(side, here);
        line(Some(x), here) || (line(Some(x), up) && (steps(x.checked_sub(1)) || steps(Some(x + 1))))
    };
    (0..labels.len()).map(|at| if seg_big[at] != 0 && !separates(at) { 255 } else { 0 }).collect()
}
