//! JSON and XML rows, written from canonical bytes without building terms.

use super::find::{Needle, first_of};
use super::out::{BLOCK, TextOut, controls, push_escaped};
use jindou_model::term::{self, Parts};
use jindou_model::{Error, Result};

const XSD: &[u8] = b"http://www.w3.org/2001/XMLSchema#";

/// The JSON text before each variable's term, which is the same in every row. Computed once per answer.
pub(super) fn json_keys(variables: &[String]) -> Vec<Vec<u8>> {
    let key = |v: &String| {
        let mut out = Vec::new();
        push_json_string(v.as_bytes(), &mut out);
        out.push(b':');
        out
    };
    variables.iter().map(key).collect()
}

/// The XML text before each variable's term.
pub(super) fn xml_keys(variables: &[String]) -> Vec<Vec<u8>> {
    let key = |v: &String| {
        let mut out = b"<binding name=\"".to_vec();
        push_xml_name(v, &mut out);
        out.extend_from_slice(b"\">");
        out
    };
    variables.iter().map(key).collect()
}

/// Appends a term as a JSON object.
pub(super) fn push_json_term<T: TextOut>(cell: &[u8], out: &mut T) {
    match cell.first() {
        Some(&term::IRI) => return push_json_value(b"uri", &cell[1..], out),
        Some(&term::BLANK) => return push_json_value(b"bnode", cell.get(2..).unwrap_or(&[]), out),
        Some(&term::STRING) => return push_json_value(b"literal", &cell[1..], out),
        _ => {}
    }
    match term::parts(cell) {
        Some(Parts::Lang(text, tag)) => {
            open_json(b"literal", text.as_bytes(), out);
            let (tag, direction) = match tag.split_once("--") {
                Some((tag, direction)) => (tag, Some(direction)),
                None => (tag, None),
            };
            out.extend_from_slice(b",\"xml:lang\":");
            push_json_string(tag.as_bytes(), out);
            if let Some(direction) = direction {
                out.extend_from_slice(b",\"its:dir\":");
                push_json_string(direction.as_bytes(), out);
            }
            out.push(b'}');
        }
        Some(Parts::Coded(text, code)) => {
            open_json(b"literal", text.as_bytes(), out);
            out.extend_from_slice(b",\"datatype\":\"");
            push_coded_datatype(code, out);
            out.extend_from_slice(b"\"}");
        }
        Some(Parts::Typed(text, datatype)) => {
            open_json(b"literal", text.as_bytes(), out);
            out.extend_from_slice(b",\"datatype\":");
            push_json_string(datatype.as_bytes(), out);
            out.push(b'}');
        }
        Some(Parts::Triple(parts)) => {
            out.extend_from_slice(b"{\"type\":\"triple\",\"value\":{");
            for (i, (name, part)) in ["subject", "predicate", "object"]
                .iter()
                .zip(parts)
                .enumerate()
            {
                if i > 0 {
                    out.push(b',');
                }
                push_json_string(name.as_bytes(), out);
                out.push(b':');
                push_json_term(part, out);
            }
            out.extend_from_slice(b"}}");
        }
        Some(Parts::Iri(_) | Parts::Blank(_) | Parts::String(_)) | None => {
            push_json_value(b"literal", b"", out);
        }
    }
}

fn open_json<T: TextOut>(kind: &[u8], value: &[u8], out: &mut T) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind);
    out.extend_from_slice(b"\",\"value\":");
    push_json_string(value, out);
}

fn push_json_value<T: TextOut>(kind: &[u8], value: &[u8], out: &mut T) {
    open_json(kind, value, out);
    out.push(b'}');
}

fn push_coded_datatype<T: TextOut>(code: u8, out: &mut T) {
    out.extend_from_slice(XSD);
    let local = code
        .checked_sub(term::FIRST_DATATYPE)
        .and_then(|i| term::DATATYPES.get(usize::from(i)));
    out.extend_from_slice(local.unwrap_or(&"").as_bytes());
}

