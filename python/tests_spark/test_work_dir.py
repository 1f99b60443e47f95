"""The folder of a job: stages shared by several drivers, and stages whose files were lost."""

from __future__ import annotations

import shutil
import threading
from types import SimpleNamespace

import pytest
from conftest import found_lines
from test_dedup import SCHEMA, pages

import lookalike.spark as lks
from lookalike.spark._cluster import Cluster
from lookalike.spark._work_dir import OtherJob, WorkDir, ensure_no_file


def test_folders_of_the_cluster_were_looked_up_on_the_driver(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    # A name that is too long cannot be looked up.
    for folder in [str(file), str(file / "below"), str(tmp_path / ("x" * 300) / "job")]:
        ensure_no_file(SimpleNamespace(is_local=False), "work_dir", folder)
    ensure_no_file(SimpleNamespace(is_local=True), "work_dir", folder)
    with pytest.raises(NotADirectoryError, match=f"{file} is a file"):
        ensure_no_file(SimpleNamespace(is_local=True), "work_dir", str(file / "below"))


def test_a_driver_replaced_the_stage_that_another_had_read(spark, tmp_path):
    cluster = Cluster(spark)
    first, second = (WorkDir(cluster, tmp_path, {"kind": "test"}) for _ in range(2))
    made = []

    def meanwhile():
        made.append(first.stage("numbers", "id long", lambda: spark.range(3)))
        return spark.range(5)

    own = second.stage("numbers", "id long", meanwhile)
    assert (made[0].rows.count(), own.rows.count()) == (3, 5)
    # Later stages belong to the version that they were made from.
    first.stage("sum", "id long", lambda: made[0].rows.selectExpr("sum(id) as id"))
    later = WorkDir(cluster, tmp_path, {"kind": "test"})
    numbers = later.stage("numbers", "id long", lambda: spark.range(7))
    total = later.stage("sum", "id long", lambda: spark.range(0))
    assert (numbers.is_new, total.is_new) == (False, False)
    assert [row["id"] for row in total.rows.collect()] == [sum(row["id"] for row in numbers.rows.collect())] == [3]


def test_two_drivers_of_one_job_got_other_results(spark, frame_of, tmp_path):
    rows = pages(150)
    frame = frame_of(rows, SCHEMA)
    options = {"id": "id", "threshold": 0.6, "shingle": "words:2"}
    expected = found_lines(lks.dedup(frame, **options))
    found = []
    drivers = [
        threading.Thread(target=lambda: found.append(found_lines(lks.dedup(frame, work_dir=tmp_path / "job", **options)))) for _ in range(2)
    ]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    found.append(found_lines(lks.dedup(frame, work_dir=tmp_path / "job", **options)))
    assert found == [expected] * 3


def test_a_lost_file_of_a_stage_went_unnoticed(spark, tmp_path):
    cluster = Cluster(spark)

    def stage(name="numbers"):
        return WorkDir(cluster, tmp_path, {"kind": "test"}).stage(name, "id long", lambda: spark.range(4, numPartitions=2))

    stage()
    assert not stage().is_new
    next((tmp_path / "numbers").glob("*/part-*")).unlink()
    again = stage()
    assert again.is_new
    assert again.rows.count() == 4
    for folder in (tmp_path / "numbers").iterdir():
        shutil.rmtree(folder)
    assert stage().rows.count() == 4


def test_stages_of_another_job_are_refused_or_discarded_and_nothing_else_is(spark, tmp_path):
    cluster = Cluster(spark)
    (tmp_path / "notes.txt").write_text("mine")
    WorkDir(cluster, tmp_path, {"kind": "test"}).stage("numbers", "id long", lambda: spark.range(4))
    with pytest.raises(OtherJob, match="whose kind is 'test'"):
        WorkDir(cluster, tmp_path, {"kind": "other", "against": False})
    WorkDir.discard(cluster, tmp_path)
    assert WorkDir(cluster, tmp_path, {"kind": "other"}).stage("numbers", "id long", lambda: spark.range(2)).rows.count() == 2
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_whose_name_spark_reads_as_a_pattern_is_refused(spark, tmp_path):
    with pytest.raises(ValueError, match=r"has \[ \] in its name"):
        WorkDir(Cluster(spark), tmp_path / "job[1]", {"kind": "test"})


def test_a_folder_that_is_a_file_ended_in_words_of_spark(spark, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    for folder in (file, f"file://{file}", file / "job"):
        with pytest.raises(NotADirectoryError, match="work_dir .*notes.txt is a file: name a folder"):
            WorkDir(Cluster(spark), folder, {"kind": "test"})
    assert file.read_text() == "mine"


def test_stages_of_a_folder_without_a_name_were_written_to_the_root(spark):
    for name in ("", "/"):
        with pytest.raises(ValueError, match="names no folder of its own"):
            WorkDir(Cluster(spark), name, {"kind": "test"})
