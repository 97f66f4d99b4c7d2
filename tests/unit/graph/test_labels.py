"""What a memory says of itself beside its text: the labels by whose words it is found."""

from recollect.graph.passages.labels import MAX_LABEL, MAX_LABELS, memory_labels


def test_labels_are_the_kind_the_tags_the_source_and_plain_values_of_metadata() -> None:
    metadata = {
        "pr": 4711,
        "done": True,
        "rate": 0.5,
        "who": "Ada",
        "of": {"deep": "no"},
        "names": ["x", 7, None, ["y"]],
    }
    assert memory_labels("decision", ["a", ""], "wiki", metadata) == ["decision", "a", "wiki", "4711", "Ada", "x", "7"]
    assert memory_labels(None, None, None, None) == []


def test_labels_are_bounded_in_number_and_length() -> None:
    assert memory_labels("k", [f"tag {n}" for n in range(100)], "s", {"a": "b"}) == [
        "k",
        *(f"tag {n}" for n in range(MAX_LABELS - 1)),
    ]
    assert memory_labels("k" * 1_000, (), None, {}) == ["k" * MAX_LABEL]
