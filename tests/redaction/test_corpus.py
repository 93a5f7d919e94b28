"""What redaction reaches on the half of the corpus that nobody tuned on, by class and shape."""

import pytest

from redaction.engine import Engine
from tests.redaction.corpus.report import Figures, measured
from tests.redaction.heldout.report import KEY
from tests.shared import CACHE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SEED, PER_TEMPLATE = 18, 5
# What these classes reach is said in docs/decisions/redaction-quality.md.
BELOW = {"wallet"}


@pytest.fixture(scope="module")
def figures() -> Figures:
    return measured(Engine(key=KEY, cache_dir=CACHE), SEED, "held", PER_TEMPLATE)


def test_97_of_100_passwords_of_people_are_masked_where_the_place_proves_them(figures: Figures) -> None:
    assert figures.share("all positions") >= 0.97


def test_no_shape_of_a_password_is_below_95_of_100(figures: Figures) -> None:
    assert {name: share for name, share in figures.shares("shape: ").items() if share < 0.95} == {}


def test_all_classes_together_reach_90_of_100_and_most_of_them_80(figures: Figures) -> None:
    classes = {name: share for name, share in figures.shares().items() if ":" not in name and name not in BELOW}

    assert figures.share("all classes") >= 0.90
    assert {name: share for name, share in classes.items() if share < 0.80} == {}


def test_what_stands_for_a_password_and_what_only_speaks_of_one_is_left(figures: Figures) -> None:
    assert figures.share("negatives: positions") >= 0.98
    assert (figures.share("negatives: prose"), figures.share("negatives: tables")) == (1.0, 1.0)


def test_what_a_printing_command_answers_is_masked_and_other_answers_are_left(figures: Figures) -> None:
    assert figures.share("command answers") >= 0.95
    assert figures.share("answers without secrets") == 1.0


def test_nothing_leaks_in_part_and_every_promise_is_kept(figures: Figures) -> None:
    assert [case.text for case in figures.partial] == []
    assert figures.wrongs == {}
