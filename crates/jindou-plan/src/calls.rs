//! What `spargebra`'s parser reads twice, so that nesting it takes exponential time. Of a function with an optional last argument it
//! tries the longer form first, and reads all arguments anew when that one was missing. An annotation (`{| … |}`) with an error
//! inside is tried behind its reifier and then as one without; what follows `!`, as something that may begin with `!` and then as
//! something that may not.
//!
//! `REPLACE(a, b, c)` and `REGEX(a, b)` are given the flags `""`, which mean none, where it matters: then the longer form is the right
//! one. What stays exponential (`SUBSTR(a, b)`, GROUP_CONCAT without a separator, and each of them around a syntax error) is refused beyond
//! what a second reads.

use crate::tokens::{Kind, Tokens};

/// Bytes that the parser may look at, repetitions counted: about a second of expressions. Of a longer text, four times its length.
const MOST: u64 = 1 << 21;
/// Bytes read more than once that need no help.
const FEW: u64 = 1 << 15;

/// A `(`, `{` or `{|` that is not closed yet.
#[derive(Default)]
struct Call {
    function: Function,
    /// `{`, not `(`.
    brace: bool,
    /// Behind `!`.
    negated: bool,
    commas: usize,
    separator: bool,
    cost: Cost,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Function {
    Replace,
    Regex,
    SubStr,
    GroupConcat,
    /// Read as a function, then as an aggregate.
    Iri,
    /// None, but read in two ways like one.
    Annotation,
    #[default]
    Other,
}

/// Bytes looked at, in three cases.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// As the text is.
    plain: u64,
    /// With the flags.
    helped: u64,
    /// If the innermost call is not well-formed.
    broken: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.plain = self.plain.saturating_add(other.plain);
        self.helped = self.helped.saturating_add(other.helped);
        self.broken = self.broken.saturating_add(other.broken);
    }
}

/// What is to be done about a text.
pub(crate) enum Calls {
    Fine,
    /// The same query, read in linear time. Positions behind the flags are moved.
    Helped(String),
    /// Place of a call that is nested too deeply.
    Refused(usize),
}

impl Calls {
    /// O(length).
    pub(crate) fn of(text: &str) -> Self {
        let most = MOST.max(4 * text.len() as u64);
        let mut open = vec![Call::default()];
        let mut flags = vec![];
        let mut before: Option<(Kind, &str)> = None;
        let mut negated = false;
        for token in (Tokens { text, at: 0 }) {
            let own = reading(token.text.len() as u64);
            let own = Cost {
                plain: own,
                helped: own,
                broken: own,
            };
            if let Some(call) = open.last_mut() {
                call.cost.add(own);
                match token.kind {
                    Kind::Other(b',') => call.commas += 1,
                    Kind::Other(b';') => call.separator = true,
                    _ => {}
                }
            }
            match token.kind {
                Kind::Other(b'(') => open.push(Call {
                    function: function(before),
                    negated,
                    ..Call::default()
                }),
                Kind::Other(b'{') => open.push(Call {
                    brace: true,
                    negated,
                    ..Call::default()
                }),
                Kind::Other(b'|') if is(before, b'{') => {
                    if let Some(brace) = open.last_mut() {
                        brace.function = Function::Annotation;
                    }
                }
                Kind::Other(b @ (b')' | b'}')) if open.len() > 1 => {
                    // Where brackets do not match, the parser stops, and what stays open counts for more.
                    if let Some(call) = open.pop_if(|c| c.brace == (b == b'}')) {
                        if call.takes_flags() {
                            flags.push(token.start);
                        }
                        let cost = call.closed();
                        let again = !call.brace || call.is_read_again();
                        if again && (cost.helped > most || cost.broken > most) {
                            return Self::Refused(token.start);
                        }
                        if let Some(outer) = open.last_mut() {
                            outer.cost.add(cost);
                        }
                    }
                }
                _ => {}
            }
            negated = match token.kind {
                Kind::Other(b'!') => true,
                // A function's name, or EXISTS, or what a triple term begins with.
                Kind::Word | Kind::Iri | Kind::Other(b'<') => negated,
                _ => false,
            };
            before = Some((token.kind, token.text));
        }
        // What is never closed is an error that the parser finds only at the end of the text.
        let mut whole = Cost::default();
        while let Some(call) = open.pop() {
            let mut all = call.cost;
            all.add(whole);
            whole = Call { cost: all, ..call }.closed();
            if !open.is_empty() && whole.broken > most {
                return Self::Refused(text.len());
            }
        }
        if whole.helped > most.saturating_add(text.len() as u64) {
            return Self::Refused(text.len());
        }
        if flags.is_empty() || whole.plain <= text.len() as u64 + FEW {
            return Self::Fine;
        }
        let mut helped = String::with_capacity(text.len() + flags.len() * 3);
        let mut from = 0;
        for at in flags {
            helped.push_str(&text[from..at]);
            helped.push_str(",\"\"");
            from = at;
        }
        helped.push_str(&text[from..]);
        Self::Helped(helped)
    }
}

