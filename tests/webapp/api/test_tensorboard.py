"""Event files for TensorBoard: the checksums, and a run read back with protobuf's own reader."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.factories import changed_report, evaluated, make_running_job, round_finished
from training.rl.figures import CurvatureReport, NoiseScaleReport
from webapp.api.tensorboard import crc32c, event_file, record, scalars
from webapp.jobs.charts.figures import LINES
from webapp.jobs.running.recorder import Recorder


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_checksums_are_castagnolis(data: bytes, checksum: int) -> None:
    """The examples of RFC 3720."""
    assert crc32c(data) == checksum


def event_class() -> Any:
    """TensorFlow's Event as far as we use it."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name: str, *fields: tuple[str, int, int, int, str]) -> None:
        made = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            made.field.add(name=field, number=number, type=kind, label=label, type_name=of or None)

    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    message("Value", ("tag", 1, kinds.TYPE_STRING, one, ""), ("simple_value", 2, kinds.TYPE_FLOAT, one, ""))
    message("Summary", ("value", 1, kinds.TYPE_MESSAGE, many, ".t.Value"))
    message(
        "Event",
        ("wall_time", 1, kinds.TYPE_DOUBLE, one, ""),
        ("step", 2, kinds.TYPE_INT64, one, ""),
        ("file_version", 3, kinds.TYPE_STRING, one, ""),
        ("summary", 5, kinds.TYPE_MESSAGE, one, ".t.Summary"),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Event"))


def read(content: bytes) -> Iterator[Any]:
    """The events of a file whose checksums are right."""
    kind = event_class()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event, rest = content[12 : 12 + length], content[12 + length :]
        for part, checksum in ((content[:8], content[8:12]), (event, rest[:4])):
            crc = crc32c(part)
            assert struct.unpack("<I", checksum)[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        yield kind.FromString(event)
        content = rest[4:]


def test_an_event_survives_protobuf() -> None:
    (event,) = read(record(scalars(1.5, 2**40, [("a/ö", -2.5), ("b", 0.0)])))
    assert (event.wall_time, event.step) == (1.5, 2**40)
    assert [(one.tag, one.simple_value) for one in event.summary.value] == [("a/ö", -2.5), ("b", 0.0)]


@pytest.mark.django_db
def test_a_run_is_there_whole() -> None:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for number in (1, 2, 3):
        recorder.record(
            round_finished(number, spent=number * 10**9, mean=None if number == 1 else 10.0 * number)
        )
    recorder.record(evaluated(2, mean=99.0))
    job.refresh_from_db()
    version, *events = read(b"".join(event_file(job)))
    assert version.file_version == "brain.Event:2"
    assert [event.step for event in events] == [256, 512, 768]
    began_s = job.started_at.timestamp()
    assert [event.wall_time - began_s for event in events] == pytest.approx([1.0, 2.0, 3.0], abs=1e-4)
    by_tag = [{one.tag: one.simple_value for one in event.summary.value} for event in events]
    assert "rollout/ep_rew_mean" not in by_tag[0]
    assert by_tag[1]["rollout/ep_rew_mean"] == 20.0
    assert [one.get("eval/mean_reward") for one in by_tag] == [None, 99.0, None]
    assert by_tag[2]["cost/spent_usd"] == pytest.approx(0.003)
    assert by_tag[2]["train/approx_kl"] == pytest.approx(0.01)
    assert by_tag[2]["functions/actors"] == 8


@pytest.mark.django_db
def test_every_line_of_the_pages_charts_is_there() -> None:
    """What only some scaling policies have measured too."""
    curvature = CurvatureReport(largest=3.0, smallest=-1.5, ratio=2.0, products=9, samples=256)
    noise = NoiseScaleReport(scale=40.0, slices=8)
    measured = {"curvature": curvature, "noise_scale": noise, "policy_shift": 0.25, "staleness_mean": 1.0}
    job, epoch = make_running_job()
    event, report = round_finished(1), changed_report(1, **measured)
    Recorder(job.pk, epoch, keep_checkpoints=3).record(event.model_copy(update={"report": report}))
    job.refresh_from_db()
    _, first = read(b"".join(event_file(job)))
    values = {one.tag: one.simple_value for one in first.summary.value}
    assert values["scaling/curvature_ratio"] == 2.0
    assert values["scaling/noise_scale"] == 40.0
    assert values["scaling/policy_shift"] == 0.25
    shown = [line.read(report.model_dump(mode="json")) for line in LINES.values()]
    assert {f"{one:.4g}" for one in shown if one is not None} <= {f"{one:.4g}" for one in values.values()}
