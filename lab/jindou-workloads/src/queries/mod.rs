//! Query sets: [`lubm`] with known row counts and templates, [`watdiv`] and [`bsbm`] with their templates and their
//! instances, [`sp2b`], [`ted`], [`ugly`] with random basic graph patterns for measuring plan time.

pub mod bsbm;
pub mod lubm;
pub mod lubm_official;
pub mod sp2b;
pub mod ted;
pub mod ugly;
pub mod watdiv;

pub use watdiv::Instance;
