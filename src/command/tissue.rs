//! `pleach tissue`: synthetic tiles with exact label maps.

use crate::cli::TissueArgs;
use crate::exit::{Outcome, Stop};
use crate::output::print_line;
use pleach_pathology::{tile, tissue};
use std::fs;

/// Runs the command.
pub(super) fn execute(args: &TissueArgs) -> Outcome {
    let mut nuclei = 0;
    for index in 0..args.count.get() {
        let tissue = tissue::generate(args.seed, index, args.size)
            .map_err(|error| Stop::Input(format!("--size {}: {error}", args.size)))?;
        if index == 0 {
            fs::create_dir_all(&args.out)
                .map_err(|error| Stop::writing(format_args!("--out {}", args.out.display()), &error))?;
        }
        let name = format!("tissue_{:02}", index + 1);
        tile::write_bgr(&args.out.join(format!("{name}.png")), &tissue.image).map_err(Stop::tile)?;
        let labels = &tissue.labels;
        let path = args.out.join(format!("{name}_labels.png"));
        tile::write_labels(&path, labels.width, &labels.data).map_err(Stop::tile)?;
        nuclei += usize::from(labels.count());
    }
    let (count, size) = (args.count, args.size);
    print_line(&format!(
        "{count} tiles of {size} x {size} px with {nuclei} nuclei in {}",
        args.out.display()
    ));
    Ok(())
}
