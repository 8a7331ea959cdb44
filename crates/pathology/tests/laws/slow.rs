//! Slow, plain definitions of the kernels' results. They do not call the crate's kernels.

use opencv::core::{Mat, MatTraitConst, MatTraitConstManual, Vec3b};
use opencv::imgproc;
use pleach_pathology::kernels::Connectivity;
use pleach_pathology::kernels::morphology::StructuringElement;

/// Returns the numbers of the neighbors of `pixel`.
pub(crate) fn beside(pixel: usize, width: usize, length: usize, connectivity: Connectivity) -> Vec<usize> {
    let (x, y) = ((pixel % width) as i64, (pixel / width) as i64);
    let (columns, rows) = (width as i64, (length / width) as i64);
    let mut found = Vec::new();
    for (dx, dy) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))) {
        let near =
            if connectivity == Connectivity::Four { dx * dx + dy * dy == 1 } else { dx != 0 || dy != 0 };
        if near && (0..columns).contains(&(x + dx)) && (0..rows).contains(&(y + dy)) {
            found.push(((y + dy) * columns + x + dx) as usize);
        }
    }
    found
}

/// Returns the object pixels connected to `start`, by flood fill.
pub(crate) fn flood_fill(mask: &[u8], width: usize, connectivity: Connectivity, start: usize) -> Vec<usize> {
    let mut reached = vec![false; mask.len()];
    let mut found = vec![start];
    reached[start] = true;
    let mut done = 0;
    while done < found.len() {
        for next in beside(found[done], width, mask.len(), connectivity) {
            if mask[next] != 0 && !std::mem::replace(&mut reached[next], true) {
                found.push(next);
            }
        }
        done += 1;
    }
    found
}

/// Repeats geodesic dilations until the plane is stable.
pub(crate) fn slow_reconstruct<T: Copy + PartialOrd>(
    marker: &[T],
    mask: &[T],
    width: usize,
    connectivity: Connectivity,
) -> Vec<T> {
    let low = |a: T, b: T| if a < b { a } else { b };
    let high = |a: T, b: T| if a > b { a } else { b };
    let mut now: Vec<T> = marker.iter().zip(mask).map(|(a, b)| low(*a, *b)).collect();
    loop {
        let dilated = |pixel: usize| {
            let around = beside(pixel, width, now.len(), connectivity);
            low(mask[pixel], around.into_iter().fold(now[pixel], |value, next| high(value, now[next])))
        };
        let next: Vec<T> = (0..now.len()).map(dilated).collect();
        if next == now {
            return now;
        }
        now = next;
    }
}

/// Returns the smallest or largest value at the offsets within the image.
pub(crate) fn slow_filter(
    plane: &[u8],
    width: usize,
    element: StructuringElement,
    smallest: bool,
    outside: Option<u8>,
) -> Vec<u8> {
    let (columns, rows) = (width as i64, (plane.len() / width) as i64);
    let inside = |dx: i64, dy: i64| match element {
        StructuringElement::Cross => dx.abs() + dy.abs() <= 1,
        StructuringElement::Octagon => dx.abs().max(dy.abs()) <= 9 && dx.abs() + dy.abs() <= 14,
    };
    let value = |x: i64, y: i64| {
        if (0..columns).contains(&x) && (0..rows).contains(&y) {
            Some(plane[(y * columns + x) as usize])
        } else {
            outside
        }
    };
    let pick = |pixel: usize| {
        let (x, y) = (pixel as i64 % columns, pixel as i64 / columns);
        let offsets = (-9..=9).flat_map(|dy| (-9..=9).map(move |dx| (dx, dy)));
        let values = offsets.filter(|(dx, dy)| inside(*dx, *dy)).filter_map(|(dx, dy)| value(x + dx, y + dy));
        if smallest { values.min() } else { values.max() }
    };
    (0..plane.len()).map(|pixel| pick(pixel).unwrap()).collect()
}

