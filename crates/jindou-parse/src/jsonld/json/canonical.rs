//! The canonical form of JSON (RFC 8785).

use super::number::Number;
use super::{Json, Kind};
use std::cmp::Ordering;
use std::fmt::Write;

/// An array or object that is being written, with the items that are still to be written.
enum Open<'a> {
    Array(super::Items<'a>),
    Object(std::vec::IntoIter<(&'a str, Json<'a>)>),
}

/// Appends the canonical form of a value. Returns the byte position of a number that has no canonical form.
pub(in crate::jsonld) fn canonical(json: Json<'_>, out: &mut String) -> Result<(), u64> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some(json);
    loop {
        if let Some(json) = next.take() {
            match json.kind() {
                Kind::Null => out.push_str("null"),
                Kind::True => out.push_str("true"),
                Kind::False => out.push_str("false"),
                Kind::Number => {
                    let number = Number::parse(json.number().unwrap_or_default());
                    out.push_str(&number.canonical().ok_or(json.at())?);
                }
                Kind::String => string(json.str().unwrap_or_default(), out),
                Kind::Array => {
                    out.push('[');
                    open.push(Open::Array(json.items()));
                }
                Kind::Object => {
                    out.push('{');
                    let members = json.members();
                    let mut members: Vec<_> = members
                        .map(|(key, value)| (key.str().unwrap_or_default(), value))
                        .collect();
                    members.sort_by(|a, b| by_utf16(a.0, b.0));
                    open.push(Open::Object(members.into_iter()));
                }
            }
        }
        // Text never ends with a bracket (strings end with a quote), so this tests whether an array or object was just
        // opened.
        let first = out.ends_with(['[', '{']);
        match open.last_mut() {
            None => return Ok(()),
            Some(Open::Array(items)) => match items.next() {
                Some(item) => {
                    if !first {
                        out.push(',');
                    }
                    next = Some(item);
                }
                None => {
                    out.push(']');
                    open.pop();
                }
            },
            Some(Open::Object(members)) => match members.next() {
                Some((key, value)) => {
                    if !first {
                        out.push(',');
                    }
                    string(key, out);
                    out.push(':');
                    next = Some(value);
                }
                None => {
                    out.push('}');
                    open.pop();
                }
            },
        }
    }
}

/// The order of UTF-16 code units, in which characters beyond U+FFFF come before those from U+E000 on.
fn by_utf16(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0C => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\u{byte:04x}")),
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}
