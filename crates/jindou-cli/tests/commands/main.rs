//! Commands, their output and their errors.

mod cli;
mod follow;
mod gpu;
mod graphs;
mod kept;
mod rdf;
mod remote;
mod settings;
mod shell;
mod words;
