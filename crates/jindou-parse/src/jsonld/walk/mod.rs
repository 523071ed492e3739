//! From JSON to quads: expansion (JSON-LD 1.1 API, 5.1) and conversion to RDF (8) in one pass.
//!
//! The quads of a node are emitted while its entries are expanded, so that the expanded form is never in memory. Nodes
//! inside of nodes are processed by recursion up to some depth; deeper ones are processed after all others.

mod literal;
mod maps;
mod node;
mod object;

use super::context::{Container, Context, Contexts, Keyword, Name};
use super::fault::{Fault, Step, Stop, bad};
use super::json::{Items, Json};
use crate::emit::QuadEmitter;
use crate::limits::Limits;
use jindou_model::{Charge, Holder, Result, term};
use object::Opened;
use oxiri::Iri;
use oxrdf::vocab::rdf;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

/// Depth of nodes inside of nodes up to which they are processed by recursion; deeper ones are put on a list.
const MAX_DEPTH: u32 = 40;
/// Deepest nesting of lists.
const MAX_LISTS: u32 = 100;
/// Number of property IRIs whose validity is remembered.
const REMEMBERED: usize = 4096;
/// Number of objects between two checks of the deadline.
const LOOK: u32 = 256;

/// The canonical bytes of a node; `None` for an invalid IRI, whose statements are omitted.
type NodeId = Option<Rc<[u8]>>;

/// The graph of a statement.
#[derive(Clone)]
pub(super) enum Graph {
    Default,
    Named(Rc<[u8]>),
    /// A graph whose name is not valid: its statements are omitted.
    Lost,
}

impl Graph {
    fn named(id: &NodeId) -> Self {
        id.as_ref()
            .map_or(Self::Lost, |id| Self::Named(Rc::clone(id)))
    }
}

/// The statement to which a value belongs.
#[derive(Clone, Copy)]
enum Target<'s> {
    /// No statement: the value is a node at the top of a document or graph.
    Nodes,
    /// A statement that is omitted, or an item of a list that is omitted.
    Lost,
    Property {
        subject: &'s NodeId,
        predicate: Option<&'s str>,
        /// True for a property that is used as a reverse property in `@reverse`, whose values must be nodes.
        nodes_only: bool,
    },
    Reverse {
        object: &'s NodeId,
        predicate: Option<&'s str>,
    },
    List(&'s RefCell<ListEnds>),
}

/// Rule that tells whether a value becomes a graph of its own.
#[derive(Clone, Copy, PartialEq)]
enum Wrap {
    Never,
    Always,
    UnlessGraph,
}

/// The meaning of an array inside a list.
#[derive(Clone, Copy, PartialEq)]
enum Nested {
    Lists,
    /// Further items of the same list.
    Items,
}

/// The statements about its values that follow from the key of a map.
#[derive(Default)]
struct MapKey<'j> {
    index: Option<Json<'j>>,
    id: Option<NodeId>,
    types: Option<Name>,
    property: Option<KeyProperty>,
}

/// A statement with a value's node as subject and the key of a map as object. Without a predicate or an object, it is
/// omitted.
struct KeyProperty {
    predicate: Option<Rc<str>>,
    object: Option<Vec<u8>>,
}

/// The place of an entry's values: their statement, graph, property, and key in a map.
struct Slot<'s> {
    target: Target<'s>,
    graph: &'s Graph,
    wrap: Wrap,
    /// The property whose values they are; `None` at the top of a document or graph.
    active: Option<&'s str>,
    /// The key if they are in a map by index, type or id.
    key: Option<&'s MapKey<'s>>,
}

impl<'s> Slot<'s> {
    fn new(target: Target<'s>, graph: &'s Graph, active: Option<&'s str>) -> Self {
        Self {
            target,
            graph,
            wrap: Wrap::Never,
            active,
            key: None,
        }
    }

    /// True if the statement is omitted in any case.
    fn is_lost(&self) -> bool {
        match self.target {
            Target::Lost => true,
            Target::Property {
                subject, predicate, ..
            } => subject.is_none() || predicate.is_none(),
            _ => false,
        }
    }

    /// True if only nodes are allowed, so that a literal or list is a mistake.
    fn is_for_nodes(&self) -> bool {
        match self.target {
            Target::Reverse { .. } => true,
            Target::Property { nodes_only, .. } => nodes_only,
            _ => false,
        }
    }
}

