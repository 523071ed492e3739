//! Planning: the algebra, its meaning, and the plans of known queries.

mod interpret;
mod nested_loops;

mod algebra;
mod comparisons;
mod lubm;
mod semantics;
mod w3c;
