//! Conversion of a column's cells to terms.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::date32_to_datetime;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use jindou::oxrdf::vocab::xsd;
use jindou::oxrdf::{BlankNode, Literal, NamedNode, NamedNodeRef, Term};
use jindou::{Error, QuadBatch, Resource, Result, Span};
use rustc_hash::FxHashMap;
use std::fmt::Display;
use std::str::FromStr;

/// Position of a column's terms in their triples, which determines how its text is interpreted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Text is an IRI or, as `_:label`, a blank node.
    Subject,
    /// Text is an IRI.
    Predicate,
    /// Text is a literal.
    Object,
    /// Objects whose text is an IRI or, as `_:label`, a blank node.
    Node,
}

/// A column of some rows of a table.
pub struct Cells<'a> {
    pub name: &'a str,
    pub role: Role,
    /// True if text is N-Triples.
    pub ntriples: bool,
    /// Number of the first of these rows in the table, for messages.
    pub first: usize,
    /// Largest number of bytes of all terms.
    pub most: usize,
}

impl Cells<'_> {
    /// Appends the terms of the rows to `out`; returns their spans, empty for empty cells.
    pub fn spans(&self, column: &dyn Array, out: &mut QuadBatch) -> Result<Vec<Span>> {
        if is_text(column.data_type()) {
            return self.texts(column, out);
        }
        if let DataType::Null = column.data_type() {
            return Ok(vec![Span::default(); column.len()]);
        }
        if self.role != Role::Object {
            return Err(self.not_taken(column.data_type(), "has to be text here"));
        }
        match self.integers(column, out) {
            Some(spans) => spans,
            None => self.literals(column, out),
        }
    }

    /// The terms of a column of integers; `None` if the column has another type.
    fn integers(&self, column: &dyn Array, out: &mut QuadBatch) -> Option<Result<Vec<Span>>> {
        macro_rules! of {
            ($($variant:ident $kind:ty),*) => {
                match column.data_type() {
                    $(DataType::$variant => {
                        let values = column.as_primitive::<$kind>();
                        Some(self.values(values, xsd::INTEGER, out, |v| Ok(Some(v))))
                    })*
                    _ => None,
                }
            };
        }
        of!(
            Int8 Int8Type, Int16 Int16Type, Int32 Int32Type, Int64 Int64Type,
            UInt8 UInt8Type, UInt16 UInt16Type, UInt32 UInt32Type, UInt64 UInt64Type
        )
    }

    /// The terms of a column of values that are not integers.
    fn literals(&self, column: &dyn Array, out: &mut QuadBatch) -> Result<Vec<Span>> {
        match column.data_type() {
            DataType::Boolean => {
                let values = column.as_boolean();
                let value = |row| (!values.is_null(row)).then(|| values.value(row));
                let rows = 0..values.len();
                Ok(rows
                    .map(|row| push(out, value(row), xsd::BOOLEAN))
                    .collect())
            }
            DataType::Float32 => {
                let values = column.as_primitive::<Float32Type>();
                self.values(values, xsd::DOUBLE, out, |v| Ok(double(f64::from(v))))
            }
            DataType::Float64 => {
                let values = column.as_primitive::<Float64Type>();
                self.values(values, xsd::DOUBLE, out, |v| Ok(double(v)))
            }
            DataType::Decimal128(_, _) => {
                let values = column.as_primitive::<Decimal128Type>();
                let value = |row| (!values.is_null(row)).then(|| values.value_as_string(row));
                let rows = 0..values.len();
                Ok(rows
                    .map(|row| push(out, value(row), xsd::DECIMAL))
                    .collect())
            }
            DataType::Date32 => {
                let values = column.as_primitive::<Date32Type>();
                self.values(values, xsd::DATE, out, |v| date(v.into()).map(Some))
            }
            DataType::Date64 => {
                let values = column.as_primitive::<Date64Type>();
                self.values(values, xsd::DATE, out, |v| {
                    date(v.div_euclid(86_400_000)).map(Some)
                })
            }
            DataType::Timestamp(unit, zone) => {
                let zoned = zone.is_some();
                macro_rules! times {
                    ($kind:ty, $a_second:expr) => {
                        self.values(column.as_primitive::<$kind>(), xsd::DATE_TIME, out, |v| {
                            moment(v, $a_second, zoned).map(Some)
                        })
                    };
                }
                match unit {
                    TimeUnit::Second => times!(TimestampSecondType, 1),
                    TimeUnit::Millisecond => times!(TimestampMillisecondType, 1_000),
                    TimeUnit::Microsecond => times!(TimestampMicrosecondType, 1_000_000),
                    TimeUnit::Nanosecond => times!(TimestampNanosecondType, 1_000_000_000),
                }
            }
            other => {
                let can = "cannot be made literals: make the column text, or give it one of the types of docs/python.md";
                Err(self.not_taken(other, can))
            }
        }
    }

    fn not_taken(&self, kind: &DataType, why: &str) -> Error {
        Error::Usage(format!(
            "the column '{}' of the type {kind} {why}",
            self.name
        ))
    }

    /// The terms of a column of values, given a function for their lexical form; an empty span if it returns `None`.
    fn values<T: ArrowPrimitiveType, L: Display>(
        &self,
        column: &PrimitiveArray<T>,
        datatype: NamedNodeRef<'_>,
        out: &mut QuadBatch,
        lexical: impl Fn(T::Native) -> Result<Option<L>>,
    ) -> Result<Vec<Span>> {
        let mut spans = Vec::with_capacity(column.len());
        for value in column {
            let lexical = value.map(&lexical).transpose()?;
            spans.push(push(out, lexical.flatten(), datatype));
        }
        Ok(spans)
    }

    /// The terms of a column of text, plain or dictionary-encoded. Each distinct text is parsed once.
    fn texts(&self, column: &dyn Array, out: &mut QuadBatch) -> Result<Vec<Span>> {
        let (keys, values) = match column.as_any_dictionary_opt() {
            // An empty dictionary: all keys are null, and cannot be normalised.
            Some(dictionary) if dictionary.values().is_empty() => {
                return Ok(vec![Span::default(); column.len()]);
            }
            Some(dictionary) => (
                Some(dictionary.normalized_keys()),
                dictionary.values().as_ref(),
            ),
            None => (None, column),
        };
        let text = |row: usize| {
            let row = match &keys {
                _ if column.is_null(row) => return None,
                Some(keys) => *keys.get(row)?,
                None => row,
            };
            if values.is_null(row) {
                return None;
            }
            Some(match values.data_type() {
                DataType::Utf8 => values.as_string::<i32>().value(row),
                DataType::LargeUtf8 => values.as_string::<i64>().value(row),
                _ => values.as_string_view().value(row),
            })
        };
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        let mut spans = Vec::with_capacity(column.len());
        for row in 0..column.len() {
            let Some(text) = text(row) else {
                spans.push(Span::default());
                continue;
            };
            let span = match seen.get(text) {
                Some(span) => *span,
                None => {
                    if out.bytes.len().saturating_add(text.len()) > self.most {
                        return Err(Error::limit(
                            Resource::Form,
                            format!(
                                "row {} of the table has more than {} bytes of text",
                                self.first + row,
                                self.most
                            ),
                        ));
                    }
                    let term = self.term(text).map_err(|why| {
                        Error::Usage(format!(
                            "row {} of the table, column '{}': {why}",
                            self.first + row,
                            self.name
                        ))
                    })?;
                    let span = out.push_term(&jindou::encode_term(&term));
                    seen.insert(text, span);
                    span
                }
            };
            spans.push(span);
        }
        Ok(spans)
    }

    /// The term that a text stands for, or the reason why it does not stand for one.
    fn term(&self, text: &str) -> std::result::Result<Term, String> {
        if self.ntriples {
            let term = Term::from_str(text)
                .map_err(|e| format!("{} is not a term in N-Triples syntax: {e}", shown(text)))?;
            return match (&term, self.role) {
                (Term::NamedNode(_), _)
                | (Term::BlankNode(_), Role::Subject | Role::Node)
                | (_, Role::Object) => Ok(term),
                _ => Err(format!("{} cannot stand there in a triple", shown(text))),
            };
        }
        if self.role == Role::Object {
            return Ok(Literal::new_simple_literal(text).into());
        }
        if let Some(label) = text.strip_prefix("_:")
            && self.role != Role::Predicate
        {
            let blank = BlankNode::new(label);
            return blank
                .map(Term::from)
                .map_err(|e| format!("{} is not a blank node: {e}", shown(text)));
        }
        NamedNode::new(text)
            .map(Term::from)
            .map_err(|e| format!("{} is not an IRI: {e}", shown(text)))
    }
}

