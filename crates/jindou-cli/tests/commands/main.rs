//! Commands, their output and their errors.

mod cases;
mod cli;
mod cluster;
mod cut;
mod first;
mod follow;
mod gpu;
mod graphs;
mod kept;
mod operations;
mod packaging;
mod rdf;
mod remote;
mod repair;
mod replicas;
mod run;
mod shell;
mod shrunk;
mod words;
