"""Three steps of datatrove that remove near-duplicates: every task writes its documents, one task decides, every task drops.

    python datatrove_steps.py FOLDER-OF-JSONL OUTPUT

Where datatrove's own steps hash into buckets, these find every pair at or above the threshold, and each document that is dropped resembles
one that is kept. The second step runs on one machine, in the memory that it is given; only texts go to it.
"""

import json
import sys
from pathlib import Path

from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

import lookalike as lk


class WriteDocuments(PipelineStep):
    """Writes the texts of each task to a file of its own."""

    type = "lookalike"
    name = "write documents"

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = Path(folder)

    def run(self, data, rank: int = 0, world_size: int = 1):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / f"{rank:05d}.jsonl", "w", encoding="utf-8") as lines:
            for number, document in enumerate(data):
                # By task and number: ids of datatrove need not be unique.
                lines.write(json.dumps({"id": f"{rank}/{number}", "text": document.text}) + "\n")
                yield document


class DecideDuplicates(PipelineStep):
    """Decides over all documents which are dropped. Runs in one task."""

    type = "lookalike"
    name = "decide duplicates"

    def __init__(self, folder: str, results: str, **options) -> None:
        super().__init__()
        self.folder, self.results, self.options = folder, results, options

    def run(self, data, rank: int = 0, world_size: int = 1):
        if rank == 0:
            result = lk.dedup(Path(self.folder), text="text", id="id", progress=False, **self.options)
            result.save(self.results, overwrite=True)
            for name in ("kept", "exact", "near"):
                self.stat_update(name, value=result.counts[name])
        yield from data or ()


class DropDuplicates(PipelineStep):
    """Reads the documents of each task again, in the same order, and lets those pass that are kept."""

    type = "lookalike"
    name = "drop duplicates"

    def __init__(self, results: str) -> None:
        super().__init__()
        self.results = Path(results)

    def run(self, data, rank: int = 0, world_size: int = 1):
        dropped = self._dropped(rank)
        for number, document in enumerate(data):
            survivor = dropped.get(number)
            if survivor is None:
                yield document
            else:
                self.stat_update("dropped")

    def _dropped(self, rank: int) -> dict[int, str]:
        """Numbers of the documents of this task that are dropped, with the ids of their survivors."""
        dropped = {}
        with open(self.results / "clusters.jsonl", encoding="utf-8") as lines:
            for line in lines:
                cluster = json.loads(line)
                for member in cluster["members"]:
                    task, _, number = member["id"].partition("/")
                    if int(task) == rank:
                        dropped[int(number)] = cluster["survivor"]
        return dropped


def pipeline(source: str, output: str, tasks: int = 2, threshold: float = 0.8) -> list[LocalPipelineExecutor]:
    work = Path(output, "work")
    read = LocalPipelineExecutor(
        [JsonlReader(source), WriteDocuments(str(work / "documents"))], tasks=tasks, logging_dir=str(work / "logs-read")
    )
    decide = LocalPipelineExecutor(
        [DecideDuplicates(str(work / "documents"), str(work / "results"), threshold=threshold, memory="1G")],
        tasks=1,
        logging_dir=str(work / "logs-decide"),
        depends=read,
    )
    drop = LocalPipelineExecutor(
        [JsonlReader(source), DropDuplicates(str(work / "results")), JsonlWriter(str(Path(output, "kept")), compression=None)],
        tasks=tasks,
        logging_dir=str(work / "logs-drop"),
        depends=decide,
    )
    return [read, decide, drop]


if __name__ == "__main__":
    # Each waits for the one that it depends on.
    pipeline(*sys.argv[1:])[-1].run()
