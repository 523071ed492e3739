//! Update text → operations, behind the same guards as queries.

use crate::parse::{few_patterns, guarded, position};
use crate::tokens::statements;
use jindou_model::{Error, Result};
use oxiri::Iri;
use spargebra::{GraphUpdateOperation, SparqlParser};

/// Longest text of an update, in bytes: what is longer comes as a document to load.
pub const MAX_UPDATE_BYTES: usize = 64 << 20;
/// Most operations of a request.
pub const MAX_OPERATIONS: usize = 10_000;

/// One operation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What to do.
    pub operation: GraphUpdateOperation,
    /// Line and column of its first word in the text, from 1; columns count characters.
    pub at: (usize, usize),
    /// True for a part of what ADD, COPY and MOVE stand for (SPARQL 1.1 Update §3.2): it reads the store's own graphs,
    /// whatever dataset the request chooses.
    pub whole_graph: bool,
}

/// A parsed update request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operations in their order.
    pub operations: Vec<Operation>,
    /// What relative IRIs stand under, for `IRI()`.
    pub base: Option<Iri<String>>,
}

/// Parses an update request; relative IRIs stand under `base` where the text has no BASE.
///
/// # Errors
/// [`Error::Query`] with the position when the text is no update, [`Error::Limit`] when it is longer than [`MAX_UPDATE_BYTES`], has
/// more than [`MAX_OPERATIONS`] operations, or is deeper or has longer chains or more patterns than a query may
/// ([`crate::parse`]).
pub fn parse_update(text: &str, base: Option<&str>) -> Result<Request> {
    if text.len() > MAX_UPDATE_BYTES {
        return Err(Error::Limit(format!(
            "the update is {} bytes long; at most {MAX_UPDATE_BYTES} are read: send data to the graph store, or load it",
            text.len()
        )));
    }
    let parser = || match base {
        Some(base) => SparqlParser::new()
            .with_base_iri(base)
            .unwrap_or_else(|_| SparqlParser::new()),
        None => SparqlParser::new(),
    };
    let (update, _) = guarded(text, |text| parser().parse_update(text))?;
    let statements = statements(text);
    if statements.len() > MAX_OPERATIONS {
        return Err(Error::Limit(format!(
            "the request has {} operations; at most {MAX_OPERATIONS} are one transaction",
            statements.len()
        )));
    }
    for operation in &update.operations {
        if let GraphUpdateOperation::DeleteInsert { pattern, .. } = operation {
            few_patterns(text, pattern)?;
        }
    }
    let mut parsed = update.operations.into_iter();
    let mut operations = Vec::with_capacity(statements.len());
    let mut places = Places {
        text,
        seen: 0,
        at: (1, 1),
    };
    for s in &statements {
        let whole_graph = s.is_whole_graph();
        let parts = if whole_graph {
            // ADD, COPY and MOVE are rewritten by the parser, to nothing where source and target are one graph.
            let alone = format!("{} {}", s.prologue, &text[s.range.clone()]);
            let (alone, _) = guarded(&alone, |text| parser().parse_update(text))?;
            alone.operations.len()
        } else {
            1
        };
        let at = places.of(s.range.start);
        operations.extend(parsed.by_ref().take(parts).map(|operation| Operation {
            operation,
            at,
            whole_graph,
        }));
    }
    if parsed.next().is_some() {
        return Err(Error::Internal(
            "the update's operations were not all found in its text".into(),
        ));
    }
    Ok(Request {
        operations,
        base: update.base_iri,
    })
}

/// Lines and columns of ascending offsets, in one walk.
struct Places<'t> {
    text: &'t str,
    seen: usize,
    at: (usize, usize),
}

impl Places<'_> {
    fn of(&mut self, offset: usize) -> (usize, usize) {
        let (line, column) = position(&self.text[self.seen..], offset - self.seen);
        self.at = if line == 1 {
            (self.at.0, self.at.1 + column - 1)
        } else {
            (self.at.0 + line - 1, column)
        };
        self.seen = offset;
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_places() {
        let text = "PREFIX e: <http://e/>\n INSERT DATA { e:a e:b 'x;y' } ; # ;\nCOPY e:g TO e:g;\nMOVE DEFAULT TO e:g ;DROP ALL;\n";
        let r = parse_update(text, None).unwrap();
        let at: Vec<_> = r.operations.iter().map(|o| (o.at, o.whole_graph)).collect();
        let moved = ((4, 1), true);
        assert_eq!(at, [((2, 2), false), moved, moved, moved, ((4, 22), false)]);
        assert!(parse_update("", None).unwrap().operations.is_empty());
    }

    #[test]
    fn errors_have_their_place() {
        let e = parse_update("CLEAR ALL ;\nCLEAR XYZ", None)
            .unwrap_err()
            .to_string();
        assert!(e.contains("2:"), "{e}");
        assert!(parse_update("ASK {}", None).is_err());
    }

    #[test]
    fn relative_iris_stand_under_the_base() {
        let r = parse_update("INSERT DATA { <a> <b> <c> }", Some("http://e/x")).unwrap();
        assert!(format!("{:?}", r.operations[0]).contains("http://e/a"));
        assert!(parse_update("INSERT DATA { <a> <b> <c> }", None).is_err());
    }

    #[test]
    fn data_may_be_long_and_patterns_may_not() {
        let quads = |n: usize| {
            (0..n)
                .map(|i| format!("GRAPH <g:g> {{ <s:s> <p:p> -{i}, \"1\"^^<d:d> }}\n"))
                .collect::<String>()
        };
        for verb in ["INSERT DATA", "delete # x\n data"] {
            assert!(parse_update(&format!("{verb} {{ {} }}", quads(5000)), None).is_ok());
        }
        assert!(matches!(
            parse_update(&format!("INSERT {{ {} }} WHERE {{}}", quads(5000)), None),
            Err(Error::Limit(_))
        ));
        let chain = "1 - ".repeat(100_000);
        for before in ["", "INSERT DATA {} ;", "INSERT DATA { <a:a> <b:b> 'x' } ; "] {
            let text = format!("{before} DELETE {{}} WHERE {{ FILTER({chain} 1) }}");
            assert!(
                matches!(parse_update(&text, None), Err(Error::Limit(_))),
                "{before}"
            );
        }
        // What only looks like a data block.
        for open in [
            "?s ?p \"x\"@data {",
            "?s ?p <a:insert> . ?data {",
            "FILTER(1<?y#z> }}} INSERT DATA {\n",
            "FILTER(1<'a>'||'}}} ; INSERT DATA {'",
        ] {
            let text = format!("DELETE {{}} WHERE {{ {open} FILTER({chain} 1) }} }}");
            assert!(
                matches!(parse_update(&text, None), Err(Error::Limit(_))),
                "{open}"
            );
        }
        let deep = format!(
            "INSERT DATA {{ <a:a> <b:b> {} }}",
            "[ <b:b> ".repeat(10_000)
        );
        assert!(matches!(parse_update(&deep, None), Err(Error::Limit(_))));
    }

    #[test]
    fn strings_that_look_like_others_hide_no_depth() {
        let text = format!("ASK {{ FILTER(1<'a>'||{}1) }}", "(".repeat(100_000));
        assert!(matches!(crate::parse(&text), Err(Error::Limit(_))));
    }
}
