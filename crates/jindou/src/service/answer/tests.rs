use super::*;
use crate::service::tests::{self, Rows};
use oxrdf::Term;
use sparesults::QueryResultsFormat;

fn document(head: &str, rows: &str) -> String {
    format!(
        "<?xml version='1.0'?><sparql xmlns='http://www.w3.org/2005/sparql-results#'><head>{head}</head><results>{rows}</results></sparql>"
    )
}

fn one(term: &str) -> String {
    document(
        "<variable name='v'/>",
        &format!("<result><binding name='v'>{term}</binding></result>"),
    )
}

fn read(text: &[u8]) -> std::result::Result<(Vec<String>, Rows), String> {
    tests::read(QueryResultsFormat::Xml, text).map_err(|e| e.to_string())
}

fn value(term: &str) -> std::result::Result<Term, String> {
    let (_, mut rows) = read(one(term).as_bytes())?;
    Ok(rows.pop().unwrap().pop().unwrap().unwrap())
}

/// Descriptions of terms, each with the term in the syntax of N-Triples; `↵` is a line feed, `␍` a carriage return.
const TERMS: &str = include_str!("terms.txt");

#[test]
fn terms_are_what_the_xml_says() {
    for line in TERMS.lines() {
        let (xml, expected) = line.split_once(" => ").expect(line);
        let xml = xml.replace('↵', "\n").replace('␍', "\r");
        let found = value(&xml).map(|term| term.to_string());
        assert_eq!(found.as_deref(), Ok(expected), "{xml}");
    }
}

#[test]
fn what_is_no_answer_is_an_error_with_its_place() {
    for bad in [
        one("<uri>not an iri</uri>"),
        one("<literal xml:lang='a b'>x</literal>"),
        one("<literal datatype='x y'>x</literal>"),
        one("<bnode/>"),
        one(""),
        one("<uri>http://e/a</uri><uri>http://e/b</uri>"),
        one("<literal>a<b/></literal>"),
        one("<triple><subject><literal>s</literal></subject></triple>"),
        one("<triple/>"),
        one("text<literal/>"),
        document(
            "<variable name='v'/>",
            "<result><binding name='w'><literal/></binding></result>",
        ),
        document(
            "<variable name='v'/>",
            &"<binding name='v'><literal/></binding>"
                .repeat(2)
                .replacen('<', "<result><", 1),
        ),
        document("<variable name='v'/><variable name='v'/>", ""),
        document("<variable/>", ""),
        "<sparql xmlns='http://www.w3.org/2005/sparql-results#'><head/></sparql>".into(),
        "<html/>".into(),
        String::new(),
    ] {
        let e = read(bad.as_bytes()).expect_err(&bad);
        assert!(e.contains("line 1, column"), "{e}");
    }
}

#[test]
fn an_answer_that_is_cut_off_is_an_error_wherever_it_is() {
    let row = |n: u32| {
        format!("<result><binding name='v'><literal>{n} &lt;</literal></binding></result>\n")
    };
    let whole = document(
        "<variable name='v'/><link href='x'/>",
        &format!("{}{}", row(1), row(2)),
    );
    assert_eq!(read(whole.as_bytes()).unwrap().1.len(), 2);
    for cut in 0..whole.len() {
        assert!(read(&whole.as_bytes()[..cut]).is_err(), "{cut}");
    }
    let verdict = "<sparql xmlns='http://www.w3.org/2005/sparql-results#'><head/><boolean>true</boolean></sparql>";
    assert_eq!(
        XmlAnswer::open(verdict.as_bytes(), "", None)
            .unwrap()
            .boolean(),
        Some(true)
    );
    for cut in 0..verdict.len() {
        assert!(
            XmlAnswer::open(&verdict.as_bytes()[..cut], "", None).is_err(),
            "{cut}"
        );
    }
}

/// Checks that truncated answers in JSON and TSV are errors.
#[test]
fn json_and_tables_that_are_cut_off_are_errors() {
    let json = r#"{"head":{"vars":["a","b"]},"results":{"bindings":[{"a":{"type":"literal","value":"x"},"b":{"type":"uri","value":"http://e/b"}},{"b":{"type":"bnode","value":"c"}}]}}"#;
    let late = r#"{"results":{"bindings":[{"a":{"type":"literal","value":"x"}},{}]},"head":{"vars":["a"]}}"#;
    let tsv = "?a\t?b\n\"x\"\t<http://e/b>\n12\t_:c\n";
    for (format, whole) in [
        (QueryResultsFormat::Json, json),
        (QueryResultsFormat::Json, late),
        (QueryResultsFormat::Tsv, tsv),
    ] {
        let rows = |text: &str| tests::read(format, text.as_bytes()).map(|answer| answer.1.len());
        assert_eq!(rows(whole).unwrap(), 2);
        for cut in 0..whole.len() {
            // A TSV table that ends after a whole line cannot be recognised as truncated.
            if format == QueryResultsFormat::Tsv && cut > 0 && whole.as_bytes()[cut - 1] == b'\n' {
                continue;
            }
            assert!(
                rows(&whole[..cut]).is_err(),
                "{format:?}, {:?}",
                &whole[..cut]
            );
        }
    }
}
