//! Digests of the parts of a study. A journal is continued only if all of them are equal.

use super::{PLACES, files, is_own_reference};
use pleach_sensitivity::sampling::Design;
use pleach_workflow::{BothEmpty, Method, ReferenceSource, Study, Value};
use std::path::Path;

/// Returns one digest of a sequence of texts or byte strings. Lengths are digested too, so that boundaries count.
pub(super) fn digest_of(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        let bytes = part.as_ref();
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hash.finalize().to_hex()[..32].to_owned()
}

/// Returns the digest of each part of a study by the part's name.
pub(super) fn digests(
    study: &Study,
    design: &Design,
    evaluations: &[Vec<Value>],
) -> Vec<(&'static str, String)> {
    // The parameter sets include the content of a table. Its path does not matter.
    let method = match study.method {
        Method::Moat { trajectories, levels, base, candidates } => {
            let base = base.map_or_else(String::new, |base| format!(" {}", base.name()));
            let among = candidates.map_or_else(String::new, |candidates| format!(" of {candidates}"));
            format!("moat {trajectories} {levels}{base}{among}")
        }
        Method::Vbd { samples, second_order, base } => {
            format!("vbd {samples} {second_order} {}", base.name())
        }
        Method::Correlation { samples, base, of } => format!("{} {samples} {}", of.name(), base.name()),
        Method::Fast { samples } => format!("fast {samples}"),
        Method::Table { .. } => "table".to_owned(),
    };
    let until = study.until.map_or_else(String::new, |until| format!(" {until:?}"));
    let method = method + &until;
    // Canonical paths make the digest independent of the working directory.
    let place = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_owned()).into_os_string();
    let places: Vec<_> = files(study).map(place).collect();
    let from_defaults = [u8::from(study.reference == ReferenceSource::Defaults)];
    // Defaults that are no reference do not affect the results.
    let asked = if is_own_reference(study) { evaluations } else { &design.evaluations };
    // Only for slides, so that studies of tiles keep their digests.
    let parts: Vec<String> =
        study.tiles.iter().filter_map(|tile| Some(format!("{:?}", tile.slide.as_ref()?))).collect();
    let parts =
        (!parts.is_empty()).then(|| ("tiles of slides", digest_of(parts.iter().map(String::as_bytes))));
    let blocks: Vec<String> =
        study.tiles.iter().filter_map(|tile| Some(format!("{:?}", tile.block.as_ref()?))).collect();
    let blocks =
        (!blocks.is_empty()).then(|| ("blocks of images", digest_of(blocks.iter().map(String::as_bytes))));
    let mut digests = vec![
        ("name", digest_of([study.name.as_bytes()])),
        ("seed", digest_of([&study.seed.to_le_bytes()[..]])),
        ("metric", digest_of(study.metric_names().map(str::as_bytes))),
        // The workflow's Debug form names every operation, version, parameter and connection.
        ("workflow", digest_of([format!("{:?}", study.workflow).as_bytes()])),
        ("method", digest_of([method.as_bytes()])),
        ("reference", digest_of([&from_defaults[..]])),
        (PLACES, digest_of(places.iter().map(|place| place.as_encoded_bytes()))),
        ("parameter sets", digest_of(asked.iter().flatten().map(ToString::to_string))),
    ];
    digests.extend(parts);
    digests.extend(blocks);
    // Values only: the path of a target does not matter.
    let fits = study.normalization.as_ref().map(|of| format!("{:?} {:?}", of.scope, of.fits));
    digests.extend(fits.map(|fits| ("normalization", digest_of([fits.as_bytes()]))));
    let counts = (study.both_empty != BothEmpty::default()).then(|| study.both_empty.name());
    digests.extend(counts.map(|name| ("both_empty", digest_of([name.as_bytes()]))));
    let rules = &study.annotation_rules;
    let selects = (!rules.is_default()).then(|| format!("{rules:?}"));
    digests.extend(selects.map(|rules| ("annotations", digest_of([rules.as_bytes()]))));
    let weights = study.tile_weights.iter().map(|weight| weight.to_bits().to_le_bytes());
    let weighs = (!study.weights.are_equal()).then(|| digest_of(weights));
    digests.extend(weighs.map(|weights| ("weights", weights)));
    digests
}
