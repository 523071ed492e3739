//! Definitions of terms (JSON-LD 1.1 API, 4.2).

use super::iri::{is_iri_or_blank, is_keyword_like, join, split};
use super::process::{Contexts, direction_of};
use super::{Container, Context, Keyword, Name, ScopedContext, Source, Term, TypeMapping};
use crate::jsonld::fault::{Step, Stop, bad, shorten};
use crate::jsonld::json::{Json, JsonText, Kind};
use std::collections::HashMap;
use std::rc::Rc;

/// Longest chain of term definitions that refer to one another.
const MAX_CHAIN: usize = 100;
/// Bytes that are charged per term while a context is processed.
const ENTRY: u64 = 150;
/// Number of terms defined between two checks of the clock.
const LOOK: usize = 1024;

/// The keys of a context that are not terms.
const ENTRIES: [&str; 8] = [
    "@base",
    "@direction",
    "@import",
    "@language",
    "@propagate",
    "@protected",
    "@version",
    "@vocab",
];

/// A term to be defined.
struct Entry<'j> {
    key: Json<'j>,
    value: Json<'j>,
    source: &'j Source,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waiting,
    /// The terms that its definition refers to are being defined.
    Begun,
    Defined,
}

/// The terms of a context while they are being defined.
pub(super) struct Definitions<'c, 'j> {
    result: &'c mut Context,
    protected: bool,
    overrides: bool,
    entries: Vec<Entry<'j>>,
    by_name: HashMap<&'j str, usize>,
    chain: usize,
    scoped: Vec<Rc<ScopedContext>>,
}

impl<'c, 'j> Definitions<'c, 'j> {
    pub(super) fn new(result: &'c mut Context, protected: bool, overrides: bool) -> Self {
        Self {
            result,
            protected,
            overrides,
            entries: Vec::new(),
            by_name: HashMap::new(),
            chain: 0,
            scoped: Vec::new(),
        }
    }

    /// Adds the terms of a context object. They replace terms of the same name that were added before.
    pub(super) fn add(&mut self, context: Json<'j>, source: &'j Source) {
        for (key, value) in context.members() {
            let name = key.str().unwrap_or_default();
            if ENTRIES.contains(&name) {
                continue;
            }
            let entry = Entry {
                key,
                value,
                source,
                state: State::Waiting,
            };
            match self.by_name.get(name) {
                Some(&known) => self.entries[known] = entry,
                None => {
                    self.by_name.insert(name, self.entries.len());
                    self.entries.push(entry);
                }
            }
        }
    }

    /// Defines all terms. Returns their scoped contexts.
    pub(super) fn define_all(
        mut self,
        contexts: &mut Contexts<'_>,
    ) -> Step<Vec<Rc<ScopedContext>>> {
        self.result.hold(self.entries.len() as u64 * ENTRY);
        contexts.check()?;
        for i in 0..self.entries.len() {
            if i % LOOK == LOOK - 1 {
                contexts.check()?;
            }
            self.define(i)?;
        }
        Ok(self.scoped)
    }

    /// Defines a term if it belongs to this context.
    fn define_name(&mut self, name: &str) -> Step<()> {
        match self.by_name.get(name) {
            Some(&i) => self.define(i),
            None => Ok(()),
        }
    }

    /// Expands a name, after defining the terms of this context that it uses.
    fn expand(&mut self, text: &str) -> Step<Name> {
        if Keyword::parse(text).is_none() && !is_keyword_like(text) {
            self.define_name(text)?;
            if self.result.term(text).is_none()
                && let Some((prefix, suffix)) = split(text)
                && prefix != "_"
                && !suffix.starts_with("//")
            {
                self.define_name(prefix)?;
            }
        }
        Ok(self.result.expand(text, true, false))
    }

    fn define(&mut self, i: usize) -> Step<()> {
        let entry = &self.entries[i];
        let (key, value, source) = (entry.key, entry.value, entry.source);
        let name = key.str().unwrap_or_default();
        match entry.state {
            State::Defined => return Ok(()),
            State::Begun => {
                return Err(bad(
                    key.at(),
                    format!(
                        "cyclic IRI mapping: the term \"{}\" is defined by itself",
                        shorten(name)
                    ),
                ));
            }
            State::Waiting => {}
        }
        if name.is_empty() {
            return Err(bad(
                key.at(),
                "invalid term definition: the empty string is not a term",
            ));
        }
        if self.chain == MAX_CHAIN {
            return Err(bad(
                key.at(),
                format!(
                    "invalid term definition: more than {MAX_CHAIN} terms are defined by one another"
                ),
            ));
        }
        self.chain += 1;
        self.entries[i].state = State::Begun;
        if let Some(term) = self.definition(i, name, key, value, source)? {
            self.result.insert(name.into(), Some(Rc::new(term)));
        }
        self.entries[i].state = State::Defined;
        self.chain -= 1;
        Ok(())
    }

