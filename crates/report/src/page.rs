//! Parts of a page: elements, contents and numbers as text.

pub(crate) mod contents;
pub(crate) mod data_uri;
pub(crate) mod format_number;
pub(crate) mod html;
pub(crate) mod metric;