impl Call {
    fn takes_flags(&self) -> bool {
        match self.function {
            Function::Replace => self.commas == 2,
            Function::Regex => self.commas == 1,
            _ => false,
        }
    }

    /// What reading the whole call looks at.
    fn closed(&self) -> Cost {
        let twice = match self.function {
            Function::SubStr => self.commas == 1,
            Function::GroupConcat => !self.separator,
            _ => false,
        };
        let times = |n: u64, twice: bool| n.saturating_mul(if twice { 2 } else { 1 });
        Cost {
            plain: times(self.cost.plain, twice || self.takes_flags()),
            helped: times(self.cost.helped, twice),
            broken: times(
                times(self.cost.broken, self.function != Function::Other),
                self.negated,
            ),
        }
    }

    /// True if the parser tries it in two ways.
    fn is_read_again(&self) -> bool {
        self.negated || self.function != Function::Other
    }
}

/// What reading a token costs, in bytes of short ones: the inside of a long string is passed over quickly.
fn reading(length: u64) -> u64 {
    length.min(64) + length.saturating_sub(64) / 32
}

fn is(before: Option<(Kind, &str)>, other: u8) -> bool {
    matches!(before, Some((Kind::Other(b), _)) if b == other)
}

fn function(before: Option<(Kind, &str)>) -> Function {
    let named = [
        ("replace", Function::Replace),
        ("regex", Function::Regex),
        ("substr", Function::SubStr),
        ("group_concat", Function::GroupConcat),
    ];
    match before {
        Some((Kind::Iri, _)) => Function::Iri,
        Some((Kind::Word, word)) if word.contains(':') => Function::Iri,
        Some((Kind::Word, word)) => named
            .iter()
            .find(|n| word.eq_ignore_ascii_case(n.0))
            .map_or(Function::Other, |n| n.1),
        _ => Function::Other,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use jindou_model::Error;
    use std::time::{Duration, Instant};

    fn nested(levels: usize, open: &str, inner: &str, close: &str) -> String {
        format!(
            "SELECT ({}{inner}{} AS ?x) {{ ?s ?p ?o }}",
            open.repeat(levels),
            close.repeat(levels)
        )
    }

    #[test]
    fn nested_calls_are_read_quickly_or_refused() {
        let start = Instant::now();
        for (open, close) in [
            ("REPLACE(", ", \"a\", \"b\")"),
            ("replace (", ", \"(,\", \"b\" )"),
            ("REGEX(", ", \"a\")"),
            ("SUBSTR(", ", 2)"),
            ("GROUP_CONCAT(", ")"),
            ("<http://e/f>(", ")"),
            ("SUBSTR(REPLACE(", ", \"a\", \"b\"), 2)"),
            ("! (", ")"),
            ("IF(! ", ", 1, 2)"),
            ("!STR(!! ", ")"),
            ("IF(", ", 1, 2)"),
        ] {
            for levels in [1, 3, 8, 14, 40, 100] {
                for inner in ["\"x\"", "?s", "1 2"] {
                    let text = nested(levels, open, inner, close);
                    let result = parse(&text);
                    if inner != "1 2" && (levels <= 8 || open == "IF(" && levels <= 40) {
                        let aggregate = open.starts_with("GROUP") && levels > 1;
                        assert!(result.is_ok() || aggregate, "{text}: {result:?}");
                    }
                }
                let _ = parse(&format!("ASK {{ FILTER({} ", open.repeat(levels)));
            }
        }
        let deep = nested(14, "REPLACE(", "?s", ", \"a\", \"b\")");
        assert!(parse(&deep).is_ok(), "{deep}");
        let long = nested(
            3,
            "<http://e/f>(",
            &format!("\"{}\"", "0 ".repeat(500_000)),
            ")",
        );
        assert!(parse(&long).is_ok());
        let deeper = nested(40, "REPLACE(", "?s", ", \"a\", \"b\")");
        assert!(matches!(parse(&deeper), Err(Error::Limit(_))));
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{:?}",
            start.elapsed()
        );
    }

    /// Flags that mean none change nothing but the number of arguments.
    #[test]
    fn flags_are_only_added_where_they_are_missing() {
        let text = nested(13, "REPLACE(", "REGEX(?s, \"a\"), \"b\", \"c\", \"i\"", ")");
        assert!(parse(&text).is_err());
        let inner = "REPLACE(REGEX(?s, \"a,b)\"), \"b\", \"c\", \"i\")";
        let text = nested(13, "REPLACE(", inner, ", \"x\", \"y\")");
        let all = nested(13, "REPLACE(", inner, ", \"x\", \"y\", \"\")")
            .replace("\"a,b)\")", "\"a,b)\", \"\")");
        assert_eq!(
            parse(&text).unwrap().to_string(),
            parse(&all).unwrap().to_string()
        );
    }
}