    /// The definition of a term; `None` if the term is to be ignored.
    fn definition(
        &mut self,
        i: usize,
        name: &str,
        key: Json<'_>,
        value: Json<'_>,
        source: &Source,
    ) -> Step<Option<Term>> {
        if name == "@type" {
            if !is_type_definition(value) {
                return Err(redefined(key));
            }
        } else if Keyword::parse(name).is_some() {
            return Err(redefined(key));
        } else if is_keyword_like(name) {
            return Ok(None);
        }
        let previous = self.result.term(name).cloned();
        if previous.is_some() {
            self.result.insert(name.into(), None);
        }
        let mut term = Term::new(self.protected);
        match value.kind() {
            Kind::Null => {}
            Kind::String => {
                let ignored = !self.id(i, name, key, value, true, &mut term)?;
                if ignored {
                    return Ok(None);
                }
            }
            Kind::Object => {
                if !self.object(i, name, key, value, source, &mut term)? {
                    return Ok(None);
                }
            }
            _ => {
                return Err(bad(
                    value.at(),
                    format!(
                        "invalid term definition: expected an IRI, an object or null for the term \"{}\"",
                        shorten(name)
                    ),
                ));
            }
        }
        self.protect(term, previous, key).map(Some)
    }

    /// Checks a definition against a protected term of the same name, which keeps its definition.
    fn protect(&self, mut term: Term, previous: Option<Rc<Term>>, key: Json<'_>) -> Step<Term> {
        if let Some(previous) = previous
            && previous.protected
            && !self.overrides
        {
            if !term.same(&previous) {
                return Err(bad(
                    key.at(),
                    format!(
                        "protected term redefinition: the term \"{}\" is protected by a context around this one, expected another name",
                        shorten(key.str().unwrap_or_default())
                    ),
                ));
            }
            term.protected = true;
        }
        Ok(term)
    }

    /// Defines a term by an object. `false` if the term is to be ignored.
    fn object(
        &mut self,
        i: usize,
        name: &str,
        key: Json<'_>,
        value: Json<'_>,
        source: &Source,
        term: &mut Term,
    ) -> Step<bool> {
        if let Some(protected) = value.get("@protected") {
            term.protected = protected.boolean("@protected")?;
        }
        if let Some(json) = value.get("@type") {
            term.type_mapping = Some(self.type_mapping(json)?);
        }
        if let Some(reverse) = value.get("@reverse") {
            return self.reverse(value, reverse, term);
        }
        let id = value.get("@id").unwrap_or(key);
        if id.is_null() {
            // The term is explicitly mapped to null.
        } else if !self.id(i, name, key, id, false, term)? {
            return Ok(false);
        }
        if let Some(json) = value.get("@container")
            && !json.is_null()
        {
            term.container = container(json)?;
            if term.container.has(Container::TYPE) {
                match term.type_mapping.get_or_insert(TypeMapping::Id) {
                    TypeMapping::Id | TypeMapping::Vocab => {}
                    _ => {
                        return Err(bad(
                            json.at(),
                            "invalid type mapping: expected @id or @vocab as the @type of a term with the container @type",
                        ));
                    }
                }
            }
        }
        self.entries_of(name, value, source, term)?;
        Ok(true)
    }

