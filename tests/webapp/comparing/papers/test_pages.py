"""The pages of experiments: drawn from stored results alone, each of the papers' figures under its own number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_user
from tests.figures import figures_in
from webapp.comparing.papers import figures
from webapp.comparing.papers.drawing import RULER_WIDTH, Series, panel, ruler
from webapp.comparing.papers.figures import FIGURES
from webapp.comparing.papers.pages import figure_rows, page_of
from webapp.comparing.papers.verdicts import verdict


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    return tmp_path


def _page(path: str, status: int = 200) -> str:
    client = Client()
    client.force_login(make_user())
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def _claim(**changes: Any) -> dict[str, Any]:
    claim = {
        "claim": "Dollars to the target on CartPole-v1: ours needs less than theirs (ratio below 1).",
        "verdict": "does not hold",
        "reason": "It is the other way round.",
        "label": "bill",
        "paper": "up to −29 %.",
        "figures": {"interval": {"value": 1.5, "low": 1.25, "high": 1.75}, "seeds": 5},
        "asked": {
            "kind": "cheaper",
            "environments": ["CartPole-v1"],
            "ours": "Nitro",
            "theirs": "fixed at 16",
            "at": "functions",
            "against_at": "a cluster",
            "alike": False,
            "repeats": ["nitro-14"],
            "measure": "dollars",
            "accounting": "paper",
            "primary": True,
            "paper_value": 0.71,
        },
    }
    return claim | changes


def _stored(folder: Path, name: str, *claims: dict[str, Any], **changes: Any) -> None:
    document = {
        "name": name,
        "kind": "experiment",
        "title": "Nitro: rewards and cost",
        "question": "Does it?",
        "oracle": "It would not.",
        "can_claim": "Little.",
        "beside": "The paper says so.",
        "runs": 8,
        "runs_complete": 2,
        "processor_s_left": 7200.0,
        "verdicts": list(claims),
        "made_with": [{"cpu": "a processor", "runs": 2}],
    }
    (folder / f"{name}.json").write_text(json.dumps(document | changes))


@pytest.mark.django_db
def test_what_comes_with_starling_is_shown() -> None:
    """The results in the repository: each has a page, and each figure a row."""
    listed = _page("/papers/")
    for one in FIGURES:
        assert f'id="{one.key}"' in listed
    for name in figures.result_names():
        if figures.find_result(name) is not None:
            assert 'id="made-title"' in _page(f"/papers/{name}/")


@pytest.mark.django_db
def test_a_claim_stands_beside_the_papers_figure(results: Path) -> None:
    _stored(results, "nitro_rewards", _claim())
    listed, page = _page("/papers/"), _page("/papers/nitro_rewards/")
    for text in ("+50 % [+25 %, +75 %]", "does not hold", "up to −29 %."):
        assert text in listed
        assert text in page
    assert "paper&#x27;s own formula" in page
    assert "2 of 8" in page
    assert "25 %" in page
    assert "about 2 hours" in page
    assert "manage.py papers run nitro_rewards" in page
    # Figure 10 is repeated by the same experiment, but no claim here answers for it.
    assert [row.word for row in figure_rows("Nitro") if row.figure.key == "nitro-10"] == ["shown"]


@pytest.mark.django_db
def test_what_schedulers_cost_is_on_the_page(results: Path) -> None:
    _stored(results, "nitro_rewards", schedulers=["Hopper-v5, scheduler: $0.12 for its 10 real episodes."])
    assert "$0.12 for its 10 real episodes" in _page("/papers/nitro_rewards/")


@pytest.mark.django_db
def test_what_is_not_stored_has_no_page_and_is_said_not_to_have_run(results: Path) -> None:
    (results / "broken.json").write_text("{")
    (results / "earlier.json").write_text(json.dumps({"name": "earlier", "verdicts": []}))
    for name in ("nothing", "broken", "earlier"):
        _page(f"/papers/{name}/", status=404)
    assert "not run" in _page("/papers/")


def test_the_pages_are_for_people_who_are_signed_in() -> None:
    assert Client().get("/papers/").status_code == 302


def test_a_result_that_is_written_again_is_read_again(results: Path) -> None:
    _stored(results, "nitro_rewards", _claim())
    first = figures.find_result("nitro_rewards")
    assert first is figures.find_result("nitro_rewards")
    _stored(results, "nitro_rewards", title="Another title, longer")
    import os

    os.utime(results / "nitro_rewards.json", ns=(1, 1))
    again = figures.find_result("nitro_rewards")
    assert again is not None
    assert again["title"] == "Another title, longer"


def test_open_claims_are_distinguished(results: Path) -> None:
    open_one = _claim(verdict="open", reason="No seed is complete.", figures={"interval": None})
    _stored(results, "nitro_rewards", open_one, _claim())
    found = figures.find_result("nitro_rewards")
    assert found is not None
    page = page_of("nitro_rewards", found)
    assert [one.word for one in page["open"]] == ["open"]
    ((account, groups),) = page["accounts"]
    assert account.startswith("By the paper's")
    assert [(words, len(rows)) for words, rows in groups] == [("CartPole-v1", 1)]


@pytest.mark.django_db
def test_a_page_says_the_paper_s_account_ours_what_turns_it_what_it_rests_on_and_how_to_repeat_it(
    results: Path,
) -> None:
    ours = _claim()
    ours["asked"] = {**ours["asked"], "accounting": "bill"}
    without = {
        "name": "no_startup",
        "words": "without the start of machines and functions on both sides",
        "interval": {"value": 0.9, "low": 0.8, "high": 0.95},
        "word": "holds",
        "turned": True,
    }
    ours["figures"] = {
        **ours["figures"],
        "variants": [without],
        "startup_shares": [0.1, 0.6],
        "earlier": {"verdict": "holds", "interval": {"value": 0.7, "low": 0.58, "high": 0.91}},
    }
    higher = _claim(claim="Final return")
    higher["asked"] = {**higher["asked"], "kind": "higher"}
    difference = {
        "path": "algorithm.clip",
        "paper": "0.3",
        "ours": "0.2",
        "source": "P",
        "reason": "A reason of its own.",
        "environments": ["Hopper-v5"],
    }
    row = {"environment": "Hopper-v5", "meter": "training", "untrained": 20.0, "reference": 300.0}
    skill = [{**row, "least": 160.0, "target": 100.0, "skilled": False}]
    _stored(
        results, "nitro_rewards", ours, higher, differences=[difference], skill=skill, processor_s=36_000.0
    )
    page = _page("/papers/nitro_rewards/")
    parts = [
        "By the paper&#x27;s own account",
        "Return after all rounds",
        "By our account, start-ups on and off",
        "Without start-ups −10 % [−20 %, −5 %]: holds. They are 10 % of ours and 60 % of theirs.",
        "Before the repairs: −30 % [−42 %, −9 %], holds.",
        "What would change the verdict",
        "Without the start of machines and functions on both sides: −10 %",
        "Basis",
        "(needs no skill)",
        "A reason of its own.",
        "How to judge and repeat it",
        "about 10 hours of one processor core and $0",
    ]
    places = [page.find(words) for words in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.django_db
def test_what_a_verdict_hangs_on_is_said_first_on_its_page_and_on_the_list(results: Path) -> None:
    """By start-ups, by a target without skill, and by settings that the paper does not have."""
    said = (
        "Its sign turns without the start of machines and functions on both sides. The target asks for little or no"
        " skill; first readings: CartPole-v1 99 of 100. Reached the target, ours and theirs: CartPole-v1: 5 and 5 of 5."
    )
    without = {"name": "no_startup", "words": "without starts", "word": "does not hold", "turned": True}
    claim = _claim(verdict="holds", reason=said)
    claim["figures"] = {
        "interval": {"value": 0.5, "low": 0.4, "high": 0.6},
        "variants": [{**without, "interval": {"value": 1.1, "low": 1.05, "high": 1.2}}],
        "startup_shares": [0.1, 0.6],
    }
    row = {"path": "algorithm.gradient_clip", "paper": "none", "ours": "joint", "source": "C"}
    _stored(results, "nitro_rewards", claim, differences=[{**row, "reason": "Why.", "environments": ["C"]}])
    listed, page = _page("/papers/"), _page("/papers/nitro_rewards/")
    first = page.find('class="hangs-on">Its sign turns without the start')
    assert 0 < first < page.find("Without start-ups") < page.find("would change the")
    assert "<p>Reached the target, ours and theirs: CartPole-v1: 5 and 5 of 5.</p>" in page
    assert "1 setting of its recipe is not the paper's: gradient clip." in page
    for words in (
        "Its sign turns without the start of machines and functions on both sides.",
        "The target asks for little or no skill on CartPole-v1.",
        '#rests-title">1 setting</a>',
    ):
        assert words in listed


def test_stored_verdicts_that_start_ups_turn_say_so_first() -> None:
    """Of all results that come with Starling; and no figure of the list leads with one unsaid."""
    turned = 0
    for name in figures.result_names():
        for one in (figures.find_result(name) or {"verdicts": []})["verdicts"]:
            variants = one.get("figures", {}).get("variants", ())
            if any(variant["turned"] for variant in variants):
                turned += 1
                assert any("sign turns" in words for words in verdict(one).caveats), one["claim"]
    assert turned > 20


def test_a_difference_is_never_written_as_a_change_of_a_ratio() -> None:
    """Returns at equal dollars are told apart by a share of the target, without starts as with them."""
    better = _claim(claim="At equal dollars", reason="Its sign turns without starts.")
    better["asked"] = {**better["asked"], "kind": "better"}
    without = {"name": "no_startup", "words": "without starts", "word": "does not hold", "turned": True}
    better["figures"] = {
        "interval": {"value": 0.3, "low": 0.1, "high": 0.4},
        "variants": [{**without, "interval": {"value": -0.25, "low": -0.5, "high": -0.125}}],
        "startup_shares": [0.1, 0.6],
    }
    row = verdict(better)
    assert row.figure == "+0.30 [+0.10, +0.40]"
    assert row.without_startup.startswith("Without start-ups −0.25 [−0.50, −0.12]: does not hold.")
    assert row.turned_by == ("without starts: −0.25 [−0.50, −0.12], does not hold",)


def test_that_an_arm_is_not_worse_stands_by_the_papers_endpoint_with_its_margin() -> None:
    claim = _claim(claim="Not worse")
    claim["asked"] = {**claim["asked"], "kind": "not_worse", "margin": 0.8}
    claim["figures"] = {"interval": {"value": 0.97, "low": 0.89, "high": 1.02}}
    row = verdict(claim)
    assert "less than 0.8 times" in row.what
    assert row.figure == "−3 % [−11 %, +2 %]"
    assert row.by_paper
    # The stroke on its line is the limit: the whole bar is to the right of it, and not of no difference.
    assert row.ruler is not None
    assert row.ruler.none < row.ruler.low < row.ruler.ticks[2][0]


def test_a_claim_that_two_arms_are_equal_says_so() -> None:
    """Its word alone, "holds", would be read as that one is better."""
    claim = _claim(claim="Alike")
    claim["asked"] = {**claim["asked"], "kind": "higher", "alike": True}
    what = verdict(claim).what
    assert what.endswith(", alike")
    claim["asked"]["alike"] = False
    assert verdict(claim).what == what.removesuffix(", alike")


def test_the_paper_s_own_claim_leads_its_figure(results: Path) -> None:
    own = _claim(claim="Own")
    own["asked"] = {**own["asked"], "primary": False, "ours": "In the paper"}
    _stored(results, "nitro_rewards", _claim(paper=""), own)
    (row,) = [one for one in figure_rows("Nitro") if one.figure.key == "nitro-14"]
    assert row.leading is not None
    assert (row.leading.ours, row.led_by) == ("In the paper", "nitro_rewards")


@pytest.mark.django_db
def test_a_target_says_how_many_untrained_policies_reach_it(results: Path) -> None:
    row = {"environment": "Hopper-v5", "meter": "training", "untrained": 20.0, "reference": 300.0}
    skill = [{**row, "least": 160.0, "target": 200.0, "skilled": True}]
    _stored(results, "nitro_rewards", _claim(), skill=skill)
    table = {
        "title": "Targets",
        "columns": [
            "environment",
            "meter",
            "target",
            "reached",
            "seeds",
            "mean return",
            "most held",
            "experiments",
        ],
        "rows": [["Hopper-v5", "training", 200.0, 0.0, 20.0, 14.0, 20.0, "nitro_rewards"]],
    }
    _stored(results, "untrained_policies", kind="calculation", tables=[table], runs=0)
    assert "0 of 20" in _page("/papers/nitro_rewards/")


@pytest.mark.parametrize(
    ("interval", "ratio", "places"),
    [
        ({"low": 0.25, "value": 1.0, "high": 4.0}, True, (10.0, RULER_WIDTH / 2, RULER_WIDTH - 10)),
        ({"low": -1.0, "value": 0.0, "high": 1.0}, False, (10.0, RULER_WIDTH / 2, RULER_WIDTH - 10)),
        ({"low": 0.125, "value": 0.5, "high": 8.0}, True, (65.0, 305 / 3, 175.0)),
        ({"low": -1.5, "value": -1.0, "high": 2.0}, False, (78.75, 92.5, 175.0)),
        ({"low": 0.001, "value": 1.0, "high": 999.0}, True, (10.0, RULER_WIDTH / 2, RULER_WIDTH - 10)),
    ],
)
def test_a_ruler_by_hand(interval: dict[str, float], ratio: bool, places: tuple[float, ...]) -> None:
    drawn = ruler(interval, ratio=ratio, paper=1.0 if ratio else None)
    assert (drawn.low, drawn.middle, drawn.high) == pytest.approx(places)
    assert drawn.none == pytest.approx(RULER_WIDTH / 2)
    assert [round(at) for at, _ in drawn.ticks] == [10, 65, 120, 175, 230]


def test_a_ruler_holds_the_paper_s_figure_too() -> None:
    """Ours beyond a quarter and theirs are at two places of one line."""
    drawn = ruler({"low": 0.03, "value": 0.03, "high": 0.03}, ratio=True, paper=0.14)
    assert drawn.paper is not None
    assert drawn.ticks[0][0] < drawn.middle < drawn.paper - 20


@pytest.mark.parametrize("level", [100.0, 195.0, 600.0])
def test_the_words_of_a_target_stay_within_their_panel(level: float) -> None:
    """Also those of one that is the highest of all, at the panel's upper edge."""
    series = Series("one", ((0.0, 1.0), (10.0, 200.0)))
    drawn = panel("Return", [series], x_words="rounds", y_words="return", level=level, level_words="target")
    assert drawn.level is not None
    assert 14 <= drawn.level_words_at <= drawn.bottom
    assert abs(drawn.level_words_at - drawn.level) < 15


