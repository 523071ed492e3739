//! Comparison with `spargebra`: both parsers accept the same texts and return the same algebra, except for known bugs.

use super::canonical::canonical;
use super::files::{none_is_wrong, texts};
use super::normal::normal;
use crate::{ParseFailure, ParserOptions};
use jindou_model::DiagnosticKind as D;
use oxiri::Iri;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::{Query, SparqlParser};
use std::collections::BTreeMap;

const BASE: &str = "http://example.org/base/";

enum Read {
    Query(Box<Query>),
    Update(Vec<spargebra::GraphUpdateOperation>, String),
}

impl Read {
    fn normal(&self, sorted: bool) -> String {
        match self {
            Self::Query(q) => normal(q, sorted),
            Self::Update(ops, base) => base.clone() + &normal(ops, sorted),
        }
    }
}

fn ours(text: &str, update: bool) -> Result<Read, ParseFailure> {
    let options = ParserOptions {
        base: Some(Iri::parse(BASE.to_owned()).unwrap()),
        ..ParserOptions::default()
    };
    if update {
        let u = crate::parse_update(text, &options)?;
        let ops = u.operations.iter().map(|o| (&o.operation).into());
        let base = u.base.map(|b| Iri::parse_unchecked(b.as_str().to_owned()));
        Ok(Read::Update(ops.collect(), format!("{base:?}")))
    } else {
        crate::parse_query(text, &options).map(|q| Read::Query(Box::new((&q).into())))
    }
}

fn theirs(text: &str, update: bool) -> Result<Read, String> {
    let parser = SparqlParser::new().with_base_iri(BASE).unwrap();
    if update {
        let u = parser.parse_update(text).map_err(|e| e.to_string())?;
        Ok(Read::Update(u.operations, format!("{:?}", u.base_iri)))
    } else {
        parser
            .parse_query(text)
            .map(|q| Read::Query(Box::new(q)))
            .map_err(|e| e.to_string())
    }
}

fn same(a: &Read, b: &Read) -> bool {
    a.normal(false) == b.normal(false) || a.normal(true) == b.normal(true)
}

/// Parses a text with both parsers. `Ok` with the known bug that explains the difference (empty if there is no
/// difference), or `Err` with an unexplained difference.
pub(super) fn compare(text: &str, update: bool) -> Result<&'static str, String> {
    let a = ours(text, update);
    let b = theirs(text, update);
    let agree = |a: &Result<Read, ParseFailure>, b: &Result<Read, String>| match (a, b) {
        (Ok(a), Ok(b)) => same(a, b),
        (Err(_), Err(_)) => true,
        _ => false,
    };
    if agree(&a, &b) {
        return Ok(if a.is_ok() { "" } else { "both refuse" });
    }
    if let Some(class) = known(text, update, &a, &b) {
        return Ok(class);
    }
    let decoded = crate::source::ParserText::new(text, true);
    match canonical(decoded.text(), a.is_err()) {
        None => return Ok("a number that begins with a dot"),
        Some(text) => {
            let c = theirs(&text, update);
            if agree(&a, &c) {
                return Ok("tokens");
            }
            if let Some(class) = known(&text, update, &a, &c) {
                return Ok(class);
            }
        }
    }
    Err(match (&a, &b) {
        (Ok(a), Ok(b)) => format!("ours:   {}\ntheirs: {}", a.normal(false), b.normal(false)),
        (Ok(_), Err(e)) => format!("only we accept; spargebra: {e}"),
        (Err(e), Ok(_)) => format!("only spargebra accepts:\n{e}"),
        (Err(_), Err(_)) => String::new(),
    })
}

