"""Which embedder `recollect local` uses: the default when its folder was made, unless its operator chose another."""

from pathlib import Path

from recollect_local.data_folder import DataFolder


def test_a_new_folder_gets_the_default_and_keeps_it(tmp_path: Path) -> None:
    """A version with another default must not compare its vectors with those that are stored."""
    assert DataFolder(tmp_path).embedder(default="multilingual") == "multilingual"
    assert DataFolder(tmp_path).embedder(default="minilm") == "multilingual"


def test_an_operator_may_change_it_once_the_graphs_are_reembedded(tmp_path: Path) -> None:
    DataFolder(tmp_path).embedder(default="multilingual")
    (tmp_path / "embedder").write_text("wordllama\n")
    assert DataFolder(tmp_path).embedder(default="multilingual") == "wordllama"
