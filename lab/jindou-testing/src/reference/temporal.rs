//! Dates and times, as seconds since the start of the year 0 in local time, and a time zone.

use super::duration::Duration;
use super::number::{decimal, decimal_text};
use super::typed;
use super::value::Value;
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};

/// The datatype of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemporalKind {
    DateTime,
    Date,
    Time,
    Year,
    YearMonth,
    Month,
    MonthDay,
    Day,
}

/// A point in time. Components that the datatype lacks are those of 1972-12-31. If the datatype has a year or month but
/// no day, the day is the first (XPath F&O 3.1 §9.4).
#[derive(Clone, Debug)]
pub(crate) struct Temporal {
    pub kind: TemporalKind,
    /// Local seconds since 0000-01-01T00:00:00.
    pub local: BigRational,
    /// Time zone in minutes east of UTC; `None` if the lexical form has none.
    pub zone: Option<i32>,
}

/// Date and time of day, as in the lexical form.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: BigRational,
}

impl TemporalKind {
    const NAMES: [(&'static str, Self); 8] = [
        ("dateTime", Self::DateTime),
        ("date", Self::Date),
        ("time", Self::Time),
        ("gYear", Self::Year),
        ("gYearMonth", Self::YearMonth),
        ("gMonth", Self::Month),
        ("gMonthDay", Self::MonthDay),
        ("gDay", Self::Day),
    ];

    pub fn from_local_name(local: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == local);
        found.map(|(_, kind)| *kind)
    }

    pub fn local(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, kind)| *kind == self);
        found.expect("a name for each kind").0
    }
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

pub(crate) fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Number of days from 0000-01-01 to January 1 of a year.
fn days_before(year: i64) -> i64 {
    // The year 0 is a leap year.
    let y = year - 1;
    year * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + 1
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    days_before(year) + (1..month).map(|m| days_in(year, m)).sum::<i64>() + day - 1
}

fn date_of(days: i64) -> (i64, i64, i64) {
    // An estimate that is not too late, since a year has 365 or 366 days.
    let mut year = days.div_euclid(if days < 0 { 365 } else { 366 });
    while days_before(year + 1) <= days {
        year += ((days - days_before(year + 1)) / 366).max(1);
    }
    let mut rest = days - days_before(year);
    let mut month = 1;
    while rest >= days_in(year, month) {
        rest -= days_in(year, month);
        month += 1;
    }
    (year, month, rest + 1)
}

fn number(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Parses a year of at least four digits, and returns the remaining text. More than four digits may not start with 0.
fn year(text: &str) -> Option<(i64, &str)> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let width = body.bytes().take_while(u8::is_ascii_digit).count();
    if width < 4 || width > 4 && body.starts_with('0') || width > 12 {
        return None;
    }
    Some((sign * number(&body[..width], width)?, &body[width..]))
}

fn two<'a>(text: &'a str, before: &str, greatest: i64) -> Option<(i64, &'a str)> {
    let rest = text.strip_prefix(before)?;
    let n = number(rest.get(..2)?, 2)?;
    (n <= greatest).then(|| (n, &rest[2..]))
}

fn zone(text: &str) -> Option<Option<i32>> {
    if text.is_empty() {
        return Some(None);
    }
    if text == "Z" {
        return Some(Some(0));
    }
    let sign = match text.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = two(&text[1..], "", 14)?;
    let (minutes, rest) = two(rest, ":", 59)?;
    (rest.is_empty() && hours * 60 + minutes <= 840)
        .then(|| Some(sign * (hours * 60 + minutes) as i32))
}

/// Parses `hh:mm:ss(.s+)?`; `24:00:00` is the end of the day. Returns the remaining text.
fn time(text: &str) -> Option<(i64, i64, BigRational, &str)> {
    let (hour, rest) = two(text, "", 24)?;
    let (minute, rest) = two(rest, ":", 59)?;
    let rest = rest.strip_prefix(':')?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let seconds = &rest[..end];
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    number(whole, 2).filter(|s| *s < 60)?;
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let second = decimal(seconds)?;
    if hour == 24 && (minute != 0 || second.is_positive()) {
        return None;
    }
    Some((hour, minute, second, &rest[end..]))
}

impl Fields {
    fn reference() -> Self {
        Self {
            year: 1972,
            month: 12,
            day: 31,
            hour: 0,
            minute: 0,
            second: BigRational::from(BigInt::ZERO),
        }
    }

    /// Seconds since 0000-01-01T00:00:00 in local time. The hour may be 24, which is the start of the next day.
    fn local(&self) -> BigRational {
        let days = days_of(self.year, self.month, self.day);
        let seconds = days * 86_400 + self.hour * 3600 + self.minute * 60;
        BigRational::from(BigInt::from(seconds)) + &self.second
    }
}

