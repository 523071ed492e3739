//! SPARQL text → algebra, with bounds: `spargebra`'s parser recurses, so text that nests deeper than a
//! stack could hold is refused before it gets there.

use crate::calls::Calls;
use crate::tokens::Reading;
use crate::translate::patterns_are_within;
use jindou_model::{Error, Result};
use spargebra::algebra::GraphPattern;
use spargebra::{Query, SparqlParser, SparqlSyntaxError};

/// Longest query text that is looked at, in bytes.
pub const MAX_QUERY_BYTES: usize = 4 << 20;
/// Deepest nesting of brackets and prefix operators.
pub const MAX_NESTING: usize = 128;
/// Most operators that the parser turns into a chain (`||`, `&&`, `+`, `/`, groups, FILTER, BIND …): each makes
/// the algebra one level deeper, and everything that walks the algebra recurses.
pub const MAX_CHAINED: usize = 2_000;

/// Most triple and path patterns of a query, as they are in the algebra (a collection of n members is 2 n + 1): planning a group takes
/// more than linear time.
pub const MAX_PATTERNS: usize = 2_000;

/// Net opening brackets that may lie inside what looks like IRIs; see [`Scan::iri`].
const MAX_HIDDEN: usize = 256;
/// Nesting and chains that an ordinary thread's stack surely holds; beyond, the parser gets its own thread.
const PLAIN_NESTING: usize = 12;
const PLAIN_CHAINED: usize = 200;
/// Stack of that thread; only touched pages cost memory.
const DEEP_STACK: usize = 256 << 20;
/// Longest error message from the parser that is passed on.
const MAX_MESSAGE: usize = 600;

/// Parses a query. The error names the position and what was expected there.
///
/// # Errors
/// [`Error::Query`] when the text is not SPARQL, [`Error::Limit`] when it is longer than [`MAX_QUERY_BYTES`], nests
/// deeper than [`MAX_NESTING`], chains more than [`MAX_CHAINED`] operators or has more than [`MAX_PATTERNS`] patterns.
pub fn parse(text: &str) -> Result<Query> {
    if text.len() > MAX_QUERY_BYTES {
        return Err(Error::Limit(format!(
            "the query is {} bytes long; at most {MAX_QUERY_BYTES} are read",
            text.len()
        )));
    }
    let (mut query, reading) = guarded(text, |text| SparqlParser::new().parse_query(text))?;
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = &query;
    few_patterns(text, pattern)?;
    reading.order(&mut query);
    Ok(query)
}

/// Calls the parser behind the guards, on a thread with a stack for it where the text is deep.
pub(crate) fn guarded<T: Send>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, SparqlSyntaxError> + Sync,
) -> Result<(T, Reading)> {
    let scan = Scan::of(text)?;
    let helped;
    let text = match Calls::of(text) {
        Calls::Fine => text,
        Calls::Helped(same) => {
            helped = same;
            &helped
        }
        Calls::Refused(at) => {
            let (line, column) = position(text, at);
            return Err(Error::Limit(format!(
                "line {line}, column {column}: calls with optional arguments (REPLACE, REGEX, SUBSTR, GROUP_CONCAT) or of functions by IRI, negations, annotations, or lists in parentheses nest too deeply; bind what is inside to a variable, or ask in parts"
            )));
        }
    };
    let reading = Reading::of(text);
    let read = |text: &str| parse_scanned(text, &scan, &parse);
    let parsed = read(reading.lowered.as_deref().unwrap_or(text))?;
    if let Some((at, masked)) = &reading.masked
        && read(masked).is_err()
    {
        let (line, column) = position(text, *at);
        return Err(Error::Query(format!(
            "line {line}, column {column}: from < to > is an IRI, since the longest token counts; write a space behind <"
        )));
    }
    Ok((parsed, reading))
}

fn parse_scanned<T: Send>(
    text: &str,
    scan: &Scan,
    parse: impl Fn(&str) -> Result<T, SparqlSyntaxError> + Sync,
) -> Result<T> {
    let parsed = if scan.deepest <= PLAIN_NESTING && scan.chained <= PLAIN_CHAINED {
        parse(text)
    } else {
        std::thread::scope(|s| {
            std::thread::Builder::new()
                .name("parse".into())
                .stack_size(DEEP_STACK)
                .spawn_scoped(s, || parse(text))
                .map_err(|e| Error::Internal(format!("no thread to parse a deep query: {e}")))?
                .join()
                .map_err(|_| Error::Internal("the query parser panicked".into()))
        })?
    };
    parsed.map_err(|e| Error::Query(shorten(e.to_string())))
}

