//! Tests of the generated page of functions, and of patterns in comparison with Saxon.

mod reference;
mod saxon;
