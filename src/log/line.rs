//! Formats one log line, as text or as a JSON object.

use serde_json::{Map, Value, json};
use std::fmt::{self, Write};
use std::time::{Duration, Instant, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tracing::Level;
use tracing::field::{Field, Visit};

/// Name of the field for the message.
const MESSAGE: &str = "message";

/// Fields of an event or a span, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Returns the fields of a closed span.
    pub(super) fn closed_span(name: &str, time: Duration) -> Self {
        Self(vec![(MESSAGE, json!(format!("{name} is over"))), ("seconds", json!(time.as_secs_f64()))])
    }

    fn set(&mut self, field: &Field, value: Value) {
        match self.0.iter_mut().find(|(name, _)| *name == field.name()) {
            Some((_, known)) => *known = value,
            None => self.0.push((field.name(), value)),
        }
    }

    fn message(&self) -> String {
        let message = self.0.iter().find(|(name, _)| *name == MESSAGE);
        message.map_or_else(String::new, |(_, value)| plain(value))
    }

    fn others(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        self.0.iter().filter(|(name, _)| *name != MESSAGE)
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, json!(format!("{value:?}")));
    }
}

/// Recorded state of a span.
#[derive(Debug)]
pub(super) struct SpanState {
    pub(super) fields: Fields,
    pub(super) started: Instant,
}

/// Log line before formatting.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) target: &'static str,
    pub(super) fields: Fields,
    /// Enclosing spans, outermost first.
    pub(super) spans: Vec<(&'static str, Fields)>,
    /// Lines of the same call site that were suppressed before this one.
    pub(super) suppressed: u64,
}

impl Line {
    /// Formats the time with a resolution of `unit` nanoseconds.
    fn time(&self, unit: u32) -> String {
        let time = OffsetDateTime::from(self.time);
        let whole = time.nanosecond() / unit * unit;
        time.replace_nanosecond(whole).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
    }

    /// Formats the line as text: time and message. Adds the level if it is not `info`, and the fields and spans below
    /// `info`.
    pub(super) fn text(&self) -> String {
        let mut text = self.time(1_000_000_000);
        // Writing to a string cannot fail.
        if self.level != Level::INFO {
            let _ = write!(text, " {}", self.level);
        }
        let _ = write!(text, " {}", one_line(&self.fields.message()));
        if self.level > Level::INFO {
            for (name, value) in self.fields.others() {
                let _ = write!(text, " {name}={}", one_line(&plain(value)));
            }
            for (name, fields) in &self.spans {
                let _ = write!(text, "; {name}");
                for (name, value) in fields.others() {
                    let _ = write!(text, " {name}={}", one_line(&plain(value)));
                }
            }
        }
        if self.suppressed > 0 {
            let _ = write!(text, " ({} similar lines suppressed)", self.suppressed);
        }
        text
    }

    /// Formats the line as JSON. Fields of the event cannot replace the standard keys.
    pub(super) fn json(&self) -> String {
        let mut line = Map::new();
        // Inserted first: the standard keys below replace fields of the same name.
        for (name, value) in self.fields.others() {
            line.insert((*name).to_owned(), value.clone());
        }
        line.insert("time".to_owned(), json!(self.time(1_000_000)));
        line.insert("level".to_owned(), json!(self.level.as_str().to_ascii_lowercase()));
        line.insert("target".to_owned(), json!(self.target));
        line.insert(MESSAGE.to_owned(), json!(self.fields.message()));
        let span = |(name, fields): &(&'static str, Fields)| {
            let mut span: Map<String, Value> =
                fields.others().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            span.insert("span".to_owned(), json!(name));
            Value::Object(span)
        };
        if !self.spans.is_empty() {
            line.insert("spans".to_owned(), self.spans.iter().map(span).collect());
        }
        if self.suppressed > 0 {
            line.insert("suppressed".to_owned(), json!(self.suppressed));
        }
        Value::Object(line).to_string()
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Replaces control characters, so that a text stays in one line and moves no cursor.
fn one_line(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: Level, suppressed: u64) -> Line {
        Line {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_900),
            level,
            target: "pleach_actors::manager",
            fields: Fields(vec![
                (MESSAGE, json!("a \"b\"\nc")),
                ("worker", json!("w0")),
                ("slots", json!(2)),
            ]),
            spans: vec![
                ("study", Fields(vec![("study", json!(7))])),
                ("bucket", Fields(vec![("lease", json!(1)), ("bucket", json!(3))])),
            ],
            suppressed,
        }
    }

    #[test]
    fn text_format_has_time_and_message() {
        assert_eq!(line(Level::INFO, 0).text(), "2023-11-14T22:13:20Z a \"b\"\u{fffd}c");
        assert_eq!(
            line(Level::WARN, 3).text(),
            "2023-11-14T22:13:20Z WARN a \"b\"\u{fffd}c (3 similar lines suppressed)"
        );
        assert_eq!(
            line(Level::DEBUG, 0).text(),
            "2023-11-14T22:13:20Z DEBUG a \"b\"\u{fffd}c worker=w0 slots=2; study study=7; bucket lease=1 bucket=3"
        );
    }

    #[test]
    fn json_format_has_all_fields() {
        let text = line(Level::INFO, 2).json();
        assert!(!text.contains('\n'));
        let expected = json!({
            "time": "2023-11-14T22:13:20.9Z",
            "level": "info",
            "target": "pleach_actors::manager",
            "message": "a \"b\"\nc",
            "worker": "w0",
            "slots": 2,
            "spans": [{"span": "study", "study": 7}, {"span": "bucket", "lease": 1, "bucket": 3}],
            "suppressed": 2,
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn standard_fields_cannot_be_replaced() {
        let mut line = line(Level::INFO, 0);
        line.fields.0.push(("level", json!("none")));
        assert!(line.json().contains(r#""level":"info""#));
    }
}
