//! Limits on an answer's width, in JSON and tables checked while the bytes arrive. The parser of those formats compares
//! each variable in a head with all before it. With 300,000 variables it worked for a quarter of an hour, during which
//! it read nothing and therefore noticed no deadline.

use sparesults::QueryResultsFormat;
use thiserror::Error;

/// The most variables that an answer may name, and the most cells of a row.
pub const MOST_VARIABLES: usize = 10_000;
/// The deepest nesting of objects or arrays: the parser, and the terms that it makes, recurse.
const DEEPEST: usize = 512;

/// An answer that is not read any further, since it exceeds the limits on width. The text continues a sentence that
/// begins with "the answer".
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
    /// A table whose last line does not end.
    #[error("ends in the middle of a line: it was cut off")]
    Cut,
    /// Values are nested too deeply.
    #[error("has values nested too deeply")]
    Depth,
}

/// The position in an answer, in as much detail as the check of its width needs.
pub enum Width {
    Json(VariablesPosition),
    Tsv {
        /// Tabs since the last line ended.
        tabs: usize,
        /// True if a line has just ended.
        ended: bool,
    },
    /// A format whose reader checks the limits itself, or that is refused.
    Other,
}

impl Width {
    /// The position at the beginning of an answer in this format.
    pub fn for_format(format: QueryResultsFormat) -> Self {
        match format {
            QueryResultsFormat::Json => Self::Json(VariablesPosition::default()),
            QueryResultsFormat::Tsv => Self::Tsv {
                tabs: 0,
                ended: false,
            },
            _ => Self::Other,
        }
    }

    /// Processes the next bytes.
    ///
    /// # Errors
    /// If the answer exceeds the limits.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<(), WideAnswer> {
        match self {
            Self::Json(json) => bytes.iter().try_for_each(|b| json.byte(*b)),
            Self::Tsv { tabs, ended } => {
                if let Some(last) = bytes.last() {
                    *ended = *last == b'\n';
                }
                bytes.iter().try_for_each(|b| match b {
                    b'\n' => {
                        *tabs = 0;
                        Ok(())
                    }
                    b'\t' => {
                        *tabs += 1;
                        at_most(*tabs, MOST_VARIABLES - 1, WideAnswer::Cells)
                    }
                    _ => Ok(()),
                })
            }
            Self::Other => Ok(()),
        }
    }

    /// Notes the end of the answer.
    ///
    /// # Errors
    /// If it was truncated in a way that the format's parser does not notice.
    pub fn end(&self) -> Result<(), WideAnswer> {
        match self {
            Self::Tsv { ended: false, .. } => Err(WideAnswer::Cut),
            _ => Ok(()),
        }
    }
}

/// Returns the error unless a number is at most this.
fn at_most(n: usize, most: usize, otherwise: WideAnswer) -> Result<(), WideAnswer> {
    match n <= most {
        true => Ok(()),
        false => Err(otherwise),
    }
}

/// The position in a JSON document. Variables are the strings of an array called `vars` in an object of the root
/// object.
#[derive(Default)]
pub struct VariablesPosition {
    depth: usize,
    in_string: bool,
    /// True if the last byte of a string was a backslash that escapes the next.
    escape: bool,
    /// The current or the last string, as far as it can be `vars`.
    string: MemberName,
    /// True if a colon came after the last string.
    has_key: bool,
    in_variables: bool,
    variables: usize,
}

/// A string, as far as it can be `vars`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum MemberName {
    /// The beginning of `vars`, or all of it.
    Begun(usize),
    /// A string with an escape, which can be anything.
    Escaped,
    #[default]
    Other,
}

const VARIABLES: &[u8] = b"vars";

