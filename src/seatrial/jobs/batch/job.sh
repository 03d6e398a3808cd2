#!/bin/sh
# Runs on the first node of a job: marks its start and its end, and measures in between.
folder={folder}
id={id}
cd -- "$folder" || exit 125
mark() {{
    name=$1
    shift
    printf '%s\n' "$@" >".$name.$$" && mv -f ".$name.$$" "$name"
}}
# A link is made whole or not at all: either the job takes its folder, or who submitted it gave it up before.
ln -s "$id" taken 2>/dev/null
if [ "$(readlink taken)" != "$id" ]; then
    echo "this job was given up before it started; it measures nothing"
    exit 0
fi
start="$(uname -n)-$$-$(date +%s)"
rm -f ended
mark started "job=$id" "host=$(uname -n)" "time=$(date +%s)" "start=$start" || exit 125
{variables}
{in_job}={job}/$start
export {in_job}
cd -- {cwd} || {{
    mark ended "status=125" "time=$(date +%s)"
    exit 125
}}
{first}{command} </dev/null &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM
trap 'kill -INT "$child" 2>/dev/null' INT
trap 'kill -HUP "$child" 2>/dev/null' HUP
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do # a signal ends the wait, not the child
    wait "$child"
    status=$?
done
cd -- "$folder" && mark ended "status=$status" "time=$(date +%s)"
exit "$status"
