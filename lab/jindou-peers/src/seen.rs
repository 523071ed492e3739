//! Reading an answer term by term, and saying whether two answers are the same.

use crate::engine::Failure;
use oxrdf::{Literal, Term, Variable};
use oxttl::TurtleParser;
use serde::{Deserialize, Serialize};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use spargebra::{Query, SparqlParser};
use std::collections::HashSet;
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// An answer, boiled down so that two engines can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Rows; 1 for ASK.
    pub rows: u64,
    /// Wrapping sum of the rows' hashes: the same in any order of rows and of columns. Blank nodes count as
    /// equal, numbers by value, language tags in lower case.
    pub checksum: u64,
}

/// Reads SPARQL Results JSON to its end.
///
/// # Errors
/// [`Failure::Refused`] with the parser's words, or [`Failure::Timeout`] when the reader timed out.
pub fn read_json(from: impl Read) -> Result<Seen, Failure> {
    read(from, QueryResultsFormat::Json)
}

/// Reads SPARQL Results TSV to its end.
pub fn read_tsv(from: impl Read) -> Result<Seen, Failure> {
    read(from, QueryResultsFormat::Tsv)
}

/// True if a query's answer is a graph: CONSTRUCT and DESCRIBE. False for anything but SPARQL.
pub fn gives_graph(query: &str) -> bool {
    matches!(
        SparqlParser::new().parse_query(query),
        Ok(Query::Construct { .. } | Query::Describe { .. })
    )
}

/// Reads N-Triples or Turtle to its end; `rows` are different triples.
pub fn read_graph(from: impl Read) -> Result<Seen, Failure> {
    let mut triples = HashSet::new();
    let mut text = Vec::new();
    for triple in TurtleParser::new().for_reader(from) {
        let triple = triple.map_err(|e| match e {
            oxttl::TurtleParseError::Io(e) => crate::http::broken(&e),
            oxttl::TurtleParseError::Syntax(e) => {
                Failure::Refused(format!("its answer is not valid Turtle: {e}"))
            }
        })?;
        text.clear();
        for term in [
            triple.subject.into(),
            triple.predicate.into(),
            triple.object,
        ] {
            push_canonical(&term, &mut text);
            text.push(0);
        }
        triples.insert(xxh3_64(&text));
    }
    Ok(Seen {
        rows: triples.len() as u64,
        checksum: triples.iter().fold(0, |sum, t| sum.wrapping_add(*t)),
    })
}

fn read(from: impl Read, format: QueryResultsFormat) -> Result<Seen, Failure> {
    let bad = |e: sparesults::QueryResultsParseError| match e {
        sparesults::QueryResultsParseError::Io(e) => crate::http::broken(&e),
        sparesults::QueryResultsParseError::Syntax(e) => {
            Failure::Refused(format!("its answer is not valid {format}: {e}"))
        }
    };
    match QueryResultsParser::from_format(format)
        .for_reader(from)
        .map_err(bad)?
    {
        ReaderQueryResultsParserOutput::Boolean(b) => Ok(Seen {
            rows: 1,
            checksum: u64::from(b),
        }),
        ReaderQueryResultsParserOutput::Solutions(solutions) => {
            let mut columns: Vec<usize> = (0..solutions.variables().len()).collect();
            columns.sort_by_key(|&c| solutions.variables()[c].as_str().to_owned());
            let mut seen = Seen {
                rows: 0,
                checksum: 0,
            };
            let mut row = Vec::new();
            let names: Vec<Variable> = solutions.variables().to_vec();
            for solution in solutions {
                let solution = solution.map_err(bad)?;
                row.clear();
                for &c in &columns {
                    // An unbound variable adds nothing: engines differ in whether they list columns without values.
                    if let Some(term) = solution.get(c) {
                        row.extend_from_slice(names[c].as_str().as_bytes());
                        row.push(0);
                        push_canonical(term, &mut row);
                        row.push(0);
                    }
                }
                seen.rows += 1;
                seen.checksum = seen.checksum.wrapping_add(xxh3_64(&row));
            }
            Ok(seen)
        }
    }
}

/// XSD types whose values are numbers.
const NUMERIC: [&str; 16] = [
    "integer",
    "decimal",
    "double",
    "float",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
    "unsignedByte",
];

