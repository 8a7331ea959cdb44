//! All 182 masks of the original program, pixel for pixel, through the registry's operations.
//!
//! On a difference the test names the first stage whose count differs from the original's. Parameter sets share results
//! by task and by the parameters that the task depends on, like a study with reuse.

use crate::data::data;
use crate::reference_masks::{Memo, bgr, by_image, bytes, compare, for_images, on_core, operation, rows};
use pleach_pathology::image_io;

#[test]
fn masks_equal_those_of_the_original_program() {
    let Some(data) = data("masks_equal_those_of_the_original_program") else { return };
    let index = rows(&data.join("reference/nscale/index.csv"));
    let stages = rows(&data.join("reference/nscale/stages.csv"));
    let results = for_images(&by_image(index), |rows| compare(&data, rows, &stages, &on_core));
    let compared: usize = results.iter().map(|(count, _)| count).sum();
    let differences: Vec<String> = results.into_iter().flat_map(|(_, differences)| differences).collect();
    println!("{} of {compared} masks identical", compared - differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(compared, 182);
}

/// Normalization of the raw tile: its difference from the original's, and the effect on the masks.
#[test]
fn masks_of_raw_tiles_are_near_the_original() {
    let Some(data) = data("masks_of_raw_tiles_are_near_the_original") else { return };
    let mut index = rows(&data.join("reference/nscale/index.csv"));
    index.retain(|row| row["normalization"] == "reinhard");
    let reports = for_images(&by_image(index), |rows| {
        let reference = data.join("reference/nscale");
        let image = bgr(&data.join(&rows[0]["tile"]));
        let ours = operation("nuclei.normalize").run(&[&image], &[]).unwrap().remove(0);
        let original = bgr(&reference.join(&rows[0]["normalized_image"]));
        let (ours_pixels, original_pixels) = (bytes(&ours).chunks(3), bytes(&original).chunks(3));
        let steps = |(a, b): (&[u8], &[u8])| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        let steps: Vec<u8> = ours_pixels.zip(original_pixels).map(steps).collect();
        let beyond = |limit: u8| steps.iter().filter(|step| **step > limit).count();
        println!(
            "{}: of {} px, {} differ, {} by more than 1, at most by {}",
            rows[0]["tile"],
            steps.len(),
            beyond(0),
            beyond(1),
            steps.iter().max().unwrap()
        );
        let mut memo = Memo::new(ours, &on_core);
        let dice: Vec<f64> = rows
            .iter()
            .map(|row| {
                let wanted = image_io::read_mask(&reference.join(&row["mask"])).unwrap();
                let metrics = operation("compare.masks").run(&[&memo.mask(row), &wanted], &[]).unwrap();
                metrics[0].table().unwrap().get("dice").unwrap()
            })
            .collect();
        assert!(beyond(1) * 10_000 <= steps.len(), "{}", rows[0]["tile"]);
        dice
    });
    let dice: Vec<f64> = reports.into_iter().flatten().collect();
    let identical = dice.iter().filter(|dice| **dice == 1.0).count();
    let worst = dice.iter().copied().fold(1.0, f64::min);
    println!("from raw tiles: {identical} of {} masks identical, worst Dice {worst:.6}", dice.len());
    assert!(worst >= 0.99);
    assert_eq!(dice.len(), 52);
}
