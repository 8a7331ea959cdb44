//! Streaming decoder: digests uncompressed content while it is still in the processor's caches.

use super::header::{HeaderVersion, seen_pixels};
use super::{DecodeError, Head};
use crate::codec::digest::{finish, hasher};
use crate::{DataRegion, Digest};
use std::borrow::Cow;

/// Decodes one encoding with a known head and a body that arrives in pieces. The caller stores the pieces: it
/// shows each once, in order, and passes all of them at the end.
#[derive(Debug)]
pub struct Decoder {
    start: HeaderVersion,
    /// Digest state of uncompressed pixels. Other content is digested after decoding.
    seen: Option<(blake3::Hasher, usize)>,
}

impl Decoder {
    /// Starts decoding.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the head is invalid.
    pub fn new(head: &Head) -> Result<Self, DecodeError> {
        let start = HeaderVersion::read(head, Head::BYTES)?;
        let seen = seen_pixels(&start).map(|_| (hasher(), 0));
        Ok(Self { start, seen })
    }

    /// Returns the digest of the region, unverified.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.start.digest()
    }

    /// Digests the next bytes of the body. Pieces of 128 KiB are fastest.
    pub fn see(&mut self, piece: &[u8]) {
        if let Some((hasher, length)) = &mut self.seen {
            hasher.update(piece);
            *length += piece.len();
        }
    }

    /// Decodes the region from the body that has been shown.
    ///
    /// # Errors
    /// Returns the [`DecodeError`] of [`DataRegion::decode`].
    pub fn finish(self, body: Vec<u8>) -> Result<DataRegion, DecodeError> {
        let (Some((hasher, length)), Some(header)) = (self.seen, seen_pixels(&self.start)) else {
            return self.start.region(Cow::Owned(body)).map(|(region, _)| region);
        };
        let found = body.len();
        let region = header.unchecked(Cow::Owned(body))?;
        // The digest is that of the bytes shown, so their number must be that of the body.
        if length != found {
            return Err(DecodeError::Length { found: length, expected: found as u64 });
        }
        let (size_px, channels) = match &region {
            DataRegion::Bgr8(raster) | DataRegion::Gray8(raster) | DataRegion::Mask(raster) => {
                ((raster.width_px(), raster.height_px()), raster.channels())
            }
            _ => return Err(header.refuse()),
        };
        header.check(finish(hasher, header.element, channels, size_px, length))?;
        Ok(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelMap, Raster, Table};
    use proptest::prelude::*;

    fn any_region() -> impl Strategy<Value = DataRegion> {
        let pixels = (1..40_u32, 1..40_u32).prop_flat_map(|(width, height)| {
            let bytes = prop::collection::vec(any::<u8>(), (width * height * 3) as usize);
            bytes.prop_map(move |bytes| (width, height, bytes))
        });
        (pixels, 0..5_u8).prop_map(|((width, height, bytes), kind)| {
            let plane = || Raster::new(width, height, 1, bytes[..bytes.len() / 3].to_vec()).unwrap();
            match kind {
                0 => DataRegion::Bgr8(Raster::new(width, height, 3, bytes.clone()).unwrap()),
                1 => DataRegion::Gray8(plane()),
                2 => DataRegion::Mask(plane()),
                3 => {
                    let labels = plane().data().iter().map(|label| u32::from(*label)).collect();
                    DataRegion::Labels(LabelMap::new(width, height, labels).unwrap())
                }
                _ => DataRegion::Table(Table::new([("dice", f64::from(bytes[0]))])),
            }
        })
    }

    proptest! {
        /// Any split decodes like the whole, and corrupt bytes are rejected.
        #[test]
        fn decoding_in_pieces_equals_decoding_at_once(
            region in any_region(), is_small: bool, piece in 1..500_usize, damaged in any::<prop::sample::Index>(),
        ) {
            let digest = region.digest();
            let (head, body) = region.encode_parts(&digest, is_small);
            let body = body.into_owned();
            let decode = |body: Vec<u8>| {
                let mut decoder = Decoder::new(&head).unwrap();
                body.chunks(piece).for_each(|piece| decoder.see(piece));
                decoder.finish(body)
            };
            prop_assert_eq!(DataRegion::decode_parts(&head, body.clone()), Ok((region.clone(), digest)));
            prop_assert_eq!(decode(body.clone()), Ok(region.clone()));
            let mut wrong = body.clone();
            wrong[damaged.index(body.len())] ^= 1;
            // A changed byte of an LZ4 block may decode to the same content.
            prop_assert!(decode(wrong).map_or(true, |decoded| is_small && decoded == region));
            prop_assert!(decode(body[..body.len() - 1].to_vec()).is_err());
        }
    }

    #[test]
    fn decoder_refuses_content_it_did_not_see() {
        let region = DataRegion::Gray8(Raster::filled(8, 8, 1, 3).unwrap());
        let (head, body) = region.encode_parts(&region.digest(), false);
        let mut decoder = Decoder::new(&head).unwrap();
        decoder.see(&body[..63]);
        assert!(decoder.finish(body.into_owned()).is_err());
    }
}
