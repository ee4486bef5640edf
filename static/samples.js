/** Reads the counters of two moments of /status.json: sums, rates, percentiles of histograms. */

const matches = (sample, labels) => Object.entries(labels).every(([name, value]) => sample.labels[name] === value);

/** Sum of a metric over all its samples with these labels. */
export const total = (status, name, labels = {}) => (status.samples[name] ?? [])
  .filter((sample) => matches(sample, labels)).reduce((sum, sample) => sum + sample.value, 0);

/** How much a counter grew. */
export const growth = (before, after, name, labels) => total(after, name, labels) - total(before, name, labels);

/** What fell into each bucket of a histogram between two moments: `[upper bound, count]`. */
export function buckets(before, after, name, labels = {}) {
  const bounds = [...new Set((after.samples[`${name}_bucket`] ?? []).map((sample) => sample.labels.le))];
  const sorted = bounds.map((bound) => [bound, bound === "+Inf" ? Infinity : Number(bound)]).sort((a, b) => a[1] - b[1]);
  let reached = 0;
  return sorted.map(([le, bound]) => {
    const upTo = growth(before, after, `${name}_bucket`, { ...labels, le });
    const count = upTo - reached;
    reached = upTo;
    return [bound, count];
  });
}

/** A percentile, on a straight line within its bucket; null when nothing was counted. */
export function percentile(counts, share) {
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  let left = all * share;
  let lower = 0;
  for (const [bound, count] of counts) {
    if (count && left <= count) return bound === Infinity ? lower : lower + (bound - lower) * (left / count);
    left -= count;
    if (bound !== Infinity) lower = bound;
  }
  return null;
}
