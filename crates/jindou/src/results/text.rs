//! TSV and CSV rows, written from canonical bytes without building terms, since these formats are used for bulk export.

use super::find::{Needle, first_of};
use super::out::{TextOut, has_special, push_escaped};
use jindou_model::term::{self, Parts};

/// Appends a term in Turtle's syntax.
pub(super) fn push_tsv_term<T: TextOut>(cell: &[u8], out: &mut T) {
    match cell.first() {
        // The two most frequent kinds of terms are copied unchanged, without checking that they are UTF-8.
        Some(&term::IRI) => {
            out.extend_from_slice(cell);
            out.push(b'>');
            return;
        }
        Some(&term::BLANK) => {
            out.extend_from_slice(cell);
            return;
        }
        Some(&term::STRING) => {
            push_quoted(&cell[1..], out);
            return;
        }
        _ => {}
    }
    match term::parts(cell) {
        Some(Parts::Lang(text, tag)) => {
            push_quoted(text.as_bytes(), out);
            out.push(b'@');
            out.extend_from_slice(tag.as_bytes());
        }
        Some(Parts::Coded(text, code)) => {
            let plain = match code {
                0x80 => is_integer(text),
                0x81 => is_decimal(text),
                0x82 => is_double(text),
                term::BOOLEAN_TAG => text == "true" || text == "false",
                _ => false,
            };
            if plain {
                out.extend_from_slice(text.as_bytes());
            } else {
                push_quoted(text.as_bytes(), out);
                out.extend_from_slice(b"^^<");
                out.extend_from_slice(term::datatype_iri(code).unwrap_or_default().as_bytes());
                out.push(b'>');
            }
        }
        Some(Parts::Typed(text, datatype)) => {
            push_quoted(text.as_bytes(), out);
            out.extend_from_slice(b"^^<");
            out.extend_from_slice(datatype.as_bytes());
            out.push(b'>');
        }
        Some(Parts::Triple(parts)) => {
            out.extend_from_slice(b"<<( ");
            for p in parts {
                push_tsv_term(p, out);
                out.push(b' ');
            }
            out.extend_from_slice(b")>>");
        }
        Some(Parts::Iri(_) | Parts::Blank(_) | Parts::String(_)) | None => {}
    }
}

/// Appends a term's value as CSV has it: without datatype, language tag or other syntax.
pub(super) fn push_csv_term<T: TextOut>(cell: &[u8], out: &mut T) {
    match cell.first() {
        Some(&term::IRI) => return out.extend_from_slice(&cell[1..]),
        Some(&term::BLANK) => return out.extend_from_slice(cell),
        Some(&term::STRING) => return push_csv_value(&cell[1..], out),
        _ => {}
    }
    match term::parts(cell) {
        Some(
            Parts::Lang(text, _)
            | Parts::Coded(text, _)
            | Parts::Typed(text, _)
            | Parts::String(text),
        ) => push_csv_value(text.as_bytes(), out),
        Some(Parts::Triple(parts)) => push_csv_triple(parts, out),
        Some(Parts::Iri(_) | Parts::Blank(_)) | None => {}
    }
}

/// Bytes because of which a CSV value must be quoted.
const CSV: [Needle; 4] = [
    Needle::one(b'"'),
    Needle::one(b','),
    Needle::one(b'\n'),
    Needle::one(b'\r'),
];

fn push_csv_value<T: TextOut>(text: &[u8], out: &mut T) {
    if !has_special(text, |block| first_of(block, 0, CSV), out) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    push_doubled(text, out);
    out.push(b'"');
}

/// Appends text with each quote doubled.
fn push_doubled<T: TextOut>(text: &[u8], out: &mut T) {
    push_escaped(
        text,
        |block| first_of(block, 0, [Needle::one(b'"')]),
        |rest| (rest[0] == b'"').then_some((1, b"\"\"")),
        out,
    );
}

/// Appends a triple term as one CSV value: its parts separated by spaces.
fn push_csv_triple<T: TextOut>(parts: [&[u8]; 3], out: &mut T) {
    let push_parts = |out: &mut Doubled<'_>| {
        for (i, part) in parts.into_iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            push_csv_term(part, out);
        }
    };
    let quoted = parts.iter().any(|part| needs_quotes(part, out));
    if quoted {
        out.push(b'"');
    }
    push_parts(&mut Doubled { quoted, out });
    if quoted {
        out.push(b'"');
    }
}

/// True if a term's text has a byte because of which it must be quoted; for a triple term, if any of its parts has one.
fn needs_quotes<T: TextOut>(term: &[u8], out: &mut T) -> bool {
    let mut left = vec![term];
    while let Some(term) = left.pop() {
        let text = match term::parts(term) {
            Some(Parts::Triple(parts)) => {
                left.extend(parts);
                continue;
            }
            Some(
                Parts::Lang(text, _)
                | Parts::Coded(text, _)
                | Parts::Typed(text, _)
                | Parts::String(text)
                | Parts::Iri(text)
                | Parts::Blank(text),
            ) => text,
            None => "",
        };
        if has_special(text.as_bytes(), |block| first_of(block, 0, CSV), out) {
            return true;
        }
    }
    false
}

