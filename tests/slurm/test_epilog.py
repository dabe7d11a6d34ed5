import shlex
import subprocess

from triage.slurm.epilog import Epilog


def test_every_value_is_quoted_for_a_shell() -> None:
    script = Epilog("/opt/my triage/$(id)", settings="/etc/x'y", log="/var/log/a b", run_as="ada;id").script()
    for value in ("/opt/my triage/$(id)", "/etc/x'y", "/var/log/a b", "ada;id"):
        assert f"={shlex.quote(value)}" in script
    assert "@" not in script.replace("$@", "")
    assert subprocess.run(["sh", "-n"], input=script.encode(), check=False, capture_output=True).stderr == b""


def test_the_second_job_of_a_user_runs_only_if_the_first_fails() -> None:
    text = Epilog("/opt/triage").after()
    assert "--dependency=afternotok:$job --kill-on-invalid-dep=yes" in text
    assert '--wrap="/opt/triage diagnose --job $job"' in text
    assert subprocess.run(["sh", "-n"], input=text.encode(), check=False).returncode == 0
