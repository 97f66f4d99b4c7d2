"""Which embedder `recollect local` uses: one for every language, where it has no vectors of another."""

from pathlib import Path

from recollect_local.data_folder import FORMER_EMBEDDER, NEW_EMBEDDER, DataFolder


def test_a_new_folder_gets_the_embedder_for_every_language_and_keeps_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert folder.embedder() == NEW_EMBEDDER == "multilingual"
    (tmp_path / "api-key").write_text("rcl_agent_…\n")
    assert DataFolder(tmp_path).embedder() == NEW_EMBEDDER


def test_a_folder_of_before_keeps_the_embedder_of_its_vectors(tmp_path: Path) -> None:
    (tmp_path / "api-key").write_text("rcl_agent_…\n")
    assert DataFolder(tmp_path).embedder() == FORMER_EMBEDDER == "minilm"


def test_an_operator_may_change_it_once_the_graphs_are_reembedded(tmp_path: Path) -> None:
    DataFolder(tmp_path).embedder()
    (tmp_path / "embedder").write_text("wordllama\n")
    assert DataFolder(tmp_path).embedder() == "wordllama"
