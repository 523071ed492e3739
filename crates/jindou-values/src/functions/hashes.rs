//! Hashes of texts.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("text", Type::Simple)],
    gives: Type::Simple,
    group: "Hashes",
    errors: "for anything but a string without a language tag",
    ..Definition::DEFAULT
};

functions! {
    /// Its values are computed in the engine's `make.rs`.
    md5 "MD5" {
        summary: "The MD5 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(r#"MD5("abc")"#, r#""900150983cd24fb0d6963f7d28e17f72""#)],
    }

    /// Its values are computed in the engine's `make.rs`.
    sha1 "SHA1" {
        summary: "The SHA-1 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(
            r#"SHA1("abc")"#,
            r#""a9993e364706816aba3e25717850c26c9cd0d89d""#,
        )],
    }

    /// Its values are computed in the engine's `make.rs`.
    sha256 "SHA256" {
        summary: "The SHA-256 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(
            r#"SHA256("abc")"#,
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        )],
    }

    /// Its values are computed in the engine's `make.rs`.
    sha384 "SHA384" {
        summary: "The SHA-384 hash of the text's UTF-8 in hexadecimal digits.",
    }

    /// Its values are computed in the engine's `make.rs`.
    sha512 "SHA512" {
        summary: "The SHA-512 hash of the text's UTF-8 in hexadecimal digits.",
    }
}
