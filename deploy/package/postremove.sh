#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
# RPM says 0 where it removes. A directory that was never used goes; one that was has
# rights that are this node's alone, and the mesh misses them.
if [ "$1" = purge ] || [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /var/lib/ropeline ] && ! rmdir /var/lib/ropeline 2>/dev/null; then
		echo "ropeline: /var/lib/ropeline is kept. It has rights of the mesh: before you delete it, see \"Removing\" in docs/installing.md"
	fi
fi
