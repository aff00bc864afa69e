#!/bin/bash
# run.sh HOST:PORT : librdkafka's own tests of groups, with the group protocol of KIP-848; mostly they wait, so that the
# longest, 0033, and 0045 run beside the others
here=$(dirname "$(readlink -f "$0")")
export TEST_CONSUMER_GROUP_PROTOCOL=consumer
room=$WORK
some() { WORK=$room/$1 "$here/../librdkafka/run.sh" "$2" "$1"; }
some 0018,0019,0029,0030,0034,0040,0050,0051,0056,0064,0122,0130,0140,0153 "$1" &
some 0033 "$1" &
# of 0045 those that do not leave the group right after they subscribed, see FINDINGS.md
SUBTESTS=regex some 0045 "$1" | grep -v '_many_updates' &
wait
