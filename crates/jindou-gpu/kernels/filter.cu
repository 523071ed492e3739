// Steps that keep some rows: Restrict, Same, Check. Their bytes a row are those of the test, plus 8 a carried
// column and kept row.
#include "compact.cuh"

// Rows whose id lies in the intervals. Bytes: 4 a row.
KERNEL(jd_restrict, Restrict) {
  SHARED(AppendShared, s);
  compact_tile(p.compact, s, [&](u64 row) {
    return is_within(p.within, operand_at(p.operand, row) + (PLANTED(RESTRICT_OFF_BY_ONE) ? 1 : 0));
  });
}

// Rows whose two operands are the same id, or are not. Bytes: 4 a row and column operand.
KERNEL(jd_same, Same) {
  SHARED(AppendShared, s);
  compact_tile(p.compact, s, [&](u64 row) {
    if (PLANTED(SAME_NEXT_ROW) && row + 1 < p.compact.rows) return operand_at(p.left, row + 1) == operand_at(p.right, row);
    bool same = operand_at(p.left, row) == operand_at(p.right, row);
    return same != (p.negate != 0 && !PLANTED(NEGATE_IGNORED));
  });
}

// Rows that have the edge anchor – other. Bytes a row: 4 for each column operand, the lookup's (find_key,
// key_range), and 4 (ceil(log2 d) + 1) for a list of d > 0 neighbours.
KERNEL(jd_check, Check) {
  SHARED(AppendShared, s);
  compact_tile(p.compact, s, [&](u64 row) {
    u32 other = operand_at(p.other, row);
    Range r = vertex_range(p.segment, operand_at(p.anchor, row));
    if (PLANTED(CHECK_SHORT_LIST) && r.length > 1) r.length--;
    return sorted_position(p.segment.neighbours + r.start, r.length, other) != NO_KEY;
  });
}

// As jd_check where the predicate is in a column. Bytes a row: 4 for each column operand, then as jd_check in the
// predicate's segment; nothing more for a term that is no predicate.
KERNEL(jd_check_any, CheckAny) {
  SHARED(AppendShared, s);
  compact_tile(p.compact, s, [&](u64 row) {
    u32 other = operand_at(p.other, row), anchor = operand_at(p.anchor, row);
    SegmentHead segment;
    if (!segment_of(p.catalog, operand_at(p.predicate, row), segment)) return false;
    Range r = vertex_range(segment, anchor);
    if (PLANTED(CHECK_ANY_FIRST_ONLY) && r.length > 1) r.length = 1;
    return sorted_position(segment.neighbours + r.start, r.length, other) != NO_KEY;
  });
}
