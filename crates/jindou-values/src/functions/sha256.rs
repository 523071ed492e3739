//! `SHA256`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["SHA256"],
    arguments: &[("text", Type::Simple)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Hashes",
    summary: "The SHA-256 hash of the text's UTF-8 in hexadecimal digits.",
    errors: "for anything but a string without a language tag",
    examples: &[(
        r#"SHA256("abc")"#,
        r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
    )],
};