/// The known bug of `spargebra`, other than in tokens, that explains a difference; `None` if there is none.
fn known(
    text: &str,
    update: bool,
    a: &Result<Read, ParseFailure>,
    b: &Result<Read, String>,
) -> Option<&'static str> {
    match (a, b) {
        (Err(ParseFailure::Text(faults)), Ok(_)) => {
            let first = faults.first();
            if faults
                .all()
                .iter()
                .all(|d| d.kind == D::Aggregate && d.message.contains("is not allowed"))
            {
                return Some("an aggregate where none can stand");
            }
            if first.kind == D::Redefined && first.message.contains("GROUP BY cannot") {
                return Some("a variable that GROUP BY gives another value");
            }
            if first.kind == D::Iri && first.message.starts_with('<') {
                return Some("a prefixed name that is not an IRI, read as two");
            }
            if update && first.kind == D::MissingDot {
                return Some("quads without dots between them");
            }
            if first.expected.as_deref()
                == Some(crate::advice::FaultPlace::TripleSubject.expected().as_str())
            {
                return Some("a subject of a triple term that is not an IRI and no variable");
            }
            if update && text.contains(';') && first.found.as_deref() == Some("';'") {
                return Some("a semicolon without an update");
            }
            let bytes = text.as_bytes();
            let at = first.start;
            let sign = at < bytes.len() && matches!(bytes[at], b'+' | b'-');
            if sign {
                return Some("a sign apart from its number");
            }
            None
        }
        (Err(ParseFailure::Limit(_)), Ok(_)) => Some("a limit"),
        (Ok(Read::Update(..)), Err(_)) => {
            let mut parts = text.split(';').skip(1);
            parts
                .any(|p| {
                    ["PREFIX", "BASE", "VERSION"]
                        .iter()
                        .any(|w| p.to_ascii_uppercase().contains(w))
                })
                .then_some("a prologue between updates")
        }
        (Ok(_), Err(_)) if lists_twice(text) => Some("a variable that is selected twice"),
        (Ok(Read::Query(q)), theirs) => grouped(q, theirs.is_err()),
        _ => None,
    }
}

/// True if some SELECT or DESCRIBE in the text may list a variable twice.
fn lists_twice(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let starts = ["SELECT", "DESCRIBE"].map(|word| upper.match_indices(word));
    starts.into_iter().flatten().any(|(at, _)| {
        let list = upper[at..].split(['{', '}']).next().unwrap_or("");
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let variables = list.split(['?', '$']).skip(1);
        let mut names: Vec<&str> = variables
            .map(|v| v.split(|c: char| !is_name(c)).next().unwrap_or(""))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        names.len() < all
    })
}

/// A feature of a grouped query that `spargebra` rejects (if `refused`) or parses differently; `None` if there is none.
fn grouped(q: &Query, refused: bool) -> Option<&'static str> {
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = q;
    if matches!(q, Query::Describe { .. }) && pattern.to_string().matches("?_gen").count() > 32 {
        return Some("many IRIs to describe");
    }
    let select = matches!(q, Query::Select { .. });
    let mut found = None;
    visit(pattern, &mut |p| match p {
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            let sampled = |(_, a): &(_, AggregateExpression)| {
                let AggregateExpression::FunctionCall { name, expr, .. } = a else {
                    return false;
                };
                *name == AggregateFunction::Sample && matches!(expr, Expression::Variable(_))
            };
            if aggregates.iter().any(sampled) {
                found = Some("a sample of what is not grouped");
            }
            if !select && refused {
                found = Some("groups of CONSTRUCT, ASK and DESCRIBE");
            }
            let mut at = inner;
            while let GraphPattern::Extend {
                inner, expression, ..
            } = &**at
            {
                if matches!(expression, Expression::Variable(_)) {
                    found = Some("GROUP BY (?x AS ?y)");
                }
                at = inner;
            }
        }
        GraphPattern::Extend {
            inner, expression, ..
        } if refused => {
            let mut at = inner;
            let mut earlier = vec![];
            while let GraphPattern::Extend {
                inner, variable, ..
            } = &**at
            {
                earlier.push(variable);
                at = inner;
            }
            let text = format!("{expression:?}");
            if earlier.iter().any(|v| text.contains(&format!("{v:?}"))) {
                found = Some("an expression of SELECT that uses another");
            }
        }
        _ => {}
    });
    found
}

fn visit(p: &GraphPattern, f: &mut impl FnMut(&GraphPattern)) {
    f(p);
    match p {
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            visit(left, f);
            visit(right, f);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. }
        | GraphPattern::Service { inner, .. } => visit(inner, f),
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => {}
    }
}

