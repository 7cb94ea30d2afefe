from __future__ import annotations

import pytest

from phasetrack.core.key import Level, billions, family, key_of_args, likeness, model_name, size_class

ARGS = {
    "model_path": "/srv/models/Qwen3-32B",
    "tp_size": 4,
    "device": "cuda",
    "load_format": "auto",
    "cuda_graph_max_bs": 256,
}


def test_a_boot_of_another_engine_is_like_in_nothing():
    ours, theirs = key_of_args(ARGS, engine="sglang"), key_of_args(ARGS, engine="vllm")
    assert ours == key_of_args(ARGS)
    assert likeness(ours, theirs) is likeness(theirs, ours) is Level.ANY
    assert likeness(theirs, key_of_args(ARGS, engine="vllm")) is Level.EXACT


def key(gpu: str = "", gpu_bytes: int | None = None, **changed: object):
    return key_of_args({**ARGS, **changed}, gpu=gpu, gpu_bytes=gpu_bytes)


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({}, Level.EXACT),
        ({"cuda_graph_max_bs": 160}, Level.RELEASE),
        ({"a_new_argument": None}, Level.RELEASE),  # another release has other arguments
        ({"model_path": "/mnt/nfs/Qwen3-32B"}, Level.EXACT),  # where the files lie is no part of a model
        ({"model_path": "Qwen/Qwen3-32B-FP8", "quantization": "fp8"}, Level.FAMILY),
        ({"dp_size": 2}, Level.FAMILY),
        ({"load_format": "runai_streamer"}, Level.FAMILY),
        ({"tp_size": 8}, Level.MODEL),
        ({"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/srv/draft"}, Level.MODEL),
        ({"model_path": "/srv/models/gemma-3-27b-it"}, Level.SIZE),
        ({"model_path": "/srv/models/Llama-3.1-8B"}, Level.ANY),
        ({"device": "npu"}, Level.ANY),
    ],
)
def test_boots_are_alike_by_what_makes_them_take_as_long(changed, level):
    if level is Level.ANY and "device" in changed:
        changed = {**changed, "model_path": "/srv/models/Qwen3-8B"}
    assert likeness(key(), key(**changed)) is level


def test_another_gpu_makes_boots_alike_in_size_at_most():
    assert likeness(key(gpu="NVIDIA H200"), key(gpu="NVIDIA H100")) is Level.SIZE
    assert likeness(key(gpu_bytes=149 << 30), key(gpu_bytes=85 << 30)) is Level.SIZE
    assert likeness(key(gpu="NVIDIA H200"), key()) is Level.EXACT
    assert likeness(key(), key(device="npu")) is Level.SIZE  # before a line has told how much memory is free
    small = key(model_path="/srv/models/Llama-3.1-8B", gpu="NVIDIA H200")
    assert likeness(key(gpu="NVIDIA H200"), small) is Level.MACHINE


def test_a_worker_node_is_no_like_boot_of_the_first_node():
    head, worker = key(nnodes=2, node_rank=0), key(nnodes=2, node_rank=1)
    assert likeness(head, worker) is Level.FAMILY


def test_a_model_has_its_own_name_wherever_its_files_lie():
    hub = "/root/.cache/huggingface/hub/models--Qwen--Qwen3-32B/snapshots/9216db5781bf21249d130ec9da846c4624c16137"
    assert model_name({"model_path": hub}) == ("Qwen3-32B", "9216db5781bf")
    assert model_name({"model_path": "Qwen/Qwen3-32B", "revision": "main"}) == ("Qwen3-32B", "main")
    assert model_name({"model_path": "/srv/models/Qwen3-32B/"}) == ("Qwen3-32B", "")
    assert family("Qwen3-32B-Instruct-FP8") == family("qwen3_32b") == "qwen3-32b"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen3-235B-A22B", 235),
        ("Mixtral-8x7B-v0.1", 56),
        ("Qwen2.5-1.5B", 1.5),
        ("DeepSeek-R1-0528", 671),
        ("Meta-Llama-3.1-8B-Instruct", 8),
        ("my-finetune", None),
        ("b200-test", None),
    ],
)
def test_a_name_tells_a_models_size_where_it_holds_one(name, size):
    assert billions({"model_path": f"/m/{name}"}) == size


def test_where_a_name_tells_no_size_the_cards_do_and_then_the_weights():
    args = {"model_path": "/m/my-finetune", "tp_size": 2}
    assert size_class(args) == "medium"
    assert size_class(args, 4 << 30) == "small"
    assert size_class({**args, "tp_size": 16}) == "huge"
