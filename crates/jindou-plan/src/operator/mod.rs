//! Operators: the nodes of a plan. Each has a file of its own with all its properties; this file has the list of
//! operators, and `tree.rs` the traversals of a tree of them.
//!
//! Each operator returns rows of ids, one column per slot. The id 0 means unbound, and a slot without a column is
//! unbound in all rows. Rows are a multiset without an order, unless `OrderBy`, or a `Slice` over it, establishes one.
//!
//! ```text
//! leaves     Explore   Outer   Values   Service
//! from rows  Steps   Path   Filter   Extend   Apply            one row at a time, any number out
//! two sides  Join   Union
//! all rows   Group   Count   Distinct   Reduced   OrderBy   Slice
//! ```

/// The inputs of an operator whose only input is `self.input`, the rows of which pass through it.
macro_rules! one_input {
    () => {
        fn each_input<'a>(&'a self, f: &mut $crate::operator::facts::EachInput<'_, 'a>) {
            f($crate::operator::InputRole::Streams, &self.input);
        }

        fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
            f(&mut self.input);
        }
    };
}

mod apply;
mod count;
mod distinct;
mod explore;
mod extend;
mod facts;
mod filter;
mod group;
mod join;
mod order_by;
mod outer;
mod path;
mod reduced;
mod service;
mod slice;
mod steps;
mod tree;
mod union;
mod values;

pub use apply::{Apply, ApplyKind};
pub use count::{Count, GroupCount};
pub use distinct::Distinct;
pub use extend::Extend;
pub use facts::{InputRole, Order};
pub(crate) use facts::{OperatorFacts, prune};
pub use filter::Filter;
pub use group::{Aggregate, AggregateFunction, Group};
pub use join::{Join, JoinKey, JoinKind, Match, MatchBy};
pub use order_by::OrderBy;
pub use outer::Outer;
pub use path::{FollowPath, Path};
pub use reduced::Reduced;
pub use service::{Service, ServiceEndpoint};
pub use slice::Slice;
pub use steps::Steps;
pub use tree::Walk;
pub use union::Union;
pub use values::{Cell, Values};

use crate::Exploration;

/// Defines the enum of all operators, and the access to each node's [`OperatorFacts`].
macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident($node:ty),)*) => {
        /// A node of the plan.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Operator {
            $($(#[$doc])* $name($node),)*
        }

        $(impl From<$node> for Operator {
            fn from(node: $node) -> Self {
                Self::$name(node)
            }
        })*

        impl Operator {
            pub(crate) fn facts(&self) -> &dyn OperatorFacts {
                match self {
                    $(Self::$name(node) => node,)*
                }
            }

            pub(crate) fn facts_mut(&mut self) -> &mut dyn OperatorFacts {
                match self {
                    $(Self::$name(node) => node,)*
                }
            }
        }
    };
}

operators! {
    /// Triple patterns with their pushed-down filters.
    Explore(Exploration),
    /// The row, or the rows, of the nearest enclosing [`Operator::Apply`].
    Outer(Outer),
    /// Inline data.
    Values(Values),
    /// Rows from another endpoint.
    Service(Service),
    /// Exploration that extends the input's rows (a bind join).
    Steps(Steps),
    /// A property path with `?`, `*` or `+`, followed from each row of the input.
    Path(FollowPath),
    /// A join of two independent inputs.
    Join(Join),
    /// For each row of one input, evaluates the other input with that row's values.
    Apply(Apply),
    /// All rows of all inputs.
    Union(Union),
    /// BIND.
    Extend(Extend),
    /// GROUP BY with aggregates.
    Group(Group),
    /// REDUCED.
    Reduced(Reduced),
    /// FILTER.
    Filter(Filter),
    /// DISTINCT.
    Distinct(Distinct),
    /// GROUP BY with COUNTs only.
    Count(GroupCount),
    /// ORDER BY.
    OrderBy(OrderBy),
    /// OFFSET and LIMIT.
    Slice(Slice),
}