def test_curves_stay_within_their_panel_and_say_what_they_show() -> None:
    lines = [
        Series("one", [(1, 10.0), (50, 400.0)], [5.0, 300.0], [20.0, 500.0]),
        Series("two", [(1, 1.0), (50, 2.0)]),
    ]
    drawn = panel("Return", lines, x_words="rounds", y_words="return", level=195.0)
    assert not drawn.logarithmic
    for line in drawn.lines:
        for pair in line.points.split():
            x, y = map(float, pair.split(","))
            assert drawn.left <= x <= drawn.right
            assert 0 <= y <= drawn.bottom
    assert figures_in(drawn.sentence)[-2:] == ["400", "2"]
    apart = panel("Seconds", [Series("one", [(1, 0.1), (2, 80.0)])], x_words="actors", y_words="seconds")
    assert apart.logarithmic
    assert apart.rows == (("1", "0.1"), ("2", "80"))
    many = Series("many", [(x, float(x)) for x in range(1, 101)])
    rows = panel("Many", [many, lines[0]], x_words="rounds", y_words="return").rows
    assert [row[0] for row in rows] == [row[1] for row in rows], "as high as it is far"
    assert (len(rows), rows[0], rows[-1]) == (12, ("1", "1", "10"), ("100", "100", "–"))
    assert rows[1] == ("10", "10", f"{10 + 9 / 49 * 390:.4g}"), "between its points, as it is drawn"


def test_a_plain_claim_is_its_sentence() -> None:
    found = verdict({"claim": "PPO reaches 700.", "verdict": "holds", "reason": "It does."})
    assert (found.what, found.tone, found.ruler) == ("PPO reaches 700.", "ok", None)


@pytest.mark.slow
def test_pages_load_neither_torch_nor_research() -> None:
    program = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings';"
        "import django; django.setup();"
        "from webapp.comparing.papers import views, pages; pages.figure_rows('Nitro');"
        "print(bool({'torch', 'research'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"
