"""Cost & tokens: what models are charged for, how much they read and write, and how quickly they answer."""

from deploy.grafana import board, panels
from deploy.grafana.fleet import CHOSEN, repositories
from deploy.grafana.promql import STEP, growth, label_name, or_none, quantile, share, stored_name
from deploy.grafana.queries import IS_MAIN_AGENT, named, selected, span, spans
from deploy.grafana.session import SESSION
from otel import instruments, names

_CHOSEN = {**CHOSEN, names.REQUEST_MODEL: "$model"}
_BY_MODEL = [names.REQUEST_MODEL]
_MODEL = f"{{{{{label_name(names.REQUEST_MODEL)}}}}}"


def cost() -> board.Board:
    """What is charged first, then tokens, then latency."""
    query = f"label_values({stored_name(instruments.INPUT_TOKENS)}, {label_name(names.REQUEST_MODEL)})"
    made = board.Board(
        "cost",
        "Cost & tokens",
        "Premium requests, AI credits and tokens by model; how well the cache works; how quickly models answer.",
        board.service(),
        repositories(),
        board.choice("model", "Model", "Which models to count (not sent at content level none)", query),
        since="now-7d",
    )
    made.heading("Charged")
    made.add(6, 4, *_figures())
    made.add(12, 8, *_charged())
    made.heading("Tokens")
    made.add(12, 8, *_tokens())
    made.add(8, 8, *_context())
    made.add(24, 9, _table())
    made.heading("Latency")
    made.add(12, 8, *_latency())
    made.heading("One by one")
    made.add(24, 10, _dear())
    return made


def _figures() -> list[panels.Panel]:
    read = growth(instruments.INPUT_TOKENS, where=_CHOSEN)
    written = growth(instruments.OUTPUT_TOKENS, where=_CHOSEN)
    asked = [
        ("Premium requests", "How many premium requests were charged?", panels.AMOUNT,
         or_none(growth(instruments.PREMIUM_REQUESTS, where=_CHOSEN), read)),
        ("AI credits", "How many AI credits were charged?", panels.AMOUNT,
         or_none(growth(instruments.AIU, where=_CHOSEN), read)),
        ("Cache hit", "Which share of the tokens read came from the provider's cache?", panels.SHARE,
         share(growth(instruments.CACHE_READ_TOKENS, where=_CHOSEN), read)),
        ("Tokens per interaction", "How many tokens does a message take, read and written?", panels.AMOUNT,
         f"({read} + {written}) / ({growth(instruments.INTERACTIONS, where=CHOSEN)} > 0)"),
    ]  # fmt: skip
    return [
        panels.figure(title, answers, unit, panels.metrics(query, instant=True))
        for title, answers, unit, query in asked
    ]


def _charged() -> list[panels.Panel]:
    asked = [
        ("Premium requests by model", "Which models are charged as premium requests, and when?",
         instruments.PREMIUM_REQUESTS),
        ("Cost by model", "What do the calls of each model weigh: the sum of their billing multipliers?",
         instruments.COST),
    ]  # fmt: skip
    return [
        panels.stack(title, answers, panels.AMOUNT,
                     panels.metrics(growth(instrument, by=_BY_MODEL, where=_CHOSEN, over=STEP), _MODEL))
        for title, answers, instrument in asked
    ]  # fmt: skip


def _tokens() -> list[panels.Panel]:
    kinds = [
        (instruments.INPUT_TOKENS, "read"),
        (instruments.CACHE_READ_TOKENS, "read from the cache"),
        (instruments.CACHE_WRITE_TOKENS, "written to the cache"),
        (instruments.OUTPUT_TOKENS, "written"),
        (instruments.REASONING_TOKENS, "written while reasoning"),
    ]
    cached = growth(instruments.CACHE_READ_TOKENS, by=_BY_MODEL, where=_CHOSEN, over=STEP)
    read = growth(instruments.INPUT_TOKENS, by=_BY_MODEL, where=_CHOSEN, over=STEP)
    return [
        panels.overlaid("Tokens by type", "What are tokens used for? Those read include those from the cache.",
                     panels.AMOUNT,
                     *(panels.metrics(growth(each, where=_CHOSEN, over=STEP), legend) for each, legend in kinds)),
        panels.lines("Cache hit by model", "Which share of the tokens read came from the provider's cache?",
                     panels.SHARE, panels.metrics(share(cached, read), _MODEL)),
    ]  # fmt: skip