/// Passes text on; inside quotes, with each quote doubled.
struct Doubled<'o> {
    quoted: bool,
    out: &'o mut dyn TextOut,
}

impl TextOut for Doubled<'_> {
    fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    fn extend_from_slice(&mut self, text: &[u8]) {
        if !self.quoted {
            return self.out.extend_from_slice(text);
        }
        for (i, part) in text.split(|b| *b == b'"').enumerate() {
            if i > 0 {
                self.out.extend_from_slice(b"\"\"");
            }
            self.out.extend_from_slice(part);
        }
    }

    fn is_over(&mut self, bytes: usize) -> bool {
        self.out.is_over(bytes)
    }
}

/// Bytes that are escaped in TSV.
const TSV: [Needle; 5] = [
    Needle::one(b'\t'),
    Needle::one(b'\n'),
    Needle::one(b'\r'),
    Needle::one(b'"'),
    Needle::one(b'\\'),
];

fn push_quoted<T: TextOut>(text: &[u8], out: &mut T) {
    out.push(b'"');
    push_escaped(
        text,
        |block| first_of(block, 0, TSV),
        |rest| {
            let escaped = match rest[0] {
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                _ => return None,
            };
            Some((1, escaped))
        },
        out,
    );
    out.push(b'"');
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// True for Turtle's INTEGER.
pub(super) fn is_integer(text: &str) -> bool {
    let t = unsigned(text);
    !t.is_empty() && digits(t)
}

/// True for Turtle's DECIMAL.
pub(super) fn is_decimal(text: &str) -> bool {
    unsigned(text)
        .split_once('.')
        .is_some_and(|(a, b)| digits(a) && !b.is_empty() && digits(b))
}

/// True for Turtle's DOUBLE.
pub(super) fn is_double(text: &str) -> bool {
    let Some((mantissa, exponent)) = unsigned(text).split_once(['e', 'E']) else {
        return false;
    };
    let (a, b) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    is_integer(exponent) && digits(a) && digits(b) && !(a.is_empty() && b.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::RowText;
    use super::*;
    use oxrdf::vocab::xsd;
    use oxrdf::{BlankNode, Literal, NamedNode, Term, Variable};
    use proptest::prelude::*;
    use sparesults::{QueryResultsFormat, QueryResultsSerializer};

    fn reference(format: QueryResultsFormat, row: &[Option<Term>]) -> Vec<u8> {
        let vars: Vec<Variable> = (0..row.len())
            .map(|i| Variable::new_unchecked(format!("v{i}")))
            .collect();
        let mut w = QueryResultsSerializer::from_format(format)
            .serialize_solutions_to_writer(Vec::new(), vars.clone())
            .unwrap();
        let head = w.finish().unwrap().len();
        w = QueryResultsSerializer::from_format(format)
            .serialize_solutions_to_writer(Vec::new(), vars.clone())
            .unwrap();
        w.serialize(
            vars.iter()
                .zip(row)
                .filter_map(|(v, t)| Some((v.as_ref(), t.as_ref()?.as_ref()))),
        )
        .unwrap();
        w.finish().unwrap()[head..].to_vec()
    }

    fn any_term() -> impl Strategy<Value = Option<Term>> {
        let text = "[a-z0-9.+eE\\-\t\n\r\",\\\\ é]{0,8}";
        prop_oneof![
            Just(None),
            "[a-z]{1,5}"
                .prop_map(|s| Some(NamedNode::new_unchecked(format!("http://e/{s}")).into())),
            "[a-z]{1,5}".prop_map(|s| Some(BlankNode::new_unchecked(s).into())),
            text.prop_map(|s| Some(Literal::new_simple_literal(s).into())),
            text.prop_map(|s| Some(Literal::new_language_tagged_literal_unchecked(s, "en").into())),
            (text, 0usize..5).prop_map(|(s, i)| {
                let dt = [
                    xsd::INTEGER,
                    xsd::DECIMAL,
                    xsd::DOUBLE,
                    xsd::BOOLEAN,
                    xsd::DATE,
                ][i];
                Some(Literal::new_typed_literal(s, dt).into())
            }),
            "[0-9]{0,3}[.]?[0-9]{0,2}"
                .prop_map(|s| { Some(Literal::new_typed_literal(s, xsd::DECIMAL).into()) }),
        ]
    }

    proptest! {
        #[test]
        fn rows_equal_those_of_sparesults(row in prop::collection::vec(any_term(), 2..4)) {
            let cells: Vec<_> = row.iter().map(|t| t.as_ref().map(term::encode)).collect();
            let mut out = Vec::new();
            RowText::Tsv.push(cells.iter().map(|c| c.as_deref()), &mut out).unwrap();
            prop_assert_eq!(
                String::from_utf8_lossy(&out).into_owned(),
                String::from_utf8_lossy(&reference(QueryResultsFormat::Tsv, &row)).into_owned());
            let mut out = Vec::new();
            RowText::Csv.push(cells.iter().map(|c| c.as_deref()), &mut out).unwrap();
            prop_assert_eq!(
                String::from_utf8_lossy(&out).into_owned(),
                String::from_utf8_lossy(&reference(QueryResultsFormat::Csv, &row)).into_owned());
        }
    }
}
