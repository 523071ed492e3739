//! Literals of the store that are similar to one in the query.

use super::pattern::one;
use super::probe::ProbedGraphs;
use super::walk::PatternWalk;
use super::words::{constant, list, pattern_of};
use super::{ReasonKind as K, Suggestion};
use jindou_plan::sparql::{NamedNodePattern, TermPattern, TriplePattern, Variable};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, NamedNode, Term};
use std::ops::Range;

/// Languages that are tried in addition to those of the predicate's own values.
const LANGUAGES: &[&str] = &[
    "en", "de", "fr", "es", "it", "nl", "pt", "pl", "ru", "ja", "zh", "sv", "da", "nb", "fi", "cs",
    "sk", "hu", "ro", "bg", "el", "hr", "sl", "et", "lv", "lt", "ga", "mt", "uk", "ar", "he", "fa",
    "tr", "ko", "vi", "id", "hi", "ca", "eu", "gl", "la", "no", "nn", "sr", "en-us", "en-gb",
    "pt-br", "zh-hans", "zh-hant", "de-ch", "fr-ca",
];
/// Longest literal that a suggestion contains, in bytes.
const LONGEST: usize = 300;
/// Largest number of similar literals that are returned.
const FOUND: usize = 3;
/// Largest number of statements of a predicate whose values are scanned.
const LOOKED_THROUGH: u64 = 2_000_000;

impl PatternWalk<'_, '_> {
    /// Reports that a literal has no match. Mentions similar literals of the store, or else an example of the
    /// predicate's values.
    pub(super) fn other_literal(
        &mut self,
        t: &Term,
        part: &TermPattern,
        of: Option<&TriplePattern>,
        range: Option<&Range<usize>>,
    ) {
        let Term::Literal(l) = t else { return };
        let told = self.text.told(t, range);
        let predicate = of.map(|t| &t.predicate);
        let of_predicate = predicate.and_then(|p| match p {
            NamedNodePattern::NamedNode(n) => Some(n.as_str()),
            NamedNodePattern::Variable(_) => None,
        });
        let known = self.probe.knows(t);
        let found = self.literals_like(l, predicate);
        let short: Vec<String> = found
            .iter()
            .map(|t| super::words::shortened(&self.text.term(t)))
            .collect();
        let predicate_told = of_predicate.map(|p| self.text.iri(p));
        let kind = match found.is_empty() {
            true if !known => K::UnknownTerm,
            true => K::OtherPosition,
            false => K::OtherLiteral,
        };
        let (does, are) = match found.len() {
            1 => ("does", "is"),
            _ => ("do", "are"),
        };
        let message = match (known, found.is_empty(), predicate_told) {
            (false, true, _) => format!("{told} does not occur in this store"),
            (false, false, _) => {
                format!(
                    "{told} does not occur in this store, but {} {does}",
                    list(&short)
                )
            }
            (true, true, Some(p)) => format!("{told} is not a value of {p}"),
            (true, false, Some(p)) => {
                format!("{told} is not a value of {p}, but {} {are}", list(&short))
            }
            (true, true, None) => format!("{told} is the object of no triple"),
            (true, false, None) => {
                format!(
                    "{told} is the object of no triple, but {} {are}",
                    list(&short)
                )
            }
        };
        let mut reason = self.text.reason(kind, message, range);
        for t in &found {
            let text = self.text.term(t);
            let suggestion = Suggestion::new(format!("write {}", super::words::shortened(&text)));
            reason.suggestions.push(match range {
                Some(range) if text.len() <= LONGEST => suggestion.replacing(range.clone(), text),
                _ => suggestion,
            });
        }
        if found.is_empty()
            && let Some(p) = of_predicate
            && let Some(example) = self.example(p, part)
        {
            reason.message.push_str(&super::words::clean(&example));
        }
        self.push(reason);
    }

    /// Part of a sentence with an example of the predicate's values; `None` if no value is suitable.
    fn example(&self, predicate: &str, not: &TermPattern) -> Option<String> {
        let text = format!("SELECT ?o {{ ?s <{predicate}> ?o }} LIMIT 1");
        let row = self
            .probe
            .select(&text, ProbedGraphs::All)
            .into_iter()
            .next()?;
        let value = row.into_iter().next().flatten()?;
        if constant(not).as_ref() == Some(&value) || matches!(value, Term::BlankNode(_)) {
            return None;
        }
        let value = super::words::shortened(&self.text.term(&value));
        let predicate = self.text.iri(predicate);
        Some(format!("; a value of {predicate} is {value}, for example"))
    }

