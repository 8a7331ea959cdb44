//! Byte mutations that corrupt valid files.

use proptest::collection::vec;
use proptest::prelude::*;

/// One change. Positions are taken modulo the length.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Flip(usize, u8),
    Set(usize, Vec<u8>),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, Vec<u8>),
}

/// One to eight changes.
pub(crate) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let place = || any::<usize>();
    // Numbers at the ends of their ranges provoke arithmetic errors.
    let number = prop_oneof![
        Just(vec![0xff; 4]),
        Just(vec![0; 4]),
        Just(vec![0x7f, 0xff, 0xff, 0xff]),
        Just(vec![0xff, 0xff, 0xff, 0x7f]),
        Just(vec![0x80, 0, 0, 0]),
        Just(vec![0xff; 8]),
        vec(any::<u8>(), 1..5),
    ];
    let one = prop_oneof![
        4 => (place(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        4 => (place(), number.clone()).prop_map(|(at, bytes)| Mutation::Set(at, bytes)),
        1 => place().prop_map(Mutation::Cut),
        1 => (place(), 1..40_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        1 => (place(), 1..40_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        1 => (place(), number).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
    ];
    vec(one, 1..9)
}

/// Applies all changes to the bytes.
pub(crate) fn mutated(good: &[u8], mutations: &[Mutation]) -> Vec<u8> {
    mutations.iter().fold(good.to_vec(), |mut bytes, mutation| {
        let length = bytes.len();
        if length == 0 {
            return bytes;
        }
        match mutation {
            Mutation::Flip(at, bit) => bytes[at % length] ^= 1 << bit,
            Mutation::Set(at, new) => {
                let at = at % length;
                for (old, new) in bytes[at..].iter_mut().zip(new) {
                    *old = *new;
                }
            }
            Mutation::Cut(at) => bytes.truncate(at % length),
            Mutation::Remove(at, count) => {
                let at = at % length;
                bytes.drain(at..(at + count).min(length));
            }
            Mutation::Repeat(at, count) => {
                let at = at % length;
                let part = bytes[at..(at + count).min(length)].to_vec();
                bytes.splice(at..at, part);
            }
            Mutation::Insert(at, new) => {
                let at = at % length;
                bytes.splice(at..at, new.iter().copied());
            }
        }
        bytes
    })
}
