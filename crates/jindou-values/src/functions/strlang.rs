//! `STRLANG`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRLANG"],
    arguments: &[("text", Type::Simple), ("tag", Type::Simple)],
    least: 2,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "The string with a language tag.",
    errors: "unless both are strings without a language tag, and for a text that is not a tag",
    examples: &[(r#"STRLANG("chat", "en")"#, r#""chat"@en"#)],
};
