#!/bin/bash
echo "task $SLURM_ARRAY_TASK_ID"; [ $SLURM_ARRAY_TASK_ID = 2 ] && { echo "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.bin'" >&2; exit 1; }; exit 0
