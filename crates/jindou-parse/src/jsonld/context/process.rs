//! Context processing (JSON-LD 1.1 API, 4.1).

use super::define::Definitions;
use super::iri::is_iri_or_blank;
use super::{Context, Direction, HeldBytes, Name, ScopedContext, Source};
use crate::fetch::{Document, DocumentSource};
use crate::jsonld::fault::{Step, Stop, bad, shorten};
use crate::jsonld::json::{Json, JsonText, Kind};
use crate::limits::Limits;
use jindou_model::iri::resolve;
use jindou_model::{Charge, Error, Holder};
use oxiri::Iri;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Deepest nesting of contexts inside of contexts, written or by reference.
const MAX_NESTING: u32 = 50;
/// Largest number of results of scoped contexts that are cached.
const MAX_SCOPED: usize = 256;
/// Size in bytes of the largest context whose result is cached.
const MAX_KEPT: u64 = 1 << 20;
/// Largest number of context documents that a document may refer to.
const MAX_REMOTE: usize = 100;
/// Bytes of contexts that a document may have without a charge.
const FREE: u64 = 1 << 20;

/// How a context is processed.
#[derive(Clone, Copy)]
pub(in crate::jsonld) struct Options {
    /// False for the contexts of types, which do not apply to nodes below.
    pub(in crate::jsonld) propagate: bool,
    /// True for the contexts of properties, which may redefine protected terms.
    pub(in crate::jsonld) overrides: bool,
    /// True if the context of a term is only checked for mistakes.
    pub(in crate::jsonld) validating: bool,
}

impl Options {
    /// For the `@context` of a node.
    pub(in crate::jsonld) const OWN: Self = Self {
        propagate: true,
        overrides: false,
        validating: false,
    };
    /// For the scoped context of a property.
    pub(in crate::jsonld) const PROPERTY: Self = Self {
        overrides: true,
        ..Self::OWN
    };
    /// For the scoped context of a type.
    pub(in crate::jsonld) const TYPE: Self = Self {
        propagate: false,
        ..Self::OWN
    };
}

/// A cached result of a scoped context. Both inputs are kept alive, so that their addresses, which are the cache's key,
/// stay unique.
struct Scoped {
    active: Rc<Context>,
    local: Rc<ScopedContext>,
    result: Rc<Context>,
}

/// The contexts of a document.
pub(in crate::jsonld) struct Contexts<'a> {
    pub(in crate::jsonld) limits: &'a Limits,
    loader: Option<&'a dyn DocumentSource>,
    /// The document's own IRI and kind.
    source: Source,
    held: HeldBytes,
    charge: Charge,
    scoped: HashMap<(usize, usize, bool), Scoped>,
    /// The last processed context of a node: the context to which it was applied, its text, and the result.
    last: Option<(Rc<Context>, JsonText, Rc<Context>)>,
    remote: HashMap<String, Rc<JsonText>>,
    /// IRIs of context documents that were checked for mistakes.
    validated: HashSet<String>,
}

impl<'a> Contexts<'a> {
    pub(in crate::jsonld) fn new(
        base: Option<Rc<Iri<String>>>,
        limits: &'a Limits,
        loader: Option<&'a dyn DocumentSource>,
    ) -> Self {
        Self {
            limits,
            loader,
            source: Source {
                base,
                remote: false,
            },
            held: Rc::new(Cell::new(0)),
            charge: Charge::new(Holder::Text, &limits.memory),
            scoped: HashMap::new(),
            last: None,
            remote: HashMap::new(),
            validated: HashSet::new(),
        }
    }

    /// The context of the document before its own contexts are applied.
    pub(in crate::jsonld) fn initial(&self) -> Rc<Context> {
        Rc::new(Context::new(self.source.base.clone(), &self.held))
    }

    /// Applies the `@context` of a node. The flag is true if the result comes from this call, false if it was cached.
    pub(in crate::jsonld) fn local(
        &mut self,
        active: &Rc<Context>,
        json: Json<'_>,
    ) -> Step<(Rc<Context>, bool)> {
        if let Some((above, text, result)) = &self.last
            && Rc::ptr_eq(above, active)
            && text.root().same(json)
        {
            return Ok((Rc::clone(result), false));
        }
        let source = self.source.clone();
        let result = Rc::new(self.process(active, json, &source, Options::OWN, 0)?);
        self.last = None;
        let text = JsonText::copy(json);
        if result.bytes + text.held() < MAX_KEPT {
            self.last = Some((Rc::clone(active), text, Rc::clone(&result)));
        }
        Ok((result, true))
    }

