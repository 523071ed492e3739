//! Limits on the numbers of variables and cells in an answer. In tab-separated tables, they are checked while bytes
//! arrive, since the library's parser takes quadratic time in the number of variables: 300,000 variables took a quarter
//! of an hour, during which the time limit was not checked.

use std::io::{self, Read};
use thiserror::Error;

/// Largest number of variables that an answer may name, and of cells in a row.
pub const MOST_VARIABLES: usize = 10_000;

/// Reason why reading an answer stops: the answer exceeds a limit, or is truncated. The messages continue a sentence
/// that begins with "its answer".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WideAnswer {
    /// Too many variables.
    #[error(
        "has more than the {MOST_VARIABLES} variables allowed: name only the needed ones after SELECT"
    )]
    Variables,
    /// Too many cells in a row of a table.
    #[error(
        "has a row of more than the {MOST_VARIABLES} cells allowed: name only the needed variables after SELECT"
    )]
    Cells,
    /// The table's last line is not terminated, so the table is truncated.
    #[error("ends in the middle of a line: it was cut off")]
    Cut,
    /// Values are nested too deeply.
    #[error("has values nested too deeply")]
    Depth,
}

/// Reads a table of tab-separated values. Fails with a [`WideAnswer`] if a line has too many cells, or if the last line
/// is not terminated.
pub(super) struct CheckedTable<R> {
    inner: R,
    /// Number of tabs in the current line.
    tabs: usize,
    /// True if the last byte ended a line.
    ended: bool,
}

