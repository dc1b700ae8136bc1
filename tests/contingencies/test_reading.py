"""A folder of contingencies: each system is read once, all mistakes are told, families are compiled together."""

import re

import pytest

from contingencies import library, operators
from contingencies.errors import NotFoundError, SpecError
from contingencies.families import generate_family
from contingencies.library import load_contingency, load_system
from contingencies.reading import check_physics, read_contingencies
from contingencies.recipes import Recipe
from contingencies.spec_files import write_contingencies
from registry.home import Home


@pytest.fixture
def members():
    return generate_family(load_system("ieee39"), Recipe("line", "remove-line")).members


def test_a_folder_reads_its_system_once_and_shares_it(tmp_path, members, monkeypatch):
    write_contingencies(members, tmp_path)
    read = []
    original = library._system_file
    monkeypatch.setattr(library, "_system_file", lambda path: read.append(path) or original(path))
    counted = []
    contingencies = read_contingencies([str(tmp_path)], lambda done, total: counted.append((done, total)))
    assert len(read) == 1
    assert len({id(contingency.system) for contingency in contingencies}) == 1
    assert counted[-1] == (len(members), len(members))
    assert {c.sha256 for c in contingencies} == {member.sha256 for member in members}


def test_a_system_that_cannot_be_read_is_told_once_and_read_once(tmp_path, members, monkeypatch):
    write_contingencies(members[:3], tmp_path)
    for path in tmp_path.iterdir():
        path.write_text(re.sub(r"^system: .*$", "system: grid.yaml", path.read_text(), flags=re.M))
    read = []
    original = library._system_file
    monkeypatch.setattr(library, "_system_file", lambda path: read.append(path) or original(path))
    with pytest.raises((SpecError, NotFoundError), match=r"grid\.yaml"):
        read_contingencies([str(tmp_path)])
    assert len(read) == 1


def test_the_physics_of_a_family_is_checked_with_shared_solves(members, monkeypatch):
    compiled = []
    original = operators.compile_family

    def compile_family(family, reduction):
        compiled.append(len(family))
        return original(family, reduction)

    monkeypatch.setattr(operators, "compile_family", compile_family)
    check_physics([*members, load_contingency("ieee9-mech-g2-restore")])
    assert compiled == [len(members), 1]


def test_mistakes_of_several_members_are_told_together(members):
    def wrong(member, line):
        fault = member.spec.fault.model_copy(update={"line": line})
        return library.Contingency(member.spec.model_copy(update={"fault": fault}), member.system)

    with pytest.raises(SpecError) as caught:
        check_physics([wrong(members[0], (1, 888)), members[1], wrong(members[2], (1, 999))])
    assert len(caught.value.sentences) == 2
    assert "888" in caught.value.sentences[0] and "999" in caught.value.sentences[1]


def test_a_home_hands_out_contingencies_with_one_shared_system(tmp_path, members):
    with Home.open(tmp_path) as home:
        rows = [registered.row for registered in home.register(members)]
        contingencies = home.contingencies(rows)
        assert [c.sha256 for c in contingencies] == [member.sha256 for member in members]
        assert len({id(contingency.system) for contingency in contingencies}) == 1
        assert home.contingency(rows[0]).system is contingencies[0].system