    /// Applies the scoped context of a term that is used at byte position `at`.
    pub(in crate::jsonld) fn scoped(
        &mut self,
        active: &Rc<Context>,
        local: &Rc<ScopedContext>,
        options: Options,
        at: u64,
    ) -> Step<Rc<Context>> {
        let key = (
            Rc::as_ptr(active) as usize,
            Rc::as_ptr(local) as usize,
            options.propagate,
        );
        if let Some(known) = self.scoped.get(&key) {
            debug_assert!(Rc::ptr_eq(&known.active, active) && Rc::ptr_eq(&known.local, local));
            return Ok(Rc::clone(&known.result));
        }
        let processed = self.process(active, local.json.root(), &local.source, options, 0);
        let result = Rc::new(processed.map_err(|e| match e {
            // The position is reported where the term is used, since its own may be in another document.
            Stop::Bad(fault) if local.source.remote => bad(at, fault.message),
            other => other,
        })?);
        if self.scoped.len() == MAX_SCOPED {
            self.scoped.clear();
        }
        if result.bytes < MAX_KEPT {
            let kept = Scoped {
                active: Rc::clone(active),
                local: Rc::clone(local),
                result: Rc::clone(&result),
            };
            self.scoped.insert(key, kept);
        }
        Ok(result)
    }

    /// Charges the memory of all contexts, and checks the deadline.
    pub(super) fn check(&mut self) -> Step<()> {
        self.limits.cancel.check()?;
        let held = self.held.get();
        if held > FREE || self.charge.bytes() > 0 {
            let held = if held > FREE { held } else { 0 };
            self.charge.set(held).map_err(|e| match e {
                Error::Limit(why) => Error::Limit(
                    why.told(|why| format!("the contexts have {} MiB: {why}", held >> 20)),
                ),
                other => other,
            })?;
        }
        Ok(())
    }

    /// The context processing algorithm: applies `json` to `active`. `nesting` is the number of contexts around it.
    pub(super) fn process(
        &mut self,
        active: &Rc<Context>,
        json: Json<'_>,
        source: &Source,
        options: Options,
        nesting: u32,
    ) -> Step<Context> {
        if nesting > MAX_NESTING {
            return Err(bad(
                json.at(),
                format!(
                    "context overflow: contexts refer to one another more than {MAX_NESTING} deep"
                ),
            ));
        }
        self.check()?;
        let mut propagate = options.propagate;
        let first = json.items().next();
        if let Some(value) = first.and_then(|first| first.get("@propagate")?.bool()) {
            propagate = value;
        }
        let mut result = Context::above(active);
        if !propagate && result.previous.is_none() {
            result.previous = Some(Rc::clone(active));
        }
        for (n, context) in json.items().enumerate() {
            if n % 1024 == 1023 {
                self.check()?;
            }
            match context.kind() {
                Kind::Null => {
                    if !options.overrides
                        && let Some(term) = result.protected()
                    {
                        return Err(bad(
                            context.at(),
                            format!(
                                "invalid context nullification: the term \"{}\" is protected, expected a context that keeps it",
                                shorten(term)
                            ),
                        ));
                    }
                    let previous = result.previous.take();
                    result = Context::new(self.source.base.clone(), &self.held);
                    if !propagate {
                        result.previous = previous;
                    }
                }
                Kind::String => {
                    let iri = context.str().unwrap_or_default();
                    let (remote, from) = self.load(iri, context.at(), source)?;
                    // Avoids an endless recursion: terms of a document may have contexts that refer to the document
                    // itself.
                    if options.validating && !self.validated.insert(iri.to_owned()) {
                        continue;
                    }
                    let options = Options {
                        propagate: true,
                        ..options
                    };
                    let below = Rc::new(result);
                    let processed =
                        self.process(&below, context_of(&remote), &from, options, nesting + 1);
                    result = processed.map_err(|e| within(e, context.at(), iri))?;
                }
                Kind::Object => {
                    self.entries(&mut result, context, source, options, nesting)?;
                }
                _ => {
                    return Err(bad(
                        context.at(),
                        "invalid local context: expected an object, the IRI of a context, or null as @context",
                    ));
                }
            }
        }
        Ok(result)
    }