/// Appends a text as a JSON string with its quotes.
pub(super) fn push_json_string<T: TextOut>(text: &[u8], out: &mut T) {
    static CONTROLS: [[u8; 6]; 32] = controls(b"0123456789abcdef");
    out.push(b'"');
    push_escaped(
        text,
        |rest| first_of(rest, 0x20, [Needle::one(b'"'), Needle::one(b'\\')]),
        |rest| {
            let escaped: &[u8] = match rest[0] {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                b'\t' => b"\\t",
                b => CONTROLS.get(usize::from(b))?,
            };
            Some((1, escaped))
        },
        out,
    );
    out.push(b'"');
}

/// Appends a term as an XML element.
///
/// # Errors
/// If the term has a character that XML cannot express.
pub(super) fn push_xml_term<T: TextOut>(cell: &[u8], out: &mut T) -> Result<()> {
    match cell.first() {
        Some(&term::IRI) => {
            // IRIs contain no spaces, so none need to be written as character references.
            out.extend_from_slice(b"<uri>");
            push_xml_inner(&cell[1..], out)?;
            out.extend_from_slice(b"</uri>");
            return Ok(());
        }
        Some(&term::BLANK) => {
            return push_element(b"<bnode>", cell.get(2..).unwrap_or(&[]), b"</bnode>", out);
        }
        Some(&term::STRING) => {
            return push_element(b"<literal>", &cell[1..], b"</literal>", out);
        }
        _ => {}
    }
    match term::parts(cell) {
        Some(Parts::Lang(text, tag)) => {
            let (tag, direction) = match tag.split_once("--") {
                Some((tag, direction)) => (tag, Some(direction)),
                None => (tag, None),
            };
            push_element(b"<literal xml:lang=\"", tag.as_bytes(), b"\"", out)?;
            if let Some(direction) = direction {
                out.extend_from_slice(b" its:dir=\"");
                push_xml_text(direction.as_bytes(), out)?;
                out.extend_from_slice(
                    b"\" xmlns:its=\"http://www.w3.org/2005/11/its\" its:version=\"2.0\"",
                );
            }
            push_element(b">", text.as_bytes(), b"</literal>", out)?;
        }
        Some(Parts::Coded(text, code)) => {
            out.extend_from_slice(b"<literal datatype=\"");
            push_coded_datatype(code, out);
            push_element(b"\">", text.as_bytes(), b"</literal>", out)?;
        }
        Some(Parts::Typed(text, datatype)) => {
            push_element(b"<literal datatype=\"", datatype.as_bytes(), b"\">", out)?;
            push_element(b"", text.as_bytes(), b"</literal>", out)?;
        }
        Some(Parts::Triple(parts)) => {
            out.extend_from_slice(b"<triple>");
            for (name, part) in ["subject", "predicate", "object"].iter().zip(parts) {
                push_element(b"<", name.as_bytes(), b">", out)?;
                push_xml_term(part, out)?;
                push_element(b"</", name.as_bytes(), b">", out)?;
            }
            out.extend_from_slice(b"</triple>");
        }
        Some(Parts::Iri(_) | Parts::Blank(_) | Parts::String(_)) | None => {
            out.extend_from_slice(b"<literal></literal>");
        }
    }
    Ok(())
}

fn push_element<T: TextOut>(open: &[u8], text: &[u8], close: &[u8], out: &mut T) -> Result<()> {
    out.extend_from_slice(open);
    push_xml_text(text, out)?;
    out.extend_from_slice(close);
    Ok(())
}

/// Appends the name of a variable, which has only characters that XML can express.
pub(super) fn push_xml_name(name: &str, out: &mut Vec<u8>) {
    // Cannot fail, since variable names of SPARQL have no characters that XML cannot express.
    let _ = push_xml_text(name.as_bytes(), out);
}

