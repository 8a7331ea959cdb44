//! Attachment of an immutable region: data that one reader keeps with it for later readers, such as a copy in another form.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A value that is dropped with its region. A copy of the region begins without one. It is no part of the content.
#[derive(Default)]
pub struct Attachment(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Attachment {
    /// Returns the value of type `T`. The first call creates it. `None` if the region has a value of another type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, create: impl FnOnce() -> T) -> Option<Arc<T>> {
        let value = self.0.get_or_init(|| Arc::new(create()));
        Arc::clone(value).downcast().ok()
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
        let value = region.attachment().unwrap().get_or_init(|| 5_u8).unwrap();
        assert_eq!(*region.attachment().unwrap().get_or_init(|| 6_u8).unwrap(), 5);
        assert!(region.attachment().unwrap().get_or_init(|| "text").is_none());
        let copy = region.clone();
        assert_eq!(copy, region);
        assert_eq!(*copy.attachment().unwrap().get_or_init(|| 6_u8).unwrap(), 6);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(region);
        assert_eq!(Arc::strong_count(&value), 1);
        assert_eq!(*raster.attachment().get_or_init(|| 8_u8).unwrap(), 8);
        raster.data_mut()[0] = 1;
        assert_eq!(*raster.attachment().get_or_init(|| 9_u8).unwrap(), 9, "of the new content");
        assert!(DataRegion::Scalar(1.0).attachment().is_none());
    }
}
