"""The description of the machine on which figures were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.machine import busy_sentence, describe_machine

if TYPE_CHECKING:
    from pathlib import Path


def test_machine_is_read_from_the_system(tmp_path: Path) -> None:
    """The processor and the memory are read from Linux's own files."""
    cpuinfo, meminfo = tmp_path / "cpuinfo", tmp_path / "meminfo"
    cpuinfo.write_text("processor: 0\nmodel name\t: A Processor\n")
    meminfo.write_text("MemTotal:       16000000 kB\nMemFree: 1 kB\n")
    machine = describe_machine(cpuinfo=cpuinfo, meminfo=meminfo)
    assert machine.cpu == "A Processor"
    assert machine.memory_gb == 16.0
    assert machine.cores >= 1


def test_silent_system_is_no_failure(tmp_path: Path) -> None:
    """If those files are absent, the machine is still described, with a memory of 0 GB."""
    machine = describe_machine(cpuinfo=tmp_path / "absent", meminfo=tmp_path / "absent")
    assert machine.cpu
    assert machine.memory_gb == 0.0


def test_busy_machine_is_remarked() -> None:
    """A load well above the number of cores gives a remark, because times mean little then. This process alone gives
    none.
    """
    assert busy_sentence(2.5, 2) is None
    told = busy_sentence(9.0, 2)
    assert told is not None
    assert "load 9.0 on 2 cores" in told
