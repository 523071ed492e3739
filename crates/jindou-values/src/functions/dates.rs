//! Dates and times, and their parts.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("time", Type::Time)],
    gives: Type::Number,
    group: "Dates and times",
    ..Definition::DEFAULT
};

functions! {
    year "YEAR" {
        row: Some(Scalar::Year),
        summary: "The year.",
        errors: "for a value without a year",
        examples: &[(
            r#"YEAR("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "2011",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.year()?;
        Some(Val::Num(Num::Int(n)))
    }

    month "MONTH" {
        row: Some(Scalar::Month),
        summary: "The month, from 1 to 12.",
        errors: "for a value without a month",
        examples: &[(
            r#"MONTH("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "1",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.month()?;
        Some(Val::Num(Num::Int(n)))
    }

    day "DAY" {
        row: Some(Scalar::Day),
        summary: "The day of the month.",
        errors: "for a value without a day",
        examples: &[(
            r#"DAY("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "10",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.day()?;
        Some(Val::Num(Num::Int(n)))
    }

    hours "HOURS" {
        row: Some(Scalar::Hours),
        summary: "The hour, from 0 to 23.",
        errors: "for a value without an hour",
        examples: &[(
            r#"HOURS("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "14",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.hour()?;
        Some(Val::Num(Num::Int(n)))
    }

    minutes "MINUTES" {
        row: Some(Scalar::Minutes),
        summary: "The minute.",
        errors: "for a value without a minute",
        examples: &[(
            r#"MINUTES("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "45",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.minute()?;
        Some(Val::Num(Num::Int(n)))
    }

    seconds "SECONDS" {
        row: Some(Scalar::Seconds),
        summary: "The second with its fraction, as a decimal.",
        errors: "for a value without a second",
        examples: &[(
            r#"SECONDS("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            "13.815",
        )],
    } |row, values| {
        let n = row.time(*values.first()?)?.second()?;
        Some(Val::Num(Num::Dec(n)))
    }

    timezone "TIMEZONE" {
        gives: Type::Duration,
        row: Some(Scalar::Timezone),
        summary: "The time zone as an `xsd:dayTimeDuration`.",
        errors: "for a value without a time zone",
        examples: &[(
            r#"TIMEZONE("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            r#""-PT5H"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>"#,
        )],
    } |row, values| {
        row.time(*values.first()?)?.zone().map(Val::Duration)
    }

    tz "TZ" {
        gives: Type::Simple,
        row: Some(Scalar::Tz),
        summary: "The time zone as it is written; the empty string without one.",
        errors: "for anything but a date or time",
        examples: &[(
            r#"TZ("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
            r#""-05:00""#,
        )],
    } |row, values| {
        let t = row.time(*values.first()?)?;
        let text = row.write(|out| t.push_zone(out));
        Some(Val::Text(ArenaText { text, lang: None }))
    }

    adjust "ADJUST" {
        arguments: &[("time", Type::Time), ("zone", Type::Duration)],
        least: 2,
        gives: Type::Time,
        row: Some(Scalar::Adjust),
        summary: "The same time in another time zone; without a time zone for an empty string.",
        errors: "unless the first is a date or time and the second an `xsd:dayTimeDuration` of whole minutes up to 14 hours, or the empty string",
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (t, zone) = (row.time(first)?, second);
        let to = match row.duration(zone) {
            Some(d) => Some(d),
            None => {
                let text = row.simple(zone)?;
                if text.start != text.end {
                    return None;
                }
                None
            }
        };
        t.adjust(to).map(Val::Time)
    }

    /// The engine's `code.rs` computes its value.
    now "NOW" {
        arguments: &[],
        least: 0,
        gives: Type::Time,
        cost: Cost::Little,
        summary: "The time at which the query began, the same in all calls.",
    }
}
