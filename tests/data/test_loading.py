import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.data.loading import load_batches
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, LTENetError, UsageError


class Numbers:
    """Item i is i itself; some make trouble."""

    def __init__(self, *, bad=-1, error=InputError, deadly=-1):
        self.bad, self.error, self.deadly = bad, error, deadly

    def draw(self, index):
        if index == self.bad:
            raise self.error(f"item {index} is bad")
        if index == self.deadly:
            os._exit(7)
        return index


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, message):
        super().__init__(message)
        self.trouble = lambda: None


class Environment:
    """Tells what a worker sees."""

    def draw(self, index):
        return os.getpid(), os.environ.get("OMP_NUM_THREADS"), "torch" in sys.modules


class Tetrahedra:
    """The smallest bodies there are."""

    def __init__(self):
        faces = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]], np.int32)
        same = np.arange(4, dtype=np.int32)
        zeros = np.zeros(4, np.int8)
        self.templates = {"t": Template("t", faces, same, zeros, zeros, same)}

    def species(self, template):
        return ("tetrahedron",)

    def draw(self, seed, index, *, template=None, category=None):
        vertices = np.random.default_rng([seed, index]).standard_normal((4, 3))
        return GeneratedBody(vertices.astype(np.float32), "still", "tetrahedron", "t")


def no_children():
    deadline = time.monotonic() + 5
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_come_in_order_from_any_start(workers):
    batches = load_batches(Numbers(), batch_size=3, start=5, stop=10, workers=workers)
    assert list(batches) == [[3 * b, 3 * b + 1, 3 * b + 2] for b in range(5, 10)]
    assert no_children()


@pytest.mark.slow
def test_training_pairs_do_not_depend_on_the_workers():
    config = PairConfig(points=(8, 16), by="area", pool=40)
    pairs = TrainingPairs(config, 2, generator=Tetrahedra())
    drawn = [
        list(load_batches(pairs, batch_size=4, start=1, stop=6, workers=workers))
        for workers in (0, 1, 2)
    ]
    for batches in drawn[1:]:
        for one, two in zip(drawn[0], batches, strict=True):
            for a, b in zip(one, two, strict=True):
                for name in a.__dataclass_fields__:
                    np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_an_endless_stream_ends_when_it_is_closed():
    batches = load_batches(Numbers(), batch_size=2, workers=2, prefetch=3)
    assert list(islice(batches, 12))[-1] == [22, 23]
    assert len(multiprocessing.active_children()) == 2
    batches.close()
    assert no_children()


def test_shards_partition_each_batch():
    shards = [
        list(load_batches(Numbers(), batch_size=5, stop=3, shard=shard, shards=2))
        for shard in range(2)
    ]
    assert shards[0] == [[0, 2, 4], [5, 7, 9], [10, 12, 14]]
    assert shards[1] == [[1, 3], [6, 8], [11, 13]]


def test_workers_have_one_thread_and_no_torch():
    before = dict(os.environ)
    batches = load_batches(Environment(), batch_size=1, stop=4, workers=2, prefetch=1)
    seen = [batch[0] for batch in batches]
    assert {threads for _, threads, _ in seen} == {"1"}
    assert not any(torch for _, _, torch in seen)
    assert len({process for process, *_ in seen}) == 2
    assert os.getpid() not in {process for process, *_ in seen}
    assert dict(os.environ) == before


def test_errors_in_workers_are_raised_here_after_the_good_batches():
    batches = load_batches(Numbers(bad=5), batch_size=2, workers=2)
    assert [next(batches), next(batches)] == [[0, 1], [2, 3]]
    with pytest.raises(InputError, match="item 5 is bad") as caught:
        next(batches)
    assert "test_loading.py" in str(caught.value.__cause__)
    assert no_children()


def test_errors_that_cannot_travel_are_told():
    batches = load_batches(Numbers(bad=0, error=Unpicklable), batch_size=2, workers=1)
    with pytest.raises(LTENetError, match="item 0 is bad"):
        next(batches)
    assert no_children()


def test_a_worker_that_dies_is_noticed():
    batches = load_batches(Numbers(deadly=2), batch_size=2, workers=1)
    assert next(batches) == [0, 1]
    with pytest.raises(LTENetError, match=r"got exit code 7 .*, expected .*; try freeing memory"):
        next(batches)
    assert no_children()


@pytest.mark.skipif(os.name != "posix", reason="interrupts by signal")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path, how):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, signal, time\n"
        "from ltenet.data.loading import load_batches\n"
        "class Processes:\n"
        "    def draw(self, index):\n"
        "        return os.getpid()\n"
        "if __name__ == '__main__':\n"
        # Programs started in the background may inherit that interrupts are ignored.
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    batches = load_batches(Processes(), batch_size=1, workers=1)\n"
        "    first = next(batches)[0]\n"
        # Announced inside the try: the interrupt may come at once.
        "    try:\n"
        "        print(first, flush=True)\n"
        "        for batch in batches:\n"
        "            time.sleep(0.05)\n"
        "    except KeyboardInterrupt:\n"
        "        batches.close()\n"
        "        print('closed', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        try:
            worker = int(parent.stdout.readline())
            parent.send_signal(how)
            rest, _ = parent.communicate(timeout=30)
        finally:
            parent.kill()
    assert rest == ("closed\n" if how == signal.SIGINT else "")
    deadline = time.monotonic() + 20
    while _runs(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(worker)


def _runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "got batch_size=0, expected at least 1; try"),
        ({"start": -1}, "got start=-1, expected at least 0"),
        ({"workers": -1}, "got workers=-1"),
        ({"prefetch": 0}, "got prefetch=0, expected at least 1"),
        ({"shard": -1}, "got shard=-1"),
        ({"shards": 0}, "got shards=0"),
        ({"shard": 2, "shards": 2}, "got shard 2 of 2 .*, expected shards from 0 .*; try a larger"),
        ({"shards": 5}, "shard 0 of 5 with batches of 4"),
    ],
)
def test_options_out_of_range_are_refused_at_once(options, message):
    with pytest.raises(UsageError, match=message):
        load_batches(Numbers(), **{"batch_size": 4, **options})
