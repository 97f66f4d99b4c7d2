"""Which embedder `recollect local` uses: one for every language, unless its operator chose another."""

from pathlib import Path

from recollect_local.data_folder import NEW_EMBEDDER, DataFolder


def test_a_new_folder_gets_the_embedder_for_every_language_and_keeps_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert folder.embedder() == NEW_EMBEDDER == "multilingual"
    (tmp_path / "api-key").write_text("rcl_agent_…\n")
    assert DataFolder(tmp_path).embedder() == NEW_EMBEDDER


def test_an_operator_may_change_it_once_the_graphs_are_reembedded(tmp_path: Path) -> None:
    DataFolder(tmp_path).embedder()
    (tmp_path / "embedder").write_text("wordllama\n")
    assert DataFolder(tmp_path).embedder() == "wordllama"