def _context() -> list[panels.Panel]:
    freed = [(instruments.COMPACTED_TOKENS, "compactions"), (instruments.TRUNCATED_TOKENS, "truncations")]
    return [
        panels.lines("Context window used, p95", "How full is the context window, at worst (95 of 100 calls)?",
                     panels.SHARE, _highest(instruments.CONTEXT_UTILIZATION)),
        panels.lines("Size of a call, p95", "How many tokens does one call read, at worst (95 of 100)?", panels.AMOUNT,
                     _highest(instruments.CALL_INPUT_TOKENS)),
        panels.stack("Tokens freed", "How much did compactions and truncations take out of conversations?",
                     panels.AMOUNT,
                     *(panels.metrics(growth(each, where=CHOSEN, over=STEP), legend) for each, legend in freed)),
    ]  # fmt: skip


def _table() -> panels.Panel:
    asked = [
        (instruments.PREMIUM_REQUESTS, "Premium requests"),
        (instruments.COST, "Cost"),
        (instruments.AIU, "AI credits"),
        (instruments.INPUT_TOKENS, "Tokens read"),
        (instruments.CACHE_READ_TOKENS, "From the cache"),
        (instruments.OUTPUT_TOKENS, "Tokens written"),
    ]
    queries = [panels.metrics(growth(instrument, by=_BY_MODEL, where=_CHOSEN), instant=True) for instrument, _ in asked]
    columns = [panels.Column(label_name(names.REQUEST_MODEL), "Model")]
    columns += [
        panels.Column(f"Value #{letter}", heading, panels.AMOUNT, empty="0")
        for letter, (_, heading) in zip("ABCDEF", asked, strict=True)
    ]
    return panels.rows("Model by model", "What was each model used for?", panels.AMOUNT, *queries, columns=columns)


def _latency() -> list[panels.Panel]:
    asked = [
        ("Duration of calls, p95", "How long does a call take, at worst (95 of 100)?", instruments.CALL_DURATION),
        ("Time to first chunk, p95", "How long until a streamed answer begins, at worst (95 of 100)?",
         instruments.TIME_TO_FIRST_CHUNK),
    ]  # fmt: skip
    return [panels.lines(title, answers, panels.SECONDS, _highest(instrument)) for title, answers, instrument in asked]


def _highest(instrument: names.Instrument) -> panels.Query:
    """What 95 of 100 calls stay below, model by model, over time."""
    return panels.metrics(quantile(0.95, instrument, by=_BY_MODEL, where=_CHOSEN, over=STEP), _MODEL)


def _dear() -> panels.Panel:
    shown = selected(names.COST, names.NANO_AIU, names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.CONVERSATION_ID)
    query = f"{spans(named(names.INVOKE_AGENT), IS_MAIN_AGENT, f'{span(names.COST)} > 1.0')} | select({shown})"
    return panels.found(
        "Costly interactions",
        "Which interactions were charged more than one request? Each line leads to its trace.",
        panels.traces(query),
        panels.shown(names.COST, "Cost", panels.AMOUNT, width=None),
        panels.shown(names.NANO_AIU, "AI credits", panels.AMOUNT, parts=1_000_000_000),
        panels.shown(names.INPUT_TOKENS, "Tokens read", panels.AMOUNT),
        panels.shown(names.OUTPUT_TOKENS, "Tokens written", panels.AMOUNT, 120),
        SESSION,
    )
