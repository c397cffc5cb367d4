"""What lies beside a database, with whose rights, and on what kind of disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineclear.files import NETWORK, Files, kind_of

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
host:/books /srv/books nfs4 rw 0 0
tmpfs /srv/books/scratch tmpfs rw 0 0
//nas/a /mnt/my\\040shelf cifs rw 0 0
share /mnt/vm 9p rw 0 0
/dev/sdb1 /mnt/vm ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ann", "ext4"),
        ("/srv/books", "nfs4"),
        ("/srv/books/night/deep", "nfs4"),
        ("/srv/bookshelf", "ext4"),
        ("/srv/books/scratch/x", "tmpfs"),
        ("/mnt/my shelf/x", "cifs"),
        ("/mnt/vm/x", "ext4"),
    ],
)
def test_case_e4_the_file_system_of_a_folder_is_the_mount_nearest_above_it(
    folder: str, kind: str
) -> None:
    assert kind_of(MOUNTS, Path(folder)) == kind


def test_case_e4_network_file_systems_are_known_and_local_ones_are_not_among_them() -> None:
    assert {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs"} <= NETWORK
    assert not {"ext4", "xfs", "btrfs", "tmpfs", "overlay"} & NETWORK
    assert kind_of("", Path("/x")) == ""


def test_p15_what_lies_beside_has_the_databases_rights(tmp_path: Path) -> None:
    database = tmp_path / "q.db"
    database.touch()
    database.chmod(0o640)
    files = Files(database)
    made = files.make(files.log(1, 1).parent)
    assert made == tmp_path / "q.db.d" / "logs" and files.mode == 0o640
    assert made.stat().st_mode & 0o777 == 0o750
