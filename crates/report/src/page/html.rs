//! HTML builder that escapes all text: text becomes [`Html`] only by escaping.
//!
//! Names of elements and attributes are string literals of this program. Everything else is data.

/// Fragment of well-formed HTML or SVG.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

/// Concatenates fragments. Strings are escaped.
macro_rules! html {
    ($($part:expr),* $(,)?) => {{
        let mut joined = $crate::page::html::Html::default();
        $(joined.push($part);)*
        joined
    }};
}
pub(crate) use html;

/// Attribute and its value.
pub(crate) type Attribute<'a> = (&'static str, &'a str);

impl Html {
    /// Wraps markup of this program without escaping.
    pub(crate) fn raw(markup: &'static str) -> Self {
        Self(markup.to_owned())
    }

    /// Returns an element around `content`.
    pub(crate) fn element(
        name: &'static str,
        attributes: &[Attribute<'_>],
        content: impl Into<Self>,
    ) -> Self {
        let mut markup = open(name, attributes);
        markup.push('>');
        markup.push_str(&content.into().0);
        markup.push_str("</");
        markup.push_str(name);
        markup.push('>');
        Self(markup)
    }

    /// Returns an SVG element without content.
    pub(crate) fn shape(name: &'static str, attributes: &[Attribute<'_>]) -> Self {
        let mut markup = open(name, attributes);
        markup.push_str("/>");
        Self(markup)
    }

    /// Returns an element with a class and no other attribute.
    pub(crate) fn of_class(name: &'static str, class: &str, content: impl Into<Self>) -> Self {
        Self::element(name, &[("class", class)], content)
    }

    /// Adds `part` at the end.
    pub(crate) fn push(&mut self, part: impl Into<Self>) {
        self.0.push_str(&part.into().0);
    }

    /// Returns the markup.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Defines a function for each element without attributes.
macro_rules! elements {
    ($($name:ident)*) => {
        $(pub(crate) fn $name(content: impl Into<Html>) -> Html {
            Html::element(stringify!($name), &[], content)
        })*
    };
}
elements! { p strong em li ul td tr thead tbody figcaption }

impl From<&str> for Html {
    fn from(text: &str) -> Self {
        Self(escape(text))
    }
}

impl From<&String> for Html {
    fn from(text: &String) -> Self {
        Self(escape(text))
    }
}

impl From<String> for Html {
    fn from(text: String) -> Self {
        Self(escape(&text))
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(parts: I) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

fn open(name: &str, attributes: &[Attribute<'_>]) -> String {
    let mut markup = format!("<{name}");
    for (attribute, value) in attributes {
        markup.push(' ');
        markup.push_str(attribute);
        markup.push_str("=\"");
        markup.push_str(&escape(value));
        markup.push('"');
    }
    markup
}

/// Escapes `text` for content and for attribute values. Replaces control characters and bidirectional
/// formatting characters, which could disguise a name.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Table of rows of cells under a header. The first column names its row.
#[derive(Debug)]
pub(crate) struct Table {
    caption: Html,
    header: Vec<Html>,
    rows: Vec<(&'static str, Vec<Html>)>,
    class: &'static str,
}

impl Table {
    pub(crate) fn new<H: Into<Html>>(
        class: &'static str,
        caption: impl Into<Html>,
        header: impl IntoIterator<Item = H>,
    ) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { caption: caption.into(), header, rows: Vec::new(), class }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Html>) {
        self.row_of_class("", cells);
    }

    pub(crate) fn row_of_class(&mut self, class: &'static str, cells: impl IntoIterator<Item = Html>) {
        self.rows.push((class, cells.into_iter().collect()));
    }

    /// Returns the table in a box that scrolls sideways in a narrow window.
    pub(crate) fn finish(self) -> Html {
        let header = self.header.into_iter().map(|cell| Html::element("th", &[("scope", "col")], cell));
        let head = thead(tr(header.collect::<Html>()));
        let rows = self.rows.into_iter().map(|(class, cells)| {
            let cells = cells.into_iter().enumerate().map(|(column, cell)| match column {
                0 => Html::element("th", &[("scope", "row")], cell),
                _ => td(cell),
            });
            let cells: Html = cells.collect();
            if class.is_empty() { tr(cells) } else { Html::of_class("tr", class, cells) }
        });
        let body = tbody(rows.collect::<Html>());
        // The caption has its own box, which stays visible while the table scrolls.
        let caption = Html::element("caption", &[], Html::of_class("span", "text", self.caption));
        let table = Html::of_class("table", self.class, html![caption, head, body]);
        Html::of_class("div", "wide", table)
    }
}

/// Returns a figure with its caption below.
pub(crate) fn figure(content: impl Into<Html>, caption: impl Into<Html>) -> Html {
    let content = Html::of_class("div", "wide", content);
    Html::element("figure", &[], html![content, figcaption(caption)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let element = Html::element("p", &[("title", "\"><b>")], "<script>alert('x') & co</script>");
        assert_eq!(
            element.into_string(),
            "<p title=\"&quot;&gt;&lt;b&gt;\">&lt;script&gt;alert(&#39;x&#39;) &amp; co&lt;/script&gt;</p>"
        );
        assert_eq!(escape("a\u{0}b\u{202e}c\nd"), "a\u{fffd}b\u{fffd}c d");
    }

    #[test]
    fn a_table_names_its_rows_and_columns() {
        let mut table = Table::new("numbers", "What", ["name", "n"]);
        table.row(["a<b".into(), "1".into()]);
        let table = table.finish().into_string();
        assert!(table.contains("<th scope=\"col\">n</th>"), "{table}");
        assert!(table.contains("<th scope=\"row\">a&lt;b</th><td>1</td>"), "{table}");
    }
}
