//! The page of functions, and patterns against Saxon.

mod reference;
mod saxon;
