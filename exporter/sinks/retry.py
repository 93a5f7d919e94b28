"""How long to wait before a sink is asked again: the retry policy of all sinks, whatever is spoken on the wire."""

from typing import Final

import tenacity

from exporter.core.delivery.verdict import Later

# Full jitter from 0.5 s up to a bound that grows to 60 s at the fifteenth failure in a row: five failures are over
# within six seconds, a long outage costs a request a minute. It never gives up, because the file keeps the events.
_BACKOFF: Final = tenacity.wait_random_exponential(multiplier=0.5, exp_base=1.4, max=60, min=0.5)
_NOTHING_TO_RETRY: Final = tenacity.Retrying(stop=tenacity.stop_never)


def retry_delay_seconds(failures: int, later: Later) -> float:
    """Return how long to wait after the `failures`-th failure in a row; a sink may lengthen that, never shorten it."""
    state = tenacity.RetryCallState(_NOTHING_TO_RETRY, fn=None, args=(), kwargs={})
    state.attempt_number = failures
    return max(float(_BACKOFF(state)), later.after_seconds or 0.0)
