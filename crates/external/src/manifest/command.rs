//! Commands of manifests: their placeholders, the formats of their files, and the images of their containers.
//!
//! `{NAME}` is replaced by the path of a port's file, the text of an argument or that of a constant, inside one word of the
//! command. `{folder}` is the working folder, which a container has to mount. `{seed}` exists for seeded operations. `{{` and
//! `}}` are braces. Nothing is passed to a shell.

use super::file_format::FileFormat;
use super::written::WrittenOperation;
use super::{Determinism, ExternalArgument, ExternalPort, Reader};
use pleach_workflow::toml_fields::FieldError;
use std::collections::BTreeMap;

/// Placeholder of the working folder.
const FOLDER: &str = "folder";

/// Placeholder of the seed.
const SEED: &str = "seed";

/// Programs that run containers. The image determines the results, so it has to be pinned by its digest.
const CONTAINER_PROGRAMS: [&str; 2] = ["docker", "podman"];

/// Mark of a digest in the reference of an image.
const IMAGE_DIGEST: &str = "@sha256:";

/// Hex digits of SHA-256.
const IMAGE_DIGITS: usize = 64;

/// A part of a word. Numbers are places in the lists of the declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Path of an input's file.
    Input(usize),
    /// Path of an output's file.
    Output(usize),
    /// Text of an argument.
    Argument(usize),
    /// Path of the working folder.
    Folder,
    Seed,
}

/// A checked command.
#[derive(Clone, Debug)]
pub struct CommandTemplate {
    /// Name of a program in `PATH`, or a path relative to the manifest's folder.
    pub program: String,
    /// The program runs containers.
    pub is_container: bool,
    /// The words after the program.
    pub(crate) words: Vec<Vec<Piece>>,
    /// Formats of the inputs' files.
    pub input_formats: Vec<FileFormat>,
    /// Formats of the outputs' files.
    pub output_formats: Vec<FileFormat>,
}

/// Ports and arguments of the operation whose command is read.
pub(super) struct Interface<'a> {
    pub(super) inputs: &'a [ExternalPort],
    pub(super) outputs: &'a [ExternalPort],
    pub(super) arguments: &'a [ExternalArgument],
    pub(super) constants: &'a BTreeMap<String, serde_json::Value>,
}

/// Reads the command of an operation.
pub(super) fn read(
    reader: &Reader<'_>,
    at: &str,
    written: &WrittenOperation,
    interface: &Interface<'_>,
) -> Result<CommandTemplate, FieldError> {
    let field = format!("{at}.command");
    let Some((program, words)) = written.command.split_first() else {
        return reader.fail(&field, "an empty list", "program and arguments are required");
    };
    let known = known(reader, at, written.determinism, interface)?;
    let pieces = |word: &String| {
        split(word, &known).or_else(|mistake| reader.fail(&field, format!("\"{word}\""), &mistake))
    };
    let Some(program) = plain(&pieces(program)?) else {
        return reader.fail(&field, program, "a program without placeholders is required first");
    };
    let words: Vec<Vec<Piece>> = words.iter().map(pieces).collect::<Result<_, _>>()?;
    for (name, piece) in &known {
        let is_required = matches!(piece, Piece::Input(_) | Piece::Output(_) | Piece::Seed);
        if is_required && !words.iter().flatten().any(|used| used == piece) {
            let value = format!("a command without {{{name}}}");
            return reader.fail(&field, value, "a placeholder of each input and output is required");
        }
    }
    let is_container = CONTAINER_PROGRAMS.contains(&program.rsplit('/').next().unwrap_or_default());
    if is_container && !written.command.iter().any(|word| is_pinned(word)) {
        let allowed = "an image IMAGE@sha256:DIGEST with the 64 hex digits of its digest is required";
        return reader.fail(&field, format!("{program} without a pinned image"), allowed);
    }
    let formats = |key: &str, ports: &[ExternalPort]| {
        let each = ports.iter().enumerate();
        each.map(|(index, port)| format(reader, &format!("{at}.{key}[{index}]"), port))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(CommandTemplate {
        program,
        is_container,
        words,
        input_formats: formats("inputs", interface.inputs)?,
        output_formats: formats("outputs", interface.outputs)?,
    })
}

/// Returns the placeholders with their meanings.
fn known(
    reader: &Reader<'_>,
    at: &str,
    determinism: Determinism,
    interface: &Interface<'_>,
) -> Result<BTreeMap<String, Piece>, FieldError> {
    let mut known = BTreeMap::from([(FOLDER.to_owned(), Piece::Folder)]);
    if determinism == Determinism::Seeded {
        known.insert(SEED.to_owned(), Piece::Seed);
    }
    let inputs = interface.inputs.iter().enumerate().map(|(i, port)| (port.port.name, Piece::Input(i)));
    let outputs = interface.outputs.iter().enumerate().map(|(i, port)| (port.port.name, Piece::Output(i)));
    let arguments = interface.arguments.iter().enumerate();
    let arguments = arguments.map(|(i, argument)| (argument.argument.name, Piece::Argument(i)));
    let mut named: Vec<(&str, Piece)> = inputs.chain(outputs).chain(arguments).collect();
    for (name, value) in interface.constants {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                let allowed = "numbers, texts and booleans are allowed in commands";
                return reader.fail(&format!("{at}.constants.{name}"), value, allowed);
            }
            value => value.to_string(),
        };
        named.push((name, Piece::Text(text)));
    }
    for (name, piece) in named {
        if known.insert(name.to_owned(), piece).is_some() {
            let value = format!("the name \"{name}\" twice");
            return reader.fail(
                at,
                value,
                "ports, arguments and constants of a command have different names",
            );
        }
    }
    Ok(known)
}

