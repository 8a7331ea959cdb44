//! `pleach tissue`: generates synthetic tiles with exact label maps, a slide, or an image of more dimensions.

pub(super) mod demo;
mod slide;
mod volume;

use crate::cli::TissueArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_pathology::{image_io, tissue};
use std::fs;

/// Runs the command.
pub(super) fn execute(args: &TissueArgs) -> CommandResult {
    if let Some(size_px) = args.slide {
        return slide::execute(args, size_px);
    }
    if let Some(sides) = args.volume {
        return volume::execute(args, sides);
    }
    let mut nuclei = 0;
    for index in 0..args.count.get() {
        let tissue = tissue::generate(args.seed, index, args.size)
            .map_err(|error| CommandError::Input(format!("--size {}: {error}", args.size)))?;
        if index == 0 {
            fs::create_dir_all(&args.out).map_err(|error| {
                CommandError::writing(format_args!("--out {}", args.out.display()), &error)
            })?;
        }
        let name = format!("tissue_{:02}", index + 1);
        image_io::write_bgr(&args.out.join(format!("{name}.png")), &tissue.image)
            .map_err(CommandError::tile)?;
        let labels = &tissue.labels;
        let path = args.out.join(format!("{name}_labels.png"));
        image_io::write_labels(&path, labels.width, &labels.data).map_err(CommandError::tile)?;
        nuclei += usize::from(labels.count());
    }
    let (count, size) = (args.count, args.size);
    print_line(&format!(
        "{count} tiles of {size} x {size} px with {nuclei} nuclei in {}",
        args.out.display()
    ));
    Ok(())
}