/// Appends text for an element's content or an attribute, such that a reader gets the same text back. Spaces at either
/// end are written as character references, since many readers trim text between elements.
///
/// # Errors
/// If the text has a character that XML 1.0 cannot express.
pub(super) fn push_xml_text<T: TextOut>(text: &[u8], out: &mut T) -> Result<()> {
    let spaces = |n: usize, out: &mut T| {
        for at in 0..n {
            if at.is_multiple_of(BLOCK) && out.is_over(BLOCK) {
                break;
            }
            out.append(b"&#32;");
        }
    };
    let leading = text.iter().take_while(|b| **b == b' ').count();
    let text = &text[leading..];
    let trailing = text.iter().rev().take_while(|b| **b == b' ').count();
    let text = &text[..text.len() - trailing];
    spaces(leading, out);
    push_xml_inner(text, out)?;
    spaces(trailing, out);
    Ok(())
}

/// Bytes that are escaped in XML. U+FFFE and U+FFFF, which XML does not allow, are found by their first byte in UTF-8,
/// which few other characters have.
const XML: [Needle; 4] = [
    Needle::two(b'<', b'>'),
    Needle::two(b'&', b'\''),
    Needle::one(b'"'),
    Needle::one(0xEF),
];

fn push_xml_inner<T: TextOut>(text: &[u8], out: &mut T) -> Result<()> {
    let mut is_expressible = true;
    let is_expressible_so_far = &mut is_expressible;
    push_escaped(
        text,
        |rest| first_of(rest, 0x20, XML),
        |rest| {
            let escaped: &[u8] = match rest[0] {
                b'<' => b"&lt;",
                b'>' => b"&gt;",
                b'&' => b"&amp;",
                b'"' => b"&quot;",
                b'\'' => b"&apos;",
                b'\t' => b"&#9;",
                b'\n' => b"&#10;",
                b'\r' => b"&#13;",
                0xEF if !matches!(rest, [_, 0xBF, 0xBE | 0xBF, ..]) => return None,
                ..0x20 | 0xEF => {
                    *is_expressible_so_far = false;
                    b""
                }
                _ => return None,
            };
            Some((1, escaped))
        },
        out,
    );
    match is_expressible {
        true => Ok(()),
        false => Err(inexpressible(text)),
    }
}

