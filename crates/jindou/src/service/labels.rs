//! Labels of blank nodes in the answers of endpoints. Some endpoints send labels that SPARQL does not allow, such as
//! `nodeID://b10001` from Virtuoso. They are replaced; in JSON this happens before the parser sees them, since it would
//! refuse them.

use super::wide::Width;
use oxrdf::BlankNode;
use sparesults::QueryResultsFormat;
use std::io::{self, Read};

/// Bytes that are read from the body at a time.
const PIECE: usize = 32 << 10;
/// Longest text that is considered as a label, in bytes; longer ones are left to the parser.
const LONGEST: usize = 4 << 10;
/// The prefix of Virtuoso's labels, and its replacement.
const VIRTUOSO: [&str; 2] = ["nodeID://", "nodeID."];
/// The prefix of a label that was replaced.
const OTHERWISE: &str = "x.";

/// A body in which every label of a blank node is one that SPARQL allows. Valid labels stay as they are, and different
/// labels stay different. JSON is scanned as it arrives, in constant memory; other formats pass unchanged. Reading
/// fails with a [`WideAnswer`](super::WideAnswer) if there are more variables than the limit.
pub struct Labels<R> {
    inner: R,
    width: Width,
    scan: LabelScan,
    piece: Vec<u8>,
    out: Vec<u8>,
    at: usize,
    ended: bool,
}

enum LabelScan {
    Json(LabelPosition),
    Nothing,
}

impl<R: Read> Labels<R> {
    /// The body of an answer in this format.
    pub fn of(format: QueryResultsFormat, inner: R) -> Self {
        Self {
            inner,
            width: Width::for_format(format),
            scan: match format {
                QueryResultsFormat::Json => LabelScan::Json(LabelPosition::default()),
                _ => LabelScan::Nothing,
            },
            piece: Vec::new(),
            out: Vec::new(),
            at: 0,
            ended: false,
        }
    }
}

impl<R: Read> Read for Labels<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if matches!(self.scan, LabelScan::Nothing) {
            let n = self.inner.read(to)?;
            let read = to.get(..n).unwrap_or_default();
            self.width.pass(read).map_err(io::Error::other)?;
            if n == 0 && !to.is_empty() {
                self.width.end().map_err(io::Error::other)?;
            }
            return Ok(n);
        }
        while self.at == self.out.len() && !self.ended {
            self.out.clear();
            self.at = 0;
            self.piece.resize(PIECE, 0);
            let n = self.inner.read(&mut self.piece)?;
            self.ended = n == 0;
            let piece = self.piece.get(..n).unwrap_or_default();
            self.width.pass(piece).map_err(io::Error::other)?;
            match &mut self.scan {
                LabelScan::Json(json) if self.ended => json.end(&mut self.out),
                LabelScan::Json(json) => piece.iter().for_each(|b| json.byte(*b, &mut self.out)),
                LabelScan::Nothing => {}
            }
        }
        let rest = self.out.get(self.at..).unwrap_or_default();
        let n = rest.len().min(to.len());
        to[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        Ok(n)
    }
}