    /// Handles the entries of a definition that follow `@container` in the algorithm.
    fn entries_of(
        &mut self,
        name: &str,
        value: Json<'_>,
        source: &Source,
        term: &mut Term,
    ) -> Step<()> {
        for (key, json) in value.members() {
            let entry = key.str().unwrap_or_default();
            let wrong = |what: &str| bad(json.at(), what);
            match entry {
                "@id" | "@type" | "@container" | "@protected" => {}
                "@index" => {
                    let valid = json.str().is_some_and(|text| !text.starts_with('@'));
                    if !valid || !term.container.has(Container::INDEX) {
                        return Err(wrong(
                            "invalid term definition: expected a property as @index, of a term with the container @index",
                        ));
                    }
                    term.index = json.str().map(Into::into);
                }
                "@context" => {
                    let context = Rc::new(ScopedContext {
                        json: JsonText::copy(json),
                        source: source.clone(),
                    });
                    self.scoped.push(Rc::clone(&context));
                    term.context = Some(context);
                }
                "@language" => {
                    if !json.is_null() && json.str().is_none() {
                        return Err(wrong(
                            "invalid language mapping: expected a language tag or null",
                        ));
                    }
                    if value.get("@type").is_none() {
                        term.language = Some(json.str().map(Into::into));
                    }
                }
                "@direction" => {
                    let direction = direction_of(json)?;
                    if value.get("@type").is_none() {
                        term.direction = Some(direction);
                    }
                }
                "@nest" => match json.str() {
                    Some(nest) if nest == "@nest" || Keyword::parse(nest).is_none() => {
                        term.nest = Some(nest.into());
                    }
                    _ => {
                        return Err(wrong(
                            "invalid @nest value: expected @nest or a term that stands for it",
                        ));
                    }
                },
                "@prefix" => {
                    let prefix = json.boolean("@prefix")?;
                    let unfit = name.contains([':', '/'])
                        || prefix && matches!(term.name, Name::Keyword(_));
                    if unfit {
                        return Err(wrong(
                            "invalid term definition: expected no @prefix in a term with `:` or `/`, or one for a keyword",
                        ));
                    }
                    term.prefix = prefix;
                }
                other => {
                    return Err(bad(
                        key.at(),
                        format!(
                            "invalid term definition: \"{}\" has no meaning in the definition of a term",
                            shorten(other)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn type_mapping(&mut self, json: Json<'_>) -> Step<TypeMapping> {
        let expanded = match json.str() {
            Some(text) => self.expand(text)?,
            None => Name::Null,
        };
        Ok(match expanded {
            Name::Keyword(Keyword::Id) => TypeMapping::Id,
            Name::Keyword(Keyword::Vocab) => TypeMapping::Vocab,
            Name::Keyword(Keyword::Json) => TypeMapping::Json,
            Name::Keyword(Keyword::None) => TypeMapping::None,
            Name::Text(iri) if is_iri_or_blank(&iri) && !iri.starts_with("_:") => {
                TypeMapping::Iri(iri)
            }
            _ => {
                return Err(bad(
                    json.at(),
                    "invalid type mapping: expected @id, @vocab, @json, @none or the IRI of a datatype as @type",
                ));
            }
        })
    }

    /// Defines a reverse property. `false` if the term is to be ignored.
    fn reverse(&mut self, value: Json<'_>, json: Json<'_>, term: &mut Term) -> Step<bool> {
        for (key, _) in value.members() {
            let name = key.str().unwrap_or_default();
            if matches!(name, "@id" | "@nest") {
                return Err(bad(
                    key.at(),
                    format!(
                        "invalid reverse property: expected no {name} in the definition of a reverse property"
                    ),
                ));
            }
        }
        let Some(text) = json.str() else {
            return Err(bad(
                json.at(),
                "invalid IRI mapping: expected an IRI or a term as @reverse",
            ));
        };
        if is_keyword_like(text) && Keyword::parse(text).is_none() {
            return Ok(false);
        }
        match self.expand(text)? {
            Name::Text(iri) if is_iri_or_blank(&iri) => term.name = Name::Text(iri),
            _ => {
                return Err(bad(
                    json.at(),
                    "invalid IRI mapping: expected an IRI or a term as @reverse",
                ));
            }
        }
        if let Some(json) = value.get("@container") {
            term.container = match (json.kind(), json.str()) {
                (Kind::Null, _) => Container::default(),
                (_, Some("@set")) => Container::SET,
                (_, Some("@index")) => Container::INDEX,
                _ => {
                    return Err(bad(
                        json.at(),
                        "invalid reverse property: expected @set, @index or null as its @container",
                    ));
                }
            };
        }
        term.reverse = true;
        Ok(true)
    }

    /// Sets the IRI or keyword that a term stands for, from the value of `@id`; or from the term itself if `json` is
    /// the term. `false` if the term is to be ignored.
    fn id(
        &mut self,
        i: usize,
        name: &str,
        key: Json<'_>,
        json: Json<'_>,
        simple: bool,
        term: &mut Term,
    ) -> Step<bool> {
        let wrong = |what: String| bad(json.at(), what);
        let Some(text) = json.str() else {
            return Err(wrong(
                "invalid IRI mapping: expected an IRI, a term or null as @id".into(),
            ));
        };
        if text == name {
            term.name = self.own_name(name, key)?;
            self.may_be_prefix(name, simple, term);
            return Ok(true);
        }
        if is_keyword_like(text) && Keyword::parse(text).is_none() {
            return Ok(false);
        }
        let expanded = self.expand(text)?;
        match &expanded {
            Name::Keyword(Keyword::Context) => {
                return Err(wrong(
                    "invalid keyword alias: expected no term that stands for @context".into(),
                ));
            }
            Name::Keyword(_) => {}
            Name::Text(iri) if is_iri_or_blank(iri) => {}
            _ => {
                return Err(wrong(format!(
                    "invalid IRI mapping: \"{}\" is not an IRI, keyword or term, expected one for the term \"{}\"",
                    shorten(text),
                    shorten(name)
                )));
            }
        }
        let inner = name
            .char_indices()
            .any(|(at, c)| c == ':' && at > 0 && at + 1 < name.len());
        if inner || name.contains('/') {
            // By the algorithm, the term itself must expand to the same IRI.
            self.entries[i].state = State::Defined;
            let own = self.expand(name)?;
            self.entries[i].state = State::Begun;
            if own != expanded {
                return Err(wrong(format!(
                    "invalid IRI mapping: the term \"{}\" is an IRI itself, expected the same one as @id",
                    shorten(name)
                )));
            }
        }
        term.name = expanded;
        self.may_be_prefix(name, simple, term);
        Ok(true)
    }

    fn may_be_prefix(&self, name: &str, simple: bool, term: &mut Term) {
        if let Name::Text(iri) = &term.name {
            let ends = |iri: &str| {
                iri.ends_with([':', '/', '?', '#', '[', ']', '@']) || iri.starts_with("_:")
            };
            term.prefix = simple && !name.contains([':', '/']) && ends(iri);
        }
    }

    /// The IRI that a term without `@id` stands for.
    fn own_name(&mut self, name: &str, key: Json<'_>) -> Step<Name> {
        if let Some((prefix, suffix)) = split(name) {
            if prefix != "_" && !suffix.starts_with("//") {
                self.define_name(prefix)?;
                if let Some(term) = self.result.term(prefix)
                    && let Name::Text(iri) = &term.name
                {
                    return Ok(Name::Text(join(iri, suffix)));
                }
            }
            return Ok(Name::Text(name.into()));
        }
        if name.contains('/') {
            return match self.result.expand(name, true, false) {
                Name::Text(iri) if is_iri_or_blank(&iri) => Ok(Name::Text(iri)),
                _ => Err(no_meaning(name, key)),
            };
        }
        if name == "@type" {
            return Ok(Name::Keyword(Keyword::Type));
        }
        match &self.result.vocab {
            Some(vocab) => Ok(Name::Text(join(vocab, name))),
            None => Err(no_meaning(name, key)),
        }
    }
}

fn no_meaning(name: &str, key: Json<'_>) -> Stop {
    bad(
        key.at(),
        format!(
            "invalid IRI mapping: the term \"{}\" has no @id, and the context no @vocab, expected one of them",
            shorten(name)
        ),
    )
}

fn redefined(key: Json<'_>) -> Stop {
    bad(
        key.at(),
        format!(
            "keyword redefinition: the keyword {} cannot be defined as a term",
            shorten(key.str().unwrap_or_default())
        ),
    )
}

/// True for the only definition that `@type` may have: `@protected`, and the container `@set`.
fn is_type_definition(value: Json<'_>) -> bool {
    value.is_object()
        && value.len() > 0
        && value.members().all(|(key, json)| match key.str() {
            Some("@container") => json.str() == Some("@set"),
            Some("@protected") => json.bool().is_some(),
            _ => false,
        })
}

/// Parses the value of `@container`.
fn container(json: Json<'_>) -> Step<Container> {
    let mut all = Container::default();
    let mut valid = !json.is_array() || json.len() > 0;
    for item in json.items() {
        let one = match item.str() {
            Some("@graph") => Container::GRAPH,
            Some("@id") => Container::ID,
            Some("@index") => Container::INDEX,
            Some("@language") => Container::LANGUAGE,
            Some("@list") => Container::LIST,
            Some("@set") => Container::SET,
            Some("@type") => Container::TYPE,
            _ => Container::default(),
        };
        valid &= one != Container::default() && !all.has(one);
        all = all.with(one);
    }
    let without_set = Container(all.0 & !Container::SET.0);
    let graph_map = |other: Container| without_set == Container::GRAPH.with(other);
    let single =
        without_set.0.count_ones() <= 1 && (all == without_set || without_set != Container::LIST);
    if valid && (single || graph_map(Container::ID) || graph_map(Container::INDEX)) {
        return Ok(all);
    }
    Err(bad(
        json.at(),
        "invalid container mapping: expected @graph, @id, @index, @language, @list, @set or @type as @container, or @set with one of them except @list, or @graph with @id or @index",
    ))
}
