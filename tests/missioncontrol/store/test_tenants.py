"""What an administrator does with tenants from the command line, on both stores."""

from pathlib import Path

import pytest

from exporter.errors import UsageError
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.opening import is_postgres, open_store
from exporter.missioncontrol.store.tenants import store_of
from exporter.missioncontrol.store.token_admin import (
    create_tenant,
    create_token,
    list_audit,
    list_tenants,
    list_tokens,
    remove_tenant,
    revoke_token,
    rotate_key,
)
from exporter.state.backup import back_up_store, put_back_store
from tests.missioncontrol.store_contract import event, known, register, store_events

SECRET = "the unmistakable wombat"


def names(address: str) -> list[str]:
    return [one["name"] for one in list_tenants(address)["tenants"]]


@pytest.mark.parametrize("name", ["", "-a", "a-", "Default", "a/b", "a.b", "\u00e9", "a" * 41, "a b", "default", "red"])
def test_a_name_that_is_none_or_taken_is_refused(address: str, name: str) -> None:
    create_tenant(address, "red")

    with pytest.raises(UsageError):
        create_tenant(address, name)

    assert names(address) == ["default", "red"]


def test_a_token_is_of_its_tenant_only(address: str) -> None:
    create_tenant(address, "red")
    ours, theirs = (create_token(address, "anna", "all", tenant)["token"] for tenant in ("default", "red"))

    assert theirs.startswith("xmc_red.")
    with open_store(address) as store:
        for tenant, token, other in (("default", ours, theirs), ("red", theirs, ours)):
            held = store_of(store, tenant).read_now(
                lambda database, both=(token, other): [tokens.holder(database, one) for one in both]  # type: ignore[misc]
            )
            assert [one.tenant if one else None for one in held] == [tenant, None]
    revoke_token(address, "anna", "red")
    (kept,), (revoked,) = (list_tokens(address, tenant)["tokens"] for tenant in ("default", "red"))
    assert (bool(kept["revoked"]), bool(revoked["revoked"])) == (False, True)


def test_an_operator_is_of_the_default_tenant(address: str) -> None:
    create_tenant(address, "red")

    with pytest.raises(UsageError, match="operator manages all tenants"):
        create_token(address, "olga", "operator", "red")

    create_token(address, "olga", "operator")
    assert list_tokens(address)["tokens"][0]["scope"] == "operator"


@pytest.mark.parametrize("tenant", ["nobody", "x.y"])
def test_a_tenant_that_is_not_there_is_refused(address: str, tenant: str) -> None:
    with pytest.raises(UsageError, match=f"no tenant {tenant}"):
        create_token(address, "anna", "all", tenant)
    with pytest.raises(UsageError, match=f"no tenant {tenant}"):
        remove_tenant(address, tenant)


def test_removing_a_tenant_leaves_nothing_of_it(address: str) -> None:
    create_tenant(address, "red")
    with open_store(address) as store:
        store.do(register("kept"))
        for id in ("s", "t"):
            store_of(store, "red").do(register(id))
            store_of(store, "red").do(store_events(id, event("e1", SECRET), event("e2", SECRET * 1000)))

    remove_tenant(address, "red")

    assert names(address) == ["default"]
    with open_store(address) as store:
        assert store.read_now(known) == ["kept"]
        if is_postgres(address):
            left = "SELECT (SELECT count(*) FROM pg_class WHERE relname = ?), count(*) FROM secrets"
            assert store.read_now(lambda database: database.execute(left, ("none",)).fetchone()) == (0, 2)
    if not is_postgres(address):
        assert sorted(path.name for path in Path(address).parent.iterdir() if "tenant" in path.name) == []
        assert not any(SECRET.encode() in path.read_bytes() for path in Path(address).parent.iterdir())
    with pytest.raises(UsageError, match="always exists"):
        remove_tenant(address, "default")


def test_a_key_is_rotated_for_one_tenant_and_what_was_done_is_in_its_audit_log(address: str) -> None:
    create_tenant(address, "red")

    def keys() -> list[bytes]:
        with open_store(address) as store:
            return [store_of(store, tenant).read_now(tokens.redaction_key) for tenant in ("default", "red")]

    before = keys()
    rotate_key(address, "red")
    create_token(address, "anna", "read", "red")

    after = keys()
    assert (before[0] == after[0], before[1] == after[1], len(set(before + after))) == (True, False, 3)
    told = [(one["who"], one["action"], one["detail"]) for one in list_audit(address, 10, "red")["entries"]]
    assert told == [("(command)", "token", "anna: read"), ("(command)", "rotate key", None)]
    assert [(one["action"], one["detail"]) for one in list_audit(address, 10)["entries"]] == [("create tenant", "red")]


@pytest.mark.parametrize("statement", ["UPDATE audit SET who = 'nobody'", "DELETE FROM audit"])
def test_the_audit_log_is_append_only(address: str, statement: str) -> None:
    rotate_key(address)

    with open_store(address) as store:
        with pytest.raises(Exception, match=r"append-only|permission denied"):
            store.do(lambda database: database.execute(statement))

        assert len(list_audit(address, 10)["entries"]) == 1


def test_a_backup_of_a_file_has_its_tenants(store_path: Path, tmp_path: Path) -> None:
    create_tenant(store_path, "red")
    with open_store(store_path) as store:
        store_of(store, "red").do(register("kept"))
    back_up_store(store_path, tmp_path / "backup", "1")
    with open_store(store_path) as store:
        store_of(store, "red").do(register("later"))
    create_tenant(store_path, "blue")

    put_back_store(tmp_path / "backup", store_path)

    with open_store(store_path) as store:
        assert store_of(store, "red").read_now(known) == ["kept"]
    assert names(str(store_path)) == ["default", "red"]
