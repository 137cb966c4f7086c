""""make mutations" in some seconds."""

import pytest

from mutations import Finding, Mutations, run, serving

COUNT, SEED = 20_000, 2


@pytest.mark.timeout(300)
def test_mistakes_in_what_clients_send_leave_nothing_behind(first_build):
    run(first_build, COUNT, SEED)


def test_a_server_that_does_not_close_what_is_half_closed_is_found(first_build, monkeypatch):
    monkeypatch.setattr("mutations.PATIENCE_S", 0.2)
    with serving(first_build) as server, server.connect() as left, pytest.raises(Finding):
        Mutations(server).wait_for_end({left.socket.fileno(): (7, left.socket)})


def test_a_descriptor_that_is_left_over_is_found(first_build, monkeypatch):
    monkeypatch.setattr("mutations.END_S", 0.2)
    with serving(first_build) as server:
        mutations = Mutations(server)
        mutations.count_descriptors()
        with server.connect() as left:
            assert left.get("/page.html").status == 200
            with pytest.raises(Finding):
                mutations.compare()
