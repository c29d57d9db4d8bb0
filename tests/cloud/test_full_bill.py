"""The full bill: parts that sum to the ledger's total whatever was settled, and divisions worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.money.billing.bill_context import bill_context, bill_context_of
from cloud.money.billing.comparison import compare, compare_until_now
from cloud.money.billing.full_bill import BillContext, FullBill, full_bill
from cloud.money.billing.parts import bill_parts
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.replay_schedule import ReplaySchedule, schedules_of
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import paper_costs, round_times
from cloud.money.billing.work import CallRecord
from cloud.money.billing.work_file import RunSegment
from cloud.money.rents.proration import Stretch, shares_of_time
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.profile import load as load_profile
from cloud.timing.numbers.stack import load as load_stack
from cloud.timing.place import TimingPlace
from tests.training.specs import tiny
from training.engine.ports import PriceLine, Settlement

SPEC: dict[str, Any] = {"training": {}}
TIMES = st.integers(0, 10**6).map(lambda ms: ms / 1000)
AMOUNTS = st.integers(0, 10**9)
LINES = st.lists(
    st.builds(
        PriceLine,
        sku=st.sampled_from(["lambda.duration.x86", "lambda.request", "paper.vm_overhead", "c5.4xlarge"]),
        quantity=st.sampled_from(["0", "1", "0.125", "17.333333333333"]),
        unit=st.sampled_from(["GB-s", "request", "h", "month"]),
        picodollars=AMOUNTS,
    ),
    max_size=3,
).map(tuple)


def call(
    name: str,
    kind: str = "rollout",
    lines: Sequence[PriceLine] = (),
    *,
    picodollars: int | None = None,
    **usage: Any,
) -> Settlement:
    """A settled call that ran a second, with changes in its usage; those of its work begin with `work_`."""
    work = {
        "id": f"{name}-a1",
        "kind": kind,
        "where": "learner" if kind == "update" else "actor",
        "round_no": 1,
        "memory_mb": 1024,
    }
    work |= {key.removeprefix("work_"): usage.pop(key) for key in list(usage) if key.startswith("work_")}
    times = {
        "run_s": 1.0,
        "billed_s": 1.0,
        "sent_s": 0.0,
        "landed_s": 1.0,
        "startup_s": 0.0,
        "transfer_s": 0.0,
    }
    amount = sum(line.picodollars for line in lines) if picodollars is None else picodollars
    return Settlement(str(work["id"]), amount, "metered", tuple(lines), times | usage | {"work": work})


def rent(resource: str, lines: Sequence[PriceLine], from_s: float, to_s: float) -> Settlement:
    usage: dict[str, object] = {"resource": resource, "from_s": from_s, "to_s": to_s}
    amount = sum(line.picodollars for line in lines)
    return Settlement(f"rent-{resource}-{from_s}", amount, "metered", tuple(lines), usage)


def bill(*settlements: Settlement, on: BillContext | None = None) -> FullBill:
    return full_bill([RunSegment.of(SPEC, list(settlements))], on or BillContext())


def parts(found: FullBill) -> dict[str, int]:
    return {part: amount for part, amount in found.parts.items() if amount}


def test_gradients_that_no_version_names_are_dropped_also_when_another_process_applied_them() -> None:
    second = [PriceLine("lambda.duration.x86", "1", "GB-s", 100)]
    gradients = [call(f"r1-gradient{number}-n{number}", "gradient", second) for number in (1, 2, 3)]
    applied = call("r1-apply-n4", "apply", second, work_where="learner", work_after=["r1-gradient1-n1"])
    later = call("r2-apply-n1", "apply", second, work_where="learner", work_after=["r1-gradient3-n3"])
    found = full_bill(
        [RunSegment.of(SPEC, [*gradients, applied]), RunSegment.of(SPEC, [later])], BillContext()
    )
    assert parts(found) == {"gradients": 200, "dropped": 100, "aggregation": 200}
    schedules = schedules_of(
        [
            RunSegment.of({"training": tiny().model_dump(mode="json")}, one)
            for one in ([*gradients, applied], [later])
        ]
    )
    assert [schedule.notes for schedule in schedules] == [(), ()]


calls_made = st.builds(
    call,
    name=st.integers(0, 4).map("r1-s{}".format),
    kind=st.sampled_from(["rollout", "evaluate", "update", "gradient", "apply"]),
    lines=LINES,
    picodollars=st.none() | AMOUNTS,
    run_s=TIMES,
    billed_s=TIMES,
    landed_s=TIMES,
    transfer_s=TIMES,
    environment_s=TIMES,
    inference_s=TIMES,
    decision_s=TIMES,
    cold_start=st.booleans(),
    status=st.sampled_from(["done", "failed", "cancelled"]),
    work_attempt=st.integers(1, 3),
    work_hessian_products=st.integers(0, 20),
    work_minibatches=st.integers(0, 30),
    work_broken=st.booleans(),
)
rents_made = st.builds(
    rent,
    resource=st.sampled_from(
        ["learner", "actors", "actor-1", "actor-12", "workers", "provisioned", "cache", "x"]
    ),
    lines=LINES,
    from_s=st.integers(0, 100).map(float),
    to_s=st.integers(100, 200).map(float),
)
unheard = st.builds(Settlement, st.just("dead"), AMOUNTS, st.just("assumed"), st.just(()), st.just({}))


@given(
    st.lists(calls_made | rents_made | unheard, max_size=12),
    st.sampled_from([BillContext(), BillContext(16), BillContext(1, True, lambda work: 1 / 3)]),
)
def test_parts_sum_to_the_ledgers_total_to_the_last_picodollar(
    settlements: list[Settlement], on: BillContext
) -> None:
    found = bill(*settlements, on=on)
    assert found.total == sum(settlement.picodollars for settlement in settlements)
    assert set(found.parts) <= {part.key for part in bill_parts()}
    lined = [line for settlement in settlements for line in settlement.lines]
    assert sum(line.picodollars for line in found.lines) == sum(line.picodollars for line in lined)
    assert all(amount >= 0 for part, amount in found.parts.items() if part != "unknown")


STRETCHES = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 300)).map(lambda two: Stretch(two[0], sum(two)))
)


@given(STRETCHES)
def test_shares_of_one_machine_are_the_time_in_which_anything_ran(stretches: list[Stretch]) -> None:
    shares = shares_of_time(stretches)
    busy = len({moment for begin, end in stretches for moment in range(begin, end)})
    assert busy - len(stretches) <= sum(shares) <= busy
    assert all(0 <= share <= end - begin for share, (begin, end) in zip(shares, stretches, strict=True))


def test_what_runs_at_once_shares_the_machine() -> None:
    assert shares_of_time([Stretch(0, 10), Stretch(4, 6), Stretch(20, 21)]) == [9, 1, 1]


def gb_s(picodollars: int) -> PriceLine:
    return PriceLine("lambda.duration.x86", "1", "GB-s", picodollars)


REQUEST = PriceLine("lambda.request", "1", "request", 200)


def test_a_cold_call_is_divided_between_its_start_and_its_run() -> None:
    found = bill(call("r1-s0", "rollout", [gb_s(1001), REQUEST], cold_start=True, billed_s=4.0, run_s=3.0))
    # A quarter of 1,001 is 250 and a bit; the bit stays with the run.
    assert parts(found) == {"cold_starts": 250, "actors": 751, "requests": 200}
    assert found.counts["cold_starts"] == found.counts["calls"] == 1


def test_an_actors_run_is_divided_by_what_it_did() -> None:
    times = {"billed_s": 4.0, "run_s": 3.0, "environment_s": 1.5, "inference_s": 0.5}
    found = bill(call("r1-s0", "rollout", [gb_s(1001), REQUEST], cold_start=True, **times))
    # Of 4 s: 1 started, 1.5 stepped, 0.5 asked the policy; the last second and the odd picodollar packed and sent.
    assert parts(found) == {
        "cold_starts": 250,
        "environment": 375,
        "inference": 125,
        "transfer": 251,
        "requests": 200,
    }


def test_more_time_than_there_was_is_not_believed() -> None:
    found = bill(call("r1-s0", "rollout", [gb_s(100)], environment_s=0.75, inference_s=9.0))
    assert parts(found) == {"environment": 75, "inference": 25}


def test_kept_actors_are_divided_too() -> None:
    core = PriceLine("aci.vcpu.linux", "1", "vCPU-h", 600)
    ran = call("r1-s0", run_s=30.0, environment_s=20.0, inference_s=4.0)
    found = bill(rent("actor-1", [core], 0.0, 60.0), ran)
    assert parts(found) == {"environment": 200, "inference": 40, "transfer": 60, "idle": 300}


def test_decisions_are_the_schedulers_by_clock_or_else_by_the_stack() -> None:
    machine = PriceLine("c5.4xlarge", "1", "h", 1000)
    measured = call("r1-update", "update", run_s=2.0, landed_s=2.0, decision_s=0.5)
    counted = call("r2-update", "update", run_s=2.0, landed_s=6.0, work_decision_macs=9)
    on = BillContext(decision_ns=lambda work: work.decision_macs * 10**8)
    found = bill(rent("learner", [machine], 0.0, 10.0), measured, counted, on=on)
    assert parts(found) == {"learner": 400, "scheduler": 50 + 90, "idle": 460}


def test_a_warm_call_has_no_start_to_tell_apart() -> None:
    assert parts(bill(call("r1-s0", "evaluate", [gb_s(100)], billed_s=1.003))) == {"evaluation": 100}


@pytest.mark.parametrize("usage", [{"status": "failed"}, {"work_broken": True}, {"work_cancelled": True}])
def test_what_came_to_nothing_is_failed_whole_but_for_the_request(usage: dict[str, Any]) -> None:
    found = bill(call("r1-s0", "rollout", [gb_s(100), REQUEST], cold_start=True, billed_s=2.0, **usage))
    assert parts(found) == {"failed": 100, "requests": 200}
    assert found.counts["failed_calls"] == 1


def test_an_attempt_that_was_made_again_had_failed() -> None:
    again = call("r1-s0", "rollout", [gb_s(7)], work_id="r1-s0-a2", work_attempt=2)
    assert parts(bill(call("r1-s0", "rollout", [gb_s(100)]), again)) == {"failed": 100, "actors": 7}


def test_a_learners_machine_is_paid_for_updates_and_for_idle_time() -> None:
    machine, disk = PriceLine("c5.4xlarge", "1", "h", 1000), PriceLine("paper.vm_overhead", "1", "month", 30)
    update = call("r1-update", "update", run_s=2.0, landed_s=7.5, transfer_s=0.5)
    found = bill(rent("learner", [machine, disk], 0.0, 10.0), update)
    assert parts(found) == {"learner": 200, "idle": 800, "address_and_disk": 30}
    assert (found.counts["learner_busy_ms"], found.counts["learner_stood_ms"]) == (2000, 10_000)
    assert found.time_s == 10.0


def test_hessian_products_are_the_detectors() -> None:
    machine = PriceLine("c5.4xlarge", "1", "h", 1000)
    update = call("r1-update", "update", run_s=4.0, landed_s=4.0, work_hessian_products=10)
    found = bill(
        rent("learner", [machine], 0.0, 8.0), update, on=BillContext(hessian_share=lambda work: 0.25)
    )
    assert parts(found) == {"learner": 375, "detector": 125, "idle": 500}


def test_the_detectors_share_is_what_the_update_would_not_have_taken_without() -> None:
    on = bill_context(load_profile("lambda"), load_stack("starling-stack"), 1)
    work = CallRecord("u-a1", "u", "update", "learner", minibatches=10, samples=2560, macs=10_000)
    assert on.hessian_share(work) == 0.0
    more = CallRecord(
        "u-a1", "u", "update", "learner", minibatches=10, samples=2560, macs=10_000, hessian_products=20
    )
    assert 0.5 < on.hessian_share(more) < 1.0


def test_actors_that_stand_are_paid_for_what_ran_on_them() -> None:
    core = PriceLine("aci.vcpu.linux", "1", "vCPU-h", 600)
    found = bill(
        rent("actor-1", [core], 0.0, 60.0),
        rent("actor-2", [core], 0.0, 60.0),
        call("r1-s0", run_s=30.0),
        call("r1-e0", "evaluate", run_s=6.0),
        call("r1-s1", run_s=12.0, status="failed"),
        on=BillContext(actor_slots=9),
    )
    # 120 actor-seconds stood: 30 sampled, 6 evaluated, 12 failed.
    assert parts(found) == {"actors": 300, "evaluation": 60, "failed": 120, "idle": 720}


def test_a_cluster_is_as_many_actors_as_it_has_room_for() -> None:
    machine = PriceLine("c5.4xlarge", "1", "h", 1600)
    found = bill(
        rent("actors", [machine], 0.0, 10.0), call("r1-s0", run_s=8.0), on=BillContext(actor_slots=16)
    )
    assert parts(found) == {"actors": 80, "idle": 1520}


def test_where_one_machine_does_everything_actors_run_on_the_learners() -> None:
    options = SimulatedOptions(profile="one-machine")
    machine = PriceLine("c5.4xlarge", "1", "h", 1000)
    found = bill(
        rent("learner", [machine], 0.0, 10.0),
        call("r1-s0", run_s=4.0, landed_s=4.0),
        call("r1-s1", run_s=4.0, landed_s=4.0),
        call("r1-update", "update", run_s=2.0, landed_s=6.0),
        on=bill_context_of(options),
    )
    assert parts(found) == {"actors": 400, "learner": 200, "idle": 400}


def test_what_stands_by_itself_is_a_part_by_itself() -> None:
    found = bill(rent("provisioned", [gb_s(5)], 0, 300), rent("cache", [gb_s(6)], 0, 60))
    assert parts(found) == {"provisioned": 5, "cache": 6}


def test_what_no_one_heard_of_is_said_to_be_unknown() -> None:
    assert parts(bill(Settlement("r1-s0-a1", 900, "assumed", (), {}))) == {"unknown": 900}


# Rounds as the papers see them


def round_of(number: int, begin_s: float) -> list[Settlement]:
    """Two rollouts of a second, an update of half a second, an evaluation of two seconds; all without ways."""
    times = {"work_round_no": number}
    return [
        call(f"r{number}-s0", sent_s=begin_s, landed_s=begin_s + 1, **times),
        call(f"r{number}-s1", sent_s=begin_s, landed_s=begin_s + 1, **times),
        call(f"r{number}-update", "update", sent_s=begin_s + 1, landed_s=begin_s + 1.5, run_s=0.5, **times),
        call(f"r{number}-e0", "evaluate", sent_s=begin_s + 1.5, landed_s=begin_s + 3.5, run_s=2.0, **times),
    ]


def test_rounds_end_with_their_updates_and_evaluations_are_apart() -> None:
    segment = RunSegment.of(SPEC, [*round_of(1, 10.0), *round_of(2, 13.5)])
    first, second = round_times(segment)
    assert first == second
    assert (first.round_s, first.update_s, first.sampling_s) == (1.5, 0.5, (1.0, 1.0))
    assert (first.evaluation_s, first.memory_mb, first.learners) == (2.0, 1024, 1)


def test_an_evaluation_beside_the_next_round_takes_no_time_of_its_own() -> None:
    first, second = round_times(RunSegment.of(SPEC, [*round_of(1, 0.0), *round_of(2, 1.0)]))
    # The second began while the first learned: it counts from the first's end on.
    assert (first.round_s, first.evaluation_s) == (1.5, 0.0)
    assert (second.round_s, second.evaluation_s) == (1.0, 2.0)


def test_a_round_has_as_many_learners_as_learned_at_once_however_many_gradients_they_made() -> None:
    gradients = [
        call(f"r1-gradient{number}", "gradient", sent_s=begin_s, landed_s=begin_s + 1.0)
        for number, begin_s in enumerate((1.0, 1.0, 1.5, 2.0, 2.5), start=1)
    ]
    version = call("r1-apply", "apply", sent_s=3.5, landed_s=3.6)
    (only,) = round_times(RunSegment.of(SPEC, [call("r1-s0", sent_s=0.0, landed_s=1.0), *gradients, version]))
    assert only.learners == 3
    assert only.round_s == pytest.approx(3.6)


def test_booting_is_not_counted() -> None:
    late = [
        call("r1-s0", sent_s=0.0, landed_s=61.0, startup_s=60.0),
        call("r1-update", "update", sent_s=61.0, landed_s=63.0, startup_s=1.5, run_s=0.5),
    ]
    (only,) = round_times(RunSegment.of(SPEC, late))
    assert only.round_s == 1.5


def test_rounds_without_an_update_are_no_rounds() -> None:
    failed = call("r2-update", "update", work_round_no=2, status="failed")
    assert (
        len(round_times(RunSegment.of(SPEC, [*round_of(1, 0.0), call("r2-s0", work_round_no=2), failed])))
        == 1
    )


def test_each_paper_charges_what_its_formula_says() -> None:
    costs = {
        formula.name: cost for formula, cost in paper_costs([RunSegment.of(SPEC, round_of(1, 0.0))], BOOK)
    }
    # Siren: two function-seconds of 1 GB.
    assert costs["siren"] == 2 * 16_666_700
    # MinionsRL: the GPU for half a second, a core and a gigabyte for two seconds.
    gpu, core, memory = (
        BOOK.row(sku, "eastus").picodollar_ratio[0]
        for sku in ("aci.gpu.v100", "aci.vcpu.linux", "aci.memory.linux")
    )
    assert costs["minionsrl"] == pytest.approx((gpu * 0.5 + (core + memory) * 2) / 3600, abs=2)


BOOK = PriceBook.load()


# Elsewhere


def test_comparisons_are_retimings_of_the_same_work() -> None:
    segment = RunSegment.of(SPEC, [*round_of(1, 0.0), *round_of(2, 3.5)])
    found, notes = compare([segment], SimulatedOptions(profile="lambda"), BOOK, ["lambda", "one-machine"])
    assert [one.profile for one in found] == ["one-machine"]
    place = TimingPlace.of(SimulatedOptions(profile="one-machine"), BOOK)
    again = retime(ReplaySchedule.of(segment), place, seed=0)
    assert (found[0].picodollars, found[0].time_s) == (again.bill.picodollars, again.time_s)
    assert not notes
    local, _ = compare([segment], LocalOptions(), BOOK)
    machines = ["one-machine", "one-machine-spot", "one-small-machine"]
    assert [one.profile for one in local][:4] == [*machines, "lambda"]
    assert all(one.picodollars > 0 for one in local)


def test_a_run_that_goes_on_is_compared_as_if_it_ended_now() -> None:
    segment = RunSegment.of(SPEC, round_of(1, 0.0))
    options = SimulatedOptions(profile="aci-today")
    again = retime(ReplaySchedule.of(segment), TimingPlace.of(options, BOOK), seed=0)
    found = compare_until_now([segment], options, BOOK)
    assert (found.picodollars, found.time_s) == (again.bill.picodollars, again.time_s)


def test_a_place_without_a_price_says_so() -> None:
    book = PriceBook(row for row in BOOK.rows() if row.sku != "c5.4xlarge")
    segment = RunSegment.of(SPEC, round_of(1, 0.0))
    (found,), _ = compare([segment], LocalOptions(), book, ["one-machine"])
    assert found.picodollars == 0
    assert "c5.4xlarge" in found.problem
    assert asdict(found)["problem"] == found.problem


def test_before_the_first_update_the_papers_have_nothing_to_price() -> None:
    """Bills of running jobs are drawn up at any moment."""
    segment = RunSegment({}, [], [])
    assert round_times(segment) == []
    assert {cost for _, cost in paper_costs([segment], PriceBook.load())} == {0}
