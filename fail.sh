#!/bin/bash
echo "starting"; srun -n2 -N2 bash -c 'echo "rank $SLURM_PROCID"; [ $SLURM_PROCID = 1 ] && { echo "Traceback (most recent call last):" >&2; echo "  File \"t.py\", line 3, in <module>" >&2; echo "ValueError: bad shape 3" >&2; exit 3; }; exit 0'
