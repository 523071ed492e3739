//! SPARQL text → algebra → a cost-based exploration plan. Statistics in, [`Plan`] out.

mod plan;

pub use plan::{
    Condition, Count, EdgeList, Exploration, FarEnd, GeneralExpression, GraphRef, Intervals,
    LIGHT_COST, Operand, Operator, Plan, PredicateRef, Relation, Slot, StartSource, Step, StepKind,
    TermTest, Weight,
};
