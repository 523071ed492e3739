//! Tests of the generators and queries of the published benchmarks.

mod bsbm;
mod lubm;
mod lubm_queries;
mod sp2b;
mod ugly;
mod watdiv;
mod watdiv_statistics;
