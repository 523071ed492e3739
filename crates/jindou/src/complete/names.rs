//! Prefixes: expansion of names to IRIs, and abbreviation of IRIs to names.

use crate::options::QueryOptions;
use crate::results::namespaces;
use jindou_model::iri::resolve;
use jindou_model::prefixes::PrefixTable;
use jindou_plan::oxiri::Iri;
use jindou_syntax::place::CursorPlace;
use jindou_syntax::{COMMON_PREFIXES, prefixes_of};
use oxrdf::NamedNode;
use rustc_hash::FxHashMap;

/// The prefixes that apply to a text. Declarations in the text take precedence.
pub(crate) struct Names<'p> {
    /// IRI of each prefix that the query may use without a new declaration: the store's, the options' and the text's
    /// own.
    declared: FxHashMap<&'p str, &'p str>,
    /// For each namespace, its prefix, and true if that prefix is declared.
    spaces: FxHashMap<&'p str, (&'p str, bool)>,
    base: Option<Iri<&'p str>>,
}

impl<'p> Names<'p> {
    /// The prefixes at a cursor; `options` contains prefixes in addition to the store's and the common ones. If a
    /// namespace has several prefixes, one that `text` declares is preferred, then one that `text` uses, then the
    /// options', the store's and the common ones.
    pub(crate) fn at(
        place: &'p CursorPlace,
        text: &str,
        options: &'p QueryOptions,
        store: &'p PrefixTable,
    ) -> Self {
        let store = Some(store).filter(|_| options.store_prefixes);
        let store = store.into_iter().flat_map(PrefixTable::iter);
        let pair = |(name, iri): &'p (String, String)| (name.as_str(), iri.as_str());
        // Later tiers override earlier ones, both for a prefix that both define and for a namespace that both name.
        let tiers: [Vec<(&str, &str)>; 3] = [
            store.map(|(name, iri, _)| (name, iri)).collect(),
            options.prefixes.iter().map(pair).collect(),
            place.prefixes.iter().map(pair).collect(),
        ];
        let declared: FxHashMap<&str, &str> = tiers.iter().flatten().copied().collect();
        let mut spaces: FxHashMap<&str, (&str, bool)> = FxHashMap::default();
        for (name, iri) in COMMON_PREFIXES {
            if !declared.contains_key(name) {
                // If several common prefixes have the same namespace, the first one is used.
                spaces.entry(*iri).or_insert((*name, false));
            }
        }
        let used = prefixes_of(text).used;
        for (tier, prefixes) in tiers.iter().enumerate() {
            if tier + 1 == tiers.len() {
                for name in &used {
                    let common = || COMMON_PREFIXES.iter().find(|p| p.0 == name).copied();
                    let own = declared.get_key_value(name.as_str());
                    if let Some((name, iri)) = own.map(|(n, i)| (*n, *i)).or_else(common) {
                        spaces.insert(iri, (name, own.is_some()));
                    }
                }
            }
            let mut here: FxHashMap<&str, &str> = FxHashMap::default();
            for (name, iri) in prefixes {
                if declared.get(name) == Some(iri) {
                    let known = here.entry(*iri).or_insert(*name);
                    if known.len() > name.len() {
                        *known = *name;
                    }
                }
            }
            spaces.extend(here.into_iter().map(|(iri, name)| (iri, (name, true))));
        }
        let base = place.base.as_deref().and_then(|b| Iri::parse(b).ok());
        Self {
            declared,
            spaces,
            base,
        }
    }

    /// The namespace of a prefix.
    pub(crate) fn space(&self, prefix: &str) -> Option<&str> {
        let common = || COMMON_PREFIXES.iter().find(|p| p.0 == prefix).map(|p| p.1);
        self.declared.get(prefix).copied().or_else(common)
    }

    /// All prefixes with their IRIs, and true for declared ones, which come first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let own = self.declared.iter().map(|(name, iri)| (*name, *iri, true));
        let common = COMMON_PREFIXES
            .iter()
            .filter(|(name, _)| !self.declared.contains_key(name))
            .map(|(name, iri)| (*name, *iri, false));
        own.chain(common)
    }

    /// The IRI that a term of the text stands for; `None` if it is not an IRI or its prefix is unknown.
    pub(crate) fn iri(&self, term: &str) -> Option<String> {
        if term == "a" {
            return Some(oxrdf::vocab::rdf::TYPE.as_str().to_owned());
        }
        if let Some(inner) = term.strip_prefix('<') {
            let text = inner.strip_suffix('>')?;
            if let Ok(iri) = NamedNode::new(text) {
                return Some(iri.into_string());
            }
            return resolve(self.base.as_ref()?, text).ok();
        }
        if term.starts_with(['?', '$', '"', '\'', '_']) {
            return None;
        }
        let (prefix, local) = term.split_once(':')?;
        let mut iri = self.space(prefix)?.to_owned();
        let mut escaped = false;
        for c in local.chars() {
            escaped = c == '\\' && !escaped;
            if !escaped {
                iri.push(c);
            }
        }
        Some(iri)
    }

    /// An IRI in the form in which a query would write it, and the prefix with its namespace that must be declared
    /// first, if any; `None` if the IRI cannot be written in a query.
    pub(crate) fn short(&self, iri: &str) -> Option<(String, Option<(String, String)>)> {
        for space in namespaces(iri) {
            let local = &iri[space.len()..];
            if let Some(&(prefix, own)) = self.spaces.get(space)
                && is_local(local)
            {
                let declare = (!own).then(|| (prefix.to_owned(), space.to_owned()));
                return Some((format!("{prefix}:{local}"), declare));
            }
        }
        let plain = |c: char| c > ' ' && !"<>\"{}|^`\\".contains(c);
        iri.chars().all(plain).then(|| (format!("<{iri}>"), None))
    }
}

/// True for text that can be a local name without escapes. Accepts fewer forms than SPARQL, so some IRIs are written in
/// full.
fn is_local(local: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c.is_alphabetic() && c > '\u{bf}';
    let middle = |c: char| word(c) || c == '-' || c == '.';
    local.chars().all(middle) && local.chars().next().is_none_or(word) && !local.ends_with(['.'])
}
