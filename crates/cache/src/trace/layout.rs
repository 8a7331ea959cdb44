//! Serialization of a trace: variable-length numbers, length-prefixed texts and lists.
//!
//! A label follows the rest, if the trace has one: traces of format 1 end before it.
//!
//! The record checksum verifies the bytes (`record.rs`). Parsing allocates no more than the bytes contain.

use super::{Output, Trace};
use crate::{KeyComponents, StudyLabel};
use pleach_regions::Digest;

impl Trace {
    /// Serializes this trace: about 200 bytes for a task with 2 arguments, 2 inputs and 2 outputs.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(self.seconds.to_bits().to_le_bytes());
        put_number(&mut bytes, self.outputs.len() as u64);
        for output in &self.outputs {
            bytes.extend(output.digest.0);
            put_number(&mut bytes, output.bytes);
            // An encoding is never empty, so an empty byte string encodes `None`.
            put_bytes(&mut bytes, output.inline.as_deref().unwrap_or_default());
        }
        let KeyComponents { operation, version, arguments, inputs } = &self.components;
        put_bytes(&mut bytes, operation.as_bytes());
        put_number(&mut bytes, u64::from(*version));
        put_number(&mut bytes, arguments.len() as u64);
        for (name, value) in arguments {
            put_bytes(&mut bytes, name.as_bytes());
            put_bytes(&mut bytes, value.as_bytes());
        }
        put_number(&mut bytes, inputs.len() as u64);
        for (name, identity) in inputs {
            put_bytes(&mut bytes, name.as_bytes());
            bytes.extend(identity.0);
        }
        if let Some(StudyLabel { study, id, user }) = &self.label {
            put_bytes(&mut bytes, study.as_bytes());
            // 0 encodes `None`.
            put_number(&mut bytes, id.map_or(0, |id| u64::from(id) + 1));
            put_bytes(&mut bytes, user.as_bytes());
        }
        bytes
    }

    /// Parses a trace. `None` if `bytes` are not exactly one trace.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let seconds = f64::from_bits(u64::from_le_bytes(rest.array()?));
        let outputs = rest.list(|rest| {
            let (digest, bytes, inline) = (Digest(rest.array()?), rest.number()?, rest.bytes()?);
            Some(Output { digest, bytes, inline: (!inline.is_empty()).then(|| inline.to_vec()) })
        })?;
        let operation = rest.text()?;
        let version = u32::try_from(rest.number()?).ok()?;
        let arguments = rest.list(|rest| Some((rest.text()?, rest.text()?)))?;
        let inputs = rest.list(|rest| Some((rest.text()?, Digest(rest.array()?))))?;
        let components = KeyComponents { operation, version, arguments, inputs };
        let label = if rest.0.is_empty() { None } else { Some(rest.label()?) };
        rest.0.is_empty().then_some(Self { outputs, seconds, components, label })
    }
}

/// Writes 7 bits per byte, lowest first. The high bit marks a continuation.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_number(bytes, part.len() as u64);
    bytes.extend_from_slice(part);
}

/// The bytes still to be parsed.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..10 {
            let byte = *self.0.split_off_first()?;
            let part = u64::from(byte & 0x7f);
            if place == 9 && part > 1 {
                return None; // beyond 64 bits
            }
            number |= part << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.0.split_off(..length)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.0.split_off(..N)?.try_into().ok()
    }

    fn label(&mut self) -> Option<StudyLabel> {
        let study = self.text()?;
        let id = match self.number()?.checked_sub(1) {
            Some(id) => Some(u32::try_from(id).ok()?),
            None => None,
        };
        Some(StudyLabel { study, id, user: self.text()? })
    }

    /// Parses a list. Every item takes at least 1 byte, so a wrong count fails at the end of the bytes.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        // Grows item by item: a claimed count allocates nothing.
        (0..self.number()?).map(|_| item(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digest() -> impl Strategy<Value = Digest> {
        any::<[u8; 32]>().prop_map(Digest)
    }

    fn trace() -> impl Strategy<Value = Trace> {
        let inline = prop::option::of(prop::collection::vec(any::<u8>(), 1..300));
        let output = (digest(), any::<u64>(), inline).prop_map(|(digest, bytes, inline)| Output {
            digest,
            bytes,
            inline,
        });
        let components = (
            ".{0,20}",
            any::<u32>(),
            prop::collection::vec((".{0,9}", ".{0,200}"), 0..5),
            prop::collection::vec((".{0,9}", digest()), 0..5),
        );
        let label = (".{0,9}", prop::option::of(any::<u32>()), ".{0,9}")
            .prop_map(|(study, id, user)| StudyLabel { study, id, user });
        let outputs = prop::collection::vec(output, 0..5);
        (outputs, 0.0..1e9, components, prop::option::of(label)).prop_map(
            |(outputs, seconds, parts, label)| {
                let (operation, version, arguments, inputs) = parts;
                let components = KeyComponents { operation, version, arguments, inputs };
                Trace { outputs, seconds, components, label }
            },
        )
    }

    proptest! {
        #[test]
        fn trace_round_trips_and_other_lengths_are_refused(trace in trace(), cut: prop::sample::Index) {
            let bytes = trace.to_bytes();
            prop_assert_eq!(Trace::from_bytes(&bytes), Some(trace.clone()));
            let unlabeled = Trace { label: None, ..trace };
            let (length, earlier) = (cut.index(bytes.len()), unlabeled.to_bytes());
            // A trace of format 1 is the beginning of a labeled one. The record's length and checksum tell them apart.
            let expected = (length == earlier.len()).then(|| unlabeled.clone());
            prop_assert_eq!(Trace::from_bytes(&bytes[..length]), expected);
            prop_assert_eq!(Trace::from_bytes(&earlier), Some(unlabeled));
            prop_assert_eq!(Trace::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }

        #[test]
        fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(trace) = Trace::from_bytes(&bytes) {
                // Numbers may be padded in the input. The parsed values stay the same (a NaN does not equal itself).
                let again = Trace::from_bytes(&trace.to_bytes());
                prop_assert_eq!(again.map(|trace| trace.components), Some(trace.components));
            }
        }
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (1 << 14, 3), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            assert_eq!(bytes.len(), length);
            assert_eq!(Rest(&bytes).number(), Some(number));
        }
        assert_eq!(Rest(&[0xff; 10]).number(), None);
    }
}
