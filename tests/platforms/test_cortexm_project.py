"""What users take into projects of their own: a library without board code, a firmware, kernels of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from threading import Timer
from xml.etree import ElementTree

import numpy as np
import pytest
from onnx import TensorProto

from onnx_models import model, node, value, write
from tilewright.api import Options, compile_model, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.interpret import interpret
from tilewright.machine.target import load_platform

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "examples" / "models"


def project(folder: Path, network: str, variant: str, name: str = "network") -> Path:
    compile_model(MODELS / f"{network}.onnx", Options(platform=variant, name=name)).write(folder)
    return folder


def done(*command: str | Path, folder: Path) -> str:
    ran = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_board_code_is_apart(tmp_path: Path) -> None:
    project(tmp_path, "tiny_cnn_int8", "cortex-m4")
    top = {path.name for path in tmp_path.iterdir()}
    built = {"CMakeLists.txt", "Makefile", "Tilewright.network.pdsc", "board", "include", "source"}
    assert top == {*built, ".network.tilewright.json"}
    assert [path.name for path in (tmp_path / "include").iterdir()] == ["network.h"]
    for path in (tmp_path / "source").iterdir():
        assert path.suffix in (".c", ".h", ".S", ".bin")
        assert b"0xE000" not in path.read_bytes(), "a register of the core"
    done("make", "-s", folder=tmp_path)
    symbols = done("arm-none-eabi-nm", "-u", "libnetwork.a", folder=tmp_path)
    outside = {line.split()[-1] for line in symbols.splitlines() if " U " in line}
    assert outside <= {"memcpy", "memset", "memmove", "network_weights", "expf", "sqrtf", "roundf", "rintf"}


def test_make_builds_the_program_for_the_board(tmp_path: Path) -> None:
    project(tmp_path, "tiny_cnn_int8", "cortex-m7")
    done("make", "-s", "board", folder=tmp_path)
    assert (tmp_path / "network").is_file()
    done("make", "-s", "clean", folder=tmp_path)
    assert not list(tmp_path.rglob("*.o"))


def test_pack_lists_every_source(tmp_path: Path) -> None:
    project(tmp_path, "tiny_lm", "cortex-m4")
    listed = {found.attrib["name"] for found in ElementTree.parse(tmp_path / "Tilewright.network.pdsc").iter("file")}
    sources = {f"source/{path.name}" for path in (tmp_path / "source").iterdir() if path.suffix in (".c", ".S")}
    assert sources <= listed
    assert all((tmp_path / name).exists() for name in listed)


@pytest.mark.sample(every=3, by=("variant",))
@pytest.mark.parametrize("level", ["-Os", "-O2", "-O3"])
@pytest.mark.parametrize("variant", ["cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_no_warning_at_any_level(variant: str, level: str, tmp_path: Path) -> None:
    for network in ("tiny_cnn_int8", "tiny_cnn"):
        folder = project(tmp_path / network, network, variant)
        machine = [f for f in load_platform(variant).build["flags"].split() if f.startswith(("-mcpu", "-mf"))]
        sources = sorted((folder / "source").glob("*.c"))
        command = ["arm-none-eabi-gcc", "-mthumb", *machine, *STRICT, level, "-Iinclude", "-c"]
        done(*command, *sources, folder=folder)


def test_firmware(tmp_path: Path) -> None:
    """The example prints a line for each inference over its UART: what the network gives elsewhere, too."""
    shutil.copytree(ROOT / "examples" / "cortexm", tmp_path / "firmware")
    folder = tmp_path / "firmware"
    project(folder / "network", "tiny_cnn_int8", "cortex-m4", "tiny")
    done("cmake", "-S", ".", "-B", "build", "-DCMAKE_TOOLCHAIN_FILE=arm-none-eabi.cmake", folder=folder)
    done("cmake", "--build", "build", folder=folder)
    command = ["qemu-system-arm", "-M", "mps2-an386", "-kernel", "build/firmware", "-serial", "stdio"]
    command += ["-display", "none", "-monitor", "none", "-icount", "shift=0"]
    lines: list[str] = []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as emulator:
        assert emulator.stdout is not None
        watch = Timer(300, emulator.kill)
        watch.start()
        for line in emulator.stdout:
            if line == "done\n" or len(lines) > 10:
                break
            lines.append(line)
        watch.cancel()
        emulator.terminate()
    assert len(lines) == 3
    for number, line in enumerate(lines):
        picture = ((np.arange(3072) * 7 + number * 31) % 256).astype(np.float32) / 128 - 1
        (scores,) = run_model(MODELS / "tiny_cnn_int8.onnx", inputs=[picture.reshape(1, 3, 32, 32)]).outputs
        best = int(np.argmax(scores))
        score = int(np.float32(scores.reshape(-1)[best]) * np.float32(1000) + np.float32(0.5))
        assert line.startswith(f"inference {number}: class {best}, score {score}/1000, "), line


# Kernels of a library that Tilewright does not know: here a stand-in with the interface of CMSIS-NN and CMSIS-DSP.

LIBRARY_HEADER = """
#include <stdint.h>
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct { cmsis_nn_tile stride, padding; cmsis_nn_activation activation; } cmsis_nn_pool_params;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef int arm_cmsis_nn_status;
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
                                    const cmsis_nn_dims *input_dims, const int8_t *src,
                                    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *dst);
