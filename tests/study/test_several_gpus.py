"""A machine with several GPUs, simulated: which process trains on which, and how many runs train together."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from study.gpu_notes import NotesGPUs, gpus_by_process
from study.tiny import tiny_spec
from unweave.study import StudyFolder
from unweave.study.engines import local
from unweave.study.engines.local import Post, posts_for, run_local
from unweave.study.planner import plan_of, population_size
from unweave.study.work import TrainAndScore
from unweave.training.trainer import use_device

GIB = 1 << 30


def simulate(patch: pytest.MonkeyPatch, memories: list[int], cores: int = 16) -> None:
    """Let torch report GPUs with so much memory, without any CUDA_VISIBLE_DEVICES."""
    patch.setattr(torch.cuda, "is_available", lambda: bool(memories))
    patch.setattr(torch.cuda, "device_count", lambda: len(memories))
    patch.setattr(
        torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=memories[number])
    )
    patch.setattr(local, "cores", lambda: cores)
    patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("gpus", "visible", "device", "expected"),
    [
        (4, None, "auto", ["0", "1", "2", "3"]),
        (4, None, "cuda", ["0", "1", "2", "3"]),
        (4, None, "cuda:2", ["2"]),
        (2, "5,3", "auto", ["5", "3"]),
        (2, "5, 3", "cuda:1", ["3"]),
        (1, "GPU-8932f937-d72c", "auto", ["GPU-8932f937-d72c"]),
        (1, "1", "cuda:0", ["1"]),
    ],
)
def test_each_gpu_has_one_process_that_trains(
    gpus: int, visible: str | None, device: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(monkeypatch, [24 * GIB] * gpus, cores=16)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    posts = posts_for(TrainAndScore(device))
    trains, measures = posts[: len(expected)], posts[len(expected) :]
    assert [(post.kinds, post.gpu) for post in trains] == [(("train",), gpu) for gpu in expected]
    # The other cores measure, and encode stochastic data on the GPUs in turn.
    assert len(measures) == 16 - len(expected)
    assert [post.gpu for post in measures] == [expected[i % len(expected)] for i in range(len(measures))]
    assert {(post.kinds, post.threads) for post in measures} == {(("evaluate",), 1)}
    # A process sees one GPU only: for it, this is "cuda".
    assert all(post.work == TrainAndScore("cuda", hand_over=True) for post in posts)


def test_without_a_gpu_all_processes_do_both(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, [], cores=8)
    assert posts_for(TrainAndScore()) == [Post(("evaluate", "train"), TrainAndScore(jobs=2), 2)] * 4
    simulate(monkeypatch, [24 * GIB], cores=8)
    assert posts_for(TrainAndScore("cpu"), workers=8)[0] == Post(
        ("evaluate", "train"), TrainAndScore("cpu"), 1
    )


def test_processes_see_their_own_gpu_only(tmp_path: Path) -> None:
    study, diary = StudyFolder.create(tmp_path / "s", tiny_spec("0-3")), tmp_path / "diary"
    work = NotesGPUs(diary, seconds=0.3)
    run_local(
        study,
        plan_of(study, 1),
        [*(Post(("train",), work, 1, gpu) for gpu in ("2", "3")), Post(("evaluate",), work, 1, "3")],
    )
    assert sorted(gpus_by_process(diary, "train").values()) == ["2", "3"]
    assert list(gpus_by_process(diary, "evaluate").values()) == ["3"]


@pytest.mark.parametrize(
    ("memories", "device", "expected"),
    [
        ([8 * GIB], "cuda", 12),
        ([12 * GIB], "cuda", 19),
        ([16 * GIB], "cuda", 26),
        ([24 * GIB], "cuda", 41),
        ([80 * GIB], "cuda", 128),
        ([141 * GIB], "cuda", 128),
        ([24 * GIB, 8 * GIB], "cuda", 12),  # both take units of the same study
        ([24 * GIB, 8 * GIB], "cuda:0", 41),
        ([24 * GIB, 8 * GIB], "cuda:1", 12),
        ([1 * GIB], "cuda", 1),
        ([24 * GIB], "cpu", 4),
    ],
)
def test_memory_decides_how_many_runs_train_together(
    memories: list[int], device: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(monkeypatch, memories)
    assert population_size(torch.device(device)) == expected


def test_a_gpu_with_a_number_becomes_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton launches kernels on the current GPU, and CUDA graphs are recorded on it."""
    simulate(monkeypatch, [24 * GIB] * 2)
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    for name in ("cuda:1", "cuda", "auto", "cpu"):
        use_device(name)
    assert chosen == [torch.device("cuda:1")]
