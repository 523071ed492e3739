//! Reading of a log without following it.

use super::{Bucket, Failure, IDENTITY, Lane, if_there};
use crate::machine::{Damage, Group, Name};
use futures_util::StreamExt;
use object_store::{ObjectMeta, ObjectStoreExt};
use std::ops::RangeInclusive;
use tokio::time::Instant;

/// Number of objects that are read concurrently.
const AT_ONCE: usize = 8;

/// Consecutive groups that are read together, and a span that contains them, if any.
struct Piece {
    numbers: RangeInclusive<u64>,
    span: Option<(u64, u64)>,
}

/// Divides a range of groups into pieces, in order. `spans` must be ascending.
fn pieces(numbers: RangeInclusive<u64>, spans: Vec<(u64, u64)>) -> impl Iterator<Item = Piece> {
    let (mut next, end) = (Some(*numbers.start()), *numbers.end());
    let mut spans = spans.into_iter().peekable();
    let mut furthest: Option<(u64, u64)> = None;
    std::iter::from_fn(move || {
        let first = next.filter(|first| *first <= end)?;
        while let Some(span) = spans.next_if(|span| span.0 <= first) {
            if furthest.is_none_or(|before| before.1 < span.1) {
                furthest = Some(span);
            }
        }
        // For a single group, its own object is smaller than the span.
        let span = furthest.filter(|span| first < span.1);
        let last = span.map_or(first, |span| span.1.min(end));
        next = last.checked_add(1);
        Some(Piece {
            numbers: first..=last,
            span,
        })
    })
}

/// Time at which an object was written, by the bucket's clock: microseconds since 1970 (UTC).
pub(super) fn micros(meta: &ObjectMeta) -> u64 {
    u64::try_from(meta.last_modified.timestamp_micros()).unwrap_or(0)
}

impl Bucket {
    /// True if `place` can only be a log: a location in S3, or a directory that contains a log.
    pub fn is_place(place: &str) -> bool {
        place.starts_with("s3://") || std::path::Path::new(place).join(IDENTITY).is_file()
    }

