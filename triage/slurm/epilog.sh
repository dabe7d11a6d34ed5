#!/bin/sh
# Has triage diagnose each job that did not complete. Made by `triage slurm install-epilog`; see docs/slurm.md.
#
# As Epilog= in slurm.conf it runs on the nodes, as root, and reads each job's logs as the job's own user; as
# EpilogSlurmctld= it runs beside the controller, once a job, and sees jobs whose node is gone as well. It never delays or
# fails an epilog: the work is done in the background, within bounds, and the exit code is always 0.
#
# Settings of triage (TRIAGE_NOTIFY, TRIAGE_DATABASE_URL ...) stand as NAME=value lines in the file below. Where they hold
# secrets, set RUN_AS to an account of yours that may read the logs: what a user runs, a user can see.

TRIAGE=@TRIAGE@
SETTINGS=@SETTINGS@
LOG=@LOG@
RUN_AS=@RUN_AS@      # empty: the job's own user
SLOTS=@SLOTS@        # diagnoses at a time on this machine
MOST=@MOST@          # seconds for one
STATE=/run/triage-epilog

folder() { # a folder of our own to hold locks, somewhere
    for place in "$STATE" "${TMPDIR:-/tmp}/triage-epilog.$(id -u)"; do
        mkdir -m 700 "$place" 2>/dev/null
        [ -d "$place" ] && [ ! -L "$place" ] && [ -O "$place" ] && [ -w "$place" ] && echo "$place" && return
    done
}

say() { echo "$(date '+%Y-%m-%dT%H:%M:%S') job $SLURM_JOB_ID: $*"; }

ended() { # waits until the job is in its last state; tells the array that it is a task of
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        said=$(timeout 20 scontrol show job "$SLURM_JOB_ID" 2>/dev/null)
        state=$(echo "$said" | sed -n 's/^   JobState=\([A-Z_]*\).*/\1/p' | head -n 1)
        case $state in COMPLETING | RUNNING | "") sleep 3 ;; *) break ;; esac
    done
    array=$(echo "$said" | sed -n '1s/^JobId=[0-9]* ArrayJobId=\([0-9]*\) .*/\1/p')
    [ "$state" != COMPLETED ]
}

first_node() { # an epilog of the nodes runs on each of them
    nodes=${SLURM_JOB_NODELIST:-$SLURM_NODELIST}
    [ -z "$nodes" ] || [ -z "$SLURMD_NODENAME" ] && return 0
    first=$(timeout 20 scontrol show hostnames "$nodes" 2>/dev/null | head -n 1)
    [ -z "$first" ] || [ "$first" = "$SLURMD_NODENAME" ]
}

diagnose() { # $1: what to diagnose
    [ -x "$TRIAGE" ] || { say "$TRIAGE is not there"; return; }
    user=${RUN_AS:-$SLURM_JOB_USER}
    set -- "$TRIAGE" diagnose --job "$1" --quiet
    [ -n "$TRIAGE_NOTIFY" ] && set -- "$@" --notify settings
    if [ "$(id -u)" = 0 ] && [ "${user:-root}" != root ]; then
        HOME=$(getent passwd "$user" | cut -d: -f6)
        export HOME
        set -- runuser -u "$user" -- "$@"
    fi
    say "$*"
    timeout -k 10 "$MOST" nice -n 19 "$@"
    say "ended with $?"
}

work() {
    cd /
    export PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" # the controller gives none
    if [ -r "$SETTINGS" ]; then
        set -a
        # shellcheck disable=SC1090
        . "$SETTINGS"
        set +a
    fi
    first_node && ended || return
    place=$(folder)
    job=${array:-$SLURM_JOB_ID}
    if [ -n "$array" ] && [ -n "$place" ]; then # one diagnosis for all tasks that fail within a while
        mkdir "$place/array.$job" 2>/dev/null || return
        sleep @GATHER@
        rmdir "$place/array.$job"
    fi
    lock=$place/slot.$((SLURM_JOB_ID % SLOTS))
    [ -n "$place" ] && (: >>"$lock") || lock=$0
    (flock -w 3600 9 && diagnose "$job") 9<"$lock"
}

case $1 in
--work)
    exec 3>&-
    work
    ;;
*)
    case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac
    (: >>"$LOG") 2>/dev/null || LOG=/dev/null
    # Slurm kills the epilog's process group once it ends: wait until the work is in a session of its own and closes 3.
    : "$(setsid "$0" --work 3>&1 </dev/null >>"$LOG" 2>&1 &)"
    ;;
esac 2>/dev/null
exit 0
