//! Planning: the algebra, its meaning, and the plans of known queries.

#[path = "../algebra/interpret/mod.rs"]
mod interpret;
#[path = "../naive/mod.rs"]
mod naive;

mod algebra;
mod comparisons;
mod lubm;
mod semantics;
mod w3c;
