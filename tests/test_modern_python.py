"""Nothing in our code that Python 3.12 or 3.13 deprecates or has removed, whichever runs this."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)

# Modules that are gone in 3.12 (PEP 632 and others) and in 3.13 (PEP 594).
REMOVED = {
    "asynchat", "asyncore", "distutils", "imp", "smtpd",
    "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib",
    "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu",
    "xdrlib", "pkg_resources",
}  # fmt: skip

# Attributes that are deprecated or gone, as they are written.
OLD = {
    "ast.Bytes", "ast.Ellipsis", "ast.NameConstant", "ast.Num", "ast.Str",
    "asyncio.get_event_loop_policy", "asyncio.set_event_loop_policy",
    "configparser.SafeConfigParser", "datetime.datetime.utcfromtimestamp",
    "datetime.datetime.utcnow", "datetime.utcfromtimestamp", "datetime.utcnow",
    "importlib.abc.ResourceReader", "importlib.find_loader", "importlib.resources.contents",
    "importlib.resources.is_resource", "importlib.resources.open_binary",
    "importlib.resources.open_text", "importlib.resources.path",
    "importlib.resources.read_binary", "importlib.resources.read_text",
    "inspect.formatargspec", "inspect.getargspec", "locale.getdefaultlocale",
    "locale.resetlocale", "logging.warn", "np.product", "np.trapz", "os.popen2",
    "pkgutil.ImpImporter", "pkgutil.ImpLoader", "pkgutil.find_loader", "pkgutil.get_loader",
    "pty.master_open", "shutil.ExecError", "sqlite3.enable_shared_cache", "ssl.match_hostname",
    "ssl.wrap_socket", "sys.setcheckinterval", "tempfile.mktemp", "typing.ByteString", "typing.io",
    "typing.re", "unittest.findTestCases", "unittest.makeSuite", "webbrowser.MacOSX",
}  # fmt: skip


def findings(tree: ast.AST) -> Iterator[str]:
    """What is used in this source that newer Pythons do not like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] in REMOVED)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if node.module.split(".")[0] in REMOVED:
                yield node.module
            whole = {f"{node.module}.{one.name}" for one in node.names}
            yield from sorted(whole & OLD)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in OLD:
            yield ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # Without a filter, 3.12 warns and 3.14 changes what is extracted.
            extracts = node.func.attr in ("extract", "extractall")
            if extracts and not {one.arg for one in node.keywords} & {"filter"}:
                yield ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_has_nothing_that_newer_pythons_dislike(path: Path) -> None:
    with warnings.catch_warnings():
        # Among others a backslash in a text that stands for nothing, a SyntaxWarning from 3.12 on.
        warnings.simplefilter("error")
        tree = ast.parse(path.read_text("utf-8"), str(path))
    assert [*findings(tree)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import imp",
        "import distutils.util",
        "from telnetlib import Telnet",
        "import datetime; datetime.datetime.utcnow()",
        "from datetime import datetime; datetime.utcnow()",
        "from ast import Str",
        "import tarfile; tarfile.open('x').extractall('y')",
    ],
)
def test_what_is_disliked_is_found(code: str) -> None:
    assert [*findings(ast.parse(code))] != []


def test_what_is_liked_is_not_found() -> None:
    code = "from .imp import thing; from . import cgi; archive.extractall('y', filter='data')"
    assert [*findings(ast.parse(code))] == []
