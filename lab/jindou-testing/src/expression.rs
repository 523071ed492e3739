//! Random expressions over the variables `?a`, `?b`, `?c` and values of [`matrix`](crate::matrix).

use crate::{Rng, reference};
use oxrdf::Term;
use spargebra::algebra::Expression;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The kinds of values that an expression and its rows mainly have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Only numbers, so that the engine can compute columns of numbers without creating terms.
    Arithmetic,
    /// Numbers and booleans, with casts between them.
    Numbers,
    /// Dates, times and durations.
    Times,
    /// Strings with and without language tags.
    Texts,
    /// Everything.
    All,
}

impl Theme {
    /// A random theme.
    pub fn one(rng: &mut Rng) -> Self {
        use Theme::{All, Arithmetic, Numbers, Texts, Times};
        rng.one(&[Arithmetic, Numbers, Times, Times, Texts, All])
    }

    /// True if the theme includes values such as this one.
    pub fn has(self, term: &Term) -> bool {
        let datatype = match term {
            Term::Literal(l) => l.datatype().as_str().to_owned(),
            _ => String::new(),
        };
        let local = datatype.strip_prefix(XSD).unwrap_or("");
        let lower = local.to_ascii_lowercase();
        let text = local == "string" || datatype.ends_with("angString");
        let time = ["date", "time", "gy", "gm", "gd", "duration"]
            .iter()
            .any(|t| lower.contains(t));
        match self {
            Self::Arithmetic => reference::is_numeric(term),
            Self::Numbers => {
                !text && !time && !local.is_empty() && local != "hexBinary" && local != "anyURI"
            }
            Self::Times => time,
            Self::Texts => text,
            Self::All => true,
        }
    }
}

/// An expression as text, with its subexpressions.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A variable or constant.
    Leaf(String),
    /// An operator or call: a text in which each `·` stands for the next subexpression.
    Node(&'static str, Vec<Tree>),
}

impl Tree {
    /// The text.
    pub fn text(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Node(template, parts) => {
                let mut out = String::new();
                let mut rest = parts.iter();
                for piece in template.split_inclusive('·') {
                    match (piece.strip_suffix('·'), rest.next()) {
                        (Some(before), Some(part)) => out += &format!("{before}{}", part.text()),
                        _ => out += piece,
                    }
                }
                out
            }
        }
    }

    /// The subexpressions.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Leaf(_) => &[],
            Self::Node(_, parts) => parts,
        }
    }

    /// The algebra of the expression.
    #[allow(clippy::panic)]
    pub fn algebra(&self) -> Expression {
        algebra(&self.text())
    }
}

/// The algebra of an expression in SPARQL syntax.
#[allow(clippy::panic)]
pub fn algebra(text: &str) -> Expression {
    use spargebra::algebra::GraphPattern;
    let query = format!("SELECT (({text}) AS ?result) {{}}");
    match spargebra::SparqlParser::new().parse_query(&query) {
        Ok(spargebra::Query::Select {
            pattern: GraphPattern::Project { inner, .. },
            ..
        }) => match *inner {
            GraphPattern::Extend { expression, .. } => expression,
            other => panic!("{text}: {other}"),
        },
        other => panic!("{text}: {other:?}"),
    }
}

// Templates, separated by `; `.
const RELATIONS: &str = "(· = ·); (· != ·); (· < ·); (· <= ·); (· > ·); (· >= ·); sameTerm(·, ·)";
const LOGIC: &str = "(· && ·); (· || ·); (!·); (· IN (·, ·)); (· NOT IN (·, ·))";
const CHOICES: &str = "IF(·, ·, ·); COALESCE(·, ·); IF(BOUND(?c), ·, ·)";
const CALCULATION: &str = "(· + ·); (· - ·); (· * ·); (· / ·); (-·); (+·)";
const ROUNDING: &str = "ABS(·); CEIL(·); FLOOR(·); ROUND(·)";
const NUMBER_CASTS: &str = "\
    <http://www.w3.org/2001/XMLSchema#integer>(·); <http://www.w3.org/2001/XMLSchema#decimal>(·); \
    <http://www.w3.org/2001/XMLSchema#float>(·); <http://www.w3.org/2001/XMLSchema#double>(·); \
    <http://www.w3.org/2001/XMLSchema#boolean>(·); <http://www.w3.org/2001/XMLSchema#string>(·)";
