"""Logs on their way from a client to disk: as they come, never whole in memory, and never more than is allowed."""

from __future__ import annotations

import errno
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from triage.errors import InputError
from triage.web import names

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MOST_FILES = 4096
MOST_FIELD = 4096  # bytes of a field that is no file
Field = Callable[[str, str | None], None]  # the name of a part and its text; None for a file, before it is read
SPARE = 256 << 20  # bytes that an upload must leave free


class NoRoomError(InputError):
    """The disk has no room for it."""


def check_space(folder: Path, wanted: int) -> None:
    """Errors: NoRoomError."""
    free = shutil.disk_usage(folder).free
    if free < wanted + SPARE:
        raise NoRoomError(
            f"the server has {max(0, free - SPARE) >> 20:,} MB of disk left", "ask who runs it to make room"
        )


async def raw(stream: AsyncIterator[bytes], name: str, folder: Path) -> list[str]:
    """The body as one file. Errors: InputError, NoRoomError."""
    place = names.safe_name(name)
    with _Out(folder) as out:
        out.begin(place)
        async for piece in stream:
            out.write(piece)
    return out.done()


async def multipart(stream: AsyncIterator[bytes], content_type: str, folder: Path, field: Field) -> list[str]:
    """Each part with a file name as a file; the others are given to `field` as they come. Errors: InputError, NoRoomError,
    those of `field`."""
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise InputError("the body is no multipart/form-data", "send files as curl -F 'logs=@job.out' does")
    with _Out(folder) as out:
        form = _Form(out, field)
        try:
            parser = MultipartParser(options[b"boundary"], form.callbacks())
            async for piece in stream:
                parser.write(piece)
            parser.finalize()
        except (MultipartParseError, UnicodeError):
            raise InputError("the body breaks off or is no proper multipart/form-data") from None
        if not form.ended:
            raise InputError("the body breaks off", "send it again")
    return out.done()


class _Out:
    """The files of one upload."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[PurePosixPath, int] = {}
        self._taken = names.Taken()
        self._now: tuple[PurePosixPath, BinaryIO] | None = None

    def begin(self, name: PurePosixPath) -> None:
        self.end()
        if len(self._sizes) >= MOST_FILES:
            raise InputError(f"more than {MOST_FILES:,} files", "pack them, or point to their folder")
        place = self._taken.another(name)
        path = self._folder / place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._now = place, path.open("xb")
        except OSError as error:
            raise _no_room(error) from None
        self._sizes[place] = 0

    def write(self, piece: bytes) -> None:
        assert self._now is not None
        place, file = self._now
        try:
            file.write(piece)
        except OSError as error:
            raise _no_room(error) from None
        self._sizes[place] += len(piece)

    def end(self) -> None:
        if self._now is not None:
            (_, file), self._now = self._now, None
            try:
                file.close()
            except OSError as error:
                raise _no_room(error) from None

    def done(self) -> list[str]:
        """The files that hold something, by their names. Errors: InputError where none does."""
        found = [str(place) for place, size in self._sizes.items() if size]
        if not found:
            raise InputError("no log came with it, or only empty ones", "choose at least one file")
        return found

    def __enter__(self) -> _Out:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _no_room(error: OSError) -> InputError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoRoomError("the server's disk is full", "ask who runs it to make room")
    return InputError("the server could not write the upload")


class _Form:
    """What the parser of a form calls."""

    def __init__(self, out: _Out, field: Field) -> None:
        self._out, self._field = out, field
        self._header = self._value = b""
        self._about: dict[bytes, bytes] = {}
        self._text: bytearray | None = None
        self.ended = False

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._on_header,
            "on_header_value": self._on_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_done,
            "on_part_data": self._data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._about, self._text = {}, None

    def _on_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._about = parse_options_header(self._value)[1]
        self._header = self._value = b""

    def _headers_done(self) -> None:
        given = self._about.get(b"filename")
        if given is None:
            self._text = bytearray()
        else:
            self._field(self._name(), None)
            self._out.begin(names.safe_name(given.decode("utf-8", "replace")))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._text is None:
            self._out.write(data[start:end])
        elif len(self._text) + end - start > MOST_FIELD:
            raise InputError("a field of the form is too long", "send logs as files, with a file name")
        else:
            self._text += data[start:end]

    def _part_end(self) -> None:
        if self._text is None:
            self._out.end()
        else:
            self._field(self._name(), self._text.decode("utf-8", "replace"))

    def _name(self) -> str:
        return self._about.get(b"name", b"").decode("utf-8", "replace")

    def _end(self) -> None:
        self.ended = True
