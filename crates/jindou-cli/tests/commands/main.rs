//! Commands, their output and their errors.

mod cli;
mod cluster;
mod cut;
mod files;
mod first;
mod follow;
mod gpu;
mod graphs;
mod kept;
mod mistakes;
mod operations;
mod prefixes;
mod rdf;
mod remote;
mod repair;
mod replicas;
mod run;
mod settings;
mod shell;
mod shrunk;
mod words;