    /// Applies the entries of a context object.
    fn entries(
        &mut self,
        result: &mut Context,
        context: Json<'_>,
        source: &Source,
        options: Options,
        nesting: u32,
    ) -> Step<()> {
        if let Some(version) = context.get("@version")
            && version.number().and_then(|n| n.parse::<f64>().ok()) != Some(1.1)
        {
            return Err(bad(
                version.at(),
                "invalid @version value: expected the number 1.1",
            ));
        }
        let imported = match context.get("@import") {
            None => None,
            Some(import) => Some(self.import(import, source)?),
        };
        let import = imported.as_ref().map(|(text, _)| context_of(text));
        let get = |name: &str| {
            let inherited = || import.and_then(|import| import.get(name));
            context.get(name).or_else(inherited)
        };
        if let Some(base) = get("@base")
            && !source.remote
        {
            set_base(result, base)?;
        }
        if let Some(vocab) = get("@vocab") {
            set_vocab(result, vocab)?;
        }
        if let Some(language) = get("@language") {
            result.language = match (language.kind(), language.str()) {
                (Kind::Null, _) => None,
                (_, Some(tag)) => Some(tag.into()),
                _ => {
                    return Err(bad(
                        language.at(),
                        "invalid default language: expected a language tag or null",
                    ));
                }
            };
        }
        if let Some(direction) = get("@direction") {
            result.direction = direction_of(direction)?;
        }
        if let Some(value) = get("@propagate") {
            value.boolean("@propagate")?;
        }
        let protected = match get("@protected") {
            None => false,
            Some(value) => value.boolean("@protected")?,
        };
        let mut definitions = Definitions::new(result, protected, options.overrides);
        if let Some((text, from)) = &imported {
            definitions.add(context_of(text), from);
        }
        definitions.add(context, source);
        let scoped = definitions.define_all(self)?;
        self.validate(result, scoped, nesting)
    }

    /// Checks the scoped contexts of terms that were just defined for mistakes.
    fn validate(
        &mut self,
        result: &mut Context,
        scoped: Vec<Rc<ScopedContext>>,
        nesting: u32,
    ) -> Step<()> {
        if scoped.is_empty() {
            return Ok(());
        }
        let options = Options {
            validating: true,
            ..Options::PROPERTY
        };
        let empty = Context::new(None, &self.held);
        let active = Rc::new(std::mem::replace(result, empty));
        let mut found = Ok(());
        for context in scoped {
            let json = context.json.root();
            let processed = self.process(&active, json, &context.source, options, nesting + 1);
            if let Err(e) = processed {
                found = Err(match e {
                    Stop::Bad(fault) => bad(
                        fault.at,
                        format!("invalid scoped context: {}", fault.message),
                    ),
                    other => other,
                });
                break;
            }
        }
        if let Some(active) = Rc::into_inner(active) {
            *result = active;
        }
        found
    }

    /// Loads the context to which `@import` refers.
    fn import(&mut self, import: Json<'_>, source: &Source) -> Step<(Rc<JsonText>, Source)> {
        let Some(iri) = import.str() else {
            return Err(bad(
                import.at(),
                "invalid @import value: expected the IRI of a context",
            ));
        };
        let (text, from) = self.load(iri, import.at(), source)?;
        let context = context_of(&text);
        if !context.is_object() {
            return Err(bad(
                import.at(),
                format!(
                    "invalid remote context: the context of {iri} is not an object, expected one for @import"
                ),
            ));
        }
        if context.get("@import").is_some() {
            return Err(bad(
                import.at(),
                format!(
                    "invalid context entry: the context of {iri} has an @import itself, expected none"
                ),
            ));
        }
        Ok((text, from))
    }

    /// Loads the context document with this IRI, or takes it from the cache.
    fn load(&mut self, iri: &str, at: u64, source: &Source) -> Step<(Rc<JsonText>, Source)> {
        let resolved = match &source.base {
            Some(base) => resolve(base, iri).ok(),
            None => Iri::parse(iri.to_owned()).map(Iri::into_inner).ok(),
        };
        let failed = |why: String| {
            bad(
                at,
                format!(
                    "loading remote context failed: the context {} {why}",
                    shorten(iri)
                ),
            )
        };
        let base = resolved.and_then(|iri| Iri::parse(iri).ok());
        let Some(base) = base else {
            return Err(failed("is not a valid IRI".into()));
        };
        let from = |base| Source {
            base: Some(Rc::new(base)),
            remote: true,
        };
        if let Some(known) = self.remote.get(base.as_str()) {
            return Ok((Rc::clone(known), from(base)));
        }
        let Some(loader) = self.loader else {
            return Err(failed(
                "is another document, which is not loaded, expected its members in its place"
                    .into(),
            ));
        };
        if self.remote.len() == MAX_REMOTE {
            return Err(failed(format!(
                "is one of more than {MAX_REMOTE}, expected fewer documents of contexts"
            )));
        }
        let text = fetch(loader, base.as_str(), self.limits).map_err(|e| match e {
            FetchError::Limit(e) => Stop::Failed(e),
            FetchError::Failed(why) => failed(why),
        })?;
        let valid = text.root().is_object() && text.root().get("@context").is_some();
        if !valid {
            return Err(bad(
                at,
                format!(
                    "invalid remote context: the document {} has no @context, expected an object with one",
                    shorten(iri)
                ),
            ));
        }
        let text = Rc::new(text);
        self.remote
            .insert(base.as_str().to_owned(), Rc::clone(&text));
        Ok((text, from(base)))
    }
}