impl VariablesPosition {
    fn byte(&mut self, byte: u8) -> Result<(), WideAnswer> {
        if self.in_string {
            match byte {
                _ if self.escape => self.escape = false,
                b'"' => self.in_string = false,
                b'\\' => (self.escape, self.string) = (true, MemberName::Escaped),
                _ => {
                    self.string = match self.string {
                        MemberName::Begun(n) if VARIABLES.get(n) == Some(&byte) => {
                            MemberName::Begun(n + 1)
                        }
                        MemberName::Escaped => MemberName::Escaped,
                        _ => MemberName::Other,
                    }
                }
            }
            return Ok(());
        }
        match byte {
            b'"' => {
                (self.in_string, self.string) = (true, MemberName::Begun(0));
                if self.in_variables {
                    self.variables += 1;
                    return at_most(self.variables, MOST_VARIABLES, WideAnswer::Variables);
                }
            }
            b':' => self.has_key = true,
            b',' => self.has_key = false,
            b'{' | b'[' => {
                let may_be = [MemberName::Begun(VARIABLES.len()), MemberName::Escaped]
                    .contains(&self.string);
                self.in_variables = byte == b'[' && self.depth == 2 && self.has_key && may_be;
                self.has_key = false;
                self.depth += 1;
                return at_most(self.depth, DEEPEST, WideAnswer::Depth);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                (self.in_variables, self.has_key) = (false, false);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Labels;
    use sparesults::{QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput};
    use std::fmt::Write;
    use std::time::{Duration, Instant};

    const TABLES: [QueryResultsFormat; 3] = [
        QueryResultsFormat::Json,
        QueryResultsFormat::Xml,
        QueryResultsFormat::Tsv,
    ];

    /// Reads an answer in XML: the numbers of variables and rows.
    fn read_xml(text: &str) -> Result<(usize, usize), String> {
        let why = |e: crate::service::AnswerError| match e {
            crate::service::AnswerError::Wide(wide) => format!("{wide:?}"),
            e => e.to_string(),
        };
        let mut answer = crate::service::XmlAnswer::open(text.as_bytes(), "", None).map_err(why)?;
        let named = answer.variables().len();
        let mut n = 0;
        while answer.row().map_err(why)?.is_some() {
            n += 1;
        }
        Ok((named, n))
    }
    /// More processor time than reading may take; 300,000 variables took the parser 15 minutes.
    const SOON: Duration = Duration::from_secs(3);

    /// Processor time of this thread, which does not depend on how busy the machine is; if the system does not report
    /// it, the time since `start`.
    fn computed(start: Instant) -> Duration {
        let said = std::fs::read_to_string("/proc/thread-self/schedstat");
        let nanos = said
            .ok()
            .and_then(|said| said.split(' ').next()?.parse().ok());
        nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
    }

    /// An answer that names this many variables, with one row.
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

    /// The numbers of variables and rows that the parser reads, or the reason why it fails.
    fn read(format: QueryResultsFormat, text: &str) -> Result<(usize, usize), String> {
        let why = |e: QueryResultsParseError| match &e {
            QueryResultsParseError::Io(io) => {
                match io.get_ref().and_then(|e| e.downcast_ref::<WideAnswer>()) {
                    Some(wide) => format!("{wide:?}"),
                    None => e.to_string(),
                }
            }
            _ => e.to_string(),
        };
        let start = Instant::now();
        let before = computed(start);
        let counted = || -> Result<(usize, usize), AnswerError> {
            let mut answer = EndpointAnswer::open(format, text.as_bytes(), "", None)?;
            let named = answer.variables().len();
            let mut n = 0;
            while answer.row()?.is_some() {
                n += 1;
            }
            Ok((named, n))
        };
        let took = computed(start).saturating_sub(before);
        println!("{format:?}: {} bytes in {took:?}: {found:?}", text.len());
        assert!(took < SOON, "{format:?}: {took:?}");
        found
    }

    fn passed(format: QueryResultsFormat, text: &str, at_once: usize) -> Result<(), WideAnswer> {
        let mut width = Width::for_format(format);
        text.as_bytes()
            .chunks(at_once)
            .try_for_each(|piece| width.pass(piece))
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
        assert_eq!(passed(QueryResultsFormat::Tsv, &many, 1000), Ok(()));
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
            format!(r#"{{"head":{{"vars":[{first}],"vars":[{second}]}}"#),
            format!(r#"{{"head":{{"vars":[{first}]}},"head":{{"vars":[{second}]}}"#),
            format!(r#"{{"head":{{"v\u0061rs" : [{first},{second}]}}"#),
            format!(r#"{{"x":["\\"],"he\u0061d":{{"link":[],"\u0076ars":[{first},{second}]}}"#),
            format!(r#"{{"results":{{"bindings":[]}},"head":{{"vars":[{first},{second}]}}"#),
        ] {
            let found = read(QueryResultsFormat::Json, &text);
            assert_eq!(found, Err("Variables".into()), "{}", &text[..60]);
            assert_eq!(
                passed(QueryResultsFormat::Json, &text, 1),
                Err(WideAnswer::Variables)
            );
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
        assert_eq!(read(QueryResultsFormat::Json, &json(128)), Ok((1, 1)));
        for deep in [300, 400_000] {
            let found = read(QueryResultsFormat::Xml, &xml(deep));
            assert_eq!(found, Err("Depth".into()), "{deep}");
            let found = read(QueryResultsFormat::Json, &json(deep));
            assert_eq!(found, Err("Depth".into()), "{deep}");
        }
    }
}