fn push_canonical(term: &Term, out: &mut Vec<u8>) {
    match term {
        Term::NamedNode(n) => {
            out.push(b'<');
            out.extend_from_slice(n.as_str().as_bytes());
        }
        Term::BlankNode(_) => out.extend_from_slice(b"_:"),
        Term::Literal(l) => push_literal(l, out),
        Term::Triple(t) => {
            out.extend_from_slice(b"<<");
            push_canonical(&t.subject.clone().into(), out);
            out.push(b' ');
            push_canonical(&t.predicate.clone().into(), out);
            out.push(b' ');
            push_canonical(&t.object, out);
        }
    }
}

fn push_literal(l: &Literal, out: &mut Vec<u8>) {
    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
    let datatype = l.datatype();
    if let Some(local) = datatype.as_str().strip_prefix(XSD)
        && NUMERIC.contains(&local)
        && let Ok(value) = l.value().trim().parse::<f64>()
    {
        // 15 digits: engines keep decimals in types of different widths. Sums of floats depend on the order in which
        // they are added, by as much as half a unit of the seventh digit a time.
        let text = match local {
            "float" => format!("#{value:.3e}"),
            _ => format!("#{value:.14e}"),
        };
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(l.value().as_bytes());
    if let Some(tag) = l.language() {
        out.push(b'@');
        out.extend_from_slice(tag.to_ascii_lowercase().as_bytes());
    } else if datatype != oxrdf::vocab::xsd::STRING {
        out.extend_from_slice(b"^^");
        out.extend_from_slice(datatype.as_str().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tsv(text: &str) -> Seen {
        read_tsv(text.as_bytes()).unwrap()
    }

    #[test]
    fn order_of_rows_and_columns_and_spelling_of_numbers_do_not_count() {
        let a = tsv("?x\t?y\n<http://a>\t1\n_:b0\t\"x\"@en-GB\n");
        let b = tsv(
            "?y\t?x\n\"x\"@en-gb\t_:other\n\"01.0\"^^<http://www.w3.org/2001/XMLSchema#decimal>\t<http://a>\n",
        );
        assert_eq!(a, b);
        assert_eq!(a.rows, 2);
    }

    #[test]
    fn what_differs_is_seen() {
        let a = tsv("?x\t?y\n<http://a>\t1\n");
        for other in [
            "?x\t?y\n<http://a>\t2\n",
            "?x\t?y\n\"http://a\"\t1\n",
            "?x\t?y\n<http://a>\t\"1\"\n",
            "?x\t?y\n<http://a>\t\n",
            "?x\t?z\n<http://a>\t1\n",
            "?x\t?y\n<http://a>\t1\n<http://a>\t1\n",
        ] {
            assert_ne!(a, tsv(other), "{other}");
        }
    }

    #[test]
    fn graphs_are_sets_of_triples() {
        let read = |text: &str| read_graph(text.as_bytes()).unwrap();
        let a = read("<http://a> <http://p> \"x\"@en .\n<http://a> <http://p> 1 .\n");
        let b = read("@prefix h: <http://> . <http://a> <http://p> 1 , \"x\"@EN , 01 .");
        assert_eq!(a, b);
        assert_eq!(a.rows, 2);
        assert_ne!(a, read("<http://a> <http://p> \"x\"@en , 2 ."));
        assert!(read_graph("<http://a> <http://p>".as_bytes()).is_err());
        assert!(gives_graph("DESCRIBE <http://a>"));
        assert!(gives_graph("CONSTRUCT WHERE { ?s ?p ?o }"));
        assert!(!gives_graph("SELECT * { ?construct ?p ?o }"));
        assert!(!gives_graph("CONSTRUCT"));
    }

    #[test]
    fn sums_of_floats_may_differ_a_little() {
        let float = |v| {
            tsv(&format!(
                "?x\n\"{v}\"^^<http://www.w3.org/2001/XMLSchema#float>\n"
            ))
        };
        assert_eq!(float("5003.1387"), float("5003.141"));
        assert_ne!(float("5003.1387"), float("5013.1"));
    }

    #[test]
    fn json_and_tsv_say_the_same() {
        let json = r#"{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"typed-literal","datatype":"http://www.w3.org/2001/XMLSchema#integer","value":"7"}},{}]}}"#;
        assert_eq!(read_json(json.as_bytes()).unwrap(), tsv("?x\n7\n\n"));
        assert_eq!(
            read_json(r#"{"head":{},"boolean":true}"#.as_bytes()).unwrap(),
            Seen {
                rows: 1,
                checksum: 1
            }
        );
        assert!(read_json(r#"{"head":{"vars":["x"]},"results":{"bin"#.as_bytes()).is_err());
    }
}
