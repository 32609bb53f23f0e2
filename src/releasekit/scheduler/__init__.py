"""The public face: a dependency-triggered scheduler that needs only asyncio and a graph."""

from releasekit.scheduler.engine import Scheduler
from releasekit.scheduler.frontier import Task
from releasekit.scheduler.result import Observer, RunResult

__all__ = ["Observer", "RunResult", "Scheduler", "Task"]
