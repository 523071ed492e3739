//! Reading a log without following it.

use super::{Bucket, Failure, IDENTITY, Lane};
use futures_util::StreamExt;
use jindou_replicas::{Damage, Group, Name, read_span};
use object_store::{ObjectMeta, ObjectStoreExt};
use std::ops::RangeInclusive;
use tokio::time::Instant;

/// Objects of the log that are read at once.
const AT_ONCE: usize = 8;

/// Consecutive groups, and a span that has them.
struct Piece {
    numbers: RangeInclusive<u64>,
    span: Option<(u64, u64)>,
}

/// The groups of these numbers in pieces, in order. The spans ascend.
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
        // One group is less to read than a span's end.
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
    /// True for a place that can only be a log's: one in S3, or a directory that has a log.
    pub fn is_place(place: &str) -> bool {
        place.starts_with("s3://") || std::path::Path::new(place).join(IDENTITY).is_file()
    }

    /// The time at which the log was begun, as of [`Self::written`].
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn begun(&self) -> Result<Option<u64>, Failure> {
        self.modified(IDENTITY).await
    }

    /// The time at which an object was written, by the bucket's clock: microseconds since 1970 (UTC). `None` where it is
    /// missing.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn written(&self, epoch: u64, name: Name) -> Result<Option<u64>, Failure> {
        self.modified(&name.text(epoch)).await
    }

    async fn modified(&self, name: &str) -> Result<Option<u64>, Failure> {
        let head = Self::again(|| async {
            let end = Instant::now() + self.0.limits.request;
            let permit = self.permit(Lane::Get, end).await?;
            let (store, key) = (self.0.store.clone(), self.key(name));
            let request = async move { store.head(&key).await };
            Ok(self.within(end, permit, request).await?.0)
        });
        match head.await {
            Ok(meta) => Ok(Some(micros(&meta))),
            Err(Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads groups in order, and gives each to `each` with the time at which its object was written; without one if it
    /// comes from a span. Ends where that fails.
    ///
    /// # Errors
    /// If the bucket fails, or a group is missing or damaged.
    pub async fn read_groups<E>(
        &self,
        epoch: u64,
        numbers: RangeInclusive<u64>,
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
        let pieces = pieces(numbers, spans).map(|piece| self.piece(epoch, piece));
        let mut pieces = std::pin::pin!(futures_util::stream::iter(pieces).buffered(AT_ONCE));
        while let Some(piece) = pieces.next().await {
            for (group, written) in piece? {
                if let Err(e) = each(group, written) {
                    return Ok(Err(e));
                }
            }
        }
        Ok(Ok(()))
    }

    async fn piece(&self, epoch: u64, piece: Piece) -> Result<Vec<(Group, Option<u64>)>, Failure> {
        if let Some((first, last)) = piece.span {
            match self.reread(&Name::Span(first, last).text(epoch)).await {
                Ok((bytes, _)) => {
                    if let Ok(groups) = read_span(epoch, &bytes)
                        && groups.iter().map(|group| group.number).eq(first..=last)
                    {
                        let wanted = groups.into_iter();
                        let wanted = wanted.filter(|group| piece.numbers.contains(&group.number));
                        return Ok(wanted.map(|group| (group, None)).collect());
                    }
                }
                Err(Failure::Missing) => {}
                Err(failure) => return Err(failure),
            }
        }
        // What it copies is there as well, unless it was trimmed.
        let mut groups = Vec::new();
        for number in piece.numbers {
            let name = Name::Group(number).text(epoch);
            let (bytes, meta) = self.reread(&name).await?;
            let group = match Group::read(epoch, &bytes) {
                Ok(group) if group.number == number => Ok(group),
                Ok(_) => Err(Damage::Number),
                Err(damage) => Err(damage),
            };
            let group = group.map_err(|e| Failure::Refused(format!("{name} is damaged: {e}")))?;
            groups.push((group, Some(micros(&meta))));
        }
        Ok(groups)
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
        // A span's last group alone is read as a group, and what lies between spans as groups.
        assert_eq!(
            of(5, 9, &[(1, 5), (7, 8)]),
            [(5, 5, false), (6, 6, false), (7, 8, true), (9, 9, false)]
        );
        let end = u64::MAX;
        assert_eq!(of(end - 1, end, &[(end - 1, end)]), [(end - 1, end, true)]);
    }
}
