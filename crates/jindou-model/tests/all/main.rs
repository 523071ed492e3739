//! Tests of mapped files that are truncated, and of scopes that cannot measure memory.

mod faults;
mod unmeasured;
