//! Numbers of variable length: 7 bits a byte (LEB128), signed ones in zigzag form, and runs of zeros as one number.

/// Appends a number.
pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a difference of two numbers.
pub(super) fn put_difference(to: &mut Vec<u8>, number: u64, before: u64) {
    let difference = number.wrapping_sub(before).cast_signed();
    put(to, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

/// Appends a text with its length.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len() as u64);
    to.extend(text.as_bytes());
}

/// Appends numbers without their count. A run of zeros takes two numbers.
pub(super) fn put_sparse(to: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) {
    let mut zeros = 0;
    for number in numbers {
        if number == 0 {
            zeros += 1;
            continue;
        }
        put_zeros(to, std::mem::take(&mut zeros));
        put(to, number);
    }
    put_zeros(to, zeros);
}

fn put_zeros(to: &mut Vec<u8>, zeros: u64) {
    if zeros > 0 {
        put(to, 0);
        put(to, zeros - 1);
    }
}

/// Reader of numbers and texts. Every method returns `None` at invalid or missing bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Returns a count of items that each take at least one byte, so that it can be trusted for an allocation.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    pub(super) fn difference(&mut self, before: u64) -> Option<u64> {
        let coded = self.number()?;
        let difference = (coded >> 1).cast_signed() ^ -((coded & 1).cast_signed());
        Some(before.wrapping_add(difference.cast_unsigned()))
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads numbers that [`put_sparse`] has written.
    pub(super) fn sparse(&mut self, count: usize) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            match self.number()? {
                0 => {
                    let zeros = usize::try_from(self.number()?).ok()?.checked_add(1)?;
                    if zeros > count - numbers.len() {
                        return None;
                    }
                    numbers.resize(numbers.len() + zeros, 0);
                }
                number => numbers.push(number),
            }
        }
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_back(numbers in prop::collection::vec(any::<u64>(), 0..50), before: u64, text in ".{0,9}") {
            let mut bytes = Vec::new();
            for number in &numbers {
                put(&mut bytes, *number);
                put_difference(&mut bytes, *number, before);
            }
            put_text(&mut bytes, &text);
            let sparse: Vec<u64> = numbers.iter().map(|number| number % 3).collect();
            put_sparse(&mut bytes, sparse.iter().copied());
            let mut cursor = Cursor(&bytes);
            for number in &numbers {
                prop_assert_eq!(cursor.number(), Some(*number));
                prop_assert_eq!(cursor.difference(before), Some(*number));
            }
            prop_assert_eq!(cursor.text(), Some(text.as_str()));
            prop_assert_eq!(cursor.sparse(sparse.len()), Some(sparse));
            prop_assert!(cursor.0.is_empty());
        }

        #[test]
        fn noise_is_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..60), count in 0usize..9) {
            let mut cursor = Cursor(&noise);
            let _ = (cursor.sparse(count), cursor.text(), cursor.number(), cursor.count());
        }
    }
}
