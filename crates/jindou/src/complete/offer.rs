//! Makes suggestions from candidates and keywords: filtered by the word so far, best first.

use super::data::{Candidate, CandidateSearch, FoundCandidates};
use super::labels;
use super::names::Names;
use super::{Completion, Counts, Item, Kind};
use jindou_syntax::algebra::Function;
use jindou_syntax::place::{CursorPlace, Slot};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, Term};
use rustc_hash::FxHashSet;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "SELECT", "WHERE", "PREFIX", "ASK", "CONSTRUCT", "DESCRIBE", "DISTINCT", "FROM", "FROM NAMED", "GROUP BY", "HAVING", "ORDER BY",
    "LIMIT", "OFFSET", "VALUES", "REDUCED", "BASE", "AS", "UNION", "INSERT DATA", "DELETE DATA", "DELETE WHERE", "INSERT", "DELETE",
    "WITH", "USING", "USING NAMED", "LOAD", "CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD",
];
#[rustfmt::skip]
pub(crate) const GROUP_WORDS: &[&str] = &[
    "OPTIONAL", "FILTER", "BIND", "UNION", "MINUS", "VALUES", "GRAPH", "SERVICE", "FILTER EXISTS", "FILTER NOT EXISTS", "SELECT",
];
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "COUNT", "STR", "LANG", "BOUND", "REGEX", "CONTAINS", "STRSTARTS", "SUM", "AVG", "MIN", "MAX", "DATATYPE", "IF", "COALESCE",
    "EXISTS", "NOT EXISTS", "IN", "NOT IN", "DESC", "ASC", "AS", "DISTINCT", "STRENDS", "STRLEN", "SUBSTR", "REPLACE", "UCASE", "LCASE",
    "CONCAT", "STRBEFORE", "STRAFTER", "ENCODE_FOR_URI", "LANGMATCHES", "GROUP_CONCAT", "SAMPLE", "SEPARATOR", "ABS", "ROUND", "CEIL",
    "FLOOR", "RAND", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ", "NOW", "IRI", "URI", "BNODE", "UUID",
    "STRUUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "STRLANG", "STRDT", "sameTerm", "isIRI", "isBLANK", "isLITERAL",
    "isNUMERIC", "TRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "isTRIPLE",
];

/// The longest literal that is offered, in bytes.
const LONGEST_LITERAL: usize = 200;
/// How objects and variables alternate in suggestions for an object: this many objects, then this many variables, then
/// the remaining objects, then the remaining variables.
const ALTERNATION_OBJECTS: [usize; 2] = [7, 3];
/// How classes and variables alternate in suggestions for a class, where a variable is unlikely to be wanted.
const AMONG_CLASSES: [usize; 2] = [9, 1];

/// Rank of an item's match with the word so far; lower is better.
type MatchRank = u8;

