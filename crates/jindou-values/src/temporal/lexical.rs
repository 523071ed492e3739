//! Parsing and writing of lexical forms of dates and times.

use super::calendar::{Civil, days, days_of_month};
use super::{DAY, MOST_YEARS, NONE, Temporal, TemporalKind};
use crate::duration::fraction_of;
use std::io::Write;

/// The part of a lexical form that has not been parsed yet.
struct LexicalReader<'t>(&'t [u8]);

impl<'t> LexicalReader<'t> {
    fn take(&mut self, b: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[b])?;
        Some(())
    }

    /// Parses two digits.
    fn two(&mut self) -> Option<i64> {
        let (two, rest) = self.0.split_first_chunk::<2>()?;
        if !two.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(i64::from(two[0] - b'0') * 10 + i64::from(two[1] - b'0'))
    }

    fn digits(&mut self) -> &'t [u8] {
        let n = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(n);
        self.0 = rest;
        digits
    }

    fn year(&mut self) -> Option<i64> {
        let negative = self.take(b'-').is_some();
        let digits = self.digits();
        if digits.len() < 4 || digits.len() > 4 && digits[0] == b'0' || digits.len() > 12 {
            return None;
        }
        let year = digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'));
        (year <= MOST_YEARS).then_some(if negative { -year } else { year })
    }

    /// Parses `hh:mm:ss(.s+)?`; returns seconds and additional units of 10⁻¹⁸ seconds.
    fn time(&mut self) -> Option<(i64, u64)> {
        let hour = self.two()?;
        self.take(b':')?;
        let minute = self.two()?;
        self.take(b':')?;
        let second = self.two()?;
        let units = match self.take(b'.') {
            Some(()) => fraction_of(self.digits())?,
            None => 0,
        };
        let midnight = hour == 24 && minute == 0 && second == 0 && units == 0;
        (midnight || hour < 24 && minute < 60 && second < 60)
            .then_some((hour * 3600 + minute * 60 + second, units as u64))
    }

    /// Parses an optional time zone, after which the form must end; returns minutes, or [`NONE`].
    fn zone(&mut self) -> Option<i16> {
        if self.0.is_empty() {
            return Some(NONE);
        }
        if self.0 == b"Z" {
            return Some(0);
        }
        let sign = if self.take(b'-').is_some() {
            -1
        } else {
            self.take(b'+')?;
            1
        };
        let hour = self.two()?;
        self.take(b':')?;
        let minute = self.two()?;
        let minutes = hour * 60 + minute;
        (self.0.is_empty() && minute < 60 && minutes <= 840).then_some((sign * minutes) as i16)
    }
}

impl Temporal {
    /// The value of a lexical form (XSD 1.1 §3.3.7 to §3.3.14); `None` if it is invalid or out of range. No allocation.
    #[must_use]
    pub fn parse(kind: TemporalKind, lexical: &str) -> Option<Self> {
        let mut r = LexicalReader(lexical.as_bytes());
        let mut date = Civil {
            year: 1972,
            month: if kind.has_year() { 1 } else { 12 },
            day: if kind.has_year() || kind.has_month() {
                1
            } else {
                31
            },
        };
        if kind.has_year() {
            date.year = r.year()?;
        } else if !kind.has_time() {
            // A hyphen stands for the missing year, and in a gDay another one for the missing month.
            r.take(b'-')?;
        }
        if kind.has_month() {
            r.take(b'-')?;
            date.month = r.two()?;
        } else if kind == TemporalKind::Day {
            r.take(b'-')?;
        }
        if kind.has_day() {
            r.take(b'-')?;
            date.day = r.two()?;
        }
        if !(1..=12).contains(&date.month)
            || !(1..=days_of_month(date.year, date.month)).contains(&date.day)
        {
            return None;
        }
        let (mut of_day, mut units) = (0, 0);
        if kind.has_time() {
            if kind == TemporalKind::DateTime {
                r.take(b'T')?;
            }
            (of_day, units) = r.time()?;
            if kind == TemporalKind::Time {
                of_day %= DAY;
            }
        }
        let zone = r.zone()?;
        Some(Self {
            seconds: days(date.year, date.month, date.day) * DAY + of_day,
            units,
            zone,
            kind,
        })
    }

    /// Appends the lexical form of the time zone; nothing if there is none.
    pub fn push_zone(self, out: &mut Vec<u8>) {
        let minutes = self.zone.unsigned_abs();
        let sign = if self.zone < 0 { '-' } else { '+' };
        match self.zone {
            NONE => {}
            0 => out.push(b'Z'),
            // Writing to a vector cannot fail.
            _ => drop(write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)),
        }
    }

    /// Appends the canonical bytes of the literal.
    pub fn push(self, out: &mut Vec<u8>) {
        out.push(self.kind.tag());
        self.push_text(out);
    }

    /// Appends the canonical lexical form, but with the value's own time zone.
    pub fn push_text(self, out: &mut Vec<u8>) {
        let date = self.civil();
        // Writing to a vector cannot fail.
        let _ = match self.kind {
            TemporalKind::Year => year(date.year, out),
            TemporalKind::YearMonth => {
                year(date.year, out).and_then(|()| write!(out, "-{:02}", date.month))
            }
            TemporalKind::Date | TemporalKind::DateTime => year(date.year, out)
                .and_then(|()| write!(out, "-{:02}-{:02}", date.month, date.day)),
            TemporalKind::Month => write!(out, "--{:02}", date.month),
            TemporalKind::MonthDay => write!(out, "--{:02}-{:02}", date.month, date.day),
            TemporalKind::Day => write!(out, "---{:02}", date.day),
            TemporalKind::Time => Ok(()),
        };
        if self.kind == TemporalKind::DateTime {
            out.push(b'T');
        }
        if self.kind.has_time() {
            let s = self.of_day();
            let _ = write!(out, "{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
            if self.units > 0 {
                let digits = format!("{:018}", self.units);
                let _ = write!(out, ".{}", digits.trim_end_matches('0'));
            }
        }
        self.push_zone(out);
    }
}

fn year(year: i64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let sign = if year < 0 { "-" } else { "" };
    write!(out, "{sign}{:04}", year.abs())
}