const TIME_CASTS: &str = "\
    <http://www.w3.org/2001/XMLSchema#dateTime>(·); <http://www.w3.org/2001/XMLSchema#date>(·); \
    <http://www.w3.org/2001/XMLSchema#time>(·); <http://www.w3.org/2001/XMLSchema#duration>(·); \
    <http://www.w3.org/2001/XMLSchema#yearMonthDuration>(·); \
    <http://www.w3.org/2001/XMLSchema#dayTimeDuration>(·)";
const PARTS: &str = "\
    YEAR(·); MONTH(·); DAY(·); HOURS(·); MINUTES(·); SECONDS(·); TIMEZONE(·); TZ(·)";
const STRINGS: &str = "\
    STRLEN(·); UCASE(·); LCASE(·); ENCODE_FOR_URI(·); CONCAT(·, ·); CONCAT(·, \"-\"); CONTAINS(·, ·); \
    STRSTARTS(·, ·); STRENDS(·, ·); STRBEFORE(·, ·); STRAFTER(·, ·); SUBSTR(·, 2); SUBSTR(·, 0, 2); \
    REGEX(·, \"^a\"); REGEX(·, \"B\", \"i\"); REGEX(·, \"[^a-c]\"); REGEX(·, \"a.\", \"q\"); \
    REPLACE(·, \"\", \"z\"); REPLACE(·, \"b\", \"$0$0\"); REPLACE(·, \"(a)(b)?\", \"$2$1\"); \
    REPLACE(·, \"a\", \"\\\\\"); MD5(·); SHA1(·); SHA256(·); LANGMATCHES(LANG(·), \"EN\"); STRLANG(·, \"EN\")";
const TERMS: &str = "\
    STR(·); LANG(·); DATATYPE(·); isIRI(·); isBLANK(·); isLITERAL(·); isNUMERIC(·); isTRIPLE(·); \
    TRIPLE(<http://e/s>, <http://e/p>, ·); OBJECT(·); SUBJECT(·); hasLANG(·); \
    STRDT(·, <http://www.w3.org/2001/XMLSchema#integer>); IRI(·)";
/// Constant expressions for special values, such as errors, NaN and infinity.
const MADE: &str = "\
    (0e0 / 0e0); (-(0e0 / 0e0)); (1e0 / 0e0); (1 / 0); (-0e0); ?unbound; (1 / 3); (0 / 1.1); true; false";

/// A random expression of at most `depth` levels.
pub fn tree(rng: &mut Rng, theme: Theme, values: &[Term], depth: usize) -> Tree {
    if depth == 0 || rng.chance(8) {
        return leaf(rng, theme, values);
    }
    let groups: &[&'static str] = match theme {
        Theme::Arithmetic => &[CALCULATION, CALCULATION, CALCULATION, RELATIONS],
        Theme::Numbers => &[
            RELATIONS,
            CALCULATION,
            ROUNDING,
            NUMBER_CASTS,
            LOGIC,
            CHOICES,
        ],
        Theme::Times => &[
            RELATIONS,
            RELATIONS,
            CALCULATION,
            TIME_CASTS,
            PARTS,
            LOGIC,
            CHOICES,
        ],
        Theme::Texts => &[STRINGS, STRINGS, RELATIONS, LOGIC, CHOICES, TERMS],
        Theme::All => &[
            RELATIONS,
            LOGIC,
            CHOICES,
            CALCULATION,
            ROUNDING,
            NUMBER_CASTS,
            TIME_CASTS,
            PARTS,
            STRINGS,
            TERMS,
        ],
    };
    let group = rng.one(groups);
    let template = rng.part(group);
    let parts = (0..template.matches('·').count())
        .map(|_| tree(rng, theme, values, depth - 1))
        .collect();
    Tree::Node(template, parts)
}

fn leaf(rng: &mut Rng, theme: Theme, values: &[Term]) -> Tree {
    Tree::Leaf(match rng.below(20) {
        0..=12 => rng.one(&["?a", "?a", "?b", "?b", "?c"]).to_owned(),
        13 => rng.part(MADE).to_owned(),
        _ => {
            let theme = if rng.chance(90) { theme } else { Theme::All };
            loop {
                let term = &values[rng.below(values.len())];
                if theme.has(term) && !matches!(term, Term::BlankNode(_)) {
                    return Tree::Leaf(term.to_string());
                }
            }
        }
    })
}
