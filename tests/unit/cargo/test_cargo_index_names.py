"""What an index is told of the names of dependencies."""

from __future__ import annotations

from releasekit.ecosystems.cargo.sparse_index import Home, read_dependencies


def test_a_name_that_a_manifest_states_twice_is_sent_twice() -> None:
    """As cargo does it, with `package` of the same name."""
    stated = {"version": "0.1", "package": "foo"}
    manifest = {"dependencies": {"foo": stated, "mine": stated, "bar": "1"}}
    found = {each.alias for each in read_dependencies(manifest, Home("", ()))}
    assert found == {"foo", "mine", None}
