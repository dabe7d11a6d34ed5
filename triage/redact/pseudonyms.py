"""Personal data out of what a model reads, and back into what it says: the same stand-in for the same thing, all along.

Hidden are e-mail addresses, names of users where a home folder or a variable tells them, private IP addresses, and host
and path of web addresses that are not of a well-known public site. Names of nodes stay: they are evidence.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

# As a model may write it back. One that stands in the log is hidden like all else.
_STAND_IN = re.compile(r"<(email|user|ip|host|path)-(\d{1,6})>", re.IGNORECASE)
_SERVICES = frozenset(  # users that are no persons, and folders that lie beside those of users
    [
        "root",
        "user",
        "users",
        "admin",
        "administrator",
        "ubuntu",
        "centos",
        "debian",
        "rocky",
        "ec2-user",
        "azureuser",
        "opc",
        "cloud-user",
        "core",
        "vagrant",
        "runner",
        "jovyan",
        "app",
        "appuser",
        "node",
        "nobody",
        "daemon",
        "slurm",
        "munge",
        "mpi",
        "mpiuser",
        "ray",
        "spark",
        "hadoop",
        "hdfs",
        "yarn",
        "postgres",
        "mysql",
        "redis",
        "git",
        "jenkins",
        "gitlab-runner",
        "docker",
        "container",
        "default",
        "test",
        "guest",
        "shared",
        "share",
        "common",
        "public",
        "data",
        "datasets",
        "project",
        "projects",
        "scratch",
        "work",
        "tmp",
        "opt",
        "lib",
        "local",
        "all",
        "none",
        "null",
        "unknown",
        "true",
        "false",
        "self",
    ]
)
_PUBLIC = re.compile(
    r"(?:^|\.)(?:huggingface\.co|hf\.co|github\.com|githubusercontent\.com|gitlab\.com|pypi\.org|pythonhosted\.org|python\.org"
    r"|pytorch\.org|nvidia\.com|nvcr\.io|docker\.(?:io|com)|gcr\.io|ghcr\.io|quay\.io|k8s\.io|kubernetes\.io|wandb\.ai|openai\.com"
    r"|anthropic\.com|amazonaws\.com|googleapis\.com|google\.com|windows\.net|microsoft\.com|azure\.com|tensorflow\.org"
    r"|readthedocs\.(?:io|org)|apache\.org|schedmd\.com|ubuntu\.com|debian\.org|kernel\.org|gnu\.org|stackoverflow\.com|arxiv\.org"
    r"|modelscope\.cn|deepspeed\.ai|ray\.io|mlflow\.org|w3\.org|intel\.com|amd\.com|anaconda\.(?:com|org))$",
    re.IGNORECASE,
)
_NAME = r"(?>[A-Za-z_](?:[\w.-]{0,38}\w)?)"
_URL = re.compile(
    r"(\b(?:https?|ftps?|ssh|git|wss?|git\+https|git\+ssh)://(?:[^\s/@\"'<>\\]{0,256}@)?)"
    r"((?>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}))(:\d{1,5})?(/[^\s\"'<>\\()\[\]{},;]{1,2048})?"
)
_EMAIL = re.compile(r"(?<![\w.+-])((?>[A-Za-z0-9][\w.+-]{0,63})@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})(?![\w-])")
_HOME = re.compile(rf"((?<=[/\\])(?:home\d{{0,2}}|homes|[Uu]sers)[/\\]{{1,2}}|(?<![\w/.~])~(?={_NAME}/))({_NAME})")
_SAID = re.compile(
    rf"(\b(?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER|UserId)=[\"']?|\buid=\d{{1,10}}\(|\b[Ll]ogged in as:? )({_NAME})"
)
_PERHAPS = re.compile(rf"(\b(?:user_?name|user|login)[\"']?\s?[=:]\s?[\"']?)({_NAME})(?![/@])", re.IGNORECASE)
_IP = re.compile(
    r"(?<![\w.-])(?<!==)("
    r"(?:10\.\d{1,3}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))(?:\.\d{1,3}){2}(?!\.\d)"
    r"|f(?:e[89ab]|[cd][0-9a-f])[0-9a-f]:[0-9a-f:]{2,36}[0-9a-f])(?![\w-])"
)


class Pseudonyms:
    """Stand-ins such as `<user-1>`, numbered as they come. `restore(hide(text)) == text` for any text."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        """kept: names that stay, such as those of nodes."""
        self._kept = frozenset(kept)
        self._given: dict[tuple[str, str], str] = {}  # kind, what is hidden -> its stand-in
        self._hidden: dict[str, str] = {}  # the other way round
        self._users: set[str] = set()  # known for sure, so that they are hidden elsewhere too
        self._lock = threading.Lock()

    def hide(self, text: str) -> str:
        with self._lock:
            text = _STAND_IN.sub(lambda match: self._of(match[1].lower(), match[0]), text)
            if "://" in text:
                text = _URL.sub(self._address, text)
            if "@" in text:
                text = _EMAIL.sub(lambda match: self._of("email", match[1], but=match[1].partition("@")[0]), text)
            text = _HOME.sub(self._person(sure=True), text)
            text = _SAID.sub(self._person(sure=True), text)
            text = _PERHAPS.sub(self._person(sure=False), text)
            if self._users:
                text = self._known().sub(lambda match: self._of("user", match[0]), text)
            return _IP.sub(lambda match: self._of("ip", match[1]), text)

    def restore(self, text: str) -> str:
        """The text with what stands behind each stand-in; it holds no quote and no backslash, so that JSON stays JSON."""
        return _STAND_IN.sub(lambda m: self._hidden.get(f"<{m[1].lower()}-{int(m[2])}>", m[0]), text)

    def _of(self, kind: str, value: str, but: str = "") -> str:
        if value in self._kept or but in _SERVICES:
            return value
        found = self._given.get((kind, value))
        if found is None:
            number = 1 + sum(known == kind for known, _ in self._given)
            found = self._given[kind, value] = f"<{kind}-{number}>"
            self._hidden[found] = value
        return found

    def _address(self, match: re.Match[str]) -> str:
        before, host, port, path = match.groups("")
        if _PUBLIC.search(host) or _IP.fullmatch(host) or host in self._kept or host.partition(".")[0] in self._kept:
            return match[0]
        return f"{before}{self._of('host', host)}{port}" + (f"/{self._of('path', path[1:])}" if path else "")

    def _person(self, sure: bool) -> Callable[[re.Match[str]], str]:
        def hidden(match: re.Match[str]) -> str:
            name = match[2]
            if name.lower() in _SERVICES or name in self._kept:
                return match[0]
            if sure and len(name) > 2:
                self._users.add(name)
            return match[1] + self._of("user", name)

        return hidden

    def _known(self) -> re.Pattern[str]:
        """Users where nothing else can be meant: a folder, before an @, in brackets, behind a sign."""
        names = "|".join(re.escape(name) for name in sorted(self._users, key=lambda name: (-len(name), name)))
        return re.compile(
            rf"(?<![\w.-])(?:(?<=[/\\])(?:{names})(?=[/\\])|(?:{names})(?=@)|(?<=[=(\"'])(?:{names})(?=[)\"'\s,;]|$))"
        )