/// A text for a message, shortened if it is long.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(100).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    format!("'{start}{rest}'")
}

/// True for columns of text, plain or dictionary-encoded.
fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Appends the literal with this lexical form; an empty span for `None`.
fn push(out: &mut QuadBatch, lexical: Option<impl Display>, datatype: NamedNodeRef<'_>) -> Span {
    match lexical {
        Some(lexical) => {
            let literal = Literal::new_typed_literal(lexical.to_string(), datatype);
            out.push_term(&jindou::encode_term(&literal.into()))
        }
        None => Span::default(),
    }
}

/// A float in the form in which Python writes it, so that it is the same term as `Literal(1.5)`. `None` for NaN, which
/// is an empty cell in pandas.
fn double(value: f64) -> Option<String> {
    if value.is_nan() {
        return None;
    }
    if value.is_infinite() {
        return Some(if value > 0.0 { "INF" } else { "-INF" }.into());
    }
    let text = format!("{value:?}");
    Some(match text.split_once('e') {
        // Python writes exponents with a sign and at least two digits.
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    })
}

/// The lexical form of a date, given in days since 1970.
fn date(days: i64) -> Result<String> {
    let day = i32::try_from(days).ok().and_then(date32_to_datetime);
    let day = day.ok_or_else(|| {
        Error::Usage(format!(
            "the table has a day that no calendar has: {days} days after 1970"
        ))
    })?;
    let text = day.date().to_string();
    // The formatter writes years after 9999 with a sign, XML Schema does not.
    Ok(text.strip_prefix('+').unwrap_or(&text).to_owned())
}

/// The lexical form of an instant, given in units since 1970, of which there are `a_second` per second.
fn moment(value: i64, a_second: i64, zoned: bool) -> Result<String> {
    let (seconds, part) = (value.div_euclid(a_second), value.rem_euclid(a_second));
    let nanos = part * (1_000_000_000 / a_second);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let date = date(day)?;
    let (h, m, s) = (second / 3_600, second / 60 % 60, second % 60);
    let mut text = format!("{date}T{h:02}:{m:02}:{s:02}");
    // The number of digits of the fraction is that of Python's `isoformat`.
    if nanos % 1_000 > 0 {
        text.push_str(&format!(".{nanos:09}"));
    } else if nanos > 0 {
        text.push_str(&format!(".{:06}", nanos / 1_000));
    }
    if zoned {
        text.push('Z');
    }
    Ok(text)
}