    /// The time at which the log was created, as for [`Self::written`]; `None` if `log.json` is missing.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn begun(&self) -> Result<Option<u64>, Failure> {
        self.modified(IDENTITY).await
    }

    /// The time at which an object was written, by the bucket's clock: microseconds since 1970 (UTC). `None` if the
    /// object is missing.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn written(&self, epoch: u64, name: Name) -> Result<Option<u64>, Failure> {
        self.modified(&name.text(epoch)).await
    }

    async fn modified(&self, name: &str) -> Result<Option<u64>, Failure> {
        let head = Self::with_retries(|| async {
            let end = Instant::now() + self.0.limits.request;
            let permit = self.permit(Lane::Get, end).await?;
            let (store, key) = (self.0.store.clone(), self.key(name));
            let request = async move { store.head(&key).await };
            Ok(self.within(end, permit, request).await?.0)
        });
        Ok(if_there(head.await)?.as_ref().map(micros))
    }

    /// Reads groups in order and passes each to `each`, with the time at which its object was written, or `None` if the
    /// group was read from a span. Stops if `each` fails. `hash` is the hash of the group before the first one; 0 if
    /// unknown.
    ///
    /// # Errors
    /// If the bucket fails, or a group is missing or damaged.
    pub async fn read_groups<E>(
        &self,
        epoch: u64,
        numbers: RangeInclusive<u64>,
        mut hash: u64,
        mut each: impl FnMut(Group, Option<u64>) -> Result<(), E>,
    ) -> Result<Result<(), E>, Failure> {
        let before = Name::Span(u64::MAX, numbers.start().saturating_sub(1));
        let (spans, _) = (self.parsed(epoch, "span", Some(before), usize::MAX)).await?;
        let mut spans: Vec<(u64, u64)> = (spans.into_iter())
            .filter_map(|name| match name {
                Name::Span(first, last) => Some((first, last)),
                _ => None,
            })
            .collect();
        spans.sort_unstable();
        let all = std::sync::Arc::new(spans.clone());
        let pieces = pieces(numbers, spans).map(|piece| self.piece(epoch, piece, all.clone()));
        let mut pieces = std::pin::pin!(futures_util::stream::iter(pieces).buffered(AT_ONCE));
        while let Some(piece) = pieces.next().await {
            for (group, written) in piece? {
                if let Some(previous) = group.previous
                    && previous != 0
                    && hash != 0
                    && previous != hash
                {
                    let name = |number| Name::Group(number).text(epoch);
                    return Err(Failure::Lost(format!(
                        "{} does not continue {}: one of them was lost and written again",
                        name(group.number),
                        name(group.number - 1)
                    )));
                }
                hash = group.hash(epoch);
                if let Err(e) = each(group, written) {
                    return Ok(Err(e));
                }
            }
        }
        Ok(Ok(()))
    }

    async fn piece(
        &self,
        epoch: u64,
        piece: Piece,
        spans: std::sync::Arc<Vec<(u64, u64)>>,
    ) -> Result<Vec<(Group, Option<u64>)>, Failure> {
        if let Some(span) = piece.span
            && let Some(groups) = self.groups_of_span(epoch, span).await?
        {
            let wanted = groups.into_iter();
            let wanted = wanted.filter(|group| piece.numbers.contains(&group.number));
            return Ok(wanted.map(|group| (group, None)).collect());
        }
        // Without a usable span, read the groups' own objects, which exist unless they were trimmed or lost.
        let mut groups = Vec::new();
        for number in piece.numbers {
            let name = Name::Group(number).text(epoch);
            let read = match self.get_with_retries(&name).await {
                Err(Failure::Missing) => Err(format!("{name} is missing")),
                Err(failure) => return Err(failure),
                Ok((bytes, meta)) => match Group::read(epoch, &bytes) {
                    Ok(group) if group.number == number => Ok((group, Some(micros(&meta)))),
                    Ok(_) => Err(format!("{name} is damaged: {}", Damage::Number)),
                    Err(damage) => Err(format!("{name} is damaged: {damage}")),
                },
            };
            groups.push(match read {
                Ok(read) => read,
                Err(why) => match self.only_in_span(epoch, number, &spans).await? {
                    Some(group) => (group, None),
                    None => return Err(Failure::Lost(why)),
                },
            });
        }
        Ok(groups)
    }

    /// Reads, from any span, a group whose own object is missing or damaged.
    async fn only_in_span(
        &self,
        epoch: u64,
        number: u64,
        spans: &[(u64, u64)],
    ) -> Result<Option<Group>, Failure> {
        for span in spans
            .iter()
            .filter(|span| (span.0..=span.1).contains(&number))
        {
            let groups = self.groups_of_span(epoch, *span).await?;
            let found = groups
                .into_iter()
                .flatten()
                .find(|group| group.number == number);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_are_all_groups_once() {
        let of = |first, last, spans: &[(u64, u64)]| -> Vec<(u64, u64, bool)> {
            pieces(first..=last, spans.to_vec())
                .map(|p| (*p.numbers.start(), *p.numbers.end(), p.span.is_some()))
                .collect()
        };
        assert_eq!(of(3, 4, &[]), [(3, 3, false), (4, 4, false)]);
        assert_eq!(
            of(3, 12, &[(1, 5), (2, 7), (8, 8), (9, 40)]),
            [(3, 7, true), (8, 8, false), (9, 12, true)]
        );
        // A single group is read by itself: the last one of a span if it is the only one needed, and groups between
        // spans.
        assert_eq!(
            of(5, 9, &[(1, 5), (7, 8)]),
            [(5, 5, false), (6, 6, false), (7, 8, true), (9, 9, false)]
        );
        let end = u64::MAX;
        assert_eq!(of(end - 1, end, &[(end - 1, end)]), [(end - 1, end, true)]);
    }
}
