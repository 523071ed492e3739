//! The plan: what the planner decides and an executor (CPU, GPU, remote) carries out.
//!
//! A plan belongs to one base, since it holds vertex ids: it carries the id epoch. Within that base it is valid for
//! snapshots of the shape that it was made for ([`Validity`]). For any other snapshot the query must be planned again.
//!
//! ```text
//! Operator tree            see `operator`
//! Explore                  steps over a history table, one column of ids per live slot
//! Step::Start            binds the first variable(s): index vertex, class instances, a constant's list
//! Step::Expand           binds one more variable: one neighbour list, or the intersection of several
//! Step::Check            both ends known: keeps rows that have the edge
//! Step::ExpandAny        predicate unknown: walks only the predicates that the vertex has
//! Step::ScanAll          nothing known
//! ```

use crate::{Functions, IdFilter, IndexQuestion, Operator, Relation, Validity};
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use jindou_syntax::algebra::{BaseIri, Canonical, Expression, QueryDataset, Variable};
use std::sync::Arc;

/// A column of the history table: one per variable, hidden ones (blank nodes, helpers) included.
pub type Slot = u16;

/// A known end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The id in this column of the row.
    Slot(Slot),
    /// A known vertex.
    Const(u32),
}

/// The graphs that a pattern reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphRef {
    /// The default graph.
    Default,
    /// One named graph.
    Named(u32),
    /// All named graphs merged: an edge in several of them counts once. (A graph variable that nothing reads does
    /// **not** use this: it keeps one row per graph.)
    AnyNamed,
    /// The default graph and all named ones merged.
    Union,
    /// Several graphs merged: ascending ids, 0 for the default graph.
    Set(Vec<u32>),
    /// The named graph that an earlier step bound to this slot.
    Slot(Slot),
    /// The edge's graph is bound to this slot by this step; only graphs in the list if there is one
    /// (`FROM NAMED`), never the default graph. One row for each graph that has the edge.
    Bind(Slot, Option<Vec<u32>>),
}

impl GraphRef {
    /// Scope to read with; `None` for a slot, where the scope depends on the row. `Bind` reads its graphs.
    #[must_use]
    pub fn scope(&self) -> Option<GraphScope<'_>> {
        Some(match self {
            Self::Default => GraphScope::Default,
            Self::Named(g) => GraphScope::Named(*g),
            Self::AnyNamed | Self::Bind(_, None) => GraphScope::AnyNamed,
            Self::Union => GraphScope::Union,
            Self::Set(gs) | Self::Bind(_, Some(gs)) => GraphScope::Set(gs),
            Self::Slot(_) => return None,
        })
    }
}

/// The neighbours of a known vertex along one predicate: candidates for the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    /// The known end: the segment's key.
    pub anchor: Operand,
    /// The segment.
    pub predicate: PredicateId,
    /// `Out`: the anchor is the subject.
    pub direction: Direction,
    /// The graphs.
    pub graph: GraphRef,
}

/// Intervals `[start, end)` of vertex ids, ascending, disjoint.
pub type Intervals = Vec<[u32; 2]>;

/// Where the first variable's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum StartSource {
    /// One row without columns: everything that the next steps need is a constant.
    Unit,
    /// Exactly the vertices of `Step::Start::within` (which is then `Some`).
    IdFilter,
    /// The neighbour list of a constant (instances of a class, …).
    List(EdgeList),
    /// The index vertex of a predicate: the keys of its segment. With graphs chosen or a patch the keys are a
    /// superset; the executor keeps those that have a neighbour in `graph` (never `Bind`).
    Keys {
        /// The predicate.
        predicate: PredicateId,
        /// `Out`: its subjects.
        direction: Direction,
        /// The graphs; never `GraphRef::Bind` or `GraphRef::Slot`.
        graph: GraphRef,
    },
    /// All named graphs (that hold a quad), or those of the list that hold one.
    Graphs(Option<Vec<u32>>),
}

/// The predicate position of a pattern with a predicate variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredicateRef {
    /// Bound by this step, to the predicate's term.
    Bind(Slot),
    /// Bound before: only edges of that predicate (a term that is not a predicate has none).
    Slot(Slot),
}

/// The far end in a pattern with a predicate variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// Bound by this step.
    Bind(Slot),
    /// Known.
    Known(Operand),
}

/// Kinds of steps, by what they do to each row.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Makes the first rows. Always step 0, and only there.
    Start {
        /// The slot to fill; `None` only for `StartSource::Unit`.
        to: Option<Slot>,
        /// The values.
        source: StartSource,
        /// Exact extra condition: only these vertices (classes, predicates' keys).
        within: Option<IdFilter>,
    },
    /// Binds `to` to every vertex that is in **all** lists (the shortest drives; sorted lists intersect) and in
    /// `within`. A list whose graph is `Bind` must be the only one; its rows are (neighbour, graph).
    Expand {
        /// The new slot.
        to: Slot,
        /// At least one.
        lists: Vec<EdgeList>,
        /// Exact extra condition.
        within: Option<IdFilter>,
    },
    /// Keeps rows whose edge `list.anchor` – `other` exists. `GraphRef::Bind` gives one row for each graph that has it.
    Check {
        /// The list to look in.
        list: EdgeList,
        /// The far end.
        other: Operand,
    },
    /// Keeps rows whose slot is one of these vertices: an exact test of classes or key sets.
    Restrict {
        /// The bound slot.
        slot: Slot,
        /// The vertices.
        within: IdFilter,
    },
    /// Walks the edges of a known end whose predicate is a variable. The same edge in two graphs of a merged scope is
    /// one row.
    ExpandAny {
        /// The known end.
        anchor: Operand,
        /// `Out`: the anchor is the subject.
        direction: Direction,
        /// The predicate.
        predicate: PredicateRef,
        /// The other end.
        far: FarEnd,
        /// The graphs.
        graph: GraphRef,
    },
    /// Gives every edge of every (or the bound) predicate, for each row so far; neither end is known.
    ScanAll {
        /// Bound by this step.
        subject: Slot,
        /// The predicate.
        predicate: PredicateRef,
        /// Bound by this step.
        object: Slot,
        /// The graphs.
        graph: GraphRef,
    },
    /// Binds `to` to the subjects (or objects) of one predicate for each row so far: a start inside a plan, for
    /// patterns that are not connected to what is bound (a product).
    Cross {
        /// The new slot.
        to: Slot,
        /// As in `Start`; never `Unit`.
        source: StartSource,
        /// As in `Start`.
        within: Option<IdFilter>,
    },
}

