"""Which waiting items run together: a pure decision under a policy, and the ceiling that holds after memory ran out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from tandem.core.errors import SettingsError
from tandem.core.types import Budget, Item, Priority

# Padding below this costs less than starting the device once more for a batch of its own.
FREE_PADDING_TOKENS = 256
_CEILING_GROWTH = 1.25
# A factor of 7,500: by then the ceiling has nothing to do with the day's memory any more.
_MAX_RISES = 40
# Below so many rows a matrix product no longer uses a processor well: its time is that of reading the weights.
_SMALLEST_PIECE_TOKENS = 64
_PIECE_MS = 20.0
_FORGETTING = 1.1  # growth of a shortest time with every measurement that does not confirm it


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a scheduler batches.

    Attributes:
        max_batch_size: Items in one batch.
        max_batch_tokens: Padded tokens in one batch: longest item x number of items. An item above it runs alone.
        max_wait_ms: How long the oldest waiting item may be held back to let others arrive, in milliseconds.
        max_queue: Items that may wait.
        interactive_share: Share of `max_queue` that bulk items cannot take.
        window: Items of a priority, oldest first, among which lengths are grouped.
        max_padding: Largest share of a batch's padded tokens that may be padding; little padding is always allowed.
        continuous: Items join what is running; False closes a batch once it has started, and the next one waits for
            its last item. Only for comparison: it is slower.
        pause_bulk: Bulk rows stand still while interactive ones run, and bulk items are admitted in pieces of a few
            milliseconds (a CPU); False lets them ride along (a GPU).
        bulk_every: With `pause_bulk`, one step in so many includes bulk rows, counted over the last `bulk_every` of
            theirs; in any case, bulk items that nothing has been done for lead the plan after one turn less than that.
        recovery_s: After memory ran out, the lowered ceiling is raised by a quarter every so many seconds.
    """

    max_batch_size: int = 32
    max_batch_tokens: int = 4096
    max_wait_ms: float = 0.0
    max_queue: int = 1024
    interactive_share: float = 0.25
    window: int = 256
    max_padding: float = 0.5
    continuous: bool = True
    pause_bulk: bool = True
    bulk_every: int = 10
    recovery_s: float = 10.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SettingsError: One of them is impossible.
        """
        for name in ("max_batch_size", "max_batch_tokens", "max_queue", "window", "bulk_every", "recovery_s"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name} must be positive, not {getattr(self, name)}.")
        if self.max_wait_ms < 0:
            raise SettingsError(f"max_wait_ms must not be negative, and is {self.max_wait_ms}.")
        for name in ("interactive_share", "max_padding"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise SettingsError(f"{name} must be at least 0 and below 1, not {getattr(self, name)}.")

    @property
    def bulk_places(self) -> int:
        """Items that may wait when a bulk item asks for a place; at least one."""
        return max(1, self.max_queue - int(self.max_queue * self.interactive_share))


def padded_tokens(items: Iterable[Item]) -> int:
    """Return longest x number of items; 0 for none."""
    lengths = [item.length for item in items]
    return max(lengths, default=0) * len(lengths)


def plan_batch(
    waiting: Sequence[Item],
    policy: BatchPolicy,
    room: Mapping[Priority, Budget],
    *,
    first: Priority = Priority.INTERACTIVE,
    idle: bool = False,
    piece_tokens: int | None = None,
) -> list[Item]:
    """Choose the waiting items that the engine is to admit together.

    The oldest waiting item of the leading priority is in every batch that is not empty: nothing overtakes it into a
    batch without it, so it never starves. Around it goes the run of neighbours in length, among the `window` oldest of
    its priority, that has the most items (then the least padding) under the budgets. Items of the other priority fill
    what is left without making the batch longer, unless bulk is to pause.

    Args:
        waiting: Live items in order of arrival.
        policy: The limits of a batch.
        room: What the engine may still be given, for each priority.
        first: The leading priority; the other one leads when none of it waits.
        idle: Nothing runs: the oldest item is planned even if no budget holds it, alone.
        piece_tokens: Padded tokens of a batch that bulk items lead; one above it is planned alone. None for no limit.

    Returns:
        The batch; empty when its oldest item has to wait for room.
    """
    leaders, riders = _candidates(waiting, policy, first)
    if not leaders:
        return []
    head = leaders[0]
    space = _space(policy, room[head.priority])
    if piece_tokens is not None and head.priority == Priority.BULK:
        space = Budget(space.segments, min(space.tokens, max(piece_tokens, head.length)))
    if not _holds(space, head):
        return [head] if idle or _holds(room[head.priority], head) else []
    group = _length_group(leaders, space, policy.max_padding)
    if riders:
        group += _riding(riders, group, _space(policy, room[riders[0].priority]), policy.max_padding)
    return group


def _candidates(waiting: Sequence[Item], policy: BatchPolicy, first: Priority) -> tuple[list[Item], list[Item]]:
    leaders = list(islice((item for item in waiting if item.priority == first), policy.window))
    others = list(islice((item for item in waiting if item.priority != first), policy.window))
    if not leaders:
        return others, []
    pauses = policy.pause_bulk and first == Priority.INTERACTIVE
    return leaders, [] if pauses else others


def _space(policy: BatchPolicy, room: Budget) -> Budget:
    return Budget(min(policy.max_batch_size, room.segments), min(policy.max_batch_tokens, room.tokens))


def _holds(budget: Budget, item: Item) -> bool:
    return budget.segments >= 1 and item.length <= budget.tokens


def _is_wasteful(real: int, padded: int, max_padding: float) -> bool:
    return padded - real > max(FREE_PADDING_TOKENS, max_padding * padded)


def _length_group(leaders: Sequence[Item], space: Budget, max_padding: float) -> list[Item]:
    """Return the longest run in order of length that holds the first leader, which fits by itself."""
    head = leaders[0].length
    # Runs grow away from the head: among equal lengths, the older ones are to stand nearer to it.
    order = sorted(enumerate(leaders), key=lambda e: (e[1].length, e[0] if e[1].length >= head else -e[0]))
    items = [item for _, item in order]
    sums = list(accumulate((item.length for item in items), initial=0))
    start = items.index(leaders[0])
    best, best_rank = (start, start), (1, -head)
    for last in range(start, len(items)):
        longest = items[last].length
        low = max(0, last + 1 - min(space.segments, space.tokens // longest))
        while low < start and _is_wasteful(sums[last + 1] - sums[low], longest * (last + 1 - low), max_padding):
            low += 1
        count = last + 1 - low
        is_bad = low > start or _is_wasteful(sums[last + 1] - sums[low], longest * count, max_padding)
        if not is_bad and (count, -longest * count) > best_rank:
            best, best_rank = (low, last), (count, -longest * count)
    return items[best[0] : best[1] + 1]


def _riding(riders: Sequence[Item], group: Sequence[Item], space: Budget, max_padding: float) -> list[Item]:
    """Return the riders that fit beside a group without making it longer, the longest and oldest first."""
    longest = max(item.length for item in group)
    free = min(space.segments, space.tokens // longest) - len(group)
    fitting = sorted((item for item in riders if item.length <= longest), key=lambda item: -item.length)
    chosen = fitting[: max(0, free)]
    real = sum(item.length for item in (*group, *chosen))
    while chosen and _is_wasteful(real, longest * (len(group) + len(chosen)), max_padding):
        real -= chosen.pop().length
    return chosen


class BulkPace:
    """How many padded tokens bulk items may bring at a time: as many as hold the device for a few milliseconds.

    Encoding cannot be interrupted, and whoever comes meanwhile waits for its end.
    """

    def __init__(self) -> None:
        """Start with the smallest piece, since nothing has been measured yet."""
        self.tokens = _SMALLEST_PIECE_TOKENS

    def note(self, tokens: int, duration_ms: float) -> None:
        """Learn from a piece; the next one may be twice as large at most, for one measurement says little.

        Args:
            tokens: Its padded tokens.
            duration_ms: How long it held the device.
        """
        fitting = tokens * _PIECE_MS / duration_ms if duration_ms > 0 else math.inf
        self.tokens = int(max(_SMALLEST_PIECE_TOKENS, min(fitting, 2 * self.tokens)))


class Gathering:
    """Whether items that could join what runs wait for others first: each admission holds up all running rows.

    They wait until they have waited, together, as long as an admission would hold up the running rows, together. That
    is never more than twice what the best choice would cost that knows who comes next.

    Source: Dooly, Goldman and Scott 2001, on when to acknowledge what arrives.
    """

    def __init__(self) -> None:
        """Start without knowing what an admission takes."""
        self._admission_ms = math.inf
        self._held_items = 0
        self._waited_ms = 0.0

    def is_complete(self, items: int, running: int) -> bool:
        """Say whether items are to be admitted now; otherwise they are held for another step.

        Args:
            items: That could be admitted.
            running: Rows that would have to wait for them.
        """
        is_known = self._admission_ms < math.inf
        self._held_items = items
        if running and is_known and self._waited_ms < running * self._admission_ms:
            return False
        self._held_items, self._waited_ms = 0, 0.0
        return True

    def note_admission(self, tokens: int, duration_ms: float) -> None:
        """Learn what an admission takes however few it admits.

        Args:
            tokens: Padded tokens of one.
            duration_ms: What it took.
        """
        # So many tokens cost about as much again as reading the weights and starting the operations.
        fixed_ms = duration_ms / (1 + tokens / _SMALLEST_PIECE_TOKENS)
        self._admission_ms = min(fixed_ms, self._admission_ms * _FORGETTING)

    def note_step(self, duration_ms: float) -> None:
        """Add a step to what the held items have waited."""
        self._waited_ms += self._held_items * duration_ms


class TokenCeiling:
    """Padded tokens that may be live together after the device's memory ran out: halved then, raised slowly since."""

    def __init__(self, recovery_s: float) -> None:
        """Start without a ceiling.

        Args:
            recovery_s: Seconds after which the ceiling is raised by a quarter, again and again, until it is gone.
        """
        self._recovery_s = recovery_s
        self._goal = 0
        self._base = 0
        self._lowered_s = 0.0

    def lower(self, attempted: int, now_s: float) -> None:
        """Halve it, because so many padded tokens were too many.

        Args:
            attempted: Padded tokens that were live, or would have been.
            now_s: The scheduler's clock.
        """
        current = self.limit(now_s)
        self._goal = max(attempted, self._goal if current is not None else 0)
        self._base = max(1, min(attempted, current or attempted) // 2)
        self._lowered_s = now_s

    def limit(self, now_s: float) -> int | None:
        """Return the ceiling in padded tokens; None when there is none any more."""
        rises = int((now_s - self._lowered_s) / self._recovery_s)
        if rises >= _MAX_RISES:
            return None
        limit = int(self._base * _CEILING_GROWTH**rises)
        return limit if limit < self._goal else None
