//! Update text → operations.

use crate::parse::{SyntaxOptions, failed};
use jindou_model::Result;
use jindou_model::diagnostic::place;
use jindou_syntax::CopiedFrom;
use jindou_syntax::algebra::{BaseIri, GraphUpdateOperation};

/// One operation of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct UpdateOperation {
    /// The operation's algebra.
    pub operation: GraphUpdateOperation,
    /// Line and column of the operation's first word in the text, from 1; columns count characters.
    pub at: (usize, usize),
    /// True for operations into which the parser expands ADD, COPY and MOVE (SPARQL 1.1 Update §3.2): they read the
    /// store's own graphs, whatever dataset the request chooses.
    pub whole_graph: bool,
    /// For the first of these operations: the named graph that all of them read, which must exist unless the request
    /// says SILENT.
    pub copied_from: Option<CopiedFrom>,
}

/// A parsed update request.
#[derive(Debug, PartialEq, Eq)]
pub struct UpdateRequest {
    /// The operations in their order.
    pub operations: Vec<UpdateOperation>,
    /// Base that relative IRIs are resolved against, for `IRI()`.
    pub base: Option<BaseIri>,
}

/// Parses an update request; `base` resolves relative IRIs if the text has no BASE. The memory and time limits are
/// those of the scope that the thread is inside.
///
/// # Errors
/// [`Error::Sparql`](jindou_model::Error::Sparql) with all faults when the text is not an update,
/// [`Error::Limit`](jindou_model::Error::Limit) when it nests too deeply.
pub fn parse_update(text: &str, base: Option<&str>) -> Result<UpdateRequest> {
    let options = SyntaxOptions::under(base);
    parse_update_with(text, &options)
}

/// Parses an update request.
///
/// # Errors
/// As [`parse_update`].
pub fn parse_update_with(text: &str, options: &SyntaxOptions) -> Result<UpdateRequest> {
    let parsed = jindou_syntax::parse_update(text, options).map_err(failed)?;
    let mut lines = OffsetCounter {
        text,
        seen: 0,
        at: (1, 1),
    };
    let operations = parsed
        .operations
        .into_iter()
        .map(|o| UpdateOperation {
            operation: o.operation,
            at: lines.line_and_column(o.at),
            whole_graph: o.whole_graph,
            copied_from: o.copied_from,
        })
        .collect();
    Ok(UpdateRequest {
        operations,
        base: parsed.base,
    })
}

/// Computes the lines and columns of ascending byte offsets in one pass over the text.
struct OffsetCounter<'t> {
    text: &'t str,
    seen: usize,
    at: (usize, usize),
}

impl OffsetCounter<'_> {
    fn line_and_column(&mut self, offset: usize) -> (usize, usize) {
        let (line, column) = place(&self.text[self.seen..], offset - self.seen);
        let (line, column) = (line as usize, column as usize);
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
        assert!(e.contains("line 2, column 7"), "{e}");
        assert!(parse_update("ASK {}", None).is_err());
    }

    #[test]
    fn relative_iris_stand_under_the_base() {
        let r = parse_update("INSERT DATA { <a> <b> <c> }", Some("http://e/x")).unwrap();
        assert!(format!("{:?}", r.operations[0]).contains("http://e/a"));
        assert!(parse_update("INSERT DATA { <a> <b> <c> }", None).is_err());
    }

    #[test]
    fn requests_may_be_long() {
        let quads = |n: usize| {
            (0..n)
                .map(|i| format!("GRAPH <g:g> {{ <s:s> <p:p> -{i}, \"1\"^^<d:d> }}\n"))
                .collect::<String>()
        };
        for text in [
            format!("INSERT DATA {{ {} }}", quads(5000)),
            format!("delete # x\n data {{ {} }}", quads(5000)),
            format!("INSERT {{ {} }} WHERE {{}}", quads(5000)),
            "CLEAR ALL ; ".repeat(20_000),
        ] {
            assert!(parse_update(&text, None).is_ok());
        }
        let deep = format!(
            "INSERT DATA {{ <a:a> <b:b> {} }}",
            "[ <b:b> ".repeat(10_000)
        );
        assert!(matches!(
            parse_update(&deep, None),
            Err(jindou_model::Error::Limit(_))
        ));
    }
}