void arm_dot_prod_q7(const int8_t *a, const int8_t *b, uint32_t count, int32_t *result);
"""
LIBRARY = """
#include "arm_nnfunctions.h"
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                    const cmsis_nn_dims *in, const int8_t *src, const cmsis_nn_dims *filter,
                                    const cmsis_nn_dims *out, int8_t *dst) {
    (void)ctx;
    for (int32_t y = 0; y < out->h; y++)
        for (int32_t x = 0; x < out->w; x++)
            for (int32_t c = 0; c < in->c; c++) {
                int32_t best = p->activation.min;
                for (int32_t ky = 0; ky < filter->h; ky++)
                    for (int32_t kx = 0; kx < filter->w; kx++) {
                        const int32_t iy = y * p->stride.h - p->padding.h + ky;
                        const int32_t ix = x * p->stride.w - p->padding.w + kx;
                        if (iy >= 0 && iy < in->h && ix >= 0 && ix < in->w) {
                            const int8_t found = src[(iy * in->w + ix) * in->c + c];
                            best = found > best ? found : best;
                        }
                    }
                *dst++ = (int8_t)(best < p->activation.max ? best : p->activation.max);
            }
    return 0;
}
void arm_dot_prod_q7(const int8_t *a, const int8_t *b, uint32_t count, int32_t *result) {
    *result = 0;
    for (uint32_t i = 0; i < count; i++)
        *result += a[i] * b[i];
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    for name in ("arm_nnfunctions.h", "arm_math.h"):
        (folder / name).write_text(f"#ifndef LIBRARY\n#define LIBRARY\n{LIBRARY_HEADER}#endif\n")
    (folder / "library.c").write_text(LIBRARY)
    flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-O2"]
    done("arm-none-eabi-gcc", *flags, "-c", "library.c", folder=folder)
    done("arm-none-eabi-ar", "rcs", "libarm.a", "library.o", folder=folder)
    return folder


def test_kernels_of_a_library(library: Path, tmp_path: Path) -> None:
    """The folder of wrappers that the documentation shows is all that it takes, also where inputs have a zero point."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.integers(-20, 20, (72, 6)).astype(np.int8), "zero": np.asarray(3, np.int8)}
    nodes = [
        node("MaxPool", "x", "pooled", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Flatten", "pooled", "flat"),
        node("MatMulInteger", "flat w", "y"),
        node("MatMulInteger", "flat w zero", "z"),
    ]
    ports = [value("x", (1, 8, 6, 6), TensorProto.INT8)]
    path = write(tmp_path / "n.onnx", model(nodes, ports, ["y", "z"], constants=weights))
    wrappers = ROOT / "examples" / "cortexm" / "kernels"
    options = Options(platform="cortex-m4", kernels=(wrappers,))
    inputs = [rng.integers(-128, 128, (1, 8, 6, 6)).astype(np.int8)]
    flags = (f"-I{library}", str(library / "libarm.a"))
    ran = run_model(path, options, inputs=inputs, flags=flags)
    used = [choice.kernel.where for choice in ran.compiled.plan.choices if choice.kernel]
    assert used.count("kernels/cmsis_max_pool_s8.c") == 1
    assert used.count("kernels/cmsis_dot_s8.c") == 2
    for found, expected in zip(ran.outputs, interpret(ran.compiled.source, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