/// The first and last cell of a list that is being written.
#[derive(Default)]
struct ListEnds {
    first: NodeId,
    last: NodeId,
}

/// A node whose entries are yet to be processed.
struct Work<'j> {
    opened: Opened<'j>,
    id: NodeId,
    graph: Graph,
}

/// The `@index` of each node that has an identifier, to find contradictions. Only hashes are stored.
pub(super) struct Indexes {
    hasher: RandomState,
    by_node: FxHashMap<u64, u64>,
    charge: Charge,
}

impl Indexes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            hasher: RandomState::new(),
            by_node: FxHashMap::default(),
            charge: Charge::new(Holder::Text, &limits.memory),
        }
    }
}

/// State that all values of a document share.
pub(super) struct Walker<'a, 'e> {
    pub(super) contexts: Contexts<'a>,
    pub(super) out: &'a mut QuadEmitter<'e>,
    /// Reports a mistake and skips what contains it; `None` if the first mistake ends the document.
    pub(super) skipped: Option<&'a dyn Fn(Fault) -> Result<()>>,
    pub(super) valid: FxHashMap<Rc<str>, bool>,
    /// Canonical bytes of the literal that is being made.
    pub(super) object: Vec<u8>,
    pub(super) looked: u32,
    pub(super) indexes: Indexes,
}

/// The processing of one JSON value.
pub(super) struct Walk<'w, 'a, 'e, 'j> {
    pub(super) walker: &'w mut Walker<'a, 'e>,
    pending: Vec<Work<'j>>,
    depth: u32,
    lists: u32,
}

impl<'w, 'a, 'e, 'j> Walk<'w, 'a, 'e, 'j> {
    pub(super) fn new(walker: &'w mut Walker<'a, 'e>) -> Self {
        Self {
            walker,
            pending: Vec::new(),
            depth: 0,
            lists: 0,
        }
    }

    /// Processes a value at the top of a document or graph.
    pub(super) fn top(&mut self, json: Json<'j>, context: &Rc<Context>, graph: &Graph) -> Step<()> {
        let slot = Slot::new(Target::Nodes, graph, None);
        let visited = self.values(json, context, &slot);
        self.skip(visited)?;
        self.finish()
    }

    /// Processes the object that is the document. If `lazy`, its `@graph` is left to the caller; returns the context
    /// and graph for the items of that array.
    pub(super) fn root(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        lazy: bool,
    ) -> Step<Option<(Rc<Context>, Graph)>> {
        let opened = self.open(json, context, None, false)?;
        if !opened.is_node() {
            self.top(json, context, &Graph::Default)?;
            return Ok(None);
        }
        let inner = Rc::clone(&opened.context);
        let mut graph = Graph::Default;
        if opened.is_only_graph() {
            let slot = Slot::new(Target::Nodes, &graph, None);
            let values = opened.get(Keyword::Graph).unwrap_or(json);
            let visited = self.values(values, &inner, &slot);
            self.skip(visited)?;
        } else {
            let id = match opened.get(Keyword::Id) {
                Some(id) => self.own_id(id, &opened)?,
                None => Some(self.fresh()),
            };
            self.index(&id, opened.index(), &Graph::Default)?;
            graph = Graph::named(&id);
            let work = Work {
                opened,
                id,
                graph: Graph::Default,
            };
            self.node(work)?;
        }
        self.finish()?;
        Ok(lazy.then_some((inner, graph)))
    }

    /// Processes the nodes that were put on the list.
    fn finish(&mut self) -> Step<()> {
        while let Some(work) = self.pending.pop() {
            self.contents(&work)?;
        }
        Ok(())
    }

    /// Reports a mistake and continues, if mistakes are to be skipped.
    fn skip(&self, visited: Step<()>) -> Step<()> {
        match (visited, self.walker.skipped) {
            (Err(Stop::Bad(fault)), Some(report)) => Ok(report(*fault)?),
            (visited, _) => visited,
        }
    }