/// Runs `cv::watershed` on the image with a margin, as the original program does, and removes the margin.
pub(crate) fn opencv_watershed(bgr: &[u8], inside: &[u8], labels: &[i32], width: usize) -> Vec<i32> {
    let colors: Vec<Vec3b> = bgr
        .chunks(3)
        .zip(inside)
        .map(|(p, inside)| if *inside == 0 { Vec3b::default() } else { Vec3b::from([p[0], p[1], p[2]]) })
        .collect();
    let padded_width = width + 2;
    let colors = pad(&colors, width, 1, Vec3b::default());
    let markers = pad(labels, width, 1, 0);
    let rows = (markers.len() / padded_width) as i32;
    let image = Mat::new_rows_cols_with_data(rows, padded_width as i32, &colors).unwrap();
    let mut flooded =
        Mat::new_rows_cols_with_data(rows, padded_width as i32, &markers).unwrap().try_clone().unwrap();
    imgproc::watershed(&image, &mut flooded).unwrap();
    crop(flooded.data_typed::<i32>().unwrap(), padded_width, 1)
}

/// Returns `plane` with `margin` pixels of `value` on every side.
pub(crate) fn pad<T: Copy>(plane: &[T], width: usize, margin: usize, value: T) -> Vec<T> {
    let (columns, rows) = (width + 2 * margin, plane.len() / width + 2 * margin);
    let within = |at: usize, side: usize| at >= margin && at + margin < side;
    let pixel = |(x, y): (usize, usize)| {
        let inside = within(x, columns) && within(y, rows);
        if inside { plane[(y - margin) * width + x - margin] } else { value }
    };
    (0..columns * rows).map(|at| pixel((at % columns, at / columns))).collect()
}

/// Returns `plane` without `margin` pixels on every side.
pub(crate) fn crop<T: Copy>(plane: &[T], width: usize, margin: usize) -> Vec<T> {
    let rows = plane.len() / width;
    let within = |at: usize, side: usize| at >= margin && at + margin < side;
    let inside = |at: &usize| within(at % width, width) && within(at / width, rows);
    (0..plane.len()).filter(inside).map(|at| plane[at]).collect()
}

/// Returns the components of the object pixels, each as its pixels, in raster order of their first pixels.
pub(crate) fn components(mask: &[u8], width: usize, connectivity: Connectivity) -> Vec<Vec<usize>> {
    let mut seen = vec![false; mask.len()];
    let mut found = Vec::new();
    for pixel in 0..mask.len() {
        if mask[pixel] != 0 && !seen[pixel] {
            let component = flood_fill(mask, width, connectivity, pixel);
            component.iter().for_each(|&pixel| seen[pixel] = true);
            found.push(component);
        }
    }
    found
}

/// Returns the mask of the components that `keep` accepts.
pub(crate) fn keep(
    mask: &[u8],
    width: usize,
    connectivity: Connectivity,
    keep: impl Fn(&[usize]) -> bool,
) -> Vec<u8> {
    let mut kept = vec![0; mask.len()];
    for component in components(mask, width, connectivity).into_iter().filter(|pixels| keep(pixels)) {
        component.into_iter().for_each(|pixel| kept[pixel] = 255);
    }
    kept
}

/// Turns background into object unless a flood from a margin reaches it.
pub(crate) fn slow_fill_holes(mask: &[u8], width: usize, connectivity: Connectivity) -> Vec<u8> {
    let padded = pad(mask, width, 1, 0);
    let background: Vec<u8> = padded.iter().map(|value| !value).collect();
    let mut filled = vec![255; padded.len()];
    for pixel in flood_fill(&background, width + 2, connectivity, 0) {
        filled[pixel] = 0;
    }
    crop(&filled, width + 2, 1)
}

/// Returns the distance of each object pixel to the nearest background pixel, in `f32`, and the largest `f32` on the
/// background.
pub(crate) fn slow_distance(mask: &[u8], width: usize) -> Vec<f32> {
    let background: Vec<usize> = (0..mask.len()).filter(|pixel| mask[*pixel] == 0).collect();
    let squared = |a: usize, b: usize| {
        let (dx, dy) = ((a % width).abs_diff(b % width), (a / width).abs_diff(b / width));
        dx * dx + dy * dy
    };
    let nearest = |pixel: usize| background.iter().map(|other| squared(pixel, *other)).min();
    let distance = |pixel: usize| nearest(pixel).map_or(f32::MAX, |squared| (squared as f32).sqrt());
    (0..mask.len()).map(|pixel| if mask[pixel] == 0 { f32::MAX } else { distance(pixel) }).collect()
}
