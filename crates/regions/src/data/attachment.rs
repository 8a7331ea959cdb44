//! Attachment of an immutable region: data that readers keep with it for later readers, such as copies in other forms.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Values that are dropped with their region, one for each type. A copy of the region begins without any. They are no part of the
/// content.
#[derive(Default)]
pub struct Attachment(OnceLock<Entry>);

struct Entry {
    value: Arc<dyn Any + Send + Sync>,
    next: Box<Attachment>,
}

impl Attachment {
    /// Returns the value of type `T`. The first call creates it.
    pub fn get_or_init<T: Any + Send + Sync>(&self, create: impl Fn() -> T) -> Arc<T> {
        let mut attachment = self;
        loop {
            let entry =
                attachment.0.get_or_init(|| Entry { value: Arc::new(create()), next: Box::default() });
            match Arc::clone(&entry.value).downcast() {
                Ok(value) => return value,
                Err(_) => attachment = &entry.next,
            }
        }
    }
}

impl Clone for Attachment {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Attachment {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Attachment {}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachment")
    }
}

#[cfg(test)]
mod tests {
    use crate::{DataRegion, Raster};
    use std::sync::Arc;

    #[test]
    fn attachment_ends_with_its_region_and_its_content() {
        let mut raster = Raster::filled(2, 2, 3, 7).unwrap();
        let region = DataRegion::Bgr8(raster.clone());
        let value = region.attachment().unwrap().get_or_init(|| 5_u8);
        assert_eq!(*region.attachment().unwrap().get_or_init(|| "text"), "text");
        assert_eq!(*region.attachment().unwrap().get_or_init(|| 6_u8), 5);
        assert_eq!(*region.attachment().unwrap().get_or_init(|| "other"), "text");
        let copy = region.clone();
        assert_eq!(copy, region);
        assert_eq!(*copy.attachment().unwrap().get_or_init(|| 6_u8), 6);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(region);
        assert_eq!(Arc::strong_count(&value), 1);
        assert_eq!(*raster.attachment().get_or_init(|| 8_u8), 8);
        raster.data_mut()[0] = 1;
        assert_eq!(*raster.attachment().get_or_init(|| 9_u8), 9, "of the new content");
        assert!(DataRegion::Scalar(1.0).attachment().is_none());
    }
}
