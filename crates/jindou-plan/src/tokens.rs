//! A query's tokens by SPARQL's grammar (SPARQL 1.1 §19.8): what `spargebra` reads otherwise is put right before and after it
//! parses.
//!
//! - `TRUE` and `False` are booleans as well: keywords have no case. They are written in lower case for it.
//! - The longest token counts, so `?x<?a&&?b>?y` holds an IRI and is no expression; `spargebra` reads two comparisons.
//! - `SELECT *` names columns in no order; people read them in the order of the text.

use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `<…>`
    Iri,
    Variable,
    /// A keyword, a prefixed name or a blank node's label.
    Word,
    /// A string, a number or a language tag.
    Literal,
    Other(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub kind: Kind,
    pub start: usize,
    pub text: &'t str,
}

pub(crate) struct Tokens<'t> {
    pub text: &'t str,
    pub at: usize,
}

/// Bytes of a name: letters, digits and what is not ASCII.
fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    let end = bytes[self.at..]
                        .iter()
                        .position(|c| matches!(c, b'\n' | b'\r'));
                    self.at = end.map_or(bytes.len(), |e| self.at + e);
                }
                _ => break,
            }
        }
        let start = self.at;
        let rest = &bytes[start..];
        let run = |from: usize, of: fn(u8) -> bool| {
            from + rest[from..].iter().take_while(|&&b| of(b)).count()
        };
        let (kind, mut len) = match rest[0] {
            b'<' => match iri_len(rest) {
                Some(len) => (Kind::Iri, len),
                None => (Kind::Other(b'<'), 1),
            },
            b'"' | b'\'' => (Kind::Literal, crate::parse::string_len(rest)),
            b'?' | b'$' if rest.get(1).is_some_and(|&b| in_name(b)) => {
                (Kind::Variable, run(1, in_name))
            }
            b'@' => (
                Kind::Literal,
                run(1, |b| b.is_ascii_alphanumeric() || b == b'-'),
            ),
            b'0'..=b'9' => (Kind::Literal, run(1, |b| b.is_ascii_digit() || b == b'.')),
            b if in_name(b) || b == b':' => {
                let mut len = 1;
                while let Some(&b) = rest.get(len) {
                    match b {
                        b'\\' => len += 2,
                        b':' | b'-' | b'.' | b'%' => len += 1,
                        b if in_name(b) => len += 1,
                        _ => break,
                    }
                }
                len = len.min(rest.len());
                // A name ends in no dot.
                while len > 1 && rest[len - 1] == b'.' {
                    len -= 1;
                }
                (Kind::Word, len)
            }
            b => (Kind::Other(b), 1),
        };
        while !self.text.is_char_boundary(start + len) {
            len += 1;
        }
        self.at = start + len;
        Some(Token {
            kind,
            start,
            text: &self.text[start..start + len],
        })
    }
}

/// Length of the `IRIREF` that `rest` begins with.
fn iri_len(rest: &[u8]) -> Option<usize> {
    let end = rest[1..]
        .iter()
        .position(|&c| c <= b' ' || b"<>\"{}|^`\\".contains(&c))?;
    (rest[end + 1] == b'>').then_some(end + 2)
}

/// What the text's tokens say.
#[derive(Default)]
pub(crate) struct Reading {
    /// The text with booleans in lower case, if some are not. Every position stays.
    pub lowered: Option<String>,
    /// Start of an IRI that can be read as an expression, and the text with all such IRIs replaced by others as long that
    /// cannot: a query only if the text is one.
    pub masked: Option<(usize, String)>,
    /// For `SELECT *`: the variables in the order of the text.
    star: Option<Vec<String>>,
}

