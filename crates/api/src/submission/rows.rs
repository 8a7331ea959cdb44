//! Deserializer of parameter sets that allocates exactly the memory of each set.
//!
//! A submission may have a million parameter sets, read from a file. A vector that grows during the read may have
//! twice the capacity that it needs.

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

/// Reader of one parameter set, which reuses the buffer.
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
