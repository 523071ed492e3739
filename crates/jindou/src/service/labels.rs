//! Labels of blank nodes in the answers of endpoints. Labels that SPARQL does not allow, such as Virtuoso's
//! `nodeID://b10001`, are replaced.

use oxrdf::BlankNode;

/// The prefix of Virtuoso's labels, and its replacement.
const VIRTUOSO: [&str; 2] = ["nodeID://", "nodeID."];
/// The prefix of other replacement labels.
const OTHERWISE: &str = "x.";

/// A valid label for this text; different texts get different labels. A valid label stays unchanged, unless it begins
/// like a replacement.
pub(crate) fn allowed(text: &str) -> String {
    let taken = [VIRTUOSO[1], OTHERWISE];
    let is_valid = |label: &str| BlankNode::new(label).is_ok();
    // The empty label stays empty, and the parser reports that the label is missing.
    if text.is_empty() {
        return String::new();
    }
    if is_valid(text) && !taken.iter().any(|t| text.starts_with(t)) {
        return text.to_owned();
    }
    if let Some(rest) = text.strip_prefix(VIRTUOSO[0]) {
        let label = format!("{}{rest}", VIRTUOSO[1]);
        if is_valid(&label) {
            return label;
        }
    }
    let mut label = OTHERWISE.to_owned();
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'_' | b'a'..=b'z' => label.push(byte.into()),
            // Since a dot is always followed by two digits, the label does not end with a dot, which would be invalid.
            _ => label.push_str(&format!(".{byte:02x}")),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn different_labels_stay_different_and_become_valid() {
        let all = [
            "nodeID://b1",
            "nodeID.b1",
            "nodeID.2f2fb1",
            "nodeID:/b1",
            "nodeID://b 1",
            "b1",
            "x.b1",
            "x.x.2eb1",
            "x..b1",
            "a.",
            "a.2e",
            ".",
            "",
            "a:b",
            "a b",
            "0",
            "é",
            "x.é",
            "é.",
            "-",
            "\u{0}",
            "\\u00e9",
            "nodeID://",
            "nodeID://.",
            "nodeID.",
        ];
        let written: BTreeSet<String> = all.iter().map(|l| allowed(l)).collect();
        assert_eq!(written.len(), all.len(), "{written:?}");
        for label in &written {
            assert!(BlankNode::new(label).is_ok() || label.is_empty(), "{label}");
        }
        assert_eq!(allowed("b1"), "b1");
        assert_eq!(allowed("é"), "é");
    }
}
