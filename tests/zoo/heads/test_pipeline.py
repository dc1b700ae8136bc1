"""From contingencies to deployed heads: every step once, a gate that holds, and no made-up numbers.

Training and the strict ODE's searches are stood in for: what is tested is what happens around them. The stand-in
surrogate's boundary is the fast reference ODE's.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cli import zoo
from contingencies.confirmation import confirmed_cct
from contingencies.errors import GateError, SolverError, UsageError, ZooError
from contingencies.library import load_contingency
from contingencies.references import reference_boundary, reference_cct
from registry.home import Home
from registry.query import Registry
from registry.store import contingencies, deployments
from registry.store.deployments import Gate
from zoo.heads.comparison import Example, example
from zoo.heads.distill import distill_boundary
from zoo.heads.pipeline import PipelinePlan, run_pipeline
from zoo.heads.sources import Source, reference_source
from zoo.training.request import TrainingRequest
from zoo.training.session import Session
from zoo.work.executor import Serial
from zoo.work.jobs import Done

BUS, LINE = "ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"


@pytest.fixture(scope="module")
def heads():
    """Heads by contingency: each is fitted once for all tests."""
    return {}


@pytest.fixture
def calls(monkeypatch, heads):
    """Stand-ins for what takes minutes, and a record of who called them."""
    called = []

    def train(self, rows, request, parent=None):
        called.append("train")
        content = f"weights {request.seed}".encode()
        made = self.home.add_checkpoint(content, 7, "stand-in", {row.id: k for k, row in enumerate(rows)})
        return SimpleNamespace(checkpoint=made, result=SimpleNamespace(elapsed_s=1.5))

    def source(home, row, checkpoint):
        called.append(row.name)
        return reference_source(home.contingency(row))

    def fast(operators, alpha, reference="fast", report=None):
        return reference_boundary(operators, alpha, "fast", report)

    def near(operators, alpha, reference):
        found = reference_cct(operators, alpha)
        return found if reference == "fast" else confirmed_cct(operators, found)

    def remembered(source, settings, report):
        name = source.operators.name
        if name not in heads:
            heads[name] = distill_boundary(source, settings, report)
        return heads[name]

    monkeypatch.setattr("espinn_moe.head_pieces.MAX_PIECES", 1)  # heads of test quality in a second
    monkeypatch.setattr(Session, "train", train)
    monkeypatch.setattr("zoo.heads.distill.distill_boundary", remembered)
    monkeypatch.setattr("zoo.heads.distill.checkpoint_source", source)
    monkeypatch.setattr("zoo.heads.distill.reference_boundary", fast)
    monkeypatch.setattr("zoo.heads.comparison.reference_cct", near)
    return called


@pytest.fixture
def home(tmp_path):
    with Home.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def rows(home):
    return [result.row for result in home.register([load_contingency(BUS), load_contingency(LINE)])]


PLAN = PipelinePlan(TrainingRequest("moe-chained", fraction=0.1))


def test_a_family_is_trained_once_and_every_member_deployed(home, rows, calls):
    stages = []
    result = run_pipeline(Session(home, report=lambda *heard: stages.append(heard)), rows, PLAN, Serial())
    assert [(member.contingency, member.outcome, member.status) for member in result.members] == [
        (BUS, "deployed", "right-censored"),
        (LINE, "deployed", "finite"),
    ]
    assert calls == ["train", BUS, LINE]
    assert stages[-1] == ("boundaries and heads", 2, 2)
    with Registry.open(home.path) as registry:
        assert registry.cct(BUS, 0.9).cct is None
        assert registry.cct(BUS, 0.9).status == "right-censored"
        assert registry.cct(LINE, 0.9).status == "finite"
        assert registry.cct(LINE, 0.9).checkpoint == result.checkpoint


def test_the_same_request_again_does_nothing_and_another_one_everything(home, rows, calls):
    first = run_pipeline(Session(home), rows, PLAN, Serial())
    calls.clear()
    again = run_pipeline(Session(home), rows, PLAN, Serial())
    assert calls == []
    assert again.members == first.members
    assert not again.trained_now
    assert len(deployments.history(home.database, LINE)) == 1
    other = run_pipeline(
        Session(home), rows, PipelinePlan(TrainingRequest("moe-chained", fraction=0.1, seed=1)), Serial()
    )
    assert calls == ["train", BUS, LINE]
    assert other.checkpoint != first.checkpoint
    calls.clear()
    run_pipeline(Session(home, resume=False), rows, PLAN, Serial())
    assert calls == ["train", BUS, LINE]


def test_a_member_that_fails_is_named_and_only_it_is_done_again(home, rows, calls, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("zoo.heads.distill.checkpoint_source", failing_for(LINE))
        result = run_pipeline(Session(home), rows, PLAN, Serial())
    assert [member.outcome for member in result.members] == ["deployed", "failed"]
    assert result.members[1].detail == "no boundary today."
    assert result.members[1].head is None
    calls.clear()
    mended = run_pipeline(Session(home), rows, PLAN, Serial())
    assert calls == [LINE]
    assert [member.outcome for member in mended.members] == ["deployed", "deployed"]


def failing_for(name):
    def source(home, row, checkpoint):
        if row.name == name:
            raise SolverError("no boundary today.")
        return reference_source(home.contingency(row))

    return source


def test_a_head_beyond_the_gate_is_refused_and_not_deployed(home, rows, calls):
    result = run_pipeline(Session(home), rows, replace(PLAN, gate=Gate(mae_s=1e-12, max_s=1e-12)), Serial())
    assert [member.outcome for member in result.members] == ["deployed", "refused"]
    assert "exceeds" in result.members[1].detail
    assert [row.contingency for row in deployments.all_active(home.database)] == [BUS]


def test_a_head_that_has_lost_the_boundary_is_refused_however_few_severities_are_finite(home, rows, calls, monkeypatch):
    blind = reference_source(home.contingency(rows[0])).boundary  # the other member's: censored everywhere

    def source(home, row, checkpoint):
        return Source(blind, reference_source(home.contingency(row)).operators)

    monkeypatch.setattr("zoo.heads.distill.checkpoint_source", source)
    monkeypatch.setattr("zoo.heads.distill.distill_boundary", distill_boundary)
    lenient = Gate(disagreement=1.0)
    result = run_pipeline(Session(home), rows, replace(PLAN, gate=lenient), Serial())
    assert [member.outcome for member in result.members] == ["deployed", "refused"]
    assert "although the reference has" in result.members[1].detail


def test_what_a_damaged_or_emptied_registry_has_lost_is_made_again(home, rows, calls, tmp_path):
    run_pipeline(Session(home), rows, PLAN, Serial())
    calls.clear()
    with Home.open(tmp_path / "other") as fresh:
        (tmp_path / "other" / "results").mkdir()
        for file in (home.path / "results").iterdir():  # results speak of a checkpoint that this registry has not
            (tmp_path / "other" / "results" / file.name).write_bytes(file.read_bytes())
        again = [result.row for result in fresh.register([load_contingency(BUS), load_contingency(LINE)])]
        result = run_pipeline(Session(fresh), again, PLAN, Serial())
    assert calls == ["train", BUS, LINE]
    assert result.trained_now


def test_an_example_shows_the_head_beside_both_reference_odes(home, rows, calls, monkeypatch):
    run_pipeline(Session(home), rows, PLAN, Serial())
    shown = example(home.path, rows[1], home.contingency(rows[1]))
    assert shown.status == shown.strict_status == "finite"
    assert shown.error < 1e-5
    assert shown.fast == pytest.approx(shown.strict, abs=1e-5)


def run(*arguments: str):
    return CliRunner().invoke(zoo, list(arguments), standalone_mode=False)


def test_pipeline_makes_registers_and_deploys_a_family_with_one_command(tmp_path, calls, monkeypatch):
    shown = Example("ieee9-mech-g1-restore", 0.5, "finite", 0.7, 1e-4, "finite", 0.7001, 0.7001)
    monkeypatch.setattr("zoo.heads.comparison.example", lambda *arguments, **options: shown)
    home = str(tmp_path / "home")
    family = ("--system", "ieee9", "--fault", "mechanical", "--clearing", "restore-mechanical")
    result = run("pipeline", *family, "--jobs", "1", "--strict", "2", "--max-ms", "1000", "--json", "--home", home)
    assert result.exception is None, result.exception
    made = json.loads(result.stdout)
    assert [member["contingency"] for member in made["members"]] == [f"ieee9-mech-g{k}-restore" for k in (1, 2, 3)]
    assert made["model"] == "moe-chained"
    assert all(member["outcome"] == "deployed" for member in made["members"])
    assert calls[0] == "train"
    again = run("pipeline", *family, "--jobs", "1", "--strict", "2", "--max-ms", "1000", "--home", home)
    assert "3 of 3 heads passed the gate" in again.stdout
    assert "trained before" in again.stdout
    assert "error 0.1000 ms" in again.stdout


def test_the_family_of_a_pipeline_is_described_as_that_of_a_screen(tmp_path, calls, monkeypatch):
    monkeypatch.setattr("zoo.heads.comparison.example", lambda *arguments, **options: None)
    monkeypatch.setattr("zoo.commands.pipeline._print", lambda result, shown: None)
    monkeypatch.setattr(
        "zoo.heads.pipeline.run_jobs", lambda jobs, *rest: [Done(job, None, "not today", False) for job in jobs]
    )
    home = str(tmp_path / "home")
    family = ("--system", "ieee9", "--fault", "line", "--clearing", "restore", "--position", "0.25", "--T", "1.5")
    run(
        "pipeline",
        *family,
        "--law",
        "admittance",
        "--t-c",
        "0.3",
        "0.9",
        "--severity",
        "0.5",
        "2",
        "--jobs",
        "1",
        "--home",
        home,
    )
    with Home.open(home) as opened:
        spec = opened.contingency(contingencies.find(opened.database, "ieee9-line-4-5-restore")).spec
    assert spec.fault.position == 0.25 and spec.severity == (0.5, 2.0)
    assert (spec.window.t_f, spec.window.T, spec.window.t_c) == (0.2, 1.5, (0.3, 0.9))
    screened, piped = (
        {option for parameter in zoo.get_command(None, name).params for option in parameter.opts}
        for name in ("screen", "pipeline")
    )
    assert screened - {"system", "--alpha", "--at", "--reference", "--required-ms", "--csv", "--plot"} <= piped


def test_pipeline_of_one_name_uses_the_model_for_one_and_says_when_a_head_is_refused(tmp_path, calls):
    home = str(tmp_path / "home")
    result = run("pipeline", LINE, "--jobs", "1", "--max-mean-ms", "0", "--max-ms", "0", "--home", home)
    assert isinstance(result.exception, GateError)
    assert "es-pinn-chained" in result.stdout
    assert "refused" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name either"),
        ((LINE, "--system", "ieee30"), "name either"),
        (("--system", "ieee9", "--fault", "line"), "together"),
        ((LINE, "--fault", "line", "--clearing", "restore"), "leave out the names"),
        ((LINE, LINE), "twice"),
        ((LINE, "ieee9-mech-g2-restore"), "different systems"),
        (("--system", "ieee9", "--fault", "line", "--clearing", "trip-feeders"), "family"),
        (("--system", "ieee39"), "registered"),
        (("--system", "ieee39", "--position", "0.2"), "--position describes a family"),
        ((LINE, "--T", "1.0"), "--T describes a family"),
        (("--system", "ieee9", "--fault", "bus", "--clearing", "restore", "--position", "0.2"), "line faults only"),
    ],
)
def test_bad_requests_are_one_sentence(tmp_path, calls, arguments, words):
    error = run("pipeline", *arguments, "--home", str(tmp_path / "home")).exception
    assert isinstance(error, ZooError)
    assert not isinstance(error, UsageError) or error.exit_code == 2
    assert words in str(error)
    assert calls == []


def test_compare_prints_head_and_strict_ode_side_by_side(home, rows, calls):
    run_pipeline(Session(home), rows, PLAN, Serial())
    result = run("compare", LINE, "--alpha", "0.9", "--json", "--home", str(home.path))
    (entry,) = json.loads(result.stdout)
    assert entry["status"] == entry["strict_status"] == "finite"
    assert entry["error"] == pytest.approx(abs(entry["cct"] - entry["strict"]))
    assert "right-censored  strict ODE: right-censored" in run("compare", BUS, "--home", str(home.path)).stdout


def test_heads_of_other_code_are_made_again_and_that_is_said(home, rows, calls, monkeypatch):
    run_pipeline(Session(home), rows, PLAN, Serial())
    calls.clear()
    monkeypatch.setattr("zoo.heads.pipeline.code_digest", lambda packages=(): "other-code")
    said = []
    run_pipeline(Session(home, say=said.append), rows, PLAN, Serial())
    assert calls == ["train", BUS, LINE]
    assert [sentence for sentence in said if "not reused" in sentence] == [
        "An earlier checkpoint of this request was trained by other code and is not reused.",
        "2 earlier results were found by other code and are not reused.",
    ]
