//! Query sets: [`lubm`] with known row counts and templates, [`watdiv`] and [`bsbm`] with templates, [`sp2b`], [`ted`],
//! and [`ugly`] with random basic graph patterns, which measure planning time.

pub mod bsbm;
pub mod lubm;
pub mod lubm_official;
pub mod sp2b;
pub mod ted;
pub mod ugly;
pub mod watdiv;

pub use watdiv::Instance;
