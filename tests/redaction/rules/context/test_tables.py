"""Values below the heads of columns are masked in every row, as far as the table goes; other columns stay."""

import pytest

from redaction.rules.context import tables
from redaction.rules.examples import expanded
from redaction.rules.rule_set import rules_of_family
from tests.redaction.rules.context.extracting import DEPTHS, masked
from tests.rows import each

RULES = tuple(rules_of_family(tables))
HIDDEN = (
    "host,db_password,port\nalpha,{0},5432\nbeta,{0},5433\n",
    "host;db_password;port\nalpha;{0};5432\nbeta;{0};5433\n",
    "host\tdb_password\tport\nalpha\t{0}\t5432\nbeta\t{0}\t5433\n",
    "| host | db_password | port |\n|---|---|---|\n| alpha | {0} | 5432 |\n| beta | {0} | 5433 |\n",
    " host  | db_password | port\n-------+-------------+------\n alpha | {0} | 5432\n beta  | {0} | 5433\n",
    "host,db_password\nalpha,{0}\n# one\n# two\n# three\nbeta,{0}\n",
    "INSERT INTO users (id, password, name) VALUES (1, '{0}', 'me'), (2, '{0}', 'you');",
    "COPY users (id, password) FROM stdin;\n1\t{0}\n2\t{0}\n",
    "COPY builds (id, digest) FROM stdin;\n1\tabc\nCOPY users (id, password) FROM stdin;\n1\t{0}\n",
    "host,db_password,r\nalpha,{0},5\n",
)
# A head may say more than its name in its tag. Tables of HTML are read in text only.
OF_HTML = (
    "<tr><th>host</th><th>db_password</th></tr>\n<tr><td>alpha</td><td>{0}</td></tr>",
    '<tr><th title="the host">host</th><th title="Public">password</th></tr>\n<tr><td>alpha</td><td>{0}</td></tr>',
    '<tr><th>host</th><th class="x-id">Token</th></tr>\n<tr><td>alpha</td><td>{0}</td></tr>',
)
LEFT_ALONE = (
    "host,db_password\nalpha,none\n# one\n# two\n# three\n# four\nbeta,{0}\n",
    "host,db_password\nalpha,none\n\nalpha,{0}\n",
    "INSERT INTO builds (id, digest) VALUES (1, '{0}'), (2, '{0}');",
    "COPY builds (id, digest) FROM stdin;\n1\t{0}\n",
    "host,db_password,\nalpha,{0},\n",
    "host,db_password,port;\nalpha,{0},1\n",
    "| option | meaning |\n|---|---|\n| password | {0} |\n",
)


@each(HIDDEN, DEPTHS)
def test_the_column_of_a_secret_is_masked_in_every_row(table: str, depth: int) -> None:
    shown = f"Shown:\n{table}"

    assert masked(RULES, shown.format(expanded("<base62:16>", "tables")), depth) == shown.format("*")


@each(OF_HTML)
def test_the_column_of_a_secret_is_masked_below_its_head_in_html(table: str) -> None:
    shown = f"<table>{table}</table>"

    assert masked(RULES, shown.format(expanded("<base62:24>", "tables")), 0) == shown.format("*")


def test_a_column_of_a_drawn_box_is_masked() -> None:
    box = "Shown:\n│ host │ db_password │\n├──────┼─────────────┤\n│ a    │ {0} │\n│ b    │ {0} │\n"

    assert masked(RULES, box.format(expanded("<base62:16>", "tables")), 0) == box.format("*")


@each(LEFT_ALONE, DEPTHS)
def test_what_is_in_no_column_of_a_secret_stays(table: str, depth: int) -> None:
    text = f"Shown:\n{table}".format(expanded("<base62:16>", "tables"))

    assert masked(RULES, text, depth) == text


@pytest.mark.parametrize(("rows", "masked_rows"), [(64, 64), (70, 64)])
def test_a_table_is_read_as_far_as_64_rows(rows: int, masked_rows: int) -> None:
    secret = expanded("<base62:16>", "tables")
    table = "host,db_password\n" + f"alpha,{secret}\n" * rows

    assert masked(RULES, table, 0).count(",*\n") == masked_rows
