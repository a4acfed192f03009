"""The page of `tilewright diff`."""

from __future__ import annotations

from tilewright.report.diff_page import LayerError, render_diff

LAYERS = (
    LayerError("first", "Conv+Relu", "conv2d_f32", 1e-7, 2e-7, wrong=False),
    LayerError("<b>second</b>", "Add", "loop nest", None, 0.5, wrong=True),
    LayerError("third", "Softmax", "loop nest", None, float("inf"), wrong=False),
    LayerError("fourth", "Neg", "loop nest", None, 0.0, wrong=False),
)


def test_layers_findings_and_pictures() -> None:
    page = render_diff("net", "Run by somebody.", LAYERS, [["It is <here>", "because"]])
    assert "It is &lt;here&gt;" in page
    assert "<li>because</li>" in page
    assert "<b>second</b>" not in page
    assert page.count("<b>wrong</b>") == 1
    assert page.count("<svg") == 2
    assert page.count("<circle") == 1 + 3
    assert "{{" not in page


def test_nothing_found_and_nothing_known() -> None:
    page = render_diff("net", "", [LayerError("only", "Neg", "loop nest", None, None, wrong=False)], [])
    assert "No layer differs by more than rounding." in page
    assert "<svg" not in page
