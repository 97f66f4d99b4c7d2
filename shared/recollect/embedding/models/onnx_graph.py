"""Graphs for ONNX Runtime that are built in memory from the numbers of a package."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]

OURS = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds to those of ONNX."""

Shape = Sequence[int | str]


class OnnxGraphBuilder:
    """A graph under construction: operators in order, each named by its one result."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Append an operator; the name of its result."""
        result = f"value_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [result], domain=domain, **attributes))
        return result

    def constant(self, array: Array) -> str:
        """Append a constant; its name."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def model(self, name: str, inputs: Sequence[tuple[str, int, Shape]], **results: tuple[str, Shape]) -> bytes:
        """The finished model. `inputs`: name, type and shape of each; `results`: value, float32, and shape of each."""
        for result, (value, _) in results.items():
            self._nodes.append(helper.make_node("Identity", [value], [result]))
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info(*given) for given in inputs],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape) for result, (_, shape) in results.items()],
            self._constants,
        )
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(OURS, 1)]
        model: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
        return model
