import pytest

from triage.slurm import options


@pytest.mark.parametrize(
    ("line", "stdout", "stderr"),
    [
        ("sbatch -N2 train.sh", "", ""),
        ("sbatch -o out.%j train.sh", "out.%j", ""),
        ("sbatch --parsable -oout.%j -e err.%j train.sh -o mine", "out.%j", "err.%j"),
        ("sbatch --output=a/%x.out --error b.err -J name --exclusive train.sh", "a/%x.out", "b.err"),
        ("sbatch -N 2 -n 8 -t 1:00:00 -o x train.sh", "x", ""),
        ("sbatch -H -o x train.sh", "x", ""),
        ("srun python train.py --output results", "", ""),
        ("srun -l --kill-on-bad-exit --output=rank-%t.log python train.py", "rank-%t.log", ""),
        ("sbatch -N1 : -N1 -o x train.sh", "x", ""),
        ("sbatch -o", "", ""),
        ("", "", ""),
    ],
)
def test_where_output_goes_is_read_from_a_command_line(line: str, stdout: str, stderr: str) -> None:
    asked = options.of_line(line)
    assert (asked.stdout, asked.stderr) == (stdout, stderr)


def test_the_script_is_the_first_word_that_is_no_option() -> None:
    assert options.of_line("sbatch -N2 --parsable job/train.sh --lr 1").program == "job/train.sh"


def test_directives_count_until_the_first_command() -> None:
    script = "#!/bin/bash\n# a word\n#SBATCH -N 2 --output='a.%j'  # where\n\n#SBATCH --error=b.%j\nmodule load x\n#SBATCH -o late\n"
    asked = options.of_script(script)
    assert (asked.stdout, asked.stderr) == ("a.%j", "b.%j")


def test_steps_of_a_script_are_told_where_only_slurm_s_own_variables_stand_in_the_names() -> None:
    script = (
        "#!/bin/bash\nsrun -n8 \\\n  --output=logs/${SLURM_JOB_ID}/rank-%t.log python a.py\n"
        '# srun --output=no python\nsrun -o "$OUT/x" python b.py\nif srun -o c.%N python c.py; then true; fi\n'
    )
    assert [asked.stdout for asked in options.steps_of(script)] == ["logs/%j/rank-%t.log", "", "c.%N"]
