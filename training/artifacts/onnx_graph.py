"""ONNX graphs written node by node, so that exporting needs neither torch nor a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

# Old enough for the runtimes of recent years; these operators have not changed since.
_OPSET, _IR_VERSION = 17, 8


class OnnxGraph:
    """Nodes in order of computation. Methods of subclasses add nodes and return the name of their output."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, value: Any) -> str:
        """Add an array under a name of its own, and return the name."""
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, gives: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        gives = gives or f"x{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [gives], **attributes))
        return gives

    def model(
        self,
        name: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        version: int,
        about: str,
        facts: Mapping[str, str],
    ) -> bytes:
        """Return the graph as the bytes of a checked model, with `facts` as its metadata."""
        model = helper.make_model(
            helper.make_graph(self._nodes, name, inputs, outputs, self._constants),
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="starling",
            model_version=version,
            doc_string=about,
        )
        if facts:
            helper.set_model_props(model, dict(facts))
        onnx.checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data
