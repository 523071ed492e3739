//! Parts of dates and times (SPARQL 1.1 §17.4.5).

use super::machine::{Machine, Maybe};
use super::val::{Text, Val};
use crate::explore::Run;
use jindou_values::{Num, Temporal};

/// The part of a date or time that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePart {
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Zone,
    ZoneText,
}

impl Machine {
    /// A part of local time; no value where the datatype does not have it.
    pub(super) fn part_of_time(&mut self, run: &Run<'_>, part: TimePart, v: Val) -> Maybe {
        let t: Temporal = self.time(run, v)?;
        let whole = match part {
            TimePart::Year => t.year(),
            TimePart::Month => t.month(),
            TimePart::Day => t.day(),
            TimePart::Hours => t.hour(),
            TimePart::Minutes => t.minute(),
            TimePart::Seconds => return t.second().map(|s| Val::Num(Num::Dec(s))),
            TimePart::Zone => return t.zone().map(Val::Duration),
            TimePart::ZoneText => {
                let start = self.arena.len() as u32;
                t.push_zone(&mut self.arena);
                let end = self.arena.len() as u32;
                return Some(Val::Text(Text {
                    text: super::val::Span { start, end },
                    lang: None,
                }));
            }
        };
        whole.map(|n| Val::Num(Num::Int(n)))
    }

    /// `ADJUST(time, zone)`: a duration, or `""` for no time zone.
    pub(super) fn adjust(&mut self, run: &Run<'_>, v: Val, zone: Option<Val>) -> Maybe {
        let (t, zone) = (self.time(run, v)?, zone?);
        let to = match self.duration(run, zone) {
            Some(d) => Some(d),
            None => {
                let text = self.simple(run, zone)?;
                if text.start != text.end {
                    return None;
                }
                None
            }
        };
        t.adjust(to).map(Val::Time)
    }
}
