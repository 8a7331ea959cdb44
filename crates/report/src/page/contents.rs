//! Sections of a page, and the table of contents that links to them.
//!
//! Each section has a unique id and a link back to the contents. Sections of additional responses are folded:
//! a browser opens them on demand, and the style sheet opens them for print.

use crate::page::html::{Html, html, li};
use std::collections::HashSet;

/// Id and class of the table of contents.
const CONTENTS: &str = "contents";

/// Sections in page order.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    body: Html,
    /// Ids in use.
    ids: HashSet<String>,
    entries: Vec<Entry>,
}

/// Entry of the table of contents.
#[derive(Debug)]
struct Entry {
    id: String,
    title: String,
    /// Whether the entry is a part. The following entries up to the next part belong to it.
    is_part: bool,
}

impl Sections {
    /// Starts a part of the page, such as a phase.
    pub(crate) fn part(&mut self, title: &str, introduction: Html) {
        let id = self.enter(title, title, true);
        self.body.push(Html::element("h1", &[("id", &id)], title));
        self.body.push(introduction);
    }

    /// Adds a section.
    pub(crate) fn add(&mut self, title: &str, content: Html) {
        let id = self.enter(title, title, false);
        self.push("", &id, title, content);
    }

    /// Adds the answer as a box. `in_contents` is its entry in the contents. `None` adds no entry.
    pub(crate) fn answer(&mut self, title: &str, in_contents: Option<&str>, content: Html) {
        let id = match in_contents {
            Some(entry) => self.enter(title, entry, false),
            None => self.id(title),
        };
        self.push("answer", &id, title, content);
    }

    /// Adds folded sections under one title. The contents link to the title, which is visible while the fold
    /// is closed.
    pub(crate) fn fold(&mut self, title: &str, sections: Vec<(String, Html)>) {
        let id = self.enter(title, title, false);
        let mut body = Html::element("summary", &[], title);
        for (title, content) in sections {
            let id = self.id(&title);
            body.push(section("", &id, &title, content));
        }
        body.push(back());
        self.body.push(Html::element("details", &[("class", "fold"), ("id", &id)], body));
    }

    fn push(&mut self, class: &'static str, id: &str, title: &str, content: Html) {
        let content = if class.is_empty() { html![content, back()] } else { content };
        self.body.push(section(class, id, title, content));
    }

    /// Adds the entry `entry` to the contents, and returns a new id for `title`.
    fn enter(&mut self, title: &str, entry: &str, is_part: bool) -> String {
        let id = self.id(title);
        self.entries.push(Entry { id: id.clone(), title: entry.to_owned(), is_part });
        id
    }

    /// Returns a new id from the letters and digits of a title. Appends a number if the id is in use.
    fn id(&mut self, title: &str) -> String {
        let words =
            title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let slug = format!("s-{}", words.collect::<Vec<_>>().join("-").to_lowercase());
        let numbered = (2..).map(|number: u32| format!("{slug}-{number}"));
        let mut candidates = std::iter::once(slug.clone()).chain(numbered);
        let id = candidates.find(|id| !self.ids.contains(id)).unwrap_or(slug);
        self.ids.insert(id.clone());
        id
    }

    /// Returns the table of contents and the sections.
    pub(crate) fn finish(self) -> (Html, Html) {
        let link = |entry: &Entry| Html::element("a", &[("href", &format!("#{}", entry.id))], &entry.title);
        let mut list = Html::default();
        let mut entries = self.entries.iter().peekable();
        while let Some(entry) = entries.next() {
            let mut item = link(entry);
            if entry.is_part {
                let mut below = Html::default();
                while let Some(entry) = entries.next_if(|entry| !entry.is_part) {
                    below.push(li(link(entry)));
                }
                item.push(Html::element("ul", &[], below));
            }
            list.push(li(item));
        }
        let list = html![Html::element("h2", &[], "Contents"), Html::element("ul", &[], list)];
        (Html::element("nav", &[("class", CONTENTS), ("id", CONTENTS)], list), self.body)
    }
}

fn section(class: &'static str, id: &str, title: &str, content: Html) -> Html {
    let attributes = [("id", id), ("class", class)];
    let count = if class.is_empty() { 1 } else { 2 };
    Html::element("section", &attributes[..count], html![Html::element("h2", &[], title), content])
}

fn back() -> Html {
    let link = Html::element("a", &[("href", "#contents")], "Back to contents");
    Html::of_class("p", "back", link)
}

#[cfg(test)]
mod tests;