/// Splits a word at its placeholders. Returns the mistake with the allowed values.
fn split(word: &str, known: &BTreeMap<String, Piece>) -> Result<Vec<Piece>, String> {
    let lone = || "a brace is written twice: {{ or }}".to_owned();
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let brace = &rest[at..=at];
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(lone());
        }
        let (name, after) = rest.split_once('}').ok_or_else(lone)?;
        rest = after;
        match known.get(name) {
            Some(Piece::Text(constant)) => text.push_str(constant),
            Some(piece) => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(piece.clone());
            }
            None => {
                let names: Vec<String> = known.keys().map(|name| format!("{{{name}}}")).collect();
                return Err(format!("the placeholders {} are known", names.join(", ")));
            }
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Ok(pieces)
}

/// Returns the text of a word without placeholders. `None` for an empty one as well.
fn plain(pieces: &[Piece]) -> Option<String> {
    match pieces {
        [Piece::Text(text)] => Some(text.clone()),
        _ => None,
    }
}

/// Returns whether a word ends with the digest of an image.
fn is_pinned(word: &str) -> bool {
    word.rsplit_once(IMAGE_DIGEST).is_some_and(|(image, digest)| {
        !image.is_empty() && digest.len() == IMAGE_DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Returns the format of a port's file.
fn format(reader: &Reader<'_>, at: &str, port: &ExternalPort) -> Result<FileFormat, FieldError> {
    let element = port.port.element;
    let allowed = FileFormat::of(element);
    let Some(default) = allowed.first() else {
        let elements: Vec<&str> = FileFormat::elements().map(pleach_regions::ElementType::name).collect();
        let text = format!("{} are allowed for commands", elements.join(", "));
        return reader.fail(&format!("{at}.type"), element, &text);
    };
    let format = port.format.unwrap_or(*default);
    if !allowed.contains(&format) {
        let names: Vec<&str> = allowed.iter().map(|format| format.extension()).collect();
        let text = format!("{} is allowed for {element}", names.join(" or "));
        return reader.fail(&format!("{at}.format"), format.extension(), &text);
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(word: &str) -> Result<Vec<Piece>, String> {
        let known = [
            ("tile", Piece::Input(0)),
            ("level", Piece::Argument(0)),
            ("mode", Piece::Text("{fast} mode".to_owned())),
        ];
        split(word, &known.map(|(name, piece)| (name.to_owned(), piece)).into())
    }

    #[test]
    fn words_are_split_at_placeholders() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(pieces("{tile}"), Ok(vec![Piece::Input(0)]));
        let wanted = vec![text("a="), Piece::Argument(0), text("%"), Piece::Input(0)];
        assert_eq!(pieces("a={level}%{tile}"), Ok(wanted));
        assert_eq!(pieces("{{tile}}}}{{é"), Ok(vec![text("{tile}}{é")]));
        // A constant is no template.
        assert_eq!(pieces("--{mode}"), Ok(vec![text("--{fast} mode")]));
        assert_eq!(pieces("{{{level}}}"), Ok(vec![text("{"), Piece::Argument(0), text("}")]));
        assert_eq!(pieces(""), Ok(Vec::new()));
    }

    #[test]
    fn mistakes_have_the_known_names() {
        let known = "the placeholders {level}, {mode}, {tile} are known";
        for word in ["{til}", "{}", "{ tile}", "{a{tile}"] {
            assert_eq!(pieces(word), Err(known.to_owned()), "{word}");
        }
        for word in ["{tile", "a}", "{", "{tile}}"] {
            assert_eq!(pieces(word), Err("a brace is written twice: {{ or }}".to_owned()), "{word}");
        }
    }

    #[test]
    fn only_a_complete_digest_pins_an_image() {
        let digest = "0123456789abcdef".repeat(4);
        assert!(is_pinned(&format!("ghcr.io/lab/tool:1@sha256:{digest}")));
        for word in ["tool", "tool:1", "tool@sha256:", "tool@sha256:0123"] {
            assert!(!is_pinned(word), "{word}");
        }
        assert!(!is_pinned(&format!("@sha256:{digest}")) && !is_pinned(&format!("tool@sha256:{digest}0")));
        assert!(!is_pinned(&format!("tool@sha256:g{}", &digest[1..])));
    }
}
