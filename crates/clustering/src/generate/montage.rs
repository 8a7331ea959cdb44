//! Montage: images are projected, differences of neighbors fitted, backgrounds corrected, and all joined to a mosaic.

use super::builder::Builder;
use super::fit;

/// Two images with one difference.
pub(super) const MIN_TASKS: usize = 11;

/// Tasks beside those of each image and each difference.
const SINGLE: usize = 6;

/// Builds a workflow of this many tasks, or of the nearest possible number.
pub(super) fn build(builder: &mut Builder, tasks: usize) {
    let (images, differences) = counts(tasks);
    let header = builder.file("region.hdr", 304);
    let projected: Vec<Image> = (0..images).map(|image| project(builder, header, image)).collect();
    let mut fits = vec![builder.file("fits_list.tbl", 27 * differences as u64)];
    let mut parents = Vec::with_capacity(differences);
    for (number, (left, right)) in pairs(images, differences).into_iter().enumerate() {
        let (left, right) = (&projected[left], &projected[right]);
        let reads = vec![header, left.files[0], left.files[1], right.files[0], right.files[1]];
        let writes = vec![
            builder.random_file(format!("fit-{number}.txt"), 255, 290),
            builder.random_file(format!("diff-{number}.txt"), 150_000, 420_000),
        ];
        fits.extend(&writes);
        parents.push(builder.task(
            "mDiffFit",
            (&fit::M_DIFF_FIT, 1.0),
            reads,
            writes,
            &[left.task, right.task],
        ));
    }
    let table = builder.file("fits.tbl", 210 * differences as u64);
    let scale = differences as f64;
    let concat = builder.task("mConcatFit", (&fit::M_CONCAT_FIT, scale), fits, vec![table], &parents);
    mosaic(builder, header, &projected, table, concat);
}

/// The projection of an image.
struct Image {
    task: u32,
    /// Image and area.
    files: [u32; 2],
}

fn project(builder: &mut Builder, header: u32, image: usize) -> Image {
    let raw = builder.file(format!("2mass-atlas-{image}.fits"), 4_222_080);
    let bytes = builder.draw.between(4_146_500, 4_179_000);
    let files = [
        builder.file(format!("p2mass-atlas-{image}.fits"), bytes),
        builder.file(format!("p2mass-atlas-{image}_area.fits"), bytes),
    ];
    let time = (&fit::M_PROJECT_PP, 1.0);
    Image { task: builder.task("mProjectPP", time, vec![header, raw], files.to_vec(), &[]), files }
}

/// Adds the tasks from the model of the background on.
fn mosaic(builder: &mut Builder, header: u32, projected: &[Image], fits: u32, concat: u32) {
    let images = projected.len() as u64;
    let (scale, root) = (images as f64, (images as f64).sqrt());
    let list = builder.file("pimages.tbl", 167 * images);
    let corrections = builder.file("corrections.tbl", 53 * images);
    let time = (&fit::M_BG_MODEL, scale);
    let model = builder.task("mBgModel", time, vec![list, fits], vec![corrections], &[concat]);
    let mut corrected = vec![builder.file("cimages.tbl", 167 * images)];
    let mut parents = Vec::with_capacity(projected.len());
    for (number, image) in projected.iter().enumerate() {
        let bytes = builder.bytes(image.files[0]);
        let writes = vec![
            builder.file(format!("c2mass-atlas-{number}.fits"), bytes),
            builder.file(format!("c2mass-atlas-{number}_area.fits"), bytes),
        ];
        corrected.extend(&writes);
        let reads = vec![corrections, image.files[0], image.files[1]];
        let time = (&fit::M_BACKGROUND, 1.0);
        parents.push(builder.task("mBackground", time, reads, writes, &[image.task, model]));
    }
    let table = builder.file("newcimages.tbl", 390 * images);
    let time = (&fit::M_IMG_TBL, scale);
    let tables = builder.task("mImgTbl", time, corrected, vec![table], &parents);
    // A mosaic of the traces has 17 to 24 MB for the square root of the number of its images.
    let bytes = ((17.0 + 7.0 * builder.draw.unit()) * 1e6 * root) as u64;
    let mosaic = vec![builder.file("mosaic.fits", bytes), builder.file("mosaic_area.fits", bytes)];
    let time = (&fit::M_ADD, scale);
    let add = builder.task("mAdd", time, vec![header, table], mosaic.clone(), &[tables]);
    let shrunken = builder.file("shrunken.fits", bytes / 25);
    let shrink = builder.task("mShrink", (&fit::M_SHRINK, root), mosaic, vec![shrunken], &[add]);
    let picture = builder.file("shrunken.jpg", bytes / 25 * 3 / 20);
    builder.task("mJPEG", (&fit::M_JPEG, root), vec![shrunken], vec![picture], &[shrink]);
}

/// Returns the numbers of images and of differences: four differences an image as in the traces, if that many pairs exist.
fn counts(tasks: usize) -> (usize, usize) {
    let most = |images: usize| images * (images - 1) / 2 + 2 * images + SINGLE;
    let least = |images: usize| images - 1 + 2 * images + SINGLE;
    let mut images = ((tasks - SINGLE + 3) / 6).max(2);
    while most(images) < tasks {
        images += 1;
    }
    let mut tasks = tasks;
    if tasks < least(images) {
        // Between two graphs: the nearer one.
        if tasks - most(images - 1) <= least(images) - tasks {
            images -= 1;
            tasks = most(images);
        } else {
            tasks = least(images);
        }
    }
    (images, tasks - SINGLE - 2 * images)
}

/// Returns pairs of images that overlap: neighbors on a square grid, the nearest first.
fn pairs(images: usize, count: usize) -> Vec<(usize, usize)> {
    let columns = (1..).find(|side| side * side >= images).unwrap_or(images) as i64;
    let images = images as i64;
    let mut pairs = Vec::with_capacity(count);
    for reach in 1..=columns {
        let offsets = (-reach..=reach).flat_map(|x| (0..=reach).map(move |y| (x, y)));
        let ahead = |(x, y): &(i64, i64)| x.abs().max(*y) == reach && (*y > 0 || *x > 0);
        let mut offsets: Vec<(i64, i64)> = offsets.filter(ahead).collect();
        offsets.sort_by_key(|(x, y)| (x * x + y * y, *y, -x));
        for (x, y) in offsets {
            for image in 0..images {
                let other = image + y * columns + x;
                if pairs.len() == count {
                    return pairs;
                }
                if (0..columns).contains(&(image % columns + x)) && other < images {
                    pairs.push((image as usize, other as usize));
                }
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn counts_are_those_of_the_traces() {
        assert_eq!([25, 100, 300, 1000].map(counts), [(5, 9), (16, 62), (49, 196), (166, 662)]);
        assert_eq!([11, 12, 13, 14].map(counts), [(2, 1), (2, 1), (3, 2), (3, 2)]);
    }

    #[test]
    fn pairs_are_distinct_and_have_each_image() {
        for tasks in 11..400 {
            let (images, count) = counts(tasks);
            let pairs = pairs(images, count);
            let distinct: BTreeSet<_> = pairs.iter().collect();
            let seen: BTreeSet<_> = pairs.iter().flat_map(|(left, right)| [left, right]).collect();
            assert_eq!((pairs.len(), distinct.len(), seen.len()), (count, count, images), "{tasks} tasks");
            assert!(pairs.iter().all(|(left, right)| left < right));
        }
    }
}
