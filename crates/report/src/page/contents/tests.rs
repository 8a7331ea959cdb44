//! Tests of a page's structure and style sheet: links, ids, folds, colors.

use super::*;
use crate::fixture::{self, Fixture};
use crate::{Report, html as page};
use std::collections::HashMap;

const STYLE: &str = include_str!("../page.css");

/// Returns a study of three responses, and the analyses of the second and third.
fn three() -> (Fixture, Vec<pleach_results::analysis::Analysis>) {
    let parameters = [("G2", 0.41, 0.08), ("G1", 0.2, 0.05), ("B", 0.0, 0.0)];
    let mut study = fixture::moat(&parameters);
    study.study.further = vec![1, 2];
    let further = [0, 1].map(|_| fixture::moat(&parameters).analysis);
    (study, further.into())
}

/// Returns the values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn equal_titles_have_different_ids() {
    let mut sections = Sections::default();
    sections.part("Phase 1", Html::default());
    sections.add("Response", "a".into());
    sections.part("Phase 2", Html::default());
    sections.add("Response", "b".into());
    sections.add("μ*", "c".into());
    let (contents, body) = sections.finish();
    let (contents, body) = (contents.into_string(), body.into_string());
    for id in ["s-phase-1", "s-response", "s-response-2", "s-"] {
        assert!(body.contains(&format!(" id=\"{id}\"")), "{id}: {body}");
        assert!(contents.contains(&format!("href=\"#{id}\"")), "{id}: {contents}");
    }
    assert_eq!(contents.matches("<ul>").count(), 3, "{contents}");
}

#[test]
fn contents_links_have_their_anchors_and_ids_are_unique() {
    let (mut study, further) = three();
    for further in [&further[..], &[]] {
        study.study.further = (1..=further.len()).collect();
        let page = page(&Report { further, ..study.report() });
        let ids = values(&page, "id");
        let unique: HashSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{ids:?}");
        let links: Vec<&str> =
            values(&page, "href").into_iter().filter_map(|link| link.strip_prefix('#')).collect();
        links.iter().for_each(|link| assert!(unique.contains(link), "#{link} leads nowhere"));
        // Every section has an entry in the contents, or is inside a fold with an entry, and links back.
        let (contents, rest) = page.split_once("</nav>").unwrap();
        let entries = values(contents, "href").len();
        assert_eq!(entries, 1 + 2 + further.len() + 5, "{contents}");
        let sections = rest.matches("<section").count() - rest.matches("class=\"answer\"").count();
        // A fold of two sections has a single link back.
        assert_eq!(rest.matches("href=\"#contents\"").count(), sections - further.len());
    }
}

#[test]
fn further_responses_are_folded() {
    let (study, further) = three();
    let page = page(&Report { further: &further, ..study.report() });
    let folds: Vec<&str> = page.split("<details").skip(1).collect();
    assert_eq!(folds.len(), 2);
    for (fold, metric) in folds.iter().zip(["jaccard", "pixel-difference"]) {
        let (attributes, rest) = fold.split_once('>').unwrap();
        assert!(!attributes.contains("open"), "{attributes}");
        let (inside, _) = rest.split_once("</details>").unwrap();
        let summary = format!("<summary>Additional response: {metric}</summary>");
        assert!(inside.starts_with(&summary), "{inside}");
        for title in ["Sensitivity", "Response"] {
            assert!(inside.contains(&format!("<h2>{title}: {metric}</h2>")), "{title}");
        }
    }
    // The answers and the first response's sections are open.
    let (open, _) = page.split_once("<details").unwrap();
    assert!(open.contains("<h2>Summary: pixel-difference</h2>") && open.contains("<h2>Response: dice</h2>"));
    let print = STYLE.split_once("@media print").unwrap().1;
    assert!(print.contains(".fold::details-content { display: block; content-visibility: visible;"));
}

/// Returns the light and the dark palette, and the rules that use them.
fn palettes() -> ([HashMap<&'static str, &'static str>; 2], String) {
    let mut rules = String::new();
    let mut found = Vec::new();
    for (place, part) in STYLE.split(":root {").enumerate() {
        let (palette, rest) = if place == 0 { ("", part) } else { part.split_once('}').unwrap() };
        rules.push_str(rest);
        let variables = palette.split(';').filter_map(|rule| rule.rsplit_once("--").map(|(_, rule)| rule));
        found.push(variables.filter_map(|rule| rule.split_once(": ")).collect::<HashMap<_, _>>());
    }
    let mut found = found.into_iter().filter(|palette| !palette.is_empty());
    ([found.next().unwrap(), found.next().unwrap()], rules)
}

#[test]
fn colors_are_variables_of_both_palettes() {
    let ([light, dark], rules) = palettes();
    let fixed = |text: &str| -> Vec<String> {
        let hashes = text.split('#').skip(1);
        let color = |rest: &str| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>();
        hashes.map(color).filter(|digits| [3, 4, 6, 8].contains(&digits.len())).collect()
    };
    assert_eq!(fixed(&rules), [""; 0], "a color outside the palettes");
    for name in rules.split("var(--").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(light.contains_key(name), "--{name} is no variable");
    }
    for name in light.keys() {
        assert!(rules.contains(&format!("var(--{name})")), "--{name} is not used");
        // The dark palette keeps the colors of lines on images, since images stay the same.
        assert!(dark.contains_key(name) != name.starts_with("photo-"), "--{name}");
    }
    assert!(dark.keys().all(|name| light.contains_key(name)));
    // No element of the page sets a color itself.
    let (study, further) = three();
    let page = page(&Report { further: &further, ..study.report() });
    let (_, body) = page.split_once("<body>").unwrap();
    for attribute in ["fill", "stroke", "style", "color", "bgcolor"] {
        assert_eq!(values(body, attribute), [""; 0], "{attribute}");
    }
}

/// Returns the contrast of two colors as defined by the Web Content Accessibility Guidelines 2.2.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |color: &str| {
        let digits = color.trim().trim_start_matches('#');
        let doubled: String = digits.chars().flat_map(|digit| [digit, digit]).collect();
        let digits = if digits.len() == 3 { doubled.as_str() } else { digits };
        let channel = |place: usize| {
            let share = f64::from(u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap()) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_and_lines_can_be_read_in_both_palettes() {
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
    let ([light, dark], _) = palettes();
    for (name, palette) in [("light", &light), ("dark", &dark)] {
        let check = |front: &str, back: &str, least: f64| {
            let found = contrast(palette[front], palette[back]);
            assert!(found >= least, "{name}: --{front} on --{back}: {found:.2}");
        };
        // Level AA: 4.5 for text, 3 for lines.
        for (front, back) in
            [("ink", "paper"), ("ink", "wash"), ("soft", "paper"), ("soft", "wash"), ("blue", "paper")]
        {
            check(front, back, 4.5);
        }
        ["own", "box", "corner", "shade-0", "shade-1", "shade-2", "shade-3"]
            .iter()
            .for_each(|back| check("ink", back, 4.5));
        // Below level AA: numbers in cells have 12 px on shades of one scale. 4 is the contrast of white on
        // the middle blue.
        ["shade-4", "shade-5", "shade-6"].iter().for_each(|back| check("on-shade", back, 4.0));
        for line in ["line", "gray", "vermilion", "own-0", "own-1", "own-2", "own-3", "own-4"] {
            check(line, "paper", 3.0);
        }
        ["sky", "vermilion"].iter().for_each(|bar| check("line", bar, 3.0));
    }
}
