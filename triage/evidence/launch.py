"""What a line says of the program that a job runs: script, image, configuration, model; never of who, where or when. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python|/bin/")  # no script of the job's own lies there
_LAUNCHER = re.compile(
    r"(?:^|[\s'\"/;&|(=])(python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|mpiexec|jsrun|aprun|horovodrun"
    r"|torch\.distributed\.(?:run|launch)|deepspeed\.launcher\.launch)['\",]*\s"
)
_SCRIPT = re.compile(r"(?<![\w=./~-])['\"]?([\w./~+-]*[\w-]\.py)(?![\w.])")
_MODULE = re.compile(r"\s-m\s+([A-Za-z_][\w.]{2,80})")
_LAUNCHING = ("torch.distributed.", "deepspeed.launcher", "accelerate.commands", "pip", "venv", "torch.utils")
_RUNNERS = frozenset(("srun", "mpirun", "mpiexec", "jsrun", "aprun"))
_BINARY = re.compile(r"(?!/(?:usr/)?s?bin/)(?:[\w.~+-]*/)+([A-Za-z][\w.+-]{1,60})")
_SHELLS = frozenset(
    [
        "bash",
        "sh",
        "zsh",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "ls",
        "cat",
        "echo",
        "hostname",
        "sleep",
        "true",
        "date",
        "sudo",
        "singularity",
        "apptainer",
        "python3",
        "python",
    ]
)
_IMAGE = re.compile(
    r"(?:container|docker|singularity|apptainer)?[-_ ]?image['\"]?\s{0,2}[=: ]\s{0,2}['\"]?([\w.:/@+-]{3,200})"
    r"|docker://([\w.:/@+-]{3,200})|((?:nvcr|ghcr|quay|gcr)\.io/[\w.:/@+-]{3,200})"
    r"|([\w./+-]{1,200}\.(?:sif|sqsh))\b",
    re.IGNORECASE,
)
_CONFIG = re.compile(
    r"(?:config|cfg|deepspeed|recipe)[\w-]*['\"]?\s{0,2}[=: ]\s{0,2}['\"]?([\w./~+-]{1,200}\.(?:ya?ml|json|toml|ini|gin))\b"
)
_MODEL = re.compile(
    r"(?:--model|(?:pretrained_)?model_name_or_path|--model[-_](?:name|id|path))['\"]?[=: ]\s{0,2}['\"]?([\w./~+-]{2,200})"
)
_ANY_CONFIG = frozenset(("config.json", "generation_config.json", "tokenizer_config.json", "config.yaml"))
_NUMBERED = re.compile(r"[0-9a-f]{8,}|\d{5,}")
_MAX_NAME = 60


def features(text: str) -> Iterator[str]:
    """Such as "script:pretrain_gpt.py", "image:pytorch", "config:ds_config.json", "model:llama-7b"."""
    if found := _LAUNCHER.search(text):
        yield from (f"script:{script}" for script in _script(text, found) if script)
    if (
        "mage" in text
        or "ocker://" in text
        or ".io/" in text
        or ".sif" in text
        or ".sqsh" in text
        or "ontainer" in text
    ):
        for image in _IMAGE.finditer(text):
            if value := _image(next(group for group in image.groups() if group)):
                yield f"image:{value}"
    for config in _CONFIG.finditer(text):
        if (value := name(config[1])) and value not in _ANY_CONFIG:
            yield f"config:{value}"
    if "model" in text:
        for model in _MODEL.finditer(text):
            if not model[1].replace(".", "").isdecimal() and (value := name(model[1].rstrip("/")).lower()):
                yield f"model:{value}"


def starts(text: str) -> bool:
    """Whether the line starts a program: python, torchrun, srun and their like with something behind."""
    return _LAUNCHER.search(text) is not None


def name(path: str) -> str:
    """The last part of a path, with job numbers and hashes as #."""
    return _NUMBERED.sub("#", path.rsplit("/", 1)[-1])[:_MAX_NAME]


def _script(text: str, launcher: re.Match[str]) -> Iterator[str]:
    """The first script, module or program behind the launcher."""
    rest = text[launcher.end() - 1 :]
    module = _MODULE.search(rest)
    script = _SCRIPT.search(rest)
    if module and not module[1].startswith(_LAUNCHING) and (not script or module.start() < script.start()):
        yield module[1]
    elif script:
        yield "" if LIBRARY.search(script[1]) else name(script[1])
    elif launcher[1] in _RUNNERS:
        yield _program(rest)


def _program(rest: str) -> str:
    """The program that a runner starts: the first path that is no value of an option; "" in prose."""
    before = ""
    for token in rest.split()[:40]:
        path = _BINARY.fullmatch(token.strip("'\""))
        if path and not (len(before) == 2 and before[0] == "-") and path[1] not in _SHELLS:
            return name(path[1])
        before = token
    return ""


def _image(reference: str) -> str:
    """The name of an image without registry, folder, tag and digest; "" for what is none."""
    path = reference.partition("@")[0].rstrip(":/")
    last = path.rsplit("/", 1)[-1]
    last = last.partition(":")[0].removesuffix(".sif").removesuffix(".sqsh")
    looks_like = "/" in reference or ":" in reference or reference.endswith((".sif", ".sqsh"))
    return _NUMBERED.sub("#", last)[:_MAX_NAME].lower() if looks_like and last[:1].isalpha() else ""
