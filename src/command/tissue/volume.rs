//! `pleach tissue --volume`: generates one z-stack of moving spots over time, as OME-Zarr 0.5.

use crate::cli::TissueArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_regions::NumberType;
use pleach_volumes::{MovingSpots, OmeZarrWriter, PlaneIndex};
use pleach_workflow::VolumeInfo;

/// Size of a pixel along x, y and z, micrometers, as of a confocal microscope.
const PIXEL_UM: [f64; 3] = [0.5, 0.5, 2.0];

/// Seconds between times.
const STEP_SECONDS: f64 = 30.0;

/// Writes an image with these sides along x, y, z and time.
pub(super) fn execute(args: &TissueArgs, sides: [u32; 4]) -> CommandResult {
    let spots = MovingSpots::new(args.seed, sides);
    let info = VolumeInfo {
        sides,
        has_z: true,
        channels: 1,
        channel_names: vec!["spots".to_owned()],
        number: NumberType::U16,
        pixel_um: PIXEL_UM.map(Some),
        step_seconds: Some(STEP_SECONDS),
    };
    let fail = |error| CommandError::writing(format_args!("--out {}", args.out.display()), &error);
    let writer = OmeZarrWriter::create(&args.out, info.clone()).map_err(fail)?;
    for t in 0..sides[3] {
        for z in 0..sides[2] {
            writer.write(PlaneIndex { z, t }, &spots.plane(z, t)).map_err(fail)?;
        }
    }
    writer.finish().map_err(fail)?;
    print_line(&format!("an image of {info}, {} spots in {}", spots.count(), args.out.display()));
    Ok(())
}
