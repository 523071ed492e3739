//! The plan: what the planner decides and an executor (CPU, GPU, remote) carries out.
//!
//! A plan contains vertex ids, so it belongs to one base. Within that base it is valid for some snapshots
//! ([`Validity`]); for others the query must be planned again.
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

/// The number of a variable in a plan, and of its column in the history table. Blank nodes and values that only the
/// plan needs have slots, too (*hidden* slots).
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
    /// All named graphs merged: an edge in several of them counts once. (A graph variable does **not** use this, even
    /// if nothing reads it: it yields one row per graph.)
    AnyNamed,
    /// The default graph and all named graphs merged.
    Union,
    /// Several graphs merged: ascending ids, where 0 is the default graph.
    Set(Vec<u32>),
    /// The named graph that an earlier step bound to this slot.
    Slot(Slot),
    /// This step binds the slot to the edge's graph, which is a named graph, and one of the list if there is one (`FROM
    /// NAMED`). One row for each graph that has the edge.
    Bind(Slot, Option<Vec<u32>>),
}

impl GraphRef {
    /// The scope to read with; `None` for `Slot`, whose scope depends on the row. For `Bind`, the graphs that it may
    /// bind.
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

/// The neighbour list of a known vertex along one predicate; its members are the candidates for the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    /// The known end: the segment's key.
    pub anchor: Operand,
    /// The predicate.
    pub predicate: PredicateId,
    /// `Out`: the anchor is the subject.
    pub direction: Direction,
    /// The graphs.
    pub graph: GraphRef,
}

/// Intervals `[start, end)` of vertex ids, ascending, disjoint.
pub type Intervals = Vec<[u32; 2]>;

/// Source of the values of the first variable.
#[derive(Clone, Debug, PartialEq)]
pub enum StartSource {
    /// One row without columns, for later steps that need only constants.
    Unit,
    /// Exactly the vertices of `Step::Start::within` (which is then `Some`).
    IdFilter,
    /// The neighbour list of a constant (instances of a class, …).
    List(EdgeList),
    /// The index vertex of a predicate: the keys of its segment. If not all graphs are read, or the segment has a
    /// patch, these are a superset; the executor then drops keys without a neighbour in `graph`.
    Keys {
        /// The predicate.
        predicate: PredicateId,
        /// `Out` for its subjects, `In` for its objects.
        direction: Direction,
        /// The graphs; never `GraphRef::Bind` or `GraphRef::Slot`.
        graph: GraphRef,
    },
    /// All named graphs that contain a quad; if there is a list, only those in it.
    Graphs(Option<Vec<u32>>),
}

/// The predicate position of a pattern with a predicate variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredicateRef {
    /// This step binds the slot to the predicate's term.
    Bind(Slot),
    /// The slot is bound already: only edges of that predicate match. A term that is not a predicate has no edges.
    Slot(Slot),
}

/// The end of an edge or path that is opposite to the known end, or either end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// This step binds the slot.
    Bind(Slot),
    /// The end is known already.
    Known(Operand),
}

/// Kinds of steps, by what they do to each row.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Creates the first rows. Always step 0, and only there.
    Start {
        /// The slot to bind; `None` only for `StartSource::Unit`.
        to: Option<Slot>,
        /// The values.
        source: StartSource,
        /// Additional condition: the value must be one of these vertices (instances of classes, keys of predicates).
        within: Option<IdFilter>,
    },
    /// Binds `to` to each vertex that is in **all** lists and in `within`; several lists are intersected, starting with
    /// the shortest. A list whose graph is `Bind` must be the only one; a row then has a neighbour and its graph.
    Expand {
        /// The new slot.
        to: Slot,
        /// The lists, at least one.
        lists: Vec<EdgeList>,
        /// Additional condition, as in `Start`.
        within: Option<IdFilter>,
    },
    /// Keeps rows for which the edge between `list.anchor` and `other` exists. With `GraphRef::Bind`, one row per graph
    /// that has the edge.
    Check {
        /// The neighbour list in which `other` is looked up.
        list: EdgeList,
        /// The end opposite to the anchor.
        other: Operand,
    },
    /// Keeps rows whose slot is one of these vertices (instances of classes, keys of predicates).
    Restrict {
        /// The bound slot.
        slot: Slot,
        /// The vertices.
        within: IdFilter,
    },
    /// Follows the edges of a known end along any predicate, for patterns with a predicate variable. An edge that is in
    /// several graphs of a merged scope yields one row.
    ExpandAny {
        /// The known end.
        anchor: Operand,
        /// `Out` if the anchor is the subject, `In` if it is the object.
        direction: Direction,
        /// The predicate.
        predicate: PredicateRef,
        /// The other end.
        far: FarEnd,
        /// The graphs.
        graph: GraphRef,
    },
    /// For each row, returns every edge of every predicate (or of the bound one); neither end is known.
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
    /// For each row, binds `to` to every value of `source`: a cross product, for patterns that share no slot with the
    /// rows.
    Cross {
        /// The new slot.
        to: Slot,
        /// The values, as in `Start`; never `Unit`.
        source: StartSource,
        /// Additional condition, as in `Start`.
        within: Option<IdFilter>,
    },
}

