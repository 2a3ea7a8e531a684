"""Checksums of pages, read from their headers."""

from __future__ import annotations

import pytest

from o2td.sources.checksums import _page_has_checksum


@pytest.mark.parametrize(
    ("header", "checked"),
    [
        (b"", False),
        (bytes([0x15, 0x00, 0x15, 0x00, 0x15, 0x00]), False),  # it ends before the fourth field
        (bytes([0x15, 0x80, 0x01, 0x15, 0x00, 0x15, 0x00, 0x15, 0x07]), True),
        (
            bytes([0x15, 0x00, 0x15, 0x00, 0x15, 0x00, 0x2C]),
            False,
        ),  # a struct, which is no checksum
        (bytes([0x15, 0x00, 0x45, 0x00]), False),  # the fourth is left out
    ],
)
def test_a_page_has_a_checksum_if_its_header_has_a_fourth_number(
    header: bytes, checked: bool
) -> None:
    assert _page_has_checksum(header) is checked