/// The completion: suggestions from `found`, labels, variables, keywords and prefixes, at most `limit`.
pub(crate) fn completion(
    place: &CursorPlace,
    word: &str,
    look: &CandidateSearch<'_>,
    found: FoundCandidates,
    limit: usize,
) -> Completion {
    let names = &look.names;
    let wanted = PartialWord::parse(word, names);
    let is_type = place.predicate.as_ref().and_then(|p| names.iri(p));
    let is_type = is_type.is_some_and(|p| p == rdf::TYPE.as_str());
    let said = said(place, names);
    // If the patterns do not constrain the subject yet, `rdf:type` comes first, since most queries state the class
    // first.
    let unknown = place.slot == Slot::Predicate
        && !place.inverse
        && place
            .subject
            .as_ref()
            .is_some_and(|s| look.about(s).is_empty());
    let first = |c: &Candidate| unknown && c.term == Term::from(rdf::TYPE.into_owned());
    let mut ranked: Vec<(MatchRank, &Candidate)> = found
        .all
        .iter()
        .filter_map(|c| Some((wanted.match_rank(&c.term)?, c)))
        .collect();
    ranked.sort_by_cached_key(|(match_rank, c)| {
        let count = std::cmp::Reverse(c.count);
        (
            *match_rank,
            !first(c),
            said.contains(&c.term),
            count,
            c.term.to_string(),
        )
    });
    let data = ranked
        .into_iter()
        .filter_map(|(_, c)| item(c, place.slot, is_type, found.counts, names));
    let mut items: Vec<Item> = data.take(limit).collect();
    let mut labelled = Vec::new();
    if items.len() < limit {
        let by_name = |term: &Term| wanted.match_rank(term).is_some();
        let more = labels::found(look, word, is_type, &found.all, by_name);
        labelled = more
            .into_iter()
            .filter_map(|l| {
                let counts = match l.is_counted {
                    true => found.counts,
                    false => Counts::Nothing,
                };
                let item = item(&l.candidate, place.slot, is_type, counts, names)?;
                Some(Item {
                    label: l.label,
                    ..item
                })
            })
            .collect();
        if place.slot != Slot::Subject {
            items.append(&mut labelled);
        }
    }
    let variables = variables(place, word);
    match place.slot {
        Slot::Object => {
            let [before, most] = if is_type {
                AMONG_CLASSES
            } else {
                ALTERNATION_OBJECTS
            };
            let rest = items.split_off(items.len().min(before));
            let mut near = variables;
            let far = near.split_off(near.len().min(most));
            items.append(&mut near);
            items.extend(rest);
            items.extend(far);
        }
        Slot::Nothing | Slot::Prefix => {}
        _ => items.extend(variables),
    }
    words(place.slot, word, &mut items);
    prefixes(place.slot, word, names, &mut items);
    // Resources found by label come last in suggestions for a subject, since few triple patterns have a constant
    // subject.
    items.append(&mut labelled);
    items.truncate(limit);
    let counted = items.iter().any(|i| i.count.is_some());
    Completion {
        slot: place.slot,
        from: place.from,
        counts: if counted {
            found.counts
        } else {
            Counts::Nothing
        },
        partial: found.partial,
        items,
    }
}

/// Predicates (or classes) that the patterns already state about the subject. They rank lower, since they are rarely
/// repeated.
fn said(place: &CursorPlace, names: &Names<'_>) -> FxHashSet<Term> {
    let own = place
        .patterns
        .iter()
        .filter(|p| Some(&p.subject) == place.subject.as_ref());
    let terms = own.filter_map(|p| match place.slot {
        Slot::Predicate if !place.inverse => names.iri(&p.predicate),
        Slot::Object if Some(&p.predicate) == place.predicate.as_ref() => names.iri(&p.object),
        _ => None,
    });
    terms
        .filter_map(|iri| Some(oxrdf::NamedNode::new(iri).ok()?.into()))
        .collect()
}

