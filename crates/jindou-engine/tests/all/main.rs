//! Tests the engine against brute force, a model of its operators and `spareval`; fork-join over shards; limits.

mod brute_force;
mod edits;
mod equal;
mod fall_back;
mod fork;
mod limits;
mod operators;
mod paths;
mod queries;
mod spill;
mod streamed;
mod support;
