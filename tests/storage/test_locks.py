"""Claims on work: one process at a time, and none that outlives its process."""

import subprocess
import sys
from pathlib import Path

from freewalk.storage.locks import claim, holder

HOLD = "import sys; from pathlib import Path; from freewalk.storage.locks import claim; "
HOLD += "claim(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def test_one_process_at_a_time_and_none_after_its_death(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert claim(path) is None
        assert holder(path).startswith(f"{process.pid} on ")
        process.kill()
    assert holder(path) == ""
    lock = claim(path)
    assert lock is not None
    lock.release()
    lock.release()
    assert not path.exists()
