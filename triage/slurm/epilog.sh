#!/bin/sh
# Has triage diagnose each job that did not complete. Made by `triage slurm install-epilog`; see docs/slurm.md.
#
# As Epilog= in slurm.conf it runs on the nodes, as root, and reads each job's logs as the job's own user; as
# EpilogSlurmctld= it runs beside the controller, once a job, and sees jobs whose node is gone as well. It never delays or
# fails an epilog: the work is done in the background, within bounds, and the exit code is always 0.
#
# Settings of triage (TRIAGE_NOTIFY, TRIAGE_DATABASE_URL ...) stand as NAME=value lines in the file below, each taken as it
# stands; no shell reads it. Where they hold secrets, set RUN_AS to an account of yours that may read the logs: what a user
# runs, a user can see.

TRIAGE=@TRIAGE@
SETTINGS=@SETTINGS@
LOG=@LOG@
RUN_AS=@RUN_AS@      # empty: the job's own user
SLOTS=@SLOTS@        # diagnoses at a time on this machine
MOST=@MOST@          # seconds for one
WAITING=@WAITING@    # jobs that wait for a diagnosis at a time on this machine; more are left out, and the log says so
STATE=/run/triage-epilog

folder() { # a folder of our own to hold locks, somewhere
    for place in "$STATE" "${TMPDIR:-/tmp}/triage-epilog.$(id -u)"; do
        mkdir -m 700 "$place" 2>/dev/null
        [ -d "$place" ] && [ ! -L "$place" ] && [ -O "$place" ] && [ -w "$place" ] && echo "$place" && return
    done
}

say() { echo "$(date '+%Y-%m-%dT%H:%M:%S') job $SLURM_JOB_ID: $*"; }

settings() { # exports them; one whole value may stand in quotes
    [ -e "$SETTINGS" ] || return
    number=0 return=$(printf '\r')
    while read -r line || [ -n "$line" ]; do
        number=$((number + 1)) line=${line%"$return"}
        case $line in '' | '#'*) continue ;; esac
        line=${line#export }
        name=${line%%=*} value=${line#*=}
        case $name in
        "$line" | '' | [0-9]* | *[!A-Za-z0-9_]*)
            say "line $number of $SETTINGS is not NAME=value and was left out"
            continue
            ;;
        esac
        case $value in
        \'*\') value=${value#\'} value=${value%\'} ;;
        \"*\") value=${value#\"} value=${value%\"} ;;
        esac
        if (export "$name=$value") 2>/dev/null; then # a shell has names that nobody may set, and ends if one does
            export "$name=$value"
        else
            say "line $number of $SETTINGS cannot be set and was left out"
        fi
    done <"$SETTINGS"
}

may_wait() { # $1: the folder; counts those whose process is still there
    [ -n "$1" ] || return 0
    mine=$1/waiting.$$
    (: >"$mine") || return 0
    trap 'rm -f "$mine"' EXIT
    for place in "$1"/waiting.*; do
        kill -0 "${place##*.}" 2>/dev/null || rm -f "$place"
    done
    set -- "$1"/waiting.*
    [ $# -le "$WAITING" ] && return
    say "$WAITING others wait for a diagnosis; if this job failed, run: $TRIAGE diagnose --job $SLURM_JOB_ID"
    return 1
}

ended() { # waits until the job is in its last state; tells the array that it is a task of
    for pause in 1 2 4 8 15 30; do
        said=$(timeout 20 scontrol show job "$SLURM_JOB_ID" 2>/dev/null)
        state=$(echo "$said" | sed -n 's/^   JobState=\([A-Z_]*\).*/\1/p' | head -n 1)
        case $state in COMPLETING | RUNNING | "") sleep $pause ;; *) break ;; esac
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
    settings
    first_node || return
    locks=$(folder)
    may_wait "$locks" && ended || return
    job=${array:-$SLURM_JOB_ID}
    if [ -n "$array" ] && [ -n "$locks" ] && (: >>"$locks/tasks.$job"); then # one diagnosis for all that fail within a while
        exec 8>>"$locks/tasks.$job" # a lock ends with its process, whatever ends that
        flock -n 8 || return
        sleep @GATHER@
        rm -f "$locks/tasks.$job"
        exec 8>&-
    fi
    lock=$locks/slot.$((SLURM_JOB_ID % SLOTS))
    [ -n "$locks" ] && (: >>"$lock") || lock=$0
    (
        flock -w 3600 9 || { say "no turn within an hour; run: $TRIAGE diagnose --job $job"; exit; }
        diagnose "$job"
    ) 9<"$lock"
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
esac
exit 0