    /// Processes a value, or each item of an array or set.
    fn values(&mut self, json: Json<'j>, context: &Rc<Context>, slot: &Slot<'_>) -> Step<()> {
        let mut open: Vec<(Items<'j>, Rc<Context>)> = Vec::new();
        let mut next = Some((json, Rc::clone(context)));
        loop {
            if let Some((json, context)) = next.take() {
                if json.is_array() {
                    open.push((json.items(), context));
                } else if let Some((set, context)) = self.value(json, &context, slot)? {
                    open.push((set.items(), context));
                }
            }
            let Some((items, context)) = open.last_mut() else {
                return Ok(());
            };
            match items.next() {
                Some(item) => next = Some((item, Rc::clone(context))),
                None => drop(open.pop()),
            }
        }
    }

    /// Processes a value that is not an array. For a set, returns its values, which the caller must process instead.
    fn value(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        slot: &Slot<'_>,
    ) -> Step<Option<(Json<'j>, Rc<Context>)>> {
        if json.is_object() {
            return self.object(json, context, slot);
        }
        if json.is_null() {
            return Ok(None);
        }
        if let Some(active) = slot.active {
            self.scalar(json, context, active, slot)?;
        }
        Ok(None)
    }

    /// Processes the items of a list, and links the list to its statement.
    fn list(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        nested: Nested,
        slot: &Slot<'_>,
    ) -> Step<()> {
        if self.lists == MAX_LISTS {
            return Err(bad(
                json.at(),
                format!("lists are nested too deeply, expected at most {MAX_LISTS} levels"),
            ));
        }
        if slot.is_for_nodes() {
            return Err(bad(
                json.at(),
                "invalid reverse property value: a list cannot be a subject, expected nodes",
            ));
        }
        self.lists += 1;
        let visited = self.list_in(json, context, nested, slot);
        self.lists -= 1;
        visited
    }

    fn list_in(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        nested: Nested,
        slot: &Slot<'_>,
    ) -> Step<()> {
        // The nodes in a list are emitted even if the statement with the list is omitted.
        if slot.wrap != Wrap::Never {
            let graph = self.wrapped_as(slot)?;
            let items = Slot::new(Target::Lost, &graph, slot.active);
            return self.list_items(json, context, nested, &items);
        }
        if slot.is_lost() {
            let items = Slot::new(Target::Lost, slot.graph, slot.active);
            return self.list_items(json, context, nested, &items);
        }
        let ends = RefCell::default();
        let items = Slot::new(Target::List(&ends), slot.graph, slot.active);
        self.list_items(json, context, nested, &items)?;
        self.end_list(&ends, slot)
    }

    fn list_items(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        nested: Nested,
        items: &Slot<'_>,
    ) -> Step<()> {
        if nested == Nested::Items {
            return self.values(json, context, items);
        }
        // A single value is treated as an array of one item.
        match json.is_array() {
            true => json
                .items()
                .try_for_each(|item| self.list_item(item, context, items)),
            false => self.list_item(json, context, items),
        }
    }

    fn list_item(&mut self, item: Json<'j>, context: &Rc<Context>, items: &Slot<'_>) -> Step<()> {
        if item.is_array() {
            return self.list(item, context, Nested::Lists, items);
        }
        let Some((set, inner)) = self.value(item, context, items)? else {
            return Ok(());
        };
        let term = items.active.and_then(|active| context.term(active));
        let nested = match term.is_some_and(|term| term.container.has(Container::LIST)) {
            true => Nested::Lists,
            false => Nested::Items,
        };
        self.list(set, &inner, nested, items)
    }

    /// Ends a list, and links its first cell to its statement.
    fn end_list(&mut self, ends: &RefCell<ListEnds>, slot: &Slot<'_>) -> Step<()> {
        let ends = ends.take();
        let nil = iri_bytes(rdf::NIL.as_str());
        if ends.last.is_some() {
            self.quad(&ends.last, rdf::REST.as_str(), &nil, slot.graph)?;
        }
        let first = ends.first.unwrap_or(nil);
        self.link(slot, Some(&first))
    }

    /// Completes a statement with an object, and emits it.
    fn link(&mut self, slot: &Slot<'_>, object: Option<&[u8]>) -> Step<()> {
        match &slot.target {
            Target::Nodes | Target::Lost => Ok(()),
            Target::Property {
                subject, predicate, ..
            } => match (predicate, object) {
                (Some(predicate), Some(object)) => {
                    self.quad(subject, predicate, object, slot.graph)
                }
                _ => Ok(()),
            },
            Target::Reverse {
                object: subject,
                predicate,
            } => match (predicate, object, subject) {
                (Some(predicate), Some(object), Some(subject)) => {
                    let id = Some(object.into());
                    self.quad(&id, predicate, subject, slot.graph)
                }
                _ => Ok(()),
            },
            Target::List(ends) => {
                let cell = Some(self.fresh());
                let last = std::mem::replace(&mut ends.borrow_mut().last, cell.clone());
                match (&last, &cell) {
                    (Some(_), Some(cell)) => {
                        self.quad(&last, rdf::REST.as_str(), cell, slot.graph)?;
                    }
                    _ => ends.borrow_mut().first.clone_from(&cell),
                }
                match object {
                    Some(object) => self.quad(&cell, rdf::FIRST.as_str(), object, slot.graph),
                    None => Ok(()),
                }
            }
        }
    }

    /// Emits a quad, unless its subject or graph is not valid.
    fn quad(
        &mut self,
        subject: &NodeId,
        predicate: &str,
        object: &[u8],
        graph: &Graph,
    ) -> Step<()> {
        let (Some(subject), graph) = (
            subject,
            match graph {
                Graph::Lost => return Ok(()),
                Graph::Default => None,
                Graph::Named(graph) => Some(&**graph),
            },
        ) else {
            return Ok(());
        };
        match self
            .walker
            .out
            .quad_of_bytes(subject, predicate, object, graph)?
        {
            true => Ok(()),
            false => Err(Stop::Ended),
        }
    }

    /// A new blank node.
    fn fresh(&mut self) -> Rc<[u8]> {
        let mut bytes = Vec::new();
        self.walker.out.labels.push_fresh(&mut bytes);
        bytes.into()
    }

    /// The node of an IRI or blank node identifier; `None` if the name is neither.
    fn node_id(&mut self, name: &Name) -> NodeId {
        let Name::Text(text) = name else {
            return None;
        };
        if let Some(label) = text.strip_prefix("_:") {
            let mut bytes = Vec::new();
            self.walker.out.labels.push_name(label, &mut bytes);
            return Some(bytes.into());
        }
        Iri::parse(&**text).is_ok().then(|| iri_bytes(text))
    }

    /// Refuses a second, different `@index` of a node in a graph (JSON-LD 1.1 API, 7.2.2, step 6.8).
    fn index(&mut self, id: &NodeId, index: Option<Json<'_>>, graph: &Graph) -> Step<()> {
        let (Some(id), Some(json)) = (id, index) else {
            return Ok(());
        };
        let graph = match graph {
            Graph::Lost => return Ok(()),
            Graph::Default => None,
            Graph::Named(graph) => Some(graph),
        };
        let indexes = &mut self.walker.indexes;
        let node = indexes.hasher.hash_one((graph, id));
        let hash = indexes.hasher.hash_one(json.str());
        let known = *indexes.by_node.entry(node).or_insert(hash);
        // Bytes of a hash table per node: two words and a control byte.
        indexes.charge.set(indexes.by_node.capacity() as u64 * 17)?;
        if known == hash {
            return Ok(());
        }
        Err(bad(
            json.at(),
            "conflicting indexes: the node has another @index elsewhere, expected the same one",
        ))
    }

    /// True if a property is a valid IRI.
    fn predicate(&mut self, iri: &Rc<str>) -> bool {
        let valid = &mut self.walker.valid;
        if let Some(&known) = valid.get(iri) {
            return known;
        }
        if valid.len() == REMEMBERED {
            valid.clear();
        }
        let is_valid = Iri::parse(&**iri).is_ok();
        valid.insert(Rc::clone(iri), is_valid);
        is_valid
    }

    /// Checks the deadline now and then.
    fn look(&mut self) -> Step<()> {
        self.walker.looked += 1;
        if self.walker.looked.is_multiple_of(LOOK) {
            self.walker.contexts.limits.cancel.check()?;
        }
        Ok(())
    }
}

fn iri_bytes(iri: &str) -> Rc<[u8]> {
    let mut bytes = Vec::with_capacity(iri.len() + 1);
    term::push_iri(iri, &mut bytes);
    bytes.into()
}
