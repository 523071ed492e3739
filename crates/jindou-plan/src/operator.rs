//! Operators: what a plan does besides exploring.
//!
//! Each gives rows of ids, one column a slot; 0 is unbound, and a slot that an operator's rows do not have is unbound in
//! all of them. Rows are a bag, in no order unless `OrderBy` or `Slice` over it says so.
//!
//! ```text
//! leaves     Explore   Outer   Values   Service
//! from rows  Steps   Path   Filter   Extend   Apply            one row at a time, any number out
//! two sides  Join   Union
//! all rows   Group   Count   Distinct   Reduced   OrderBy   Slice
//! ```

use crate::{Condition, Exploration, FarEnd, GeneralExpression, GraphRef, Slot, Step};
use jindou_model::PredicateId;

/// A value of inline data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// UNDEF.
    Unbound,
    /// A vertex of the store.
    Id(u32),
    /// A term that the store does not have, in canonical bytes: it gets a query-local id.
    Term(Vec<u8>),
}

/// A slot that both sides of a join have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinKey {
    /// The slot.
    pub slot: Slot,
    /// Bound in every row of the left side. Unbound is compatible with every value, and takes the other side's.
    pub left_bound: bool,
    /// Bound in every row of the right side.
    pub right_bound: bool,
}

/// Kinds of matches of two inputs, by the rows that they give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Gives each compatible pair.
    Inner,
    /// As `Inner`, and rows of the left side without a partner once, alone (OPTIONAL).
    Left,
    /// Rows of the left side that have a partner, once.
    Semi,
    /// Rows of the left side that have none (NOT EXISTS).
    Anti,
    /// Rows of the left side without a compatible partner that shares at least one **bound** slot (MINUS).
    Minus,
}

/// Uses that [`Operator::Apply`] makes of the inner rows of an outer row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyKind {
    /// Gives each.
    Inner,
    /// Gives each; the outer row alone if there is none (OPTIONAL).
    Left,
    /// The outer row, once, if there is one (EXISTS).
    Semi,
    /// The outer row, once, if there is none (NOT EXISTS, MINUS).
    Anti,
    /// The outer row with `xsd:boolean` true or false in this slot (EXISTS inside an expression).
    Mark(Slot),
}

/// A property path below `?`, `*`, `+`; set semantics (pairs of ends).
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// One edge; `None` for a predicate that the store does not have.
    Predicate(Option<PredicateId>),
    /// Backwards.
    Inverse(Box<Path>),
    /// One after the other.
    Sequence(Vec<Path>),
    /// Any of them.
    Alternative(Vec<Path>),
    /// `?`
    ZeroOrOne(Box<Path>),
    /// `*`
    ZeroOrMore(Box<Path>),
    /// `+`
    OneOrMore(Box<Path>),
    /// An edge of any predicate but these, forwards.
    Except(Vec<PredicateId>),
}

/// Whom SERVICE asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The endpoint with this IRI.
    Iri(String),
    /// The one that the outer row names in this slot. Only inside the `inner` of an [`Operator::Apply`] with `each_row`: one
    /// call a distinct endpoint.
    Slot(Slot),
}

/// A call to another endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Whom to ask.
    pub endpoint: Endpoint,
    /// The query to send: a SELECT whose columns are named like `slots`.
    pub query: String,
    /// Variable and slot of each column.
    pub slots: Vec<(String, Slot)>,
    /// One empty row instead of an error.
    pub silent: bool,
}

/// One aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Where the value goes.
    pub to: Slot,
    /// The function that it computes.
    pub function: AggregateFunction,
    /// The input: a slot (expressions were bound to one by `Extend`); `None` only for `CountRows`. Unbound is an error or absent,
    /// which the functions treat as the standard says.
    pub of: Option<Slot>,
    /// Over distinct values.
    pub distinct: bool,
    /// The visible slots, for `COUNT(DISTINCT *)`.
    pub row: Vec<Slot>,
}

/// SPARQL's set functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `COUNT(*)`
    CountRows,
    /// `COUNT`
    Count,
    /// `SUM`
    Sum,
    /// `AVG`
    Avg,
    /// `MIN`
    Min,
    /// `MAX`
    Max,
    /// `SAMPLE`
    Sample,
    /// `GROUP_CONCAT` with its separator.
    GroupConcat(String),
}

/// One COUNT.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Where the number goes (a query-local `xsd:integer` term).
    pub to: Slot,
    /// The slot that is counted; `None` for `COUNT(*)`.
    pub of: Option<Slot>,
    /// Distinct values only (with `of: None`: distinct rows of all visible slots, given in `row`).
    pub distinct: bool,
    /// The visible slots, for `COUNT(DISTINCT *)`.
    pub row: Vec<Slot>,
}

