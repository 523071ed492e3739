//! Tests of the output of `jindou bench`, and of its checks of answers.

mod bench_files;
mod papers;
mod parallel;
mod replicas;
