//! Parameter sets as they are read: each in as much memory as it needs.
//!
//! A submission may hold a million of them, and is read from a file. A vector that grows while it is read may be twice as long as
//! it needs to be.

use pleach_workflow::Value;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Reads the parameter sets of a submission.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<Value>>, D::Error> {
    deserializer.deserialize_seq(Rows)
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Vec<Vec<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence of parameter sets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<Vec<Value>>, A::Error> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        while let Some(row) = all.next_element_seed(Row(&mut values))? {
            rows.push(row);
        }
        Ok(rows)
    }
}

/// One parameter set, by way of a vector that is used again.
struct Row<'a>(&'a mut Vec<Value>);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Vec<Value>, A::Error> {
        self.0.clear();
        while let Some(value) = row.next_element()? {
            self.0.push(value);
        }
        Ok(self.0.as_slice().to_vec())
    }
}