/// Refuses more patterns than the planner takes.
pub(crate) fn few_patterns(text: &str, pattern: &GraphPattern) -> Result<()> {
    // A pattern is a byte of text at least: short texts need no count.
    if text.len() > MAX_PATTERNS && !patterns_are_within(pattern, MAX_PATTERNS) {
        return Err(Error::Limit(format!(
            "the query has more than {MAX_PATTERNS} triple patterns; give what is known as VALUES, or ask in parts"
        )));
    }
    Ok(())
}

fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let at = crate::show::floor(&message, MAX_MESSAGE);
        message.truncate(at);
        message.push('…');
    }
    message
}

/// What a look at the characters alone tells. It knows strings, comments and IRIs, and where it cannot know
/// (is `<` an IRI or "less than"?) it counts too much rather than too little.
#[derive(Default)]
struct Scan {
    depth: usize,
    deepest: usize,
    chained: usize,
    hidden: usize,
    /// Open `(`: expressions are only inside of them.
    parens: usize,
    /// Something like an IRI was seen that, read as "less than", opens a comment or a string. What the scan then takes for
    /// one may be none: brackets in it count from here on.
    doubtful: bool,
    data: Data,
}

/// How far the scan is with `INSERT DATA {…}` or `DELETE DATA {…}`. Quads there are a flat list: no path, no expression, no group
/// can be in them, so nothing in them chains, and there may be a million of them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Data {
    #[default]
    None,
    /// Directly behind INSERT or DELETE.
    Verb,
    /// Directly behind DATA.
    Word,
    /// Inside the braces, which opened at this depth.
    Inside(usize),
}

impl Data {
    /// Behind a word; `alone`: white space, a comment, a brace or a semicolon is before it, or nothing.
    fn after(self, word: &[u8], alone: bool) -> Self {
        let is = |w: &str| alone && word.eq_ignore_ascii_case(w.as_bytes());
        match self {
            Self::Inside(depth) => Self::Inside(depth),
            _ if is("insert") || is("delete") => Self::Verb,
            Self::Verb if is("data") => Self::Word,
            _ => Self::None,
        }
    }

    /// Behind any other token than a word or a brace.
    fn broken(self) -> Self {
        match self {
            Self::Inside(depth) => Self::Inside(depth),
            _ => Self::None,
        }
    }
}

