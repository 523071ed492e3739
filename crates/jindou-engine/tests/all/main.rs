//! The engine against brute force, and its limits.

#[path = "../support/mod.rs"]
mod support;

mod brute_force;
mod equal;
mod fall_back;
mod limits;
mod paths;
mod streamed;
