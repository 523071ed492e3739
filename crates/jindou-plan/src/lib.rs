//! SPARQL text → algebra → [`Plan`], an exploration and operators above it, chosen by estimated cost from statistics.
//!
//! ```text
//! text ──parse──► algebra ──logical──► patterns, filters, modifiers over slots
//!        ──resolve──► ids, intervals of classes and keys, proofs of emptiness (one snapshot)
//!        ──search──► an order of slots (model: what a move costs) ──emit──► Plan
//! ```

mod algebra;
mod ask;
mod build;
mod cache;
mod condition;
mod cost;
mod edge;
mod emit;
mod equal;
mod explain;
mod expression;
mod functions;
mod id_filter;
mod intervals;
mod joins;
mod keyed;
mod logical;
mod model;
pub mod operator;
mod parameters;
mod parse;
mod plan;
mod planner;
mod remarks;
mod resolve;
mod sample;
mod search;
mod semi;
mod set;
mod show;
mod slots;
mod split;
mod stars;
mod steps;
mod translate;
mod update;
mod validity;
mod weigh;
pub mod wire;

pub use algebra::{
    MAX_DEPTH, MAX_EXPRESSION_DEPTH, Parsed, ParsedUpdate, read, read_update, with_stack,
};
pub use ask::IndexQuestion;
pub use cache::{CacheKey, PlanCache};
pub use explain::explain;
pub use expression::{map_parts as map_expression_parts, parts as expression_parts};
pub use functions::{Argument, Function, FunctionLookup, Functions, MAX_ARGUMENTS};
pub use id_filter::{IdFilter, Member, TouchedBy};
pub use intervals::intersect;
pub use jindou_dictionary::index::Relation;
pub use jindou_syntax::{algebra as sparql, extension_of_iri};
pub use operator::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Count, JoinKey, JoinKind, Match, MatchBy,
    Operator, Path, Service, ServiceEndpoint, Walk,
};
pub use oxiri;
pub use parameters::{MAX_PARAMETERS, Parametric, ParametrizedQuery, substitute};
pub use parse::{
    COMMON_PREFIXES, Escapes, SyntaxOptions, TextPrefixes, parse, parse_with, prefixes_of,
};
pub use plan::{
    Condition, EdgeList, Exploration, FarEnd, Form, GeneralExpression, GraphRef, Intervals,
    LIGHT_COST, Operand, Plan, PredicateRef, Slot, StartSource, Step, StepKind, TemplateTerm,
    TermTest, Weight,
};
pub use planner::{PlanOptions, plan};
pub use remarks::remarks;
pub use slots::{FIRST_HIDDEN, layout_of};
pub use update::{UpdateOperation, UpdateRequest, parse_update, parse_update_with};
pub use validity::Validity;
