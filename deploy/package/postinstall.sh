#!/bin/sh
# Runs after the files are in place, at a first installation and at an upgrade.
set -e
systemd-sysusers ropeline.conf 2>/dev/null || {
	getent group ropeline >/dev/null || groupadd --system ropeline
	getent passwd ropeline >/dev/null || useradd --system --gid ropeline --home-dir /var/lib/ropeline \
		--no-create-home --shell /usr/sbin/nologin ropeline
}
chgrp ropeline /etc/ropeline /etc/ropeline/ropeline.yaml
# systemd would make it at the first start; a secret has to be put there before.
[ -d /var/lib/ropeline ] || install -d -m 0700 -o ropeline -g ropeline /var/lib/ropeline
# As 10-ropeline.conf does at each start of the machine, but what is more already stays.
for key in net.core.rmem_max net.core.wmem_max; do
	most=$(sysctl --values $key 2>/dev/null) || continue # a container may not have it
	[ "$most" -ge 7500000 ] || sysctl --quiet --write $key=7500000 2>/dev/null || true
done
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if systemctl --quiet is-active ropeline; then
		# Nodes are restarted one after the other, and no package knows about the others.
		echo "ropeline: the version from before still runs. To use this one: systemctl restart ropeline, on one node after the other"
	fi
fi
