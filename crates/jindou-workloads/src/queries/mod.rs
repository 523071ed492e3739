//! Query sets: [`lubm`] with known row counts and templates, [`watdiv`] with its templates and their instances,
//! [`ugly`] with random basic graph patterns for measuring plan time.

pub mod lubm;
pub mod ugly;
pub mod watdiv;
