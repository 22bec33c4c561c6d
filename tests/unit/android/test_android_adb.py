"""adb: which phone, what its shell gets, and what is said when it goes away."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from phonebit.android.adb import Adb
from phonebit.android.adb_process import find_adb
from phonebit.android.attached import choose_device
from phonebit.android.phone import Phone
from phonebit.android.pushing import phone_path, push_files
from phonebit.errors import DeviceError, InputError
from support.android_phones import PROPERTIES, FakePhones


@pytest.fixture
def phones(tmp_path: Path) -> FakePhones:
    return FakePhones(tmp_path)


@pytest.fixture
def adb(phones: FakePhones) -> Adb:
    phones.attach("R58M")
    return Adb(phones.adb, "R58M")


def test_adb_is_found_in_path_then_in_the_sdk(
    phones: FakePhones, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.delenv("ANDROID_HOME", raising=False)
    with pytest.raises(DeviceError, match="install Android's platform-tools"):
        find_adb()
    in_sdk = tmp_path / "sdk" / "platform-tools" / "adb"
    in_sdk.parent.mkdir(parents=True)
    in_sdk.symlink_to(phones.adb)
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path / "sdk"))
    assert find_adb() == in_sdk
    monkeypatch.setenv("PATH", f"{phones.adb.parent}:{os.defpath}")
    assert find_adb() == phones.adb
    assert find_adb(in_sdk) == in_sdk
    with pytest.raises(InputError, match="no program"):
        find_adb(tmp_path / "sdk")


def test_the_only_phone_needs_no_name(phones: FakePhones) -> None:
    phones.attach("R58M")
    assert choose_device(phones.adb) == "R58M"


def test_no_phone_is_an_error_that_lists_what_is_there(phones: FakePhones) -> None:
    with pytest.raises(DeviceError, match=r"got none.*USB debugging"):
        choose_device(phones.adb)
    phones.attach("R58M")
    with pytest.raises(DeviceError, match=r"expected OTHER, got R58M \(Pixel_8\)"):
        choose_device(phones.adb, "OTHER")


def test_several_phones_are_listed_and_one_can_be_named(phones: FakePhones) -> None:
    phones.attach("R58M")
    phones.attach("emulator-5554", model="sdk_phone", state="offline")
    with pytest.raises(DeviceError) as raised:
        choose_device(phones.adb)
    for text in ("R58M (Pixel_8)\n", "emulator-5554 (sdk_phone): offline\n", "--serial"):
        assert text in str(raised.value)
    assert choose_device(phones.adb, "R58M") == "R58M"


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("unauthorized", "unlock the phone and allow USB debugging"),
        ("offline", "unplug it"),
        ("no permissions (user in plugdev group); see [http://]", "udev rules"),
        ("recovery", "adb reboot"),
    ],
)
def test_a_phone_that_cannot_be_used_says_what_to_do(
    phones: FakePhones, state: str, remedy: str
) -> None:
    phones.attach("R58M", state=state)
    with pytest.raises(DeviceError, match=remedy):
        choose_device(phones.adb)


@pytest.mark.parametrize("text", ["a b", "$(touch x); `y` && z", "it's", '"', "*", "~", "a\nb", ""])
def test_programs_on_the_phone_get_their_arguments_as_they_are(adb: Adb, text: str) -> None:
    assert adb.ask(["printf", "%s|", "1", text]) == f"1|{text}|"


def test_shell_gives_code_output_and_messages_as_they_come(adb: Adb) -> None:
    seen: list[str] = []
    done = adb.shell(["sh", "-c", "echo out; echo one >&2; echo two >&2; exit 3"],
                     on_message=seen.append)  # fmt: skip
    assert (done.code, done.output, done.messages) == (3, "out\n", "one\ntwo")
    assert seen == ["one", "two"]


def test_ask_refuses_failures(adb: Adb) -> None:
    with pytest.raises(DeviceError, match=r"`ls /nowhere` failed with code 2.*No such file"):
        adb.ask(["ls", "/nowhere"])


def test_a_program_that_does_not_end_is_given_up(adb: Adb) -> None:
    start = time.monotonic()
    with pytest.raises(DeviceError, match=r"did not end within 0\.5 s"):
        adb.shell(["sleep", "60"], limit_s=0.5)
    assert time.monotonic() - start < 30


def test_a_lost_connection_is_told_from_a_failure(phones: FakePhones, adb: Adb) -> None:
    phones.attach("R58M", loses={"shell": "forever", "after": 2})
    with pytest.raises(DeviceError, match=r"connection to the device was lost: it is gone.*again"):
        adb.shell(["sh", "-c", ": forever; while true; do echo line >&2; sleep 0.01; done"])


def test_pull_leaves_the_old_file_where_it_fails(adb: Adb, tmp_path: Path) -> None:
    local = tmp_path / "results"
    local.write_text("old")
    with pytest.raises(DeviceError, match=r"adb pull failed.*stat"):
        adb.pull("/data/local/tmp/nothing", local)
    assert local.read_text() == "old"
    adb.shell(["sh", "-c", "echo new > /data/local/tmp/there"])
    adb.pull("/data/local/tmp/there", local)
    assert local.read_text() == "new\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adb", "results", "state"]


def test_files_that_the_phone_has_are_not_sent_again(
    phones: FakePhones, adb: Adb, tmp_path: Path
) -> None:
    files = {}
    for name in ("a.pbit", "b 'c'.pbit"):
        local = tmp_path / name
        local.write_bytes(name.encode() * 1000)
        files[phone_path(local)] = local
    first = push_files(adb, files)
    assert (len(first.sent), len(first.known), first.sent_bytes) == (2, 0, 6000 + 10000)
    assert push_files(adb, files).known == tuple(files)
    (tmp_path / "a.pbit").write_bytes(b"other")
    assert push_files(adb, files).sent == (phone_path(tmp_path / "a.pbit"),)
    assert len(phones.calls("push")) == 3


def test_a_file_that_was_cut_off_is_sent_again(
    phones: FakePhones, adb: Adb, tmp_path: Path
) -> None:
    local = tmp_path / "net.pbit"
    local.write_bytes(bytes(range(256)) * 100)
    root = phones.attach("R58M", loses={"push": "net.pbit"})
    with pytest.raises(DeviceError, match="connection to the device was lost"):
        push_files(adb, {phone_path(local): local})
    there = root / phone_path(local).lstrip("/")
    assert there.stat().st_size == 12800
    phones.attach("R58M", state="device", loses={})
    assert push_files(adb, {phone_path(local): local}).sent_bytes == 25600
    assert there.read_bytes() == local.read_bytes()


def test_many_files_take_several_short_commands(
    phones: FakePhones, adb: Adb, tmp_path: Path
) -> None:
    files = {}
    for index in range(24):
        local = tmp_path / f"{'layer' * 40}{index}.pbit"
        local.write_bytes(b"x")
        files[phone_path(local)] = local
    push_files(adb, files)
    assert len(push_files(adb, files).known) == 24
    asked = [command for [command] in phones.calls("shell") if command.startswith("sha256sum")]
    assert max(map(len, asked)) < 4096
    assert len(asked) > 2


def test_a_phone_without_sha256sum_gets_everything(
    phones: FakePhones, adb: Adb, tmp_path: Path
) -> None:
    phones.attach("R58M", lacks=["sha256sum"])
    local = tmp_path / "net.pbit"
    local.write_bytes(b"x")
    for _ in range(2):
        assert push_files(adb, {phone_path(local): local}).sent == (phone_path(local),)


def test_a_phone_says_what_it_is(adb: Adb) -> None:
    phone = Phone.of(adb.properties())
    assert phone.text == "Pixel 8, Android 14, Google Tensor G3, arm64-v8a"
    assert phone.to_dict()["abis"] == ("arm64-v8a", "armeabi-v7a")


def test_older_phones_tell_their_board_in_place_of_the_chip() -> None:
    older = {name: value for name, value in PROPERTIES.items() if ".soc." not in name}
    assert Phone.of({**older, "ro.board.platform": "msm8998"}).soc == "msm8998"


def test_what_is_no_phone_or_too_old_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"API level 24 .*got API level 23"):
        Phone.of({**PROPERTIES, "ro.build.version.sdk": "23"})
    with pytest.raises(DeviceError, match="is it Android"):
        Phone.of({})
