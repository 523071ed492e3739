//! `STRLEN`.

use super::{Cost, Definition, Row, Scalar, Type, Val, blocks};
use crate::Num;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRLEN"],
    arguments: &[("text", Type::Text)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::StrLen),
    number: None,
    group: "Strings",
    summary: "The number of characters (code points) of a text.",
    errors: "for anything but a string",
    examples: &[(r#"STRLEN("chat"@en)"#, "4")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let t = row.text(first?)?;
    Some(Val::Num(Num::Int(blocks::characters(row, t.text) as i64)))
}