/// The word so far, classified by the syntax with which it begins.
enum PartialWord<'w> {
    Anything,
    /// `<…`: the beginning of an IRI.
    Iri(&'w str),
    /// `ns:…`: a namespace and the beginning of a local name.
    Local(String, String),
    /// `"…`, `5`: the beginning of a literal.
    Literal(&'w str),
    /// Part of a name, case-folded.
    Part(String),
}

impl<'w> PartialWord<'w> {
    fn parse(word: &'w str, names: &Names<'_>) -> Self {
        if word.is_empty() {
            return Self::Anything;
        }
        if let Some(iri) = word.strip_prefix('<') {
            return Self::Iri(iri);
        }
        if word.starts_with(['"', '\'', '+', '-', '.'])
            || word.starts_with(|c: char| c.is_ascii_digit())
        {
            return Self::Literal(word);
        }
        if let Some((prefix, local)) = word.split_once(':')
            && let Some(space) = names.space(prefix)
        {
            return Self::Local(space.to_owned(), labels::folded(local));
        }
        Self::Part(labels::folded(word))
    }

    /// The rank of a term's match with the word; `None` if the term does not match.
    fn match_rank(&self, term: &Term) -> Option<MatchRank> {
        let iri = match term {
            Term::NamedNode(n) => Some(n.as_str()),
            _ => None,
        };
        match self {
            Self::Anything => Some(0),
            Self::Iri(beginning) => {
                let iri = iri?;
                let lower = || labels::folded(iri).contains(&labels::folded(beginning));
                if iri.starts_with(beginning) {
                    Some(0)
                } else {
                    lower().then_some(1)
                }
            }
            Self::Local(space, local) => {
                let own = iri?.strip_prefix(space.as_str())?;
                match_rank(&labels::folded(own), local)
            }
            Self::Literal(beginning) => match term {
                Term::Literal(l) => l
                    .to_string()
                    .starts_with(beginning)
                    .then_some(0)
                    .or_else(|| l.value().starts_with(beginning).then_some(0)),
                _ => None,
            },
            Self::Part(part) => match term {
                Term::NamedNode(n) => {
                    let iri = n.as_str();
                    let local = iri.rfind(['#', '/', ':']).map_or(iri, |at| &iri[at + 1..]);
                    let whole = || labels::folded(iri).contains(part).then_some(2);
                    // `a` is the usual way to write `rdf:type`.
                    if part == "a" && iri == rdf::TYPE.as_str() {
                        return Some(0);
                    }
                    match_rank(&labels::folded(local), part).or_else(whole)
                }
                Term::Literal(l) => match_rank(&labels::folded(l.value()), part).map(|f| f + 1),
                _ => None,
            },
        }
    }
}

/// The rank of a name's match with the word: better at the name's beginning than inside it.
fn match_rank(name: &str, part: &str) -> Option<MatchRank> {
    if name.starts_with(part) {
        Some(0)
    } else {
        name.contains(part).then_some(1)
    }
}

fn item(
    c: &Candidate,
    slot: Slot,
    is_type: bool,
    counts: Counts,
    names: &Names<'_>,
) -> Option<Item> {
    let count = (counts != Counts::Nothing).then_some(c.count);
    match &c.term {
        Term::NamedNode(n) => {
            let iri = n.as_str();
            let (text, declare) = if slot == Slot::Predicate && iri == rdf::TYPE.as_str() {
                ("a".to_owned(), None)
            } else {
                names.short(iri)?
            };
            let kind = match slot {
                Slot::Predicate => Kind::Predicate,
                Slot::Graph => Kind::Graph,
                _ if is_type => Kind::Class,
                _ => Kind::Object,
            };
            Some(Item {
                text,
                kind,
                iri: Some(iri.to_owned()),
                count,
                declare,
                label: None,
            })
        }
        Term::Literal(l) if l.value().len() <= LONGEST_LITERAL => {
            let (text, declare) = literal(l, names);
            Some(Item {
                text,
                kind: Kind::Literal,
                iri: None,
                count,
                declare,
                label: None,
            })
        }
        _ => None,
    }
}

/// A literal in the form in which a query writes it, and the undeclared prefix that it needs, if any. Numbers and
/// booleans are written without quotes if that denotes the same term.
fn literal(l: &Literal, names: &Names<'_>) -> (String, Option<(String, String)>) {
    let value = l.value();
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    let bare = match l.datatype() {
        t if t == xsd::INTEGER => digits(unsigned),
        t if t == xsd::DECIMAL => unsigned
            .split_once('.')
            .is_some_and(|(whole, part)| (whole.is_empty() || digits(whole)) && digits(part)),
        t if t == xsd::BOOLEAN => matches!(value, "true" | "false"),
        _ => false,
    };
    if bare {
        return (value.to_owned(), None);
    }
    let plain = l.datatype() == xsd::STRING || l.language().is_some();
    match names.short(l.datatype().as_str()) {
        Some((datatype, declare)) if !plain => {
            let lexical = Literal::new_simple_literal(value);
            (format!("{lexical}^^{datatype}"), declare)
        }
        _ => (l.to_string(), None),
    }
}

/// Variables of the text. As a subject or object, variables that no pattern uses yet (named in the SELECT clause) come
/// first, in the order of the text; then those in patterns, the nearest to the cursor first.
fn variables(place: &CursorPlace, word: &str) -> Vec<Item> {
    let begins = word.is_empty() || word.starts_with(['?', '$']);
    let takes = matches!(
        place.slot,
        Slot::Subject | Slot::Object | Slot::Variable | Slot::Expression | Slot::Graph
    );
    // As predicates, variables are offered only after something was typed, since they are rare there.
    let wanted = takes || place.slot == Slot::Predicate && !word.is_empty();
    if !begins || !wanted {
        return Vec::new();
    }
    let stem = word.strip_prefix(['?', '$']).unwrap_or_default();
    let sign = if word.starts_with('$') { '$' } else { '?' };
    let own = place
        .subject
        .as_deref()
        .filter(|_| place.slot == Slot::Object);
    let fits = |v: &&String| {
        let name = v.get(1..).unwrap_or_default();
        name.starts_with(stem) && Some(v.as_str()) != own
    };
    let item = |v: &String| Item {
        text: format!("{sign}{}", v.get(1..).unwrap_or_default()),
        kind: Kind::Variable,
        iri: None,
        count: None,
        declare: None,
        label: None,
    };
    let mut all: Vec<&String> = place.variables.iter().filter(fits).collect();
    if matches!(place.slot, Slot::Subject | Slot::Object) {
        let used: FxHashSet<&str> = place
            .patterns
            .iter()
            .flat_map(|p| [&p.subject, &p.predicate, &p.object])
            .map(String::as_str)
            .collect();
        let is_used = |v: &&String| used.contains(v.as_str());
        let (near, mut unused): (Vec<_>, Vec<_>) = all.into_iter().partition(is_used);
        unused.reverse();
        all = unused;
        all.extend(near);
    }
    all.into_iter().map(item).collect()
}

fn words(slot: Slot, word: &str, items: &mut Vec<Item>) {
    let (all, kind): (&[&str], Kind) = match slot {
        Slot::Keyword | Slot::Variable => (WORDS, Kind::Keyword),
        Slot::Subject => (GROUP_WORDS, Kind::Keyword),
        Slot::Expression => (FUNCTIONS, Kind::Function),
        _ => return,
    };
    let wanted = word.to_ascii_uppercase();
    let fits = |w: &&str| w.to_ascii_uppercase().starts_with(&wanted);
    // Functions that are not in the list of frequent ones are offered after those.
    let functions = Function::all().iter().filter(|_| kind == Kind::Function);
    let others = functions.flat_map(|d| d.names).copied();
    let others = others.filter(|w| !all.contains(w));
    items.extend(
        all.iter()
            .copied()
            .chain(others)
            .filter(fits)
            .map(|w| Item {
                text: w.to_owned(),
                kind,
                iri: None,
                count: None,
                declare: None,
                label: None,
            }),
    );
}

/// Adds prefixes that begin with the word.
fn prefixes(slot: Slot, word: &str, names: &Names<'_>, items: &mut Vec<Item>) {
    let at_prefix = slot == Slot::Prefix;
    let takes = matches!(
        slot,
        Slot::Subject | Slot::Predicate | Slot::Object | Slot::Graph | Slot::Expression
    );
    let stem = if at_prefix {
        word.trim_end_matches(':')
    } else {
        word
    };
    let is_name = stem
        .chars()
        .all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if !(at_prefix || takes && !word.is_empty()) || !is_name {
        return;
    }
    let mut all: Vec<_> = names
        .all()
        .filter(|(name, _, own)| name.starts_with(stem) && !(at_prefix && *own))
        .collect();
    all.sort_unstable_by_key(|(name, _, own)| (!own, *name));
    items.extend(all.into_iter().map(|(name, iri, own)| Item {
        text: if at_prefix {
            format!("{name}: <{iri}>")
        } else {
            format!("{name}:")
        },
        kind: Kind::Prefix,
        iri: Some(iri.to_owned()),
        count: None,
        declare: (!own && !at_prefix).then(|| (name.to_owned(), iri.to_owned())),
        label: None,
    }));
}
