//! Tests with disks that are full, truncated or broken. They are a process of their own, since their files fail while
//! they are mapped (SIGBUS).

mod failing;
mod full;
mod persons;
mod shrunk;