    /// Literals that occur as objects of the predicate and have the same text or number, but another language, datatype
    /// or case.
    fn literals_like(&self, l: &Literal, predicate: Option<&NamedNodePattern>) -> Vec<Term> {
        // A long text is unlikely to be a misspelling, and each candidate would copy it.
        if l.value().len() > LONGEST {
            return Vec::new();
        }
        let mut found: Vec<Term> = Vec::new();
        let own = Term::from(l.clone());
        for candidate in self.candidates(l, predicate) {
            if found.len() >= FOUND || !self.probe.goes_on() {
                break;
            }
            if candidate != own
                && !found.contains(&candidate)
                && self.probe.knows(&candidate)
                && self.is_object(&candidate, predicate)
            {
                found.push(candidate);
            }
        }
        if found.is_empty()
            && let Some(NamedNodePattern::NamedNode(p)) = predicate
            && self.probe.uses(p.as_str()) <= LOOKED_THROUGH
        {
            found = self.looked_through(l, p.as_str());
            found.retain(|t| *t != own);
        }
        found
    }

    fn is_object(&self, t: &Term, predicate: Option<&NamedNodePattern>) -> bool {
        let Some(object) = pattern_of(t) else {
            return false;
        };
        let pattern = one(TriplePattern {
            subject: Variable::new_unchecked("jindou_any_0").into(),
            predicate: match predicate {
                Some(p @ NamedNodePattern::NamedNode(_)) => p.clone(),
                _ => Variable::new_unchecked("jindou_any_1").into(),
            },
            object,
        });
        self.probe.has(&pattern, ProbedGraphs::All) == Some(true)
    }

    /// Scans a predicate's values for one that is equal to the literal, or has the same text except for case.
    fn looked_through(&self, l: &Literal, predicate: &str) -> Vec<Term> {
        let text = Literal::new_simple_literal(l.value().trim().to_lowercase());
        let query = format!(
            "SELECT ?o {{ ?s <{predicate}> ?o FILTER(COALESCE(?o = {l}, false) || LCASE(STR(?o)) = {text}) }} LIMIT 1"
        );
        let rows = self.probe.select(&query, ProbedGraphs::All).into_iter();
        rows.filter_map(|row| row.into_iter().next().flatten())
            .collect()
    }

    /// Literals to look up: the same text with other languages and datatypes, then with other case.
    fn candidates(&self, l: &Literal, predicate: Option<&NamedNodePattern>) -> Vec<Term> {
        let mut languages: Vec<String> = Vec::new();
        let mut types: Vec<String> = Vec::new();
        if let Some(NamedNodePattern::NamedNode(p)) = predicate {
            let text = format!("SELECT ?o {{ ?s {p} ?o }} LIMIT 500");
            for row in self.probe.select(&text, ProbedGraphs::All) {
                let Some(Some(Term::Literal(value))) = row.into_iter().next() else {
                    continue;
                };
                match value.language() {
                    Some(tag) if !languages.iter().any(|t| t == tag) => {
                        languages.push(tag.to_owned());
                    }
                    Some(_) => {}
                    None => {
                        let datatype = value.datatype().as_str();
                        if !types.iter().any(|t| t == datatype) {
                            types.push(datatype.to_owned());
                        }
                    }
                }
            }
        }
        languages.extend(LANGUAGES.iter().map(|&t| t.to_owned()));
        let common = [
            xsd::STRING,
            xsd::INTEGER,
            xsd::DECIMAL,
            xsd::DOUBLE,
            xsd::FLOAT,
            xsd::INT,
            xsd::LONG,
            xsd::NON_NEGATIVE_INTEGER,
            xsd::POSITIVE_INTEGER,
            xsd::BOOLEAN,
            xsd::DATE,
            xsd::DATE_TIME,
            xsd::G_YEAR,
            xsd::G_YEAR_MONTH,
            xsd::ANY_URI,
            rdf::HTML,
        ];
        types.extend(common.iter().map(|t| t.as_str().to_owned()));
        let value = l.value();
        let trimmed = value.trim();
        let mut texts = vec![value.to_owned()];
        let mut chars = trimmed.chars();
        let capital = chars.next().map_or(String::new(), |c| {
            c.to_uppercase()
                .chain(chars.flat_map(char::to_lowercase))
                .collect()
        });
        for text in [
            trimmed.to_owned(),
            trimmed.to_lowercase(),
            trimmed.to_uppercase(),
            capital,
        ] {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let mut out = Vec::new();
        for text in texts {
            for tag in &languages {
                out.push(Literal::new_language_tagged_literal_unchecked(&text, tag).into());
            }
            for datatype in &types {
                let datatype = NamedNode::new_unchecked(datatype);
                out.push(Literal::new_typed_literal(&text, datatype).into());
            }
        }
        if let Ok(iri) = NamedNode::new(trimmed) {
            out.push(iri.into());
        }
        out
    }
}
