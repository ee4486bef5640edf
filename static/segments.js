/**
 * Sentences on the screen: `{source, target, start, end, gap, stale?, failed?, score?, warning?}`.
 * `start` and `end` are offsets in the source text, `gap` is what stands before the sentence in the translation.
 */

/** What stands between two sentences of the translation, until the service has said it: like in the source. */
function guessGap(between, isFirst, target) {
  const breaks = between.replace(/[^\n]/g, "");
  if (breaks) return breaks;
  return isFirst || target.startsWith("zh") ? "" : " ";
}

/** Make a sentence of a `segment` event. */
export function fromEvent(data, previous, text, target) {
  return {
    source: data.source,
    target: data.target,
    start: data.source_start,
    end: data.source_end,
    gap: guessGap(text.slice(previous?.end ?? 0, data.source_start), !previous, target),
    score: data.score,
    warning: data.warning,
  };
}

/** Make all sentences of a finished response, and the text behind the last. */
export function fromResponse(response) {
  let end = 0;
  const segments = response.segments.map((data) => {
    const gap = response.translation.slice(end, data.target_start);
    end = data.target_end;
    return {
      source: data.source, target: data.target, start: data.source_start, end: data.source_end, gap,
      score: data.score, warning: data.warning,
    };
  });
  return { segments, tail: response.translation.slice(end) };
}

/** Move sentences along with an edit of the source; those that the edit touches are marked stale. */
export function carryOver(segments, before, after) {
  if (before === after) return segments;
  let head = 0;
  const shorter = Math.min(before.length, after.length);
  while (head < shorter && before[head] === after[head]) head += 1;
  let foot = 0;
  while (foot < shorter - head && before[before.length - 1 - foot] === after[after.length - 1 - foot]) foot += 1;
  const moved = after.length - before.length;
  return segments.map((segment) => {
    if (segment.end <= head) return segment;
    if (segment.start >= before.length - foot) {
      return { ...segment, start: segment.start + moved, end: segment.end + moved };
    }
    const end = segment.end >= before.length - foot ? segment.end + moved : after.length - foot;
    return { ...segment, stale: true, start: Math.min(segment.start, head), end };
  });
}

/** Put new sentences before those of the old that they have not reached yet. */
export function merge(carried, arrived) {
  const reached = arrived.at(-1)?.end ?? 0;
  return [...arrived, ...carried.filter((old) => (old.stale ? old.end > reached : old.start >= reached))];
}

/** Index of the sentence at an offset of the source; -1 for none. */
export function indexAt(segments, offset) {
  let low = 0;
  let high = segments.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (offset < segments[middle].start) high = middle - 1;
    else if (offset >= segments[middle].end) low = middle + 1;
    else return middle;
  }
  return -1;
}

/** The whole translation as text. */
export const joinTarget = (segments, tail) => segments.map((segment) => segment.gap + segment.target).join("") + tail;
