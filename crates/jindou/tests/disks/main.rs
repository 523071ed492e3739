//! A process of its own, since its files fail while they are mapped (SIGBUS): disks that are full, cut or broken.

mod failing;
mod full;
mod persons;
mod shrunk;
