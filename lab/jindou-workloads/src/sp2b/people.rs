//! Assigns old and new people to the author positions of a year.

use super::curves::Year;
use crate::random::SplitMix;
use crate::real::{pow, unit};

/// The number of Paul Erdős, the only person with an IRI. Other people are numbered from 0.
pub(super) const ERDOES: u32 = u32::MAX;

/// Returns true with a probability.
pub(super) fn happens(probability: f64, random: &mut SplitMix) -> bool {
    probability > 0.0 && unit(random) < probability
}

/// All authors so far.
#[derive(Debug)]
pub(super) struct People {
    /// By person: the last year in which they were assigned a position.
    last: Vec<u16>,
    /// By person: true if they have been described in the data.
    written: Vec<bool>,
    /// People who have been described, in this order. Editors are chosen from them.
    known: Vec<u32>,
}

impl People {
    pub(super) fn new() -> Self {
        Self {
            last: vec![],
            written: vec![],
            known: vec![],
        }
    }

    /// Assigns people to all author positions of a year, in random order. Each author of the year gets one position;
    /// further positions go to few of the authors, by a power law.
    pub(super) fn deal(&mut self, year: Year, places: &[u32], random: &mut SplitMix) -> Vec<u32> {
        let all: u32 = places.iter().sum();
        let different = year.different(all).min(all).max(u32::from(all > 0));
        let old = self.last.len() as u32;
        // At most half of the old authors write again, so that drawing different ones does not take long.
        let new = year
            .first_time(different)
            .max(different.saturating_sub(old / 2));
        let mut dealt: Vec<u32> = (old..old + new).collect();
        self.last.resize((old + new) as usize, year.0 as u16);
        self.written.resize((old + new) as usize, false);
        while (dealt.len() as u32) < different {
            // Authors who came later are more likely to be still active.
            let u = unit(random);
            let person = ((1.0 - u * u) * f64::from(old)) as u32;
            let last = &mut self.last[person.min(old - 1) as usize];
            if *last != year.0 as u16 {
                *last = year.0 as u16;
                dealt.push(person.min(old - 1));
            }
        }
        shuffle(&mut dealt, random);
        for _ in different..all {
            let place = pow(unit(random).max(1e-12), 3.0) * f64::from(different);
            dealt.push(dealt[(place as u32).min(different - 1) as usize]);
        }
        shuffle(&mut dealt, random);
        dealt
    }

    /// Returns true the first time for each person, who must then be described. Always false for Paul Erdős.
    pub(super) fn is_new(&mut self, person: u32) -> bool {
        if person == ERDOES || self.written[person as usize] {
            return false;
        }
        self.written[person as usize] = true;
        self.known.push(person);
        true
    }

    /// A random person who has been described; `None` if there is none.
    pub(super) fn editor(&self, random: &mut SplitMix) -> Option<u32> {
        (!self.known.is_empty()).then(|| *random.pick(&self.known))
    }
}

fn shuffle(items: &mut [u32], random: &mut SplitMix) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_different_people_write_as_should() {
        let mut people = People::new();
        let mut random = SplitMix::stream(1, 2, 3);
        for year in 1950..1980 {
            let places = [3; 200];
            let dealt = people.deal(Year(year), &places, &mut random);
            assert_eq!(dealt.len(), 600);
            let mut different = dealt.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len() as u32, Year(year).different(600));
        }
        assert!(People::new().deal(Year(1940), &[], &mut random).is_empty());
        assert_eq!(People::new().deal(Year(1940), &[1], &mut random).len(), 1);
    }
}
