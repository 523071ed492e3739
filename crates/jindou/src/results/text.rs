//! TSV and CSV straight from canonical bytes: these are the formats of bulk export, so no term object is built.

use super::find::{Needle, first_of};
use jindou_model::term::{self, Parts};

/// Appends a term in Turtle's syntax.
pub(super) fn push_tsv_term(cell: &[u8], out: &mut Vec<u8>) {
    match cell.first() {
        // The two common tags need no UTF-8 check: their bytes are copied unchanged.
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

/// Appends a term's plain value.
pub(super) fn push_csv_term(cell: &[u8], out: &mut Vec<u8>) {
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
        Some(Parts::Triple(parts)) => {
            let mut text = Vec::new();
            for (i, p) in parts.into_iter().enumerate() {
                if i > 0 {
                    text.push(b' ');
                }
                push_csv_term(p, &mut text);
            }
            push_csv_value(&text, out);
        }
        Some(Parts::Iri(_) | Parts::Blank(_)) | None => {}
    }
}

/// Bytes that need quotes in CSV.
const CSV: [Needle; 4] = [
    Needle::one(b'"'),
    Needle::one(b','),
    Needle::one(b'\n'),
    Needle::one(b'\r'),
];

fn push_csv_value(text: &[u8], out: &mut Vec<u8>) {
    if first_of(text, 0, CSV).is_none() {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &b in text {
        if b == b'"' {
            out.push(b'"');
        }
        out.push(b);
    }
    out.push(b'"');
}

/// Bytes that are escaped in TSV.
const TSV: [Needle; 5] = [
    Needle::one(b'\t'),
    Needle::one(b'\n'),
    Needle::one(b'\r'),
    Needle::one(b'"'),
    Needle::one(b'\\'),
];

fn push_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if first_of(text, 0, TSV).is_some() {
        for &b in text {
            match b {
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b => out.push(b),
            }
        }
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'"');
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// True for Turtle's INTEGER.
fn is_integer(text: &str) -> bool {
    let t = unsigned(text);
    !t.is_empty() && digits(t)
}

/// True for Turtle's DECIMAL.
fn is_decimal(text: &str) -> bool {
    unsigned(text)
        .split_once('.')
        .is_some_and(|(a, b)| digits(a) && !b.is_empty() && digits(b))
}

/// True for Turtle's DOUBLE.
fn is_double(text: &str) -> bool {
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
