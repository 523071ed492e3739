//! Functions that create, test or decompose terms.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("term", Type::Term)],
    gives: Type::Boolean,
    group: "Terms",
    ..Definition::DEFAULT
};

functions! {
    /// Its values are computed in the engine's `machine.rs`.
    iri "IRI" "URI" {
        arguments: &[("text", Type::Term)],
        gives: Type::Iri,
        summary: "The IRI of a string, resolved against the base IRI of the query; an IRI as it is.",
        errors: "unless the argument is an IRI or a string without a language tag, and for a text that is not an IRI",
        examples: &[(r#"IRI("http://example.org/a")"#, "<http://example.org/a>")],
    }

    /// Its values are computed in the engine's `make.rs`.
    bnode "BNODE" {
        arguments: &[("label", Type::Simple)],
        least: 0,
        gives: Type::Blank,
        deterministic: false,
        summary: "A blank node: a new one in each call, or one that calls with the same label in one solution share.",
        errors: "for a label that is not a string without a language tag",
    }

    /// Its values are computed in the engine's `make.rs`.
    uuid "UUID" {
        arguments: &[],
        least: 0,
        gives: Type::Iri,
        deterministic: false,
        cost: Cost::Little,
        summary: "A new IRI of the scheme `urn:uuid:` in each call.",
    }

    /// Its values are computed in the engine's `make.rs`.
    struuid "STRUUID" {
        arguments: &[],
        least: 0,
        gives: Type::Simple,
        deterministic: false,
        cost: Cost::Little,
        summary: "A new UUID as a string in each call.",
    }

    /// Its values are computed in the engine's `make.rs`.
    strlang "STRLANG" {
        arguments: &[("text", Type::Simple), ("tag", Type::Simple)],
        least: 2,
        gives: Type::Text,
        summary: "The string with a language tag.",
        errors: "unless both are strings without a language tag, the second a valid language tag",
        examples: &[(r#"STRLANG("chat", "en")"#, r#""chat"@en"#)],
    }

    /// Its values are computed in the engine's `make.rs`.
    strdt "STRDT" {
        arguments: &[("text", Type::Simple), ("datatype", Type::Iri)],
        least: 2,
        gives: Type::Literal,
        summary: "The literal with a text and a datatype.",
        errors: "unless the first is a string without a language tag and the second an IRI",
        examples: &[(
            r#"STRDT("123", <http://www.w3.org/2001/XMLSchema#integer>)"#,
            "123",
        )],
    }

    /// Its values are computed in the engine's `machine.rs`.
    is_iri "isIRI" "isURI" {
        cost: Cost::Little,
        summary: "True for an IRI.",
        examples: &[
            ("isIRI(<http://example.org/a>)", "true"),
            (r#"isIRI("a")"#, "false"),
        ],
    }

    /// Its values are computed in the engine's `machine.rs`.
    is_blank "isBLANK" {
        cost: Cost::Little,
        summary: "True for a blank node.",
        examples: &[("isBLANK(<http://example.org/a>)", "false")],
    }

    /// Its values are computed in the engine's `machine.rs`.
    is_literal "isLITERAL" {
        cost: Cost::Little,
        summary: "True for a literal.",
        examples: &[(r#"isLITERAL("a")"#, "true")],
    }

    /// Its values are computed in the engine's `make.rs`.
    triple "TRIPLE" {
        arguments: &[
            ("subject", Type::Term),
            ("predicate", Type::Term),
            ("object", Type::Term),
        ],
        least: 3,
        gives: Type::Triple,
        summary: "The triple term of three terms.",
        errors: "unless the subject is an IRI or blank node and the predicate an IRI",
    }

    subject "SUBJECT" {
        arguments: &[("triple", Type::Triple)],
        gives: Type::Term,
        row: Some(Scalar::Subject),
        summary: "The subject of a triple term.",
        errors: "for anything but a triple term",
    } |row, values| {
        row.part_of_triple(*values.first()?, 0)
    }

    predicate "PREDICATE" {
        arguments: &[("triple", Type::Triple)],
        gives: Type::Iri,
        row: Some(Scalar::Predicate),
        summary: "The predicate of a triple term.",
        errors: "for anything but a triple term",
    } |row, values| {
        row.part_of_triple(*values.first()?, 1)
    }

    object "OBJECT" {
        arguments: &[("triple", Type::Triple)],
        gives: Type::Term,
        row: Some(Scalar::Object),
        summary: "The object of a triple term.",
        errors: "for anything but a triple term",
    } |row, values| {
        row.part_of_triple(*values.first()?, 2)
    }

    is_triple "isTRIPLE" {
        row: Some(Scalar::IsTriple),
        summary: "True for a triple term.",
        examples: &[(r#"isTRIPLE("a")"#, "false")],
    } |row, values| {
        Some((row.tag(*values.first()?) == term::TRIPLE).into())
    }

    /// Its values are computed in the engine's `make.rs`.
    strlangdir "STRLANGDIR" {
        arguments: &[
            ("text", Type::Simple),
            ("tag", Type::Simple),
            ("direction", Type::Simple),
        ],
        least: 3,
        gives: Type::Text,
        summary: "The string with a language tag and a base direction, `ltr` or `rtl`.",
        errors: "unless all are strings without a language tag, the second a valid language tag, the third `ltr` or `rtl`",
    }
}