impl Reading {
    /// O(length).
    pub(crate) fn of(text: &str) -> Self {
        let mut out = Self::default();
        let mut before: Option<Token<'_>> = None;
        let mut open = vec![];
        // 0: no SELECT seen; 1: directly behind it; 2: decided.
        let mut select = 0;
        for token in (Tokens { text, at: 0 }) {
            match token.kind {
                Kind::Word => {
                    let is = |word: &str| token.text.eq_ignore_ascii_case(word);
                    let boolean = ["true", "false"].into_iter().find(|w| is(w));
                    if let Some(word) = boolean
                        && token.text != word
                    {
                        let range = token.start..token.start + word.len();
                        out.lowered
                            .get_or_insert_with(|| text.to_owned())
                            .replace_range(range, word);
                    }
                    if select == 0 && is("select") {
                        select = 1;
                    } else if select == 1 && !is("distinct") && !is("reduced") {
                        select = 2;
                    }
                }
                Kind::Variable => {
                    let name = &token.text[1..];
                    if let Some(list) = &mut out.star
                        && !list.iter().any(|v| v == name)
                    {
                        list.push(name.to_owned());
                    }
                }
                Kind::Iri if before.is_some_and(ends_operand) && looks_open(token.text) => {
                    open.push(token.start + 1..token.start + token.text.len() - 1);
                }
                Kind::Other(b'*') if select == 1 => {
                    out.star = Some(vec![]);
                    select = 2;
                }
                _ => {}
            }
            if select == 1 && token.kind != Kind::Word {
                select = 2;
            }
            before = Some(token);
        }
        if let Some(first) = open.first() {
            let mut masked = out.lowered.as_deref().unwrap_or(text).to_owned();
            let at = first.start - 1;
            for inside in open {
                let other = format!("z:{}", "@".repeat(inside.len() - 2));
                masked.replace_range(inside, &other);
            }
            out.masked = Some((at, masked));
        }
        out
    }

    /// Puts the columns of `SELECT *` into the order of the text.
    pub(crate) fn order(&self, query: &mut Query) {
        let (Some(star), Query::Select { pattern, .. }) = (&self.star, query) else {
            return;
        };
        let place: rustc_hash::FxHashMap<&str, usize> =
            star.iter().map(String::as_str).zip(0..).collect();
        let key = |v: &Variable| place.get(v.as_str()).copied().unwrap_or(usize::MAX);
        let mut at = pattern;
        loop {
            match at {
                GraphPattern::Slice { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner } => at = inner,
                GraphPattern::Project { variables, .. } => {
                    variables.sort_by_key(key);
                    return;
                }
                _ => return,
            }
        }
    }
}

/// One operation in the text of an update request.
pub(crate) struct Statement {
    /// All declarations of prefixes and bases before it, as they are written.
    pub prologue: String,
    /// From its first word on, without the semicolon behind it.
    pub range: std::ops::Range<usize>,
    verb: Verb,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    AddCopyMove,
    Other,
}

impl Statement {
    /// True for ADD, COPY and MOVE.
    pub(crate) fn is_whole_graph(&self) -> bool {
        self.verb == Verb::AddCopyMove
    }
}

/// The operations of an update request that is known to be valid. O(length); prologues are copied for the operations that
/// need them only.
pub(crate) fn statements(text: &str) -> Vec<Statement> {
    let mut out: Vec<Statement> = vec![];
    let mut prologue = String::new();
    let mut depth = 0usize;
    let mut inside = false;
    let mut tokens = Tokens { text, at: 0 };
    while let Some(token) = tokens.next() {
        match token.kind {
            Kind::Other(b'{' | b'(' | b'[') => depth += 1,
            Kind::Other(b'}' | b')' | b']') => depth = depth.saturating_sub(1),
            Kind::Other(b';') if depth == 0 => inside = false,
            Kind::Word if depth == 0 && !inside => {
                let is = |word: &&str| token.text.eq_ignore_ascii_case(word);
                // Tokens that follow the declaring word.
                let parts = [("prefix", 2), ("base", 1), ("version", 1)]
                    .iter()
                    .find_map(|(word, parts)| is(word).then_some(*parts));
                if let Some(parts) = parts {
                    for _ in 0..parts {
                        tokens.next();
                    }
                    prologue.push_str(&text[token.start..tokens.at]);
                    prologue.push('\n');
                    continue;
                }
                inside = true;
                let verb = if ["add", "copy", "move"].iter().any(is) {
                    Verb::AddCopyMove
                } else {
                    Verb::Other
                };
                let own = verb == Verb::AddCopyMove;
                out.push(Statement {
                    prologue: if own { prologue.clone() } else { String::new() },
                    range: token.start..token.start,
                    verb,
                });
            }
            _ => {}
        }
        if inside && let Some(last) = out.last_mut() {
            last.range.end = token.start + token.text.len();
        }
    }
    out
}

