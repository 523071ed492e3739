//! `jindou bench`: what it prints, and that answers are checked.

mod bench_files;
mod papers;
mod parallel;
mod replicas;
