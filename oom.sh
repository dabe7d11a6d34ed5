#!/bin/bash
srun -n1 python3 -c 'import time; x=bytearray(400<<20); print("allocated",flush=True); time.sleep(20)'
