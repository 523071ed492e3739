//! Datatypes derived from `xsd:string` (XSD 1.1 Part 2 §3.4), by the patterns and facets that define them.

use regex::Regex;

/// The content of a regular expression's character class for NameStartChar of XML 1.0, fifth edition, without the
/// colon.
const START: &str = r"A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\u{2FF}\u{370}-\u{37D}\u{37F}-\u{1FFF}\u{200C}-\u{200D}\u{2070}-\u{218F}\u{2C00}-\u{2FEF}\u{3001}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFFD}\u{10000}-\u{EFFFF}";
/// The characters that NameChar has in addition to NameStartChar.
const MORE: &str = r"\-.0-9\xB7\u{300}-\u{36F}\u{203F}-\u{2040}";

/// True if a text is in the lexical space of the datatype; `None` for datatypes not derived from `xsd:string`.
pub(super) fn is_lexical(local: &str, text: &str) -> Option<bool> {
    let pattern = match local {
        "normalizedString" => r"[^\t\n\r]*".to_owned(),
        "token" => r"([^\t\n\r ]+( [^\t\n\r ]+)*)?".to_owned(),
        "language" => "[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*".to_owned(),
        "NMTOKEN" => format!("[:{START}{MORE}]+"),
        "Name" => format!("[:{START}][:{START}{MORE}]*"),
        "NCName" | "ID" | "IDREF" | "ENTITY" => format!("[{START}][{START}{MORE}]*"),
        _ => return None,
    };
    let whole = Regex::new(&format!(r"\A(?:{pattern})\z")).expect("a pattern");
    Some(whole.is_match(text))
}

/// A text after the white space processing of the datatype.
pub(super) fn processed(local: &str, text: &str) -> String {
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    if local == "normalizedString" {
        return text.replace(space, " ");
    }
    let words: Vec<&str> = text.split(space).filter(|w| !w.is_empty()).collect();
    words.join(" ")
}
