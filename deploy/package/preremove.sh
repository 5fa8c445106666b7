#!/bin/sh
set -e
# "remove" is Debian's word, 0 that of RPM; at an upgrade the node goes on.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl --quiet disable --now ropeline || true
	fi
fi
