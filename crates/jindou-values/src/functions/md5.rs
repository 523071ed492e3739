//! `MD5`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["MD5"],
    arguments: &[("text", Type::Simple)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Hashes",
    summary: "The MD5 hash of the text's UTF-8 in hexadecimal digits.",
    errors: "for anything but a string without a language tag",
    examples: &[(r#"MD5("abc")"#, r#""900150983cd24fb0d6963f7d28e17f72""#)],
};
