//! The JSON of loops and choices of tasks.

use super::TaskDescriptor;
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// One entry of a list of tasks. The first key of the object besides `description` decides its kind.
#[derive(Clone, Debug)]
pub(crate) enum EntryDescriptor {
    Task(TaskDescriptor),
    Loop(LoopDescriptor),
    Choice(ChoiceDescriptor),
}

/// Tasks that are repeated until a value meets a condition, at most a number of times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a loop object")]
pub(crate) struct LoopDescriptor {
    #[serde(rename = "loop")]
    pub(crate) name: String,
    #[serde(default, rename = "description")]
    _description: String,
    pub(crate) at_most: u32,
    pub(crate) until: ConditionDescriptor,
    #[serde(default)]
    pub(crate) carries: Vec<CarryDescriptor>,
    pub(crate) tasks: Vec<EntryDescriptor>,
}

/// A region that each iteration reads from the one before.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a carried region object")]
pub(crate) struct CarryDescriptor {
    /// Name within the loop.
    pub(crate) region: String,
    /// Region that it is in the first iteration.
    pub(crate) first: String,
    /// Region of the loop that it is in the next iteration.
    pub(crate) next: String,
}

/// Two groups of tasks. A value decides which group runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a choice object")]
pub(crate) struct ChoiceDescriptor {
    #[serde(rename = "choice")]
    pub(crate) name: String,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(rename = "if")]
    pub(crate) condition: ConditionDescriptor,
    #[serde(default)]
    pub(crate) then: Vec<EntryDescriptor>,
    #[serde(default, rename = "else")]
    pub(crate) otherwise: Vec<EntryDescriptor>,
    pub(crate) gives: Vec<GiveDescriptor>,
}

/// A region of a choice that tasks after it read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a region object")]
pub(crate) struct GiveDescriptor {
    pub(crate) region: String,
    pub(crate) then: String,
    #[serde(rename = "else")]
    pub(crate) otherwise: String,
}

/// Comparison of a value that a task outputs: `below` or `at_least` a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a condition object")]
pub(crate) struct ConditionDescriptor {
    pub(crate) region: String,
    #[serde(default)]
    pub(crate) below: Option<f64>,
    #[serde(default)]
    pub(crate) at_least: Option<f64>,
}

/// Implemented by hand: a derived choice between the kinds loses the location of a mistake.
impl<'de> Deserialize<'de> for EntryDescriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByKey;
        impl<'de> Visitor<'de> for ByKey {
            type Value = EntryDescriptor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a task object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut key = map.next_key()?.map(|Key(key)| key);
                let mut description = None;
                // Every kind may begin with this key.
                if key.as_deref() == Some(DESCRIPTION) {
                    description = Some(map.next_value()?);
                    key = map.next_key()?.map(|Key(key)| key);
                }
                let kind = key.clone();
                let rest = MapAccessDeserializer::new(Peeked { description, value: None, key, map });
                match kind {
                    Some(key) if LOOP_KEYS.contains(&key.as_str()) => {
                        Deserialize::deserialize(rest).map(EntryDescriptor::Loop)
                    }
                    Some(key) if CHOICE_KEYS.contains(&key.as_str()) => {
                        Deserialize::deserialize(rest).map(EntryDescriptor::Choice)
                    }
                    _ => Deserialize::deserialize(rest).map(EntryDescriptor::Task),
                }
            }
        }
        deserializer.deserialize_map(ByKey)
    }
}

const DESCRIPTION: &str = "description";
const TASK_KEYS: [&str; 7] = ["task", DESCRIPTION, "operation", "version", "parameters", "reads", "writes"];
const LOOP_KEYS: [&str; 5] = ["loop", "at_most", "until", "carries", "tasks"];
const CHOICE_KEYS: [&str; 5] = ["choice", "if", "then", "else", "gives"];

/// A key of a task, loop or choice. Refuses others while the key is read, so that the error has its location.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        let mut known = TASK_KEYS.iter().chain(&LOOP_KEYS).chain(&CHOICE_KEYS);
        match known.any(|known| *known == key) {
            true => Ok(Self(key)),
            false => Err(D::Error::unknown_field(&key, &TASK_KEYS)),
        }
    }
}

/// A map whose description and next key have been read.
struct Peeked<A> {
    description: Option<String>,
    /// The description, after its key was returned.
    value: Option<String>,
    key: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Peeked<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = match self.description.take() {
            Some(description) => {
                self.value = Some(description);
                Some(DESCRIPTION.to_owned())
            }
            None => self.key.take(),
        };
        match key {
            Some(key) => {
                let key: StringDeserializer<A::Error> = key.into_deserializer();
                seed.deserialize(key).map(Some)
            }
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => {
                let value: StringDeserializer<A::Error> = value.into_deserializer();
                seed.deserialize(value)
            }
            None => self.map.next_value_seed(seed),
        }
    }
}