/// A node of the plan above the exploration.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// Triple patterns with their pushed-down filters.
    Explore(Exploration),
    /// The rows of the nearest enclosing [`Operator::Apply`], with these columns of them. Only inside its `inner`.
    Outer(Vec<Slot>),
    /// Inline data, rows of one cell a slot.
    Values {
        /// Columns.
        slots: Vec<Slot>,
        /// Rows.
        rows: Vec<Vec<Cell>>,
    },
    /// Rows that another endpoint gives.
    Service(Box<Service>),
    /// Exploration that goes on from the input's rows (a bind join): no step is a `Start`. Every slot that a step
    /// reads is bound in every row of the input. Multiplicities multiply, as in a join.
    Steps {
        /// Rows to go on from.
        input: Box<Operator>,
        /// At least one.
        steps: Vec<Step>,
    },
    /// A property path with `?`, `*` or `+` in it, from each row of the input. Known ends are bound in every
    /// row. Pairs of ends are distinct for each input row.
    Path {
        /// Rows to go on from; one empty row if nothing is known.
        input: Box<Operator>,
        /// The subject's end.
        subject: FarEnd,
        /// The path.
        path: Path,
        /// The object's end. The same slot bound at both ends means a cycle.
        object: FarEnd,
        /// The graphs: edges and, for zero-length paths with both ends free, nodes.
        graph: GraphRef,
        /// Known ends must be nodes of the graphs too, as between two variables a path of length zero only leads from
        /// nodes of the graph (SPARQL 1.1 §18.4). False where that is known, or an end is a constant.
        nodes: bool,
        /// Estimated pairs of ends for each input row.
        each: f64,
        /// Estimated vertices that are visited for each input row.
        visited: f64,
    },
    /// Two independent inputs, matched on their shared slots.
    Join {
        /// Kind of the match.
        kind: JoinKind,
        /// The side that streams.
        left: Box<Operator>,
        /// The side that is held in memory.
        right: Box<Operator>,
        /// Exactly the slots that both sides have.
        on: Vec<JoinKey>,
        /// For `Left` and `Semi`/`Anti`: more that a matching pair must satisfy, over the slots of both sides.
        condition: Option<Condition>,
        /// For `Inner` and `Semi` without `on`: a slot of the left and one of the right side, of which `=` must be true in a
        /// matching pair (SPARQL 1.1 §17.3). Where one is unbound, nothing matches.
        equal: Option<(Slot, Slot)>,
    },
    /// For each row of `input`, the rows of `inner` that go with it. `inner` reads the row through
    /// [`Operator::Outer`].
    Apply {
        /// The outer rows.
        input: Box<Operator>,
        /// The dependent part. Unless `each_row`, it consists of `Outer`, `Steps`, `Path`, `Filter`, `Extend`, `Union` and
        /// `Apply` (whose own input again is made of these), so that it can run on many outer rows at once.
        inner: Box<Operator>,
        /// Use of the inner rows.
        kind: ApplyKind,
        /// `inner` has operators that look at all rows (`Group`, `Slice`, `Distinct`, …): it runs once for each
        /// distinct combination of the outer columns it reads.
        each_row: bool,
    },
    /// All rows of all inputs; slots that an input lacks are unbound in its rows.
    Union(Vec<Operator>),
    /// Binds `to` to the value of an expression; an error leaves it unbound.
    Extend {
        /// Input.
        input: Box<Operator>,
        /// The new slot.
        to: Slot,
        /// The expression.
        value: GeneralExpression,
    },
    /// Groups by slots and aggregates. No group slots: one row, also for no input.
    Group {
        /// Input.
        input: Box<Operator>,
        /// Grouping slots; unbound is a value like any other.
        by: Vec<Slot>,
        /// Aggregates.
        aggregates: Vec<Aggregate>,
    },
    /// Keeps these slots; duplicates may go or stay.
    Reduced(Box<Operator>, Vec<Slot>),
    /// Keeps rows on which the condition is true.
    Filter(Box<Operator>, Condition),
    /// Keeps one of each combination of these slots (the projected ones).
    Distinct(Box<Operator>, Vec<Slot>),
    /// Groups by slots and counts. No group slots and no rows: one row of zeros.
    Count {
        /// Input.
        input: Box<Operator>,
        /// Grouping slots.
        group: Vec<Slot>,
        /// Counts.
        counts: Vec<Count>,
    },
    /// Sorts by slots (true = descending), in SPARQL's order; stable order of ties is not promised.
    OrderBy(Box<Operator>, Vec<(Slot, bool)>),
    /// Skips, then takes. Over `OrderBy` it is a top-k.
    Slice {
        /// Input.
        input: Box<Operator>,
        /// Rows to skip.
        offset: u64,
        /// Rows to take, if bounded.
        limit: Option<u64>,
    },
}

impl Operator {
    /// The operators whose rows this one reads, in the order of the profile.
    #[must_use]
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::Explore(_) | Self::Outer(_) | Self::Values { .. } | Self::Service(_) => vec![],
            Self::Steps { input, .. }
            | Self::Path { input, .. }
            | Self::Extend { input, .. }
            | Self::Group { input, .. }
            | Self::Count { input, .. }
            | Self::Slice { input, .. }
            | Self::Reduced(input, _)
            | Self::Filter(input, _)
            | Self::Distinct(input, _)
            | Self::OrderBy(input, _) => vec![input],
            Self::Join { left, right, .. } => vec![left, right],
            Self::Apply { input, inner, .. } => vec![input, inner],
            Self::Union(list) => list.iter().collect(),
        }
    }
}