/// One exploration step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Kind of the step, with its operands.
    pub kind: StepKind,
    /// Conditions on bound slots, tested on its output rows.
    pub filters: Vec<Condition>,
    /// Slots that later steps, operators or the result need; all others are dropped after this step.
    pub live: Vec<Slot>,
    /// Estimated rows after the step.
    pub rows: f64,
    /// Estimated cost of the step, roughly in nanoseconds of one core.
    pub cost: f64,
    /// Reason for the step's position, for EXPLAIN.
    pub why: String,
}

/// A group of triple patterns turned into steps.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Exploration {
    /// In order; empty only with `empty`.
    pub steps: Vec<Step>,
    /// Reason why nothing matches, if the statistics or the dictionary prove it.
    pub empty: Option<String>,
}

/// A filter condition. Evaluation has three values: true, false, error; rows for which it is true are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The same term (SPARQL `sameTerm`, and `=` where both ends can only be IRIs).
    Same(Operand, Operand),
    /// A comparison such as `slot < constant` for numbers, strings, dates and booleans, by rank; the right side is the
    /// constant's canonical bytes. Semantics are SPARQL's operator table: incomparable terms are an error.
    Compare(Slot, Relation, Canonical),
    /// Term kind tests.
    Kind(Slot, TermTest),
    /// The slot has a value.
    Bound(Slot),
    /// Logical and.
    And(Vec<Condition>),
    /// Logical or.
    Or(Vec<Condition>),
    /// Logical not.
    Not(Box<Condition>),
    /// Any other expression.
    General(Box<GeneralExpression>),
}

/// An expression that is evaluated row by row, or by columns of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralExpression {
    /// The expression, without EXISTS.
    pub expression: Arc<Expression>,
    /// Its variables and their slots; a variable that is not listed is unbound.
    pub variables: Arc<[(Variable, Slot)]>,
    /// Base that `IRI()` resolves relative references against.
    pub base_iri: Option<BaseIri>,
    /// The registered functions, among them those that the expression calls by IRI.
    pub functions: Functions,
    /// True if the value is not a function of the row (`RAND`, `UUID`, `STRUUID`, `BNODE`): it must be computed for
    /// each row and never be remembered. (`NOW` is constant within a query.)
    pub per_row: bool,
    /// The expression as a question to an index, if one knew an answer when the plan was made. The expression then has
    /// one variable.
    pub asked: Option<Box<IndexQuestion>>,
}

/// Tests of [`Condition::Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermTest {
    /// `isIRI`
    Iri,
    /// `isBlank`
    Blank,
    /// `isLiteral`
    Literal,
    /// `isNumeric`
    Numeric,
}

/// Light plans are answered in place by one worker; heavy ones are cut into morsels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Estimated below [`LIGHT_COST`].
    Light,
    /// All others.
    Heavy,
}

/// Estimated nanoseconds below which a plan is light: under that, waking a second thread (some 20 µs) gains nothing.
pub const LIGHT_COST: f64 = 200_000.0;

/// A planned query.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Form of the result.
    pub form: Form,
    /// Name by slot; hidden slots have names that no query can write.
    pub slots: Vec<String>,
    /// The result's columns, in order. A slot that is never bound gives an unbound column.
    pub output: Vec<Slot>,
    /// Name of each column: two columns may show one slot under two names.
    pub columns: Vec<String>,
    /// The operators.
    pub root: Operator,
    /// Estimated cost, roughly in nanoseconds of one core.
    pub cost: f64,
    /// Light or heavy.
    pub weight: Weight,
    /// Snapshots that the plan may run on.
    pub validity: Validity,
    /// Bytes that the plan takes according to [`measure`](jindou_model::scope::measure); 0 if not measured.
    pub bytes: u64,
}

/// Forms of result.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// SELECT: the columns of `Plan::output`.
    Select,
    /// ASK: whether there is a row.
    Ask,
    /// CONSTRUCT: these triples for each row; `Plan::output` has the columns of the template's variables, which
    /// [`TemplateTerm::Column`] counts.
    Construct(Vec<[TemplateTerm; 3]>),
    /// DESCRIBE: the vertices in the columns of `Plan::output`, described from the query's dataset.
    Describe(Option<QueryDataset>),
}

/// A position of a CONSTRUCT template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateTerm {
    /// A column of the output.
    Column(usize),
    /// Canonical bytes.
    Term(Canonical),
    /// A blank node, new for each row; equal numbers are the same node within a row.
    Blank(usize),
    /// A triple term.
    Triple(Box<[TemplateTerm; 3]>),
}

impl Plan {
    /// Returns true for ASK.
    #[must_use]
    pub fn is_ask(&self) -> bool {
        matches!(self.form, Form::Ask)
    }

    /// The exploration at the bottom of a plan that is a chain, that is, one exploration under operators with one
    /// input.
    #[must_use]
    pub fn exploration(&self) -> Option<&Exploration> {
        self.root.exploration()
    }
}