impl Scan {
    fn of(text: &str) -> Result<Self> {
        let bytes = text.as_bytes();
        let mut scan = Self::default();
        let mut at = 0;
        // Length of the run of `!` that ends here, white space between them not counted.
        let mut prefix = 0;
        // Whether what comes next begins a token for certain.
        let mut alone = true;
        while let Some(&b) = bytes.get(at) {
            let mut next_prefix = 0;
            let mut next_alone = false;
            let mut step = 1;
            let flat = matches!(scan.data, Data::Inside(_));
            let link = usize::from(!flat);
            let data = scan.data;
            scan.data = data.broken();
            match b {
                b'#' | b'"' | b'\'' if scan.doubtful => {}
                b'#' => {
                    step = bytes[at..]
                        .iter()
                        .position(|&c| c == b'\n' || c == b'\r')
                        .unwrap_or(bytes.len() - at);
                    (next_prefix, next_alone, scan.data) = (prefix, true, data);
                }
                b' ' | b'\t' | b'\r' | b'\n' => {
                    (next_prefix, next_alone, scan.data) = (prefix, true, data);
                }
                b';' => next_alone = true,
                b'"' | b'\'' => step = string_len(&bytes[at..]),
                b'<' if bytes.get(at + 1) == Some(&b'<') => {
                    scan.open();
                    step = 2;
                }
                b'<' => step = scan.iri(&bytes[at..]),
                b'>' if bytes.get(at + 1) == Some(&b'>') => {
                    scan.depth = scan.depth.saturating_sub(1);
                    step = 2;
                }
                b'(' => {
                    scan.open();
                    scan.parens += 1;
                }
                b'[' => scan.open(),
                b'{' => {
                    scan.open();
                    scan.chained += link;
                    if data == Data::Word && !scan.doubtful {
                        scan.data = Data::Inside(scan.depth);
                    }
                    next_alone = true;
                }
                b')' | b']' | b'}' => {
                    if b == b'}' && data == Data::Inside(scan.depth) {
                        scan.data = Data::None;
                    }
                    scan.depth = scan.depth.saturating_sub(1);
                    scan.parens = scan.parens.saturating_sub(usize::from(b == b')'));
                    next_alone = b == b'}';
                }
                b'!' => {
                    next_prefix = prefix + 1;
                    scan.deepest = scan.deepest.max(scan.depth + next_prefix);
                }
                b'|' | b'&' => {
                    scan.chained += link;
                    if bytes.get(at + 1) == Some(&b) {
                        step = 2;
                    }
                }
                // A literal's datatype; no path has two of them.
                b'^' if bytes.get(at + 1) == Some(&b'^') => step = 2,
                b'+' | b'*' | b'/' | b'^' => scan.chained += link,
                b'-' if !bytes
                    .get(at.wrapping_sub(1))
                    .is_some_and(u8::is_ascii_alphanumeric) =>
                {
                    scan.chained += link;
                }
                _ if b.is_ascii_alphabetic() || b == b'?' || b == b'$' || b == b':' => {
                    step = 1 + bytes[at + 1..]
                        .iter()
                        .position(|c| !(c.is_ascii_alphanumeric() || *c == b'_'))
                        .unwrap_or(bytes.len() - at - 1);
                    let word = &bytes[at..at + step];
                    scan.data = data.after(word, alone);
                    if [&b"filter"[..], b"bind", b"as"]
                        .iter()
                        .any(|k| word.eq_ignore_ascii_case(k))
                    {
                        scan.chained += link;
                    }
                }
                _ => {}
            }
            (prefix, alone) = (next_prefix, next_alone);
            let place = |what: &str, limit: usize| {
                let (line, column) = position(text, at);
                Error::Limit(format!(
                    "line {line}, column {column}: the query {what}; at most {limit} are allowed"
                ))
            };
            if scan.deepest > MAX_NESTING {
                return Err(place(
                    "has too many nested brackets or operators",
                    MAX_NESTING,
                ));
            }
            if scan.chained > MAX_CHAINED {
                return Err(place("has too many operators and groups", MAX_CHAINED));
            }
            if scan.hidden > MAX_HIDDEN {
                return Err(place("has too many brackets between < and >", MAX_HIDDEN));
            }
            at += step;
        }
        Ok(scan)
    }

    fn open(&mut self) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    /// The length of what may be an IRI. Brackets inside count as hidden: were it `1<((((2>1`, they would nest.
    fn iri(&mut self, rest: &[u8]) -> usize {
        let end = rest[1..]
            .iter()
            .position(|&c| c <= b' ' || b"<>\"{}|^`\\".contains(&c));
        let Some(end) = end.filter(|&e| rest[e + 1] == b'>') else {
            return 1;
        };
        let inside = &rest[1..=end];
        self.doubtful |= self.parens > 0
            && !matches!(self.data, Data::Inside(_))
            && inside.iter().any(|c| matches!(c, b'#' | b'\''));
        let opens = inside
            .iter()
            .filter(|c| matches!(c, b'(' | b'[' | b'!'))
            .count();
        let closes = inside.iter().filter(|c| matches!(c, b')' | b']')).count();
        self.hidden += opens.saturating_sub(closes);
        self.deepest = self.deepest.max(self.depth + opens.min(self.hidden));
        end + 2
    }
}