/// True if `<` behind the token may be "less than".
fn ends_operand(t: Token<'_>) -> bool {
    match t.kind {
        Kind::Other(b) => b == b')',
        Kind::Iri | Kind::Variable | Kind::Word | Kind::Literal => true,
    }
}

/// True if the text between `<` and `>` can be the end of one operand and the beginning of another: both comparisons then
/// need something between them.
fn looks_open(iri: &str) -> bool {
    iri.len() > 4 && (iri.contains("&&") || iri.contains(',') || iri.contains(')'))
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use spargebra::Query;

    fn columns(text: &str) -> Vec<String> {
        let Query::Select { pattern, .. } = parse(text).unwrap() else {
            panic!("{text}")
        };
        match pattern {
            spargebra::algebra::GraphPattern::Project { variables, .. } => variables,
            other => panic!("{other}"),
        }
        .iter()
        .map(|v| v.as_str().to_owned())
        .collect()
    }

    #[test]
    fn booleans_have_no_case() {
        for (text, same) in [
            ("ASK { FILTER(TRUE) }", "ASK { FILTER(true) }"),
            (
                "ASK { ?s ?p False . ?s ?p 'TRUE' , <TRUE> FILTER(tRuE&&FALSE) }",
                "ASK { ?s ?p false . ?s ?p 'TRUE' , <TRUE> FILTER(true&&false) }",
            ),
            (
                "PREFIX TRUE: <http://e/> ASK { TRUE:False ?p ?True FILTER(!True) } # TRUE",
                "PREFIX TRUE: <http://e/> ASK { TRUE:False ?p ?True FILTER(!true) }",
            ),
        ] {
            let base = "BASE <http://e/> ";
            assert_eq!(
                parse(&format!("{base}{text}")).unwrap(),
                parse(&format!("{base}{same}")).unwrap()
            );
        }
    }

    #[test]
    fn the_longest_token_counts() {
        let base = "BASE <http://e/> ";
        for bad in [
            "ASK { ?s ?p ?x FILTER(?x<?a&&?b>?y) }",
            "ASK { ?s ?p ?x FILTER(IF(1<2,3>2,?x)) }",
            "ASK { FILTER((1)<(2)&&(3)>(2)) }",
            "ASK { FILTER(1<?x)FILTER(2>?y) }",
        ] {
            let e = parse(&format!("{base}{bad}")).unwrap_err().to_string();
            assert!(e.contains("IRI"), "{e}");
        }
        for good in [
            "ASK { ?s ?p ?x FILTER(?x <?a && ?b>?y) }",
            "ASK { ?s <http://e/a,b> ?x , <http://e/(c)&&d> }",
            "ASK { VALUES (?a ?b) { (<http://e/a,b> <http://e/c,d>) } }",
            "ASK { ?s ?p '?x<?a&&?b>?y' } # ?x<?a&&?b>?y",
        ] {
            assert!(parse(&format!("{base}{good}")).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_star_gives_columns_in_the_order_of_the_text() {
        assert_eq!(
            columns("SELECT * { ?z ?y ?x . ?a ?z ?b }"),
            ["z", "y", "x", "a", "b"]
        );
        assert_eq!(
            columns("# ?b\nSELECT\n*\nWHERE { $z <http://e/?a> ?a . BIND(?a AS ?b) }"),
            ["z", "a", "b"]
        );
        assert_eq!(columns("SELECT ?b ?a { ?a ?c ?b }"), ["b", "a"]);
        assert_eq!(
            columns("SELECT ?n ?b { { SELECT * { ?b ?n ?a } } }"),
            ["n", "b"]
        );
    }
}
