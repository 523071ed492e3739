//! Durations of three datatypes, which consist of months and seconds.

use super::number::{decimal, decimal_text};
use super::typed;
use super::value::Value;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};

/// The datatype of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurationKind {
    Any,
    YearMonth,
    DayTime,
}

/// A duration. Months and seconds have the same sign.
#[derive(Clone, Debug)]
pub(crate) struct Duration {
    pub kind: DurationKind,
    pub months: BigInt,
    pub seconds: BigRational,
}

impl DurationKind {
    pub fn from_local_name(local: &str) -> Option<Self> {
        Some(match local {
            "duration" => Self::Any,
            "yearMonthDuration" => Self::YearMonth,
            "dayTimeDuration" => Self::DayTime,
            _ => return None,
        })
    }

    pub fn local(self) -> &'static str {
        match self {
            Self::Any => "duration",
            Self::YearMonth => "yearMonthDuration",
            Self::DayTime => "dayTimeDuration",
        }
    }
}

/// Parses parts of the form `<number><letter>`. Letters must be from `letters`, in this order, each at most once.
/// Numbers must be whole, except before `S`.
fn parts<'a>(mut text: &'a str, letters: &str) -> Option<Vec<(char, &'a str)>> {
    let mut out = vec![];
    let mut allowed = letters;
    while !text.is_empty() {
        let end = text.find(|c: char| c.is_ascii_alphabetic())?;
        let letter = text[end..].chars().next()?;
        let number = &text[..end];
        let plain = number.bytes().all(|b| b.is_ascii_digit());
        let fraction = letter == 'S'
            && number.split_once('.').is_some_and(|(a, b)| {
                !a.is_empty()
                    && !b.is_empty()
                    && format!("{a}{b}").bytes().all(|b| b.is_ascii_digit())
            });
        if number.is_empty() || !(plain || fraction) {
            return None;
        }
        allowed = &allowed[allowed.find(letter)? + 1..];
        out.push((letter, number));
        text = &text[end + 1..];
    }
    Some(out)
}

impl Duration {
    pub fn parse(text: &str, local: &str) -> Option<Self> {
        let kind = DurationKind::from_local_name(local)?;
        let (negative, body) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let body = body.strip_prefix('P')?;
        let (date, time) = match body.split_once('T') {
            Some((_, "")) => return None,
            Some((d, t)) => (d, t),
            None => (body, ""),
        };
        if body.is_empty() {
            return None;
        }
        let date = parts(
            date,
            match kind {
                DurationKind::Any => "YMD",
                DurationKind::YearMonth => "YM",
                DurationKind::DayTime => "D",
            },
        )?;
        if kind == DurationKind::YearMonth && body.contains('T') {
            return None;
        }
        let time = parts(time, "HMS")?;
        let (mut months, mut seconds) = (BigInt::zero(), BigRational::zero());
        for (letter, n) in date {
            let n: BigInt = n.parse().ok()?;
            match letter {
                'Y' => months += n * 12,
                'M' => months += n,
                _ => seconds += BigRational::from(n * 86_400),
            }
        }
        for (letter, n) in time {
            let factor = match letter {
                'H' => 3600,
                'M' => 60,
                _ => 1,
            };
            seconds += decimal(n)? * BigRational::from(BigInt::from(factor));
        }
        if negative {
            (months, seconds) = (-months, -seconds);
        }
        Some(Self {
            kind,
            months,
            seconds,
        })
    }

    pub fn of_seconds(seconds: BigRational) -> Self {
        Self {
            kind: DurationKind::DayTime,
            months: BigInt::zero(),
            seconds,
        }
    }

    /// The components that a datatype can represent: months, seconds, or both. Other components are dropped.
    pub fn of_kind(&self, kind: DurationKind) -> Self {
        let mut out = self.clone();
        out.kind = kind;
        match kind {
            DurationKind::Any => {}
            DurationKind::YearMonth => out.seconds = BigRational::zero(),
            DurationKind::DayTime => out.months = BigInt::zero(),
        }
        out
    }

    /// The canonical lexical form by XPath.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.months.is_negative() || self.seconds.is_negative() {
            out.push('-');
        }
        out.push('P');
        let months = self.months.abs();
        let (years, months): (BigInt, BigInt) = (&months / 12, &months % 12);
        let whole = self.seconds.abs().trunc().to_integer();
        let fraction = self.seconds.abs().fract();
        let days: BigInt = &whole / 86_400;
        let (hours, minutes): (BigInt, BigInt) = (&whole / 3600 % 24, &whole / 60 % 60);
        let seconds = BigRational::from(&whole % 60) + fraction;
        for (n, letter) in [(years, 'Y'), (months, 'M'), (days, 'D')] {
            if !n.is_zero() {
                out += &format!("{n}{letter}");
            }
        }
        if !hours.is_zero() || !minutes.is_zero() || !seconds.is_zero() {
            out.push('T');
        }
        for (n, letter) in [(hours, 'H'), (minutes, 'M')] {
            if !n.is_zero() {
                out += &format!("{n}{letter}");
            }
        }
        if !seconds.is_zero() {
            out += &format!("{}S", decimal_text(&seconds));
        }
        if out == "P" {
            out += if self.kind == DurationKind::YearMonth {
                "0M"
            } else {
                "T0S"
            };
        }
        out
    }

    pub fn value(&self) -> Value {
        Value::computed(typed(self.text(), self.kind.local()))
    }
}