/// One exploration step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Kind of the step, with its operands.
    pub kind: StepKind,
    /// Conditions on bound slots, tested on the step's output rows.
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

impl Step {
    /// A start from one row without slots.
    pub(crate) fn unit(why: &str) -> Self {
        Self {
            kind: StepKind::Start {
                to: None,
                source: StartSource::Unit,
                within: None,
            },
            filters: vec![],
            live: vec![],
            rows: 1.0,
            cost: 0.0,
            why: why.into(),
        }
    }
}

/// A group of triple patterns as steps.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Exploration {
    /// The steps in their order; empty only if `empty` is set.
    pub steps: Vec<Step>,
    /// Reason why nothing matches, if the planner has proved it.
    pub empty: Option<String>,
}

/// A filter condition. Its value is true, false or an error; rows for which it is true are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Both are the same term: `sameTerm`, or an `=` that holds only for the same term.
    Same(Operand, Operand),
    /// A comparison of a slot with a constant, such as `slot < constant` for numbers, strings, dates and booleans. The
    /// engine compares value ranks; the constant is in canonical bytes. As in SPARQL, incomparable terms are an error.
    Compare(Slot, Relation, Canonical),
    /// A test of the kind of term.
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

/// An expression that the engine evaluates per row, or, for some functions of numbers, per column.
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
    /// True if equal rows may have different values (`RAND`, `UUID`, `STRUUID`, `BNODE`), so that the value must be
    /// computed for each row and never be cached. (`NOW` is constant within a query.)
    pub per_row: bool,
    /// The expression as a question to an index, if an index could answer it when the plan was made. The expression
    /// then has one variable.
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

/// Classes of plans: one thread runs a light plan; several threads may share the morsels of a heavy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The estimated cost is below [`LIGHT_COST`].
    Light,
    /// The estimated cost is at least [`LIGHT_COST`].
    Heavy,
}

/// Estimated nanoseconds below which a plan is light: waking a second thread takes some 20 µs, so it would gain
/// nothing.
pub const LIGHT_COST: f64 = 200_000.0;

/// A planned query.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Form of the result.
    pub form: Form,
    /// Name of each slot; names of hidden slots cannot occur in a query.
    pub slots: Vec<String>,
    /// The slots of the result's columns, in order. A column whose slot is never bound is unbound in every row.
    pub output: Vec<Slot>,
    /// Names of the result's columns: two columns may have the same slot and different names.
    pub columns: Vec<String>,
    /// The root of the tree of operators.
    pub root: Operator,
    /// Estimated cost, roughly in nanoseconds of one core.
    pub cost: f64,
    /// Light or heavy.
    pub weight: Weight,
    /// The snapshots that the plan can run on.
    pub validity: Validity,
    /// Bytes of memory that the plan takes, as [`measure`](jindou_model::scope::measure) counted them; 0 if not
    /// measured.
    pub bytes: u64,
}

/// The form of a query, which decides what is made of the plan's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// SELECT: returns the columns of `Plan::output`.
    Select,
    /// ASK: returns whether there is a row.
    Ask,
    /// CONSTRUCT: returns these triples for each row. `Plan::output` has the slots of the template's variables;
    /// [`TemplateTerm::Column`] is a position in it.
    Construct(Vec<[TemplateTerm; 3]>),
    /// DESCRIBE: describes the vertices in the columns of `Plan::output`, from the query's dataset.
    Describe(Option<QueryDataset>),
}

/// A position of a CONSTRUCT template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateTerm {
    /// The value of this column of the output.
    Column(usize),
    /// A constant term, in canonical bytes.
    Term(Canonical),
    /// A blank node that is new for each row; within a row, equal numbers are the same node.
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

    /// The only exploration of a plan that is a chain of operators with one input each; `None` for other plans.
    #[must_use]
    pub fn exploration(&self) -> Option<&Exploration> {
        self.root.exploration()
    }
}