enum FetchError {
    Limit(Error),
    Failed(String),
}

/// Fetches and parses a context document.
fn fetch(
    loader: &dyn DocumentSource,
    iri: &str,
    limits: &Limits,
) -> std::result::Result<JsonText, FetchError> {
    let wrong = |e: Error| match e {
        Error::Limit(_) | Error::Timeout(_) | Error::Cancelled => FetchError::Limit(e),
        Error::Unsupported(why) | Error::Document { message: why, .. } => {
            FetchError::Failed(format!(
                "is another document, which is not loaded: {why}, expected its members in its place"
            ))
        }
        other => FetchError::Failed(format!("cannot be loaded: {other}")),
    };
    let document = loader
        .fetch(iri, &limits.cancel, &limits.memory)
        .map_err(wrong)?;
    let source: Box<dyn std::io::Read + Send> = match document {
        Document::File(path) => Box::new(crate::input::open_file(&path).map_err(wrong)?),
        Document::Text(text, _, _) => Box::new(std::io::Cursor::new(text)),
    };
    crate::jsonld::whole(source, limits).map_err(|e| match e {
        Stop::Failed(e) => FetchError::Limit(e),
        Stop::Unreadable(e) => FetchError::Failed(format!("cannot be read: {e}")),
        Stop::Bad(fault) => FetchError::Failed(format!(
            "is not JSON (byte {}: {})",
            fault.at, fault.message
        )),
        Stop::Ended => FetchError::Failed("cannot be read".into()),
    })
}

/// The value of `@context` in a context document, or the whole document if it has none.
fn context_of(text: &JsonText) -> Json<'_> {
    text.root().get("@context").unwrap_or_else(|| text.root())
}

/// The error for a mistake in a context document, at the position of the reference to it.
fn within(e: Stop, at: u64, iri: &str) -> Stop {
    match e {
        // The message names only the innermost reference.
        Stop::Bad(fault) if fault.message.ends_with(')') => bad(at, fault.message),
        Stop::Bad(fault) => bad(
            at,
            format!("{} (in the context {})", fault.message, shorten(iri)),
        ),
        other => other,
    }
}

fn set_base(result: &mut Context, base: Json<'_>) -> Step<()> {
    if base.is_null() {
        result.base = None;
        return Ok(());
    }
    let wrong = || {
        bad(
            base.at(),
            "invalid base IRI: expected an absolute IRI, one relative to the document's base, or null",
        )
    };
    let text = base.str().ok_or_else(wrong)?;
    let resolved = match &result.base {
        Some(outer) => resolve(outer, text).ok(),
        None => Some(text.to_owned()),
    };
    let iri = resolved.and_then(|iri| Iri::parse(iri).ok());
    if iri.is_none() && !is_iri_or_blank(text) {
        return Err(wrong());
    }
    // If the base is not a valid IRI, relative references have no IRI, as without a base.
    result.base = iri.map(Rc::new);
    Ok(())
}

fn set_vocab(result: &mut Context, vocab: Json<'_>) -> Step<()> {
    if vocab.is_null() {
        result.vocab = None;
        return Ok(());
    }
    let expanded = vocab.str().map(|text| result.expand(text, true, true));
    match expanded {
        Some(Name::Text(iri)) if is_iri_or_blank(&iri) || result.base.is_none() => {
            result.vocab = Some(iri);
            Ok(())
        }
        _ => Err(bad(
            vocab.at(),
            "invalid vocab mapping: expected an IRI, a blank node identifier, or null as @vocab",
        )),
    }
}

/// Parses the value of `@direction`.
pub(super) fn direction_of(json: Json<'_>) -> Step<Option<Direction>> {
    match (json.kind(), json.str()) {
        (Kind::Null, _) => Ok(None),
        (_, Some("ltr")) => Ok(Some(Direction::Ltr)),
        (_, Some("rtl")) => Ok(Some(Direction::Rtl)),
        _ => Err(bad(
            json.at(),
            "invalid base direction: expected \"ltr\", \"rtl\" or null",
        )),
    }
}
