"""The dashboards that are committed and shipped are the ones that the code makes."""

from deploy.grafana import make
from tests.dashboards.boards import GRAFANA, ROOT


def test_what_is_committed_is_what_the_code_makes_byte_for_byte() -> None:
    made = make.documents()
    strange = [
        f"{directory.relative_to(ROOT)}/{name}"
        for directory, files in ((make.HERE, made), (make.PACKAGE, made), (make.STACK, make.stack()))
        for name, content in files.items()
        if not (directory / name).is_file() or (directory / name).read_bytes() != content.encode()
    ]

    assert strange == [], "run: python -m deploy.grafana.make"


def test_making_twice_gives_the_same() -> None:
    assert make.documents() == make.documents()


def test_the_package_holds_nothing_else() -> None:
    shipped = {path.relative_to(make.PACKAGE).as_posix() for path in make.PACKAGE.rglob("*") if path.is_file()}
    committed = {path.relative_to(GRAFANA).as_posix() for path in (GRAFANA / "dashboards").iterdir()}

    stack = {path.relative_to(make.STACK).as_posix() for path in make.STACK.rglob("*") if path.is_file()}

    assert stack == set(make.stack())
    assert shipped == set(make.documents())
    assert committed == {name for name in shipped if name.startswith("dashboards/")}


def test_the_views_that_were_promised_are_there() -> None:
    made = {board().uid for board in make.BOARDS}

    assert made == {"fleet", "session", "tools", "notifications", "agents", "cost", "health"}
