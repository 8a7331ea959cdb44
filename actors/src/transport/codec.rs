//! Encoding and decoding of messages: bincode, with a length limit in both directions.
//!
//! Only this module names bincode, which is unmaintained since version 2 and may be replaced (see
//! `docs/adr/0004-bincode-behind-one-codec.md`).

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Maximum length of a frame, 16 MiB. A bucket of 10,000 stage instances with 15 parameters takes some 4 MB. Regions travel
/// outside of messages. A greater length is refused before any allocation.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

const CONFIGURATION: Configuration<LittleEndian, Varint, Limit<MAX_FRAME_BYTES>> =
    bincode::config::standard().with_limit::<MAX_FRAME_BYTES>();

/// Reason for a message that cannot be encoded, or a frame that cannot be decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The message cannot be encoded.
    #[error("failed to encode a message: {0}")]
    Encode(EncodeError),
    /// The encoded message exceeds the maximum length of a frame.
    #[error("message of {bytes} bytes; frames of at most {MAX_FRAME_BYTES} bytes are allowed")]
    TooLong {
        /// Encoded length.
        bytes: usize,
    },
    /// The bytes are not a message of the requested type.
    #[error("failed to decode a frame: {0}")]
    Decode(bincode::error::DecodeError),
    /// The message ends before the end of the frame.
    #[error("{0} extra bytes after a message")]
    Trailing(usize),
}

/// First capacity of a frame, 256 bytes: enough for a grant or a report of one stage instance. A frame that grows from nothing
/// is reallocated five times.
const FIRST_BYTES: usize = 256;

/// Frame that is being encoded.
struct FrameWriter(Vec<u8>);

impl Writer for &mut FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Encodes a message.
///
/// # Errors
/// Returns [`CodecError::Encode`] and [`CodecError::TooLong`].
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, CodecError> {
    let mut writer = FrameWriter(Vec::with_capacity(FIRST_BYTES));
    bincode::serde::encode_into_writer(message, &mut writer, CONFIGURATION).map_err(CodecError::Encode)?;
    let FrameWriter(frame) = writer;
    // bincode applies its limit only to decoding.
    if frame.len() > MAX_FRAME_BYTES {
        return Err(CodecError::TooLong { bytes: frame.len() });
    }
    Ok(frame)
}

/// Decodes a whole frame.
///
/// # Errors
/// Returns [`CodecError::Decode`] and [`CodecError::Trailing`].
pub fn decode<M: DeserializeOwned>(frame: &[u8]) -> Result<M, CodecError> {
    let (message, read) =
        bincode::serde::decode_from_slice(frame, CONFIGURATION).map_err(CodecError::Decode)?;
    if read < frame.len() {
        return Err(CodecError::Trailing(frame.len() - read));
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::directory::MemberId;
    use pleach_dispatch::message::{
        Report, ReportedEnd, TaskOutcome, TaskProvenance, TaskReport, TaskSource, ToManager,
    };
    use pleach_dispatch::{InstanceId, LeaseId, PlanId, SlotKind};
    use pleach_regions::{RegionKey, Table};
    use pleach_workflow::{AnnotationPart, AnnotationRules};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_round_trip(
            lease: u64, instance: u32, seconds in 0.0..1e6f64, name in ".{0,20}", value in -1e9..1e9f64,
        ) {
            let report = Report {
                lease: LeaseId(lease),
                instance: InstanceId(instance),
                end: ReportedEnd::Done {
                    results: vec![Table::new([(name, value)])],
                    shared: vec![RegionKey([lease as u8; 16])],
                },
                tasks: vec![TaskReport {
                    task: 3,
                    stage: 1,
                    cache_seconds: 0.25,
                    done: TaskOutcome::Ran { seconds, predicted_seconds: 1.5, digests: 1, digest_seconds: 0.5 },
                    provenance: TaskProvenance {
                        instance,
                        started_micros: lease,
                        source: Some(TaskSource::Holder(MemberId(lease))),
                        device: SlotKind::Accelerator,
                    },
                }],
            };
            let message = ToManager::Reports { study: PlanId::first_round(0), reports: vec![report] };
            let frame = encode(&message).unwrap();
            prop_assert_eq!(decode::<ToManager>(&frame).unwrap(), message);
        }

        /// Arbitrary bytes return a message or an error and never panic.
        #[test]
        fn noise_is_refused_or_read(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<ToManager>(&noise);
        }
    }

    #[test]
    fn a_hostile_length_allocates_nothing() {
        // The variant and the study, then a list that claims 2^60 reports.
        let study = PlanId::first_round(0);
        let mut frame = encode(&ToManager::Reports { study, reports: Vec::new() }).unwrap();
        frame.pop();
        frame.push(253);
        frame.extend((1u64 << 60).to_le_bytes());
        assert!(matches!(decode::<ToManager>(&frame), Err(CodecError::Decode(_))));
    }

    /// A field that is left out in a format of names would shift the positions of the next ones.
    #[test]
    fn rules_with_regions_only_round_trip() {
        let rules = AnnotationRules { regions: vec!["ROI".to_owned()], ..AnnotationRules::default() };
        let message = (rules, AnnotationPart::Counted);
        let frame = encode(&message).unwrap();
        assert_eq!(decode::<(AnnotationRules, AnnotationPart)>(&frame).unwrap(), message);
    }

    #[test]
    fn leftovers_are_refused() {
        let mut frame = encode(&ToManager::Leave).unwrap();
        frame.push(0);
        assert!(matches!(decode::<ToManager>(&frame), Err(CodecError::Trailing(1))));
    }
}