#[cold]
fn inexpressible(text: &[u8]) -> Error {
    // The message needs only the beginning of a long text.
    let text = String::from_utf8_lossy(&text[..text.len().min(1 << 20)]);
    let why =
        jindou_parse::xml::write::inexpressible(&text).map_or(String::new(), |e| e.to_string());
    let shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    Error::Unsupported(format!(
        "{why}, and the answer contains it: use JSON, CSV or TSV instead, or replace it (REPLACE(?x, …)): {shown}"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{AnswerSink, ResultFormat, ResultWriter, Rows};
    use jindou_model::term;
    use oxrdf::vocab::xsd;
    use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, Term, Triple};
    use proptest::prelude::*;
    use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};

    fn any_term() -> impl Strategy<Value = Option<Term>> {
        let text = "[a-z0-9<>&'\"\\\\\t\n\r é\u{1F600}]{0,8}";
        let plain = prop_oneof![
            "[a-z&'é]{1,5}"
                .prop_map(|s| Term::from(NamedNode::new_unchecked(format!("http://e/{s}")))),
            "[a-z]{1,5}".prop_map(|s| BlankNode::new_unchecked(s).into()),
            text.prop_map(|s| Literal::new_simple_literal(s).into()),
            text.prop_map(|s| Literal::new_language_tagged_literal_unchecked(s, "en-gb").into()),
            text.prop_map(|s| {
                Literal::new_directional_language_tagged_literal_unchecked(
                    s,
                    "ar",
                    BaseDirection::Rtl,
                )
                .into()
            }),
            text.prop_map(|s| Literal::new_typed_literal(s, xsd::INTEGER).into()),
            text.prop_map(|s| {
                Literal::new_typed_literal(s, NamedNode::new_unchecked("http://e/t&t")).into()
            }),
        ];
        prop_oneof![
            1 => Just(None),
            6 => plain.clone().prop_map(Some),
            1 => plain.prop_map(|o| {
                let p = NamedNode::new_unchecked("http://e/p");
                Some(Triple::new(BlankNode::new_unchecked("b"), p, o).into())
            }),
        ]
    }

    /// The document for these rows: every other row is written through [`ResultWriter::raw`], the others as rows.
    fn written(format: ResultFormat, rows: &[Vec<Option<Term>>]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = ResultWriter::new(&mut out, format);
        w.solutions(&["a".into(), "b".into()]).unwrap();
        for (i, row) in rows.iter().enumerate() {
            let mut batch = Rows::default();
            batch.clear(2);
            for cell in row {
                if let Some(t) = cell {
                    term::push_term(t, &mut batch.bytes);
                }
                batch.end_cell();
            }
            batch.rows = 1;
            if i % 2 == 0 {
                let mut text = Vec::new();
                w.row_text().unwrap().push(batch.row(0), &mut text).unwrap();
                w.raw(&text, 1).unwrap();
            } else {
                w.rows(&batch).unwrap();
            }
        }
        w.finish().unwrap();
        drop(w);
        out
    }

    fn read(format: QueryResultsFormat, text: &[u8]) -> Vec<Vec<Option<Term>>> {
        let parsed = QueryResultsParser::from_format(format)
            .for_reader(text)
            .unwrap();
        let ReaderQueryResultsParserOutput::Solutions(solutions) = parsed else {
            panic!("not solutions");
        };
        solutions.map(|s| s.unwrap().values().to_vec()).collect()
    }

    /// Parses text that consists of members of `bindings`.
    fn read_lines(text: &[u8]) -> Vec<Vec<Option<Term>>> {
        let mut document = br#"{"head":{"vars":["a","b"]},"results":{"bindings":["#.to_vec();
        let lines = std::str::from_utf8(text).unwrap().lines();
        document.extend(lines.collect::<Vec<_>>().join(",").bytes());
        document.extend(b"]}}");
        read(QueryResultsFormat::Json, &document)
    }

    proptest! {
        #[test]
        fn json_and_xml_are_read_back_by_sparesults(
            rows in prop::collection::vec(prop::collection::vec(any_term(), 2), 0..5)
        ) {
            prop_assert_eq!(
                &read(QueryResultsFormat::Json, &written(ResultFormat::Json, &rows)), &rows);
            prop_assert_eq!(
                &read(QueryResultsFormat::Xml, &written(ResultFormat::Xml, &rows)), &rows);
            prop_assert_eq!(&read_lines(&written(ResultFormat::JsonLines, &rows)), &rows);
        }
    }

    #[test]
    fn control_characters_do_not_break_a_document() {
        let rows = vec![vec![
            Some(Literal::new_simple_literal("a\u{1}b").into()),
            None,
        ]];
        let json = written(ResultFormat::Json, &rows);
        assert_eq!(read(QueryResultsFormat::Json, &json), rows);
        let lines = written(ResultFormat::JsonLines, &rows);
        assert_eq!(read_lines(&lines), rows);
    }

    #[test]
    fn what_xml_cannot_express_is_an_error() {
        let tried = |text: &str| {
            let mut out = Vec::new();
            let mut writer = ResultWriter::new(&mut out, ResultFormat::Xml);
            writer.solutions(&["a".into()]).unwrap();
            let mut rows = Rows::default();
            rows.clear(1);
            term::push_term(&Literal::new_simple_literal(text).into(), &mut rows.bytes);
            rows.end_cell();
            rows.rows = 1;
            let made = writer
                .row_text()
                .unwrap()
                .push(rows.row(0), &mut Vec::new());
            (writer.rows(&rows).map_err(|e| e.to_string()), made.is_ok())
        };
        for text in ["a\u{1}b", "\u{0}", "\u{1F}", "a\u{FFFE}", "\u{FFFF}b"] {
            let (rows, made) = tried(text);
            let e = rows.unwrap_err();
            assert!(
                e.contains("XML cannot express the character U+") && !made,
                "{e}"
            );
        }
        for text in ["\u{FFFD}", "\u{FEFF}", "\u{F000}", "\u{7F}\u{85}", "\t\r\n"] {
            assert_eq!(tried(text), (Ok(()), true), "{text:?}");
        }
    }
}
