//! Mapped files that are cut, and scopes that cannot measure.

mod faults;
mod unmeasured;
