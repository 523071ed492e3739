//! SPARQL text → algebra by [`jindou_syntax`], whose parse failures become errors of [`jindou_model`].

use jindou_model::{Error, Result};
use jindou_syntax::algebra::Query;
pub use jindou_syntax::{
    COMMON_PREFIXES, Escapes, ParseFailure, ParserOptions as SyntaxOptions, TextPrefixes,
    prefixes_of,
};

/// Parses a query with the standard options. The error names the position and what was expected there.
///
/// # Errors
/// [`Error::Sparql`] with all faults when the text is not SPARQL, [`Error::Limit`] when it nests too deeply
/// ([`SyntaxOptions`]).
pub fn parse(text: &str) -> Result<Query> {
    parse_with(text, &SyntaxOptions::default())
}

/// Parses a query.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(text: &str, options: &SyntaxOptions) -> Result<Query> {
    jindou_syntax::parse_query(text, options).map_err(failed)
}

pub(crate) fn failed(failure: ParseFailure) -> Error {
    match failure {
        ParseFailure::Text(faults) => Error::Sparql(Box::new(faults)),
        ParseFailure::Limit(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_position() {
        let e = parse("SELECT *\nWHERE { ?s ?p }").unwrap_err();
        assert!(e.to_string().contains("line 2, column 15"), "{e}");
        let Error::Sparql(faults) = e else { panic!() };
        assert_eq!((faults.first().line, faults.first().column), (2, 15));
    }

    #[test]
    fn deep_text_is_an_error_message() {
        for open in ["{", "(", "[", "!", "<<(", "{ ?s ?p ?o . {"] {
            let text = format!("SELECT * {{ FILTER( {} ) }}", open.repeat(100_000));
            assert!(parse(&text).is_err(), "{open}");
        }
        let nested = format!(
            "ASK {{ FILTER({}1{}) }}",
            "(".repeat(1000),
            ")".repeat(1000)
        );
        assert!(matches!(parse(&nested), Err(Error::Limit(_))));
        let calls = format!(
            "ASK {{ FILTER({}?x{}) }}",
            "REPLACE(".repeat(100),
            ", 'a', 'b')".repeat(100)
        );
        assert!(parse(&calls).is_ok());
    }
}