impl<R: Read> CheckedTable<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            tabs: 0,
            ended: false,
        }
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<(), WideAnswer> {
        if let Some(last) = bytes.last() {
            self.ended = *last == b'\n';
        }
        for byte in bytes {
            match byte {
                b'\n' => self.tabs = 0,
                b'\t' => self.tabs += 1,
                _ => {}
            }
            if self.tabs >= MOST_VARIABLES {
                return Err(WideAnswer::Cells);
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for CheckedTable<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(to)?;
        let read = to.get(..n).unwrap_or_default();
        self.pass(read).map_err(io::Error::other)?;
        if n == 0 && !to.is_empty() && !self.ended {
            return Err(io::Error::other(WideAnswer::Cut));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{AnswerError, EndpointAnswer};
    use jindou_testing::thread_time;
    use sparesults::QueryResultsFormat;
    use std::fmt::Write;
    use std::time::Duration;

    const TABLES: [QueryResultsFormat; 3] = [
        QueryResultsFormat::Json,
        QueryResultsFormat::Xml,
        QueryResultsFormat::Tsv,
    ];

    /// Upper bound on the processor time for reading. Without the limits, reading 300,000 variables took 15 minutes.
    const SOON: Duration = Duration::from_secs(3);

    /// An answer with this many variables and one row.
    fn naming(format: QueryResultsFormat, variables: usize) -> String {
        let each = |open: &str, close: &str, between: &str| {
            let all: Vec<String> = (0..variables)
                .map(|i| format!("{open}variable{i}{close}"))
                .collect();
            all.join(between)
        };
        match format {
            QueryResultsFormat::Json => format!(
                r#"{{"head":{{"vars":[{}]}},"results":{{"bindings":[{{"variable0":{{"type":"literal","value":"a"}}}}]}}}}"#,
                each("\"", "\"", ",")
            ),
            QueryResultsFormat::Xml => format!(
                r#"<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>{}</head><results><result><binding name="variable0"><literal>a</literal></binding></result></results></sparql>"#,
                each("<variable name=\"", "\"/>", "")
            ),
            _ => format!(
                "{}\n\"a\"{}\n",
                each("?", "", "\t"),
                "\t".repeat(variables - 1)
            ),
        }
    }

    /// The numbers of variables and rows of an answer, or the message of the error.
    fn read(format: QueryResultsFormat, text: &str) -> Result<(usize, usize), String> {
        let why = |e: AnswerError| match e {
            AnswerError::Wide(wide) => format!("{wide:?}"),
            e => e.to_string(),
        };
        let before = thread_time();
        let counted = || -> Result<(usize, usize), AnswerError> {
            let mut answer = EndpointAnswer::open(format, text.as_bytes(), "", None)?;
            let named = answer.variables().len();
            let mut n = 0;
            while answer.row()?.is_some() {
                n += 1;
            }
            Ok((named, n))
        };
        let found = counted().map_err(why);
        let took = thread_time() - before;
        println!("{format:?}: {} bytes in {took:?}: {found:?}", text.len());
        assert!(took < SOON, "{format:?}: {took:?}");
        found
    }

    #[test]
    fn as_many_variables_as_are_allowed_are_read_soon_and_no_more() {
        for format in TABLES {
            let most = naming(format, MOST_VARIABLES);
            assert_eq!(read(format, &most), Ok((MOST_VARIABLES, 1)), "{format:?}");
            let expected = match format {
                QueryResultsFormat::Tsv => "Cells",
                _ => "Variables",
            };
            for more in [MOST_VARIABLES + 1, 300_000] {
                let found = read(format, &naming(format, more));
                assert_eq!(found, Err(expected.into()), "{format:?}, {more}");
            }
        }
    }

    #[test]
    fn a_row_of_too_many_cells_is_refused() {
        let long = format!("?a\n{}\n", "\t".repeat(10_000_000));
        assert_eq!(read(QueryResultsFormat::Tsv, &long), Err("Cells".into()));
        let many = "?a\t?b\n\t\n".repeat(2 * MOST_VARIABLES);
        let mut table = CheckedTable::new(many.as_bytes());
        assert_eq!(table.pass(many.as_bytes()), Ok(()));
    }

    #[test]
    fn variables_are_counted_wherever_the_parser_finds_them() {
        let names = |n: usize, from: usize| {
            let all: Vec<String> = (from..from + n).map(|i| format!("\"v{i}\"")).collect();
            all.join(",")
        };
        let half = MOST_VARIABLES / 2 + 1;
        let (first, second) = (names(half, 0), names(half, half));
        for text in [
            format!(r#"{{"head":{{"v\u0061rs" : [{first},{second}]}}"#),
            format!(r#"{{"x":["\\"],"he\u0061d":{{"link":[],"\u0076ars":[{first},{second}]}}"#),
            format!(r#"{{"results":{{"bindings":[]}},"head":{{"vars":[{first},{second}]}}"#),
        ] {
            let found = read(QueryResultsFormat::Json, &text);
            assert_eq!(found, Err("Variables".into()), "{}", &text[..60]);
        }
        for text in [
            format!(r#"{{"head":{{"vars":[{first}],"vars":[{second}]}}"#),
            format!(r#"{{"head":{{"vars":[{first}]}},"head":{{"vars":[{second}]}}"#),
        ] {
            let found = read(QueryResultsFormat::Json, &text);
            assert!(found.unwrap_err().contains("lists of variables"));
        }
        let mut all = String::new();
        for i in 0..=MOST_VARIABLES {
            write!(
                all,
                "<!-- > <b ' --><s:variable\n  name='v{i}'></s:variable>"
            )
            .unwrap();
        }
        for hidden in [
            "",
            "<!-- > <b -->",
            "<?x <!-- ?>",
            "<!DOCTYPE x [<!ENTITY y '<>'> <!-- ]> --> ]>",
        ] {
            let text = format!(
                "{hidden}<s:sparql xmlns:s='http://www.w3.org/2005/sparql-results#'><s:head>{all}"
            );
            let found = read(QueryResultsFormat::Xml, &text);
            assert_eq!(found, Err("Variables".into()), "{hidden}");
        }
    }

    #[test]
    fn what_is_no_variable_is_not_counted() {
        let many = 2 * MOST_VARIABLES;
        let strings = vec!["\"vars\""; many].join(",");
        let rows = vec![r#"{"vars":{"type":"literal","value":"[\"vars\":["}}"#; many].join(",");
        let text = format!(
            r#"{{"head":{{"link":[{strings}],"vars":["vars"]}},"x":[{strings}],"results":{{"bindings":[{rows}]}}}}"#
        );
        assert_eq!(read(QueryResultsFormat::Json, &text), Ok((1, many)));
        let rows = "<result><binding name='variable'><literal>&lt;variable></literal></binding></result><!-- <variable <variable> -->"
            .repeat(many);
        let text = format!(
            "<sparql xmlns='http://www.w3.org/2005/sparql-results#'><head><variable name='variable'/>{}</head><results>{rows}</results></sparql>",
            "<link href='variable '/><link href=\"variable >\"></link>".repeat(many)
        );
        assert_eq!(read(QueryResultsFormat::Xml, &text), Ok((1, many)));
    }

    #[test]
    fn a_tag_of_many_attributes_is_refused_or_read_soon() {
        let tag = |bytes: usize| {
            let mut tag = String::from("<variable");
            for i in 0.. {
                let attribute = format!(
                    " {}='>'",
                    (0..4)
                        .map(|d| (b'a' + (i >> (4 * d) & 15) as u8) as char)
                        .collect::<String>()
                );
                if tag.len() + attribute.len() > bytes {
                    break;
                }
                tag += &attribute;
            }
            tag
        };
        let tagged =
            |bytes: usize| naming(QueryResultsFormat::Xml, 1).replace("<variable", &tag(bytes));
        let found = read(QueryResultsFormat::Xml, &tagged(20 << 20));
        assert!(found.unwrap_err().contains("more than 1000 attributes"));
        assert_eq!(read(QueryResultsFormat::Xml, &tagged(7000)), Ok((1, 1)));
    }

    #[test]
    fn terms_within_each_other_too_deep_are_refused() {
        let xml = |deep: usize| {
            let one = "<triple><subject><uri>http://e/s</uri></subject><predicate><uri>http://e/p</uri></predicate><object>";
            let inner = format!(
                "{}<uri>http://e/o</uri>{}",
                one.repeat(deep),
                "</object></triple><!-- </a> -->".repeat(deep)
            );
            naming(QueryResultsFormat::Xml, 1).replace("<literal>a</literal>", &inner)
        };
        let json = |deep: usize| {
            let one = r#"{"type":"triple","value":{"subject":{"type":"uri","value":"http://e/s"},"predicate":{"type":"uri","value":"http://e/p"},"object":"#;
            let inner = format!(
                r#"{}{{"type":"uri","value":"http://e/o"}}{}"#,
                one.repeat(deep),
                "}}".repeat(deep)
            );
            naming(QueryResultsFormat::Json, 1).replace(r#"{"type":"literal","value":"a"}"#, &inner)
        };
        assert_eq!(read(QueryResultsFormat::Xml, &xml(64)), Ok((1, 1)));
        assert_eq!(read(QueryResultsFormat::Json, &json(64)), Ok((1, 1)));
        for deep in [300, 400_000] {
            let found = read(QueryResultsFormat::Xml, &xml(deep));
            assert_eq!(found, Err("Depth".into()), "{deep}");
            let found = read(QueryResultsFormat::Json, &json(deep));
            assert_eq!(found, Err("Depth".into()), "{deep}");
        }
    }
}
