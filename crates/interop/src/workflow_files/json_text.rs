//! JSON as people write descriptors: lists and objects that fit stay on one line.

use std::fmt::Write;

/// Maximum length of a line.
const MAX_LINE: usize = 110;

/// A JSON value whose keys keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Text(String),
    Integer(i64),
    Real(f64),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn texts(texts: &[String]) -> Self {
        Self::List(texts.iter().map(Self::text).collect())
    }

    /// Returns the document, with a newline at its end. The outermost object has a line for each key.
    pub(crate) fn document(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0, 0, true);
        text.push('\n');
        text
    }

    /// Writes the value at an indentation. `before` is the length of the text before it on its line.
    fn write(&self, text: &mut String, indent: usize, before: usize, expand: bool) {
        let line = self.line();
        let fits = !expand && before + line.chars().count() < MAX_LINE;
        let inner = " ".repeat(indent + 2);
        match self {
            Self::List(items) if !fits && !items.is_empty() => {
                text.push('[');
                for (number, item) in items.iter().enumerate() {
                    *text += if number > 0 { ",\n" } else { "\n" };
                    *text += &inner;
                    item.write(text, indent + 2, indent + 2, false);
                }
                let _ = write!(text, "\n{}]", " ".repeat(indent));
            }
            Self::Object(fields) if !fits && !fields.is_empty() => {
                text.push('{');
                for (number, (key, value)) in fields.iter().enumerate() {
                    *text += if number > 0 { ",\n" } else { "\n" };
                    let _ = write!(text, "{inner}\"{key}\": ");
                    value.write(text, indent + 2, indent + 6 + key.len(), false);
                }
                let _ = write!(text, "\n{}}}", " ".repeat(indent));
            }
            _ => *text += &line,
        }
    }

    /// Returns the value on one line.
    fn line(&self) -> String {
        match self {
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => serde_json::Value::from(*number).to_string(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::line).collect::<Vec<_>>().join(", "))
            }
            Self::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| format!("\"{key}\": {}", value.line()));
                format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_stay_on_a_line() {
        let short = Json::Object(vec![("region", Json::text("a \"b\"")), ("size", Json::Real(5.0))]);
        let long = Json::List(vec![Json::text("x".repeat(60)), Json::text("y".repeat(60))]);
        let document = Json::Object(vec![("short", Json::List(vec![short])), ("long", long)]);
        let (x, y) = ("x".repeat(60), "y".repeat(60));
        let wanted = format!(
            "{{\n  \"short\": [{{ \"region\": \"a \\\"b\\\"\", \"size\": 5.0 }}],\n  \
             \"long\": [\n    \"{x}\",\n    \"{y}\"\n  ]\n}}\n"
        );
        assert_eq!(document.document(), wanted);
        assert!(serde_json::from_str::<serde_json::Value>(&wanted).is_ok());
    }
}
