//! Oracles: slow, obvious, and nothing of the planner's inside.

pub mod interpret;
pub mod query;