/// Length of the string literal at the start of `rest`, quotes included; everything if it does not end.
pub(crate) fn string_len(rest: &[u8]) -> usize {
    let quote = rest[0];
    let long = rest.len() >= 3 && rest[1] == quote && rest[2] == quote;
    let mut at = if long { 3 } else { 1 };
    while let Some(&c) = rest.get(at) {
        match c {
            b'\\' => at += 1,
            // A short string does not cross a line: the parser will refuse it, brackets after it still count.
            b'\n' | b'\r' if !long => return at,
            _ if c == quote && !long => return at + 1,
            _ if c == quote && rest[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..crate::show::floor(text, at)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod nesting;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_text_is_an_error_message() {
        for open in [
            "{",
            "(",
            "[",
            "!",
            "! ",
            "<<",
            "<<(",
            "[ <p> ",
            "{ ?s ?p ?o . {",
            "1<((",
        ] {
            let text = format!("SELECT * {{ FILTER( {} ) }}", open.repeat(100_000));
            assert!(matches!(parse(&text), Err(Error::Limit(_))), "{open}");
            let text = format!("ASK {}", open.repeat(100_000));
            assert!(matches!(parse(&text), Err(Error::Limit(_))), "{open}");
        }
        for (link, end) in [
            ("1 || ", "1"),
            ("1 && ", "1"),
            ("1 + ", "1"),
            ("1 - ", "1"),
            ("1 / ", "1"),
        ] {
            let text = format!("ASK {{ FILTER({}{end}) }}", link.repeat(100_000));
            assert!(matches!(parse(&text), Err(Error::Limit(_))), "{link}");
        }
        for item in ["{} UNION ", "FILTER(1) ", "OPTIONAL {} ", "BIND(1 AS ?x) "] {
            let text = format!("ASK {{ {} {{}} }}", item.repeat(100_000));
            assert!(matches!(parse(&text), Err(Error::Limit(_))), "{item}");
        }
        let path = format!("ASK {{ ?s {}<p> ?o }}", "<p>/".repeat(100_000));
        assert!(matches!(parse(&path), Err(Error::Limit(_))));
    }

    #[test]
    fn brackets_in_strings_iris_and_comments_do_not_count() {
        let inside = "(".repeat(400);
        for text in [
            format!("ASK {{ ?s ?p \"{inside}\" }}"),
            format!("ASK {{ ?s ?p '''{inside}'\n''' }}"),
            format!("ASK {{ ?s ?p \"\\\"{inside}\" }}"),
            format!("# {inside}\nASK {{ ?s ?p ?o }}"),
            format!("ASK {{ {} }}", "<http://e/a_(b)> ?p ?o .\n".repeat(500)),
            format!("ASK {{ VALUES (?a ?b) {{ {} }} }}", "(1 2) ".repeat(10_000)),
        ] {
            assert!(parse(&text).is_ok(), "{}", &text[..60]);
        }
    }

    #[test]
    fn patterns_are_counted_wherever_they_are() {
        let many = |n: usize| "?s ?p ?o . ".repeat(n);
        let members = |n: usize| "1 ".repeat(n);
        for (n, text) in [
            (MAX_PATTERNS, format!("ASK {{ {} }}", many(MAX_PATTERNS))),
            (
                MAX_PATTERNS - 1,
                format!("ASK {{ ?s ?p ({}) }}", members(MAX_PATTERNS / 2 - 1)),
            ),
            (
                MAX_PATTERNS,
                format!(
                    "ASK {{ {} FILTER EXISTS {{ {} }} }}",
                    many(1000),
                    many(1000)
                ),
            ),
            (
                MAX_PATTERNS,
                format!(
                    "ASK {{ {{ {} }} UNION {{ {} ?s <x:p>* ?o }} }}",
                    many(1000),
                    many(999)
                ),
            ),
        ] {
            assert!(parse(&text).is_ok(), "{n}");
            let more = text.replacen("ASK {", "ASK { ?x ?y ?z . ?x <x:p>/<x:q> ?z . ", 1);
            let refused = parse(&more);
            assert!(
                matches!(refused, Err(Error::Limit(_))),
                "{n}: {}",
                refused.map_or_else(|e| e.to_string(), |q| q.to_string())
            );
        }
        let list = format!("ASK {{ ?s ?p ({}) }}", members(100_000));
        assert!(matches!(parse(&list), Err(Error::Limit(_))));
        let template = format!("CONSTRUCT {{ {} }} {{ ?s ?p ?o }}", many(10_000));
        assert!(parse(&template).is_ok());
    }

    #[test]
    fn an_error_has_its_position() {
        let e = parse("SELECT *\nWHERE { ?s ?p }").unwrap_err().to_string();
        assert!(e.contains("2:"), "{e}");
    }
}
