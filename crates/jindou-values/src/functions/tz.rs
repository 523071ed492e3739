//! `TZ`.

use super::{ArenaText, Cost, Definition, Row, Scalar, Type, Val};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["TZ"],
    arguments: &[("time", Type::Time)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Tz),
    number: None,
    group: "Dates and times",
    summary: "The time zone as it is written; the empty string without one.",
    errors: "for anything but a date or time",
    examples: &[(
        r#"TZ("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
        r#""-05:00""#,
    )],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let t = row.time(first?)?;
    let text = row.write(|out| t.push_zone(out));
    Some(Val::Text(ArenaText { text, lang: None }))
}