/// The position in a JSON document, in as much detail as is needed to recognise the `value` of an object whose `type`
/// came before and is `bnode`.
#[derive(Default)]
struct LabelPosition {
    place: InJson,
    /// The current string, as far as it is short and may be relevant.
    string: Vec<u8>,
    /// The last string that ended, while only its colon can follow.
    key: Key,
    /// True if a colon came after the key.
    has_key: bool,
    /// True if the current object has said that it is a blank node.
    blank: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum InJson {
    #[default]
    Between,
    String,
    /// After a backslash in a string.
    Escape,
    /// In the label of a blank node, which is held back.
    Label,
    LabelEscape,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Key {
    Type,
    Value,
    #[default]
    Other,
}

impl LabelPosition {
    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.place {
            InJson::Between => {
                out.push(byte);
                match byte {
                    b'"' => {
                        self.string.clear();
                        self.place = match self.has_key && self.blank && self.key == Key::Value {
                            true => InJson::Label,
                            false => InJson::String,
                        };
                    }
                    b':' => self.has_key = true,
                    b'{' | b'}' => (self.has_key, self.blank) = (false, false),
                    b',' | b'[' | b']' => self.has_key = false,
                    _ => {}
                }
            }
            InJson::String => {
                out.push(byte);
                match byte {
                    b'"' => self.string_ended(),
                    b'\\' => self.place = InJson::Escape,
                    // Longer strings cannot be one of the three words.
                    _ if self.string.len() < 8 => self.string.push(byte),
                    _ => {}
                }
            }
            InJson::Escape => {
                out.push(byte);
                // Nor can a string with an escape.
                self.string.resize(8, b'\\');
                self.place = InJson::String;
            }
            InJson::Label | InJson::LabelEscape if self.string.len() > LONGEST => {
                out.append(&mut self.string);
                let was = std::mem::replace(&mut self.place, InJson::String);
                if was == InJson::LabelEscape {
                    self.place = InJson::Escape;
                }
                self.byte(byte, out);
            }
            InJson::Label if byte == b'"' => {
                self.label_ended(out);
                out.push(b'"');
            }
            InJson::Label => {
                self.string.push(byte);
                if byte == b'\\' {
                    self.place = InJson::LabelEscape;
                }
            }
            InJson::LabelEscape => {
                self.string.push(byte);
                self.place = InJson::Label;
            }
        }
    }

    fn string_ended(&mut self) {
        self.place = InJson::Between;
        if self.has_key {
            if self.key == Key::Type {
                self.blank = self.string == b"bnode";
            }
        } else {
            self.key = match self.string.as_slice() {
                b"type" => Key::Type,
                b"value" => Key::Value,
                _ => Key::Other,
            };
        }
    }

    fn label_ended(&mut self, out: &mut Vec<u8>) {
        self.place = InJson::Between;
        // Some writers escape slashes. Labels with other escapes are not valid and are spelt out as they are.
        let text = String::from_utf8_lossy(&self.string).replace("\\/", "/");
        out.extend_from_slice(allowed(&text).as_bytes());
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if matches!(self.place, InJson::Label | InJson::LabelEscape) {
            out.append(&mut self.string);
        }
    }
}

/// A label that SPARQL allows; different texts get different labels. Valid labels stay as they are, unless they look
/// like a replaced one.
pub(crate) fn allowed(text: &str) -> String {
    let taken = [VIRTUOSO[1], OTHERWISE];
    let is_valid = |label: &str| BlankNode::new(label).is_ok();
    // The parser reports that it is missing.
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
            // A valid label does not end with a dot, and here a dot is always followed by two digits.
            _ => label.push_str(&format!(".{byte:02x}")),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::Term;
    use sparesults::{QueryResultsParser, ReaderQueryResultsParserOutput};
    use std::collections::BTreeSet;

    /// Reads a few bytes at a time.
    struct Slow<'t>(&'t [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(self.1).min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn rewritten(format: QueryResultsFormat, text: &str, at_once: usize) -> String {
        let mut out = String::new();
        let mut labels = Labels::of(format, Slow(text.as_bytes(), at_once));
        labels.read_to_string(&mut out).unwrap();
        out
    }

    fn terms(format: QueryResultsFormat, text: &str) -> Vec<Option<Term>> {
        let body = Labels::of(format, text.as_bytes());
        let parser = QueryResultsParser::from_format(format)
            .for_reader(body)
            .unwrap();
        let ReaderQueryResultsParserOutput::Solutions(rows) = parser else {
            panic!("no rows")
        };
        let values = |row: sparesults::QuerySolution| row.values().to_vec();
        rows.flat_map(|row| values(row.unwrap())).collect()
    }

    fn blank(label: &str) -> Option<Term> {
        Some(BlankNode::new(label).unwrap().into())
    }

    fn text(value: &str) -> Option<Term> {
        Some(oxrdf::Literal::new_simple_literal(value).into())
    }

    #[test]
    fn virtuosos_labels_become_labels() {
        let json = r#"{ "head": { "link": [], "vars": ["type", "value"] }, "results": { "distinct": false, "ordered": true, "bindings": [
            { "type": { "type": "bnode", "value": "nodeID://b10001" }	, "value": { "type": "literal", "value": "nodeID://b10001" }},
            { "type": { "type": "bnode", "value": "nodeID:\/\/b10001" }, "value": { "type": "literal", "value": "\"type\": \"bnode\", \"value\": \"a:/\\" }},
            { "type": { "type": "bnode", "value": "b10001" }, "value": { "type": "bnode", "value": "0" }} ] } }"#;
        let expected = [
            blank("nodeID.b10001"),
            text("nodeID://b10001"),
            blank("nodeID.b10001"),
            text("\"type\": \"bnode\", \"value\": \"a:/\\"),
            blank("b10001"),
            blank("0"),
        ];
        assert_eq!(terms(QueryResultsFormat::Json, json), expected);
    }

    #[test]
    fn what_is_no_label_stays_byte_for_byte() {
        for (format, text) in [
            (
                QueryResultsFormat::Json,
                r#"{"head":{"vars":["bnode","type"]},"results":{"bindings":[{"bnode":{"value":"a b","type":"literal"},"type":{"type":"bnode","value":"ok"}},
                {"bnode":{"type":"uri","value":"nodeID://x"},"type":{"type":"literal","datatype":"bnode","value":"x y\\\" \u00e9"}}]},"boolean":true,"x":[1,"type","bnode"]}"#,
            ),
            (
                QueryResultsFormat::Json,
                r#"{"a":{"type":"bnode","x":{"value":"a b"},"value":"cut off in a la bel \"#,
            ),
            (QueryResultsFormat::Tsv, "?a\n_:nodeID://b1\n"),
        ] {
            for at_once in [1, 3, 7, 1000] {
                assert_eq!(rewritten(format, text, at_once), text, "{at_once}");
            }
        }
        // Such a label is too long: it is handed on before its end was seen.
        let long = format!(
            r#"{{"type":"bnode","value":"{}\" x","type":"bnode","value":"a b"}}"#,
            "ab/".repeat(LONGEST)
        );
        let expected = long.replace("\"a b\"", "\"x.a.20b\"");
        assert_eq!(rewritten(QueryResultsFormat::Json, &long, 11), expected);
    }

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
