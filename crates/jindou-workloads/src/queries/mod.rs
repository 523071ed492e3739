//! Query sets: [`lubm`] with known row counts and templates, [`ugly`] with random basic graph
//! patterns for measuring plan time.

pub mod lubm;
pub mod ugly;
