"""What numbers in a line mean: NVLink-5 Xids, completion states of InfiniBand, exit codes and signals. Pure.

Tables after NVIDIA's Xid catalogue, libibverbs' ibv_wc_status and the POSIX signals.
"""

from __future__ import annotations

import re
import signal

_NVLINK5 = re.compile(
    r"\bXid \([^)]{1,60}\): (?P<xid>14[4-9]|150), (?:pid=\S{1,20}, name=[^,]{1,80}, )?(?P<unit>[A-Z]+_\w{1,40})"
    r"(?: [Ee]vent)?(?: (?P<grade>[A-Z][a-z]+(?: Fatal)?))?[^(]{0,80}(?:\((?P<info>0x[0-9A-Fa-f]{1,8})\b)?"
)
_UNITS = {144: "SAW", 145: "RLW", 146: "TLW", 147: "TREX", 148: "NVLPW", 149: "NETIR", 150: "MSE"}
_LINK_DOWN = {  # sub-codes of Xid 149
    1: "the link went down by itself; report it if it comes more than once a day",
    40: "the host took the link down",
    42: "a cable was taken out or is bad",
    43: "a cable was taken out or is bad",
    **dict.fromkeys((2, 4, 10), "signal integrity of this link"),
    **dict.fromkeys((15, 16, 17, 18, 22, 38), "software or a user shut it down"),
    **dict.fromkeys((21, 32, 33, 34, 35, 36, 37), "the peer device is the source"),
}
_COMPLETION = re.compile(r"\b(?:status|wc_status|wc status)[= ](?:\w{1,40}\()?(?P<code>\d{1,2})\)?(?!\d)")
_IB_LINE = re.compile(r"NET/IB|ibv_|mlx\d|[Cc]ompletion|\bwc\b")
_COMPLETIONS = {
    1: ("LOC_LEN_ERR", "the sizes of the two ends differ"),
    2: ("LOC_QP_OP_ERR", "the queue pair is inconsistent: driver or firmware"),
    4: ("LOC_PROT_ERR", "memory protection on this host: ACS or IOMMU, or nvidia-peermem is not loaded"),
    5: ("WR_FLUSH_ERR", "flushed after another error: look for the first state that is not 5"),
    6: ("MW_BIND_ERR", "a memory window could not be bound"),
    7: ("BAD_RESP_ERR", "the peer sent what was not expected"),
    8: ("LOC_ACCESS_ERR", "access to local memory was refused"),
    9: ("REM_INV_REQ_ERR", "the peer calls the request invalid: versions or sizes differ"),
    10: ("REM_ACCESS_ERR", "the peer refused access to its memory"),
    11: ("REM_OP_ERR", "the peer failed: look at its log"),
    12: ("RETRY_EXC_ERR", "the peer did not answer: it is dead, the link is down, or the fabric is congested"),
    13: ("RNR_RETRY_EXC_ERR", "the peer was not ready to receive for too long"),
    22: ("GENERAL_ERR", "a transport error without a state of its own"),
}
_EXIT = re.compile(
    r"(?:[Ee]xit ?[Cc]ode|exitcode|exit status|return code|[Ee]xited with (?:exit )?(?:code|status))[ =:]{1,12}(?P<code>-?\d{1,3})\b(?!:)"
)
_PAIR = re.compile(r"\bExitCode[=:| ]{1,3}(?P<code>\d{1,3}):(?P<signal>\d{1,3})\b")
_CODES = {
    2: "wrong usage, as argparse and shells report it",
    107: "the endpoint of a network file system is not connected",
    126: "the program is not executable",
    127: "the command was not found",
    255: "exit(-1), or ssh or srun itself failed",
}
_SIGNALS = {
    signal.SIGABRT: "the program or a watchdog aborted: read the text just above",
    signal.SIGBUS: "the shared memory of /dev is full, or a mapped file was cut or is on a file system that failed",
    signal.SIGKILL: "out of memory, the scheduler or a person: without a line that says which, unknown",
    signal.SIGSEGV: "native code; on one host only, suspect its hardware",
    signal.SIGILL: "the program was built for another CPU",
    signal.SIGFPE: "an arithmetic error in native code",
    signal.SIGTERM: "told to stop: teardown after another failure, preemption, time limit or cancel",
    signal.SIGINT: "interrupted by a person or the scheduler",
    signal.SIGUSR1: "a warning before a limit, as --signal asks for",
    signal.SIGUSR2: "a warning before a limit, as --signal asks for",
    signal.SIGXCPU: "the limit of CPU time",
    signal.SIGXFSZ: "the limit of file size",
}


def explain(text: str) -> str:
    """What the numbers of the line mean, in words; "" when it has none that are known."""
    if "Xid" in text and (found := _NVLINK5.search(text)):
        return _nvlink5(found)
    if _IB_LINE.search(text) and (found := _COMPLETION.search(text)):
        return completion(int(found["code"]))
    if found := _PAIR.search(text):
        code, number = int(found["code"]), int(found["signal"])
        return exit_code(-number if number else code)
    if found := _EXIT.search(text):
        return exit_code(int(found["code"]))
    return ""


def sub_code(info: int) -> int:
    """The sub-code in the first register of an NVLink-5 Xid: bits 20 to 25."""
    return (info >> 20) & 0x3F


def _nvlink5(found: re.Match[str]) -> str:
    xid = int(found["xid"])
    parts = [f"NVLink-5 {_UNITS[xid]}: {found['unit']}"]
    if found["grade"]:
        parts.append(found["grade"].lower())
    if found["info"]:
        code = sub_code(int(found["info"], 16))
        if code:
            parts.append(f"sub-code {code}")
        if xid == 149 and code in _LINK_DOWN:
            parts.append(_LINK_DOWN[code])
    return ", ".join(parts)


def completion(code: int) -> str:
    """The state of an InfiniBand or RoCE work request (ibv_wc_status); "" for one without a meaning of its own."""
    name, means = _COMPLETIONS.get(code, ("", ""))
    return f"state {code} {name}: {means}" if name else ""


def exit_code(code: int) -> str:
    """A process's exit code: negative or above 128 for a signal; "" for 0, 1 and codes of the program's own."""
    number = -code if code < 0 else code - 128 if code > 128 else 0
    try:
        known = signal.Signals(number) if number else None
    except ValueError:
        known = None
    if known is not None and code != 255:
        means = _SIGNALS.get(known, "")
        return f"{code} is {known.name}" + (f": {means}" if means else "")
    return f"{code}: {_CODES[code]}" if code in _CODES else ""