pub(super) fn on_deep_stack(f: impl FnOnce() + Send) {
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new()
            .stack_size(512 << 20)
            .spawn_scoped(s, f);
        if let Err(panic) = thread.unwrap().join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn what_others_wrote_gives_the_same_algebra() {
    on_deep_stack(|| {
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut wrong = vec![];
        for (path, update, text) in texts() {
            match compare(&text, update) {
                Ok(class) => *classes.entry(class).or_default() += 1,
                Err(why) => wrong.push(format!("{}:\n{text}\n{why}", path.display())),
            }
        }
        println!("{classes:#?}");
        none_is_wrong(&wrong);
    });
}

/// Words and signs that mutations insert.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "SELECT", "WHERE", "{", "}", "(", ")", "[", "]", "<<", ">>", "<<(", ")>>", "{|", "|}", "~", ".", ";", ",", "|", "/", "^", "^^",
    "*", "+", "?", "!", "!=", "=", "<", "<=", ">", ">=", "&&", "||", "-", "a", "?x", "?s", "$y", "_:b", "_:c", "[]", "()", "1", "-1", "+2.5",
    ".5", "1e3", "1.", "\"x\"", "'y'@en", "\"1\"^^<http://e/t>", "'''z'''", "@fr", "@ar--rtl", "<http://e/p>", "<r>", "<>", ":a", "rdf:type",
    "PREFIX : <http://e/>", "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>", "BASE <http://b/>", "VERSION \"1.2\"",
    "FILTER", "OPTIONAL", "UNION", "BIND", "AS", "VALUES", "UNDEF", "GRAPH", "MINUS", "SERVICE", "SILENT", "LATERAL", "EXISTS", "NOT", "IN",
    "NOT EXISTS", "DISTINCT", "REDUCED", "FROM", "NAMED", "GROUP BY", "HAVING", "ORDER BY", "ASC", "DESC", "LIMIT", "OFFSET", "true", "FALSE",
    "COUNT", "SUM", "MIN", "GROUP_CONCAT", "SEPARATOR", "SAMPLE", "STR", "REGEX", "SUBSTR", "REPLACE", "CONCAT", "COALESCE", "IF", "BNODE", "NOW",
    "BOUND", "sameTerm", "TRIPLE", "isTRIPLE", "STRLANGDIR", "ASK", "CONSTRUCT", "DESCRIBE", "INSERT", "DELETE", "DATA", "WITH", "USING", "LOAD",
    "INTO", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "TO", "DEFAULT", "ALL", "\\u0041", "# c\n", "ns:a.b.c", ":a-b", ":%41", ":\\~",
];

/// True for nesting for which `spargebra` needs exponential time or too much stack.
fn is_deep(text: &str) -> bool {
    let (mut depth, mut deepest, mut nots) = (0usize, 0, 0);
    for b in text.bytes() {
        match b {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b'!' => nots += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > 11 || nots > 12
}

fn mutants(count: usize, seed: u64) {
    let texts = texts();
    let (mut classes, mut wrong) = (BTreeMap::<&str, usize>::new(), vec![]);
    on_deep_stack(|| {
        for update in [false, true] {
            let mine: Vec<_> = texts
                .iter()
                .filter(|t| t.1 == update && t.2.len() < 4000)
                .map(|t| t.2.clone().into_bytes())
                .collect();
            let n = if update { count / 5 } else { count - count / 5 };
            let mut mutator = jindou_testing::Mutator::new(mine, WORDS);
            let mut rng = jindou_testing::Rng::new(seed + u64::from(update));
            for _ in 0..n {
                let text = mutator.text(&mut rng);
                let Ok(text) = String::from_utf8(text) else {
                    continue;
                };
                if is_deep(&text) || text.len() > 8000 {
                    continue;
                }
                match compare(&text, update) {
                    Ok(class) => {
                        *classes.entry(class).or_default() += 1;
                        if class.is_empty() && rng.chance(20) {
                            mutator.keep(&mut rng, text.as_bytes());
                        }
                    }
                    Err(why) => wrong.push(format!("{text}\n{why}")),
                }
                if wrong.len() > 20 {
                    return;
                }
            }
        }
    });
    println!("{classes:#?}");
    none_is_wrong(&wrong);
}

#[test]
fn mutants_give_the_same_algebra() {
    mutants(20_000, 1);
}

/// `JINDOU_SEED` and `JINDOU_COUNT` select the mutants.
#[test]
#[ignore = "long: two million texts, some 3 minutes"]
fn two_million_mutants_give_the_same_algebra() {
    let count = jindou_testing::from_environment("JINDOU_COUNT", 2_000_000);
    let seed = jindou_testing::from_environment("JINDOU_SEED", 100);
    mutants(count as usize, seed);
}