impl Temporal {
    pub fn parse(text: &str, local: &str) -> Option<Self> {
        use TemporalKind::{Date, DateTime, Day, Month, MonthDay, Time, Year, YearMonth};
        let kind = TemporalKind::from_local_name(local)?;
        let mut f = Fields::reference();
        let mut rest = text;
        match kind {
            DateTime | Date | Year | YearMonth => {
                (f.year, rest) = year(rest)?;
                (f.month, f.day) = (1, 1);
            }
            Month | MonthDay => {
                rest = rest.strip_prefix('-')?;
                f.day = 1;
            }
            Day => rest = rest.strip_prefix("--")?,
            Time => {}
        }
        if matches!(kind, DateTime | Date | YearMonth | Month | MonthDay) {
            (f.month, rest) = two(rest, "-", 12)?;
        }
        if matches!(kind, DateTime | Date | MonthDay | Day) {
            (f.day, rest) = two(rest, "-", days_in(f.year, f.month))?;
        }
        if f.month == 0 || f.day == 0 {
            return None;
        }
        if kind == DateTime {
            rest = rest.strip_prefix('T')?;
        }
        if matches!(kind, DateTime | Time) {
            (f.hour, f.minute, f.second, rest) = time(rest)?;
        }
        if kind == Time && f.hour == 24 {
            f.hour = 0;
        }
        Some(Self {
            kind,
            local: f.local(),
            zone: zone(rest)?,
        })
    }

    pub fn fields(&self) -> Fields {
        let whole = self.local.floor().to_integer();
        let fraction = self.local.fract();
        let fraction = if fraction.is_negative() {
            fraction + BigRational::from(BigInt::from(1))
        } else {
            fraction
        };
        let (days, seconds) = whole.div_mod_floor(&BigInt::from(86_400));
        let (year, month, day) = date_of(days.to_i64().expect("a year that was parsed"));
        let s = seconds.to_i64().expect("below a day");
        Fields {
            year,
            month,
            day,
            hour: s / 3600,
            minute: s / 60 % 60,
            second: BigRational::from(BigInt::from(s % 60)) + fraction,
        }
    }

    /// Seconds since 0000-01-01T00:00:00Z. Without a time zone, local time is taken as UTC.
    pub fn instant(&self) -> BigRational {
        &self.local - BigRational::from(BigInt::from(self.zone.unwrap_or(0) * 60))
    }

    /// The value converted to another datatype; `None` if XPath has no such cast.
    pub fn cast(&self, to: TemporalKind) -> Option<Self> {
        use TemporalKind::{Date, DateTime};
        if self.kind == to {
            return Some(self.clone());
        }
        if !matches!(self.kind, DateTime | Date) || self.kind == Date && to == TemporalKind::Time {
            return None;
        }
        let f = self.fields();
        let mut out = Fields::reference();
        match to {
            DateTime | Date => (out.year, out.month, out.day) = (f.year, f.month, f.day),
            TemporalKind::Time => (out.hour, out.minute, out.second) = (f.hour, f.minute, f.second),
            TemporalKind::Year => (out.year, out.month, out.day) = (f.year, 1, 1),
            TemporalKind::YearMonth => (out.year, out.month, out.day) = (f.year, f.month, 1),
            TemporalKind::Month => (out.month, out.day) = (f.month, 1),
            TemporalKind::MonthDay => (out.month, out.day) = (f.month, f.day),
            TemporalKind::Day => out.day = f.day,
        }
        Some(Self {
            kind: to,
            local: out.local(),
            zone: self.zone,
        })
    }

    /// Adds the months, then the seconds of a duration (XPath F&O 3.1 §9.7). A date drops the time of day, a time the
    /// date.
    pub fn plus(&self, d: &Duration) -> Option<Self> {
        let mut f = self.fields();
        let months = BigInt::from(f.year * 12 + f.month - 1) + &d.months;
        let months = months.to_i64()?;
        if months.abs() > 12 * 900_000_000_000 {
            return None;
        }
        (f.year, f.month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        f.day = f.day.min(days_in(f.year, f.month));
        let mut local = f.local() + &d.seconds;
        let day = BigRational::from(BigInt::from(86_400));
        match self.kind {
            TemporalKind::Date => local = (local / &day).floor() * &day,
            TemporalKind::Time => {
                let turns = (&local / &day).floor();
                local = local - turns * &day + Fields::reference().local();
            }
            _ => {}
        }
        (local.abs() < BigRational::from(BigInt::from(10).pow(19))).then_some(Self {
            local,
            ..self.clone()
        })
    }

    pub fn text(&self) -> String {
        use TemporalKind::{Date, DateTime, Day, Month, MonthDay, Time, Year, YearMonth};
        let f = self.fields();
        let sign = if f.year < 0 { "-" } else { "" };
        let year = format!("{sign}{:04}", f.year.abs());
        let seconds = decimal_text(&f.second);
        let pad = if seconds.find('.').unwrap_or(seconds.len()) < 2 {
            "0"
        } else {
            ""
        };
        let time = format!("{:02}:{:02}:{pad}{seconds}", f.hour, f.minute);
        let (month, day) = (f.month, f.day);
        let body = match self.kind {
            DateTime => format!("{year}-{month:02}-{day:02}T{time}"),
            Date => format!("{year}-{month:02}-{day:02}"),
            Time => time,
            Year => year,
            YearMonth => format!("{year}-{month:02}"),
            Month => format!("--{month:02}"),
            MonthDay => format!("--{month:02}-{day:02}"),
            Day => format!("---{day:02}"),
        };
        body + &zone_text(self.zone)
    }

    pub fn value(&self) -> Value {
        Value::computed(typed(self.text(), self.kind.local()))
    }
}

/// The lexical form of a time zone: empty, `Z`, or hours and minutes.
pub(crate) fn zone_text(zone: Option<i32>) -> String {
    match zone {
        None => String::new(),
        Some(0) => "Z".into(),
        Some(m) => {
            let sign = if m < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", m.abs() / 60, m.abs() % 60)
        }
    }
}
